"""Checkpoints as TensorFlow writes them, and models under Google's names, made from the formats' descriptions alone.

Nothing here is shared with the reader: the checksum goes bit by bit, varints and blocks are put together by hand.
"""

import json
import struct
from functools import cache

import numpy as np
import torch

MAGIC = 0xDB4775248B80FB57
TYPES = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, "bool": 10, "bfloat16": 14, "float16": 19}
LITTLE, BIG = 0, 1


@cache
def _shifted(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


def crc32c(data):
    register = 0xFFFFFFFF
    for byte in data:
        register = register >> 8 ^ _shifted((register ^ byte) & 0xFF)
    return register ^ 0xFFFFFFFF


def masked(data):
    value = crc32c(data)
    return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number, value):
    """Zero is left out, as proto3 does."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b""
    return varint(number << 3 | 2) + varint(len(value)) + value


def block(items, restart_every=16):
    """Entries with shared beginnings, then the places of those that have none."""
    out, places, before = bytearray(), [], b""
    for count, (key, value) in enumerate(items):
        shared = 0
        if count % restart_every == 0:
            places.append(len(out))
        else:
            while shared < min(len(key), len(before)) and key[shared] == before[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    places = places or [0]
    return bytes(out) + b"".join(struct.pack("<I", each) for each in [*places, len(places)])


def table(entries, per_block=40, packed=0):
    """A whole sorted string table; `packed` is what each block says of its compression."""
    out, index = bytearray(), []

    def put(content):
        place = varint(len(out)) + varint(len(content))
        out.extend(content + bytes([packed]) + masked(content + bytes([packed])))
        return place

    items = sorted(entries.items())
    for start in range(0, len(items), per_block):
        part = items[start : start + per_block]
        index.append((part[-1][0], put(block(part))))
    meta = put(block([]))
    handles = meta + put(block(index, 1))
    return bytes(out) + handles.ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def raw(tensor):
    """A tensor's type by name, shape and bytes."""
    tensor = torch.as_tensor(tensor).contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    plain = tensor.view(torch.int16) if name == "bfloat16" else tensor
    return name, tuple(tensor.shape), plain.numpy().astype(plain.numpy().dtype.newbyteorder("<")).tobytes()


def entry(kind, shape, shard, offset, data, *, sliced=False):
    dims = b"".join(field(2, field(1, size) or b"") for size in shape)
    body = field(1, kind) + field(2, dims) + field(3, shard) + field(4, offset) + field(5, len(data))
    return body + varint(6 << 3 | 5) + masked(data) + (field(7, b"\x0a\x00") if sliced else b"")


def write_checkpoint(prefix, tensors, *, shards=1, endian=LITTLE, sliced=(), packed=0):
    """NAME.index and its data files; tensors are dealt to the files in turn."""
    files = [bytearray() for _ in range(shards)]
    entries = {b"": field(1, shards) + field(2, endian) + field(3, field(1, 1))}
    for number, name in enumerate(sorted(tensors)):
        shard = number % shards
        kind, shape, data = raw(tensors[name])
        entries[name.encode()] = entry(TYPES[kind], shape, shard, len(files[shard]), data, sliced=name in sliced)
        files[shard] += data
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(files):
        prefix.with_name(f"{prefix.name}.data-{number:05d}-of-{shards:05d}").write_bytes(data)
    prefix.with_name(f"{prefix.name}.index").write_bytes(table(entries, packed=packed))


def _bert_name(name):
    """Google's name of a tensor of Hugging Face's BERT or ELECTRA, and whether it is turned."""
    parts = name.replace(".layer.", "/layer_").replace(".", "/").split("/")
    norm = "LayerNorm" in parts
    if parts[-2].endswith("_embeddings"):
        return "/".join(parts[:-1]), False
    last = {"weight": "gamma" if norm else "kernel", "bias": "beta" if norm else "bias"}[parts[-1]]
    return "/".join([*parts[:-1], last]), last == "kernel"


_PLAIN = {
    "cls.predictions.bias": "cls/predictions/output_bias",
    "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
    "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    "predictions.bias": "cls/predictions/output_bias",
    "sop_classifier.classifier.weight": "cls/seq_relationship/output_weights",
    "sop_classifier.classifier.bias": "cls/seq_relationship/output_bias",
    "generator_lm_head.bias": "generator_predictions/output_bias",
}
_ALBERT = (
    ("albert.encoder.albert_layer_groups.", "bert/encoder/transformer/group_"),
    (".albert_layers.", "/inner_group_"),
    (".attention.query.", "/attention_1/self/query/"),
    (".attention.key.", "/attention_1/self/key/"),
    (".attention.value.", "/attention_1/self/value/"),
    (".attention.dense.", "/attention_1/output/dense/"),
    (".attention.LayerNorm.", "/LayerNorm/"),
    (".full_layer_layer_norm.", "/LayerNorm_1/"),
    (".ffn_output.", "/ffn_1/intermediate/output/dense/"),
    (".ffn.", "/ffn_1/intermediate/dense/"),
    ("albert.pooler.", "bert/pooler/dense/"),
    ("predictions.dense.", "cls/predictions/transform/dense/"),
    ("predictions.LayerNorm.", "cls/predictions/transform/LayerNorm/"),
    ("albert.", "bert/"),
)
_LEFT_OUT = ("decoder.weight", "decoder.bias", "position_ids", "token_type_ids", "generator_lm_head.weight")


def _albert_name(name):
    for theirs, google in _ALBERT:
        name = name.replace(theirs, google)
    path, _, last = name.replace(".", "/").rpartition("/")
    if path.endswith("_embeddings"):
        return path, False
    norm = "LayerNorm" in path.split("/")[-1]
    return f"{path}/{ {'weight': 'gamma' if norm else 'kernel', 'bias': 'beta' if norm else 'bias'}[last] }", (
        last == "weight" and not norm
    )


def as_google(model, generator=False):
    """The variables that Google's code would have for a model of transformers."""
    found = {}
    for name, tensor in model.state_dict().items():
        if name.endswith(_LEFT_OUT):
            continue
        if name in _PLAIN:
            found[_PLAIN[name]] = tensor
            continue
        google, turned = (_albert_name if model.config.model_type == "albert" else _bert_name)(name)
        google = google.replace("discriminator_predictions/dense_prediction", "discriminator_predictions/dense_1")
        if generator and not google.startswith("electra/embeddings/"):
            google = google.replace("electra/", "generator/")
        found[google] = tensor.t().contiguous() if turned else tensor
    return found


def with_optimizer(tensors):
    """The same with Adam's averages and the number of steps, as a checkpoint in training has them."""
    slots = {f"{name}/adam_{kind}": torch.zeros_like(tensor) for name, tensor in tensors.items() for kind in "mv"}
    return {**tensors, **slots, "global_step": torch.tensor(1000, dtype=torch.int64)}


def write_vocabulary(path, size, extra=()):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *extra]
    pieces += [f"w{number}" for number in range(size - len(pieces))]
    path.write_text("\n".join(pieces) + "\n", encoding="utf-8")


def write_config(path, config, names):
    path.write_text(json.dumps({name: getattr(config, name) for name in names}), encoding="utf-8")


def flip(path, at):
    """Change one bit of a file."""
    data = np.fromfile(path, dtype=np.uint8)
    data[at] ^= 1
    data.tofile(path)
