"""Sources and targets that can be learned from a few rows, and a small model of every kind that writes for a source."""

from __future__ import annotations

from random import Random

import torch
from networks import FAMILY_SHAPES, VOCABULARY, heads_of, model_of, network_of, tokenizer
from small_task import NO_DROPOUT, quiet

from maskery.checkpoint.load import load
from maskery.checkpoint.model import Model
from maskery.model.config import ModelConfig
from maskery.rows.config import RowsConfig
from maskery.tasks.examples import Example, Examples
from maskery.tasks.finetune import made_config
from maskery.tasks.resolve import Splits, resolve
from maskery.tasks.seq2seq.model import WritingModel
from maskery.text.tokenizer import Tokenizer

CLS, SEP, MASK = 2, 3, 4
WORDS = ("the", "cat", "sat", "on", "mat")
TWO = "two vocabularies"
KINDS = {
    "bart": ("next_token", FAMILY_SHAPES["bart"]),
    "transformer": ("next_token", {"decoder": 1, "positions": "sinusoidal", "embedding_scale": True}),
    "gpt2": ("next_token", FAMILY_SHAPES["gpt2"]),
    "gpt": ("next_token", {"visibility": "causal"}),
    "shifted": ("next_token", {"visibility": "prefix", "segments": 6}),
    "unilm": ("masked_token", {"segments": 6}),
    "bert": ("masked_token", {}),
    "nezha": ("masked_token", FAMILY_SHAPES["nezha"]),
}
DECODERS = ("bart", "transformer", TWO)
PROBED = ("unilm", "bert", "nezha")


def pairs(rows, fields=("source",)):
    """(source, target) or (texts of the fields, target), each at its own line."""
    items = [
        Example(
            guid=f"train-{number}",
            texts=(source,) if isinstance(source, str) else source,
            label=target,
            file="pairs.tsv",
            line=number + 1,
        )
        for number, (source, target) in enumerate(rows)
    ]
    return Examples(task="seq2seq", fields=fields, items=tuple(items))


def copies(many, seed=1, longest=3):
    draw = Random(seed)
    texts = [" ".join(draw.choice(WORDS) for _ in range(draw.randint(1, longest))) for _ in range(many)]
    return pairs([(text, text) for text in texts])


def model_folder(folder, kind, **changes):
    sizes = {"max_length": 40, **NO_DROPOUT, **changes}
    made = _two(sizes) if kind == TWO else model_of(KINDS[kind][0], **{**sizes, **KINDS[kind][1]})
    if kind in ("transformer", TWO):
        made.rows = RowsConfig(kind="source_target", decoder="target")
    made.save(folder)
    return folder


def _two(sizes):
    """A decoder with fewer tokens than the encoder, in another order."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *reversed(WORDS), *"xyz"]
    plain = {"layers": 1, "width": 16, "heads": 2, "decoder": 1, **sizes}
    shape = ModelConfig(**plain).shape(VOCABULARY, "full", len(pieces))
    source = tokenizer()
    source.target = Tokenizer.from_pieces(pieces)
    return Model(network_of(shape), heads_of(shape, ["next_token"]), source)


def config_of(**tables):
    training = {"lr": 3e-3, "batch": 8, "warmup": 0.1, **tables.pop("training", {})}
    columns = {"text": ("source",), **tables.pop("columns", {})}
    return made_config({"task": "seq2seq", "training": training, "columns": columns, **tables})


def writing_model(folder, kind, train, *, say=quiet, **tables):
    loaded = load(folder if (folder / "config.json").is_file() else model_folder(folder, kind))
    config = resolve(config_of(columns={"text": train.fields}, **tables), loaded, Splits(train), (), say)
    return WritingModel(loaded, config)


@torch.no_grad()
def next_scores(kind, model, source, text):
    """(V,) scores of the token behind `text`, by reading everything anew."""
    row = [CLS, *source, SEP]
    if kind in DECODERS:
        start = [SEP, CLS] if kind == "bart" else [CLS]
        return model.logits(torch.tensor([row]), decoder_ids=torch.tensor([[*start, *text]]))[0, -1]
    target = [*text, *([MASK] if kind in PROBED else [])]
    first = 4 if kind in ("shifted", "unilm") else 0
    two = kind in ("shifted", "unilm", "bert", "nezha", "gpt")
    segments = torch.tensor([[first] * len(row) + [first + two] * len(target)])
    visibility = None if kind in ("gpt", "gpt2") else "prefix"
    return model.logits(torch.tensor([row + target]), None, segments, visibility=visibility)[0, -1]
