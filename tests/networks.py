"""Small networks with heads and a tokenizer, made on the spot."""

from __future__ import annotations

from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.heads import TASKS, task_head
from maskery.checkpoint.model import Model
from maskery.model.config import ModelConfig
from maskery.model.initial import initialise
from maskery.model.transformer import Network
from maskery.objectives.config import OBJECTIVES
from maskery.text.tokenizer import Tokenizer

PIECES = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
    *"abcdefghijklmnopqrstuvwxyz", "the", "cat", "sat", "##s", "on", "mat", ".",
    *"我去了北京上海是的不，。",
]  # fmt: skip
VOCABULARY = len(PIECES)
XL = {
    "visibility": "causal",
    "positions": "xl",
    "memory": 6,
    "segments": 0,
    "embedding_norm": "no",
    "embedding_scale": True,
    "attention_bias": False,
    "token_head": "bias",
    "activation": "relu",
}
"""A shape that is Transformer-XL's."""
GPT = {"visibility": "causal", "embedding_norm": "no", "token_head": "plain", "segments": 0}
"""What both GPTs have and no BERT."""

BART = {"decoder": 3, "segments": 0, "eps": 1e-5, "position_offset": 2, "token_head": "plain"}
"""What makes a shape BART's."""
XLNET = {
    "visibility": "permuted",
    "positions": "xlnet",
    "streams": 2,
    "memory": 6,
    "segments": 0,
    "embedding_norm": "no",
    "attention_bias": False,
    "token_head": "bias",
}
"""A shape that is XLNet's."""
MODERNBERT = {
    "positions": "rotary",
    "theta": 160_000.0,
    "local": 6,
    "local_theta": 10_000.0,
    "norm": "pre",
    "embedding_norm": "yes",
    "first_norm": False,
    "gated": True,
    "attention_bias": False,
    "feedforward_bias": False,
    "norm_bias": False,
    "head_bias": False,
    "segments": 0,
    "eps": 1e-5,
}
"""A shape that is ModernBERT's."""
FAMILY_SHAPES: dict[str, dict[str, object]] = {
    "bert": {},
    "roberta": {"position_offset": 2},
    "albert": {"share": "all", "groups": 2, "embedding": 6, "layers": 4},
    "electra": {"embedding": 6},
    "distilbert": {"segments": 0},
    "nezha": {"positions": "nezha", "clip": 5},
    "ernie": {"tasks": 3},
    "gpt2": {**GPT, "norm": "pre"},
    "openai-gpt": {**GPT, "activation": "gelu_tanh"},
    "transfo-xl": XL,
    "xlnet": XLNET,
    "bart": BART,
    "deberta-v2": {"positions": "disentangled", "buckets": 8, "clip": 24, "segments": 0, "eps": 1e-7},
    "modernbert": MODERNBERT,
    "xlm-roberta": {"position_offset": 2},
    "camembert": {"position_offset": 2},
    "mpnet": {"positions": "mpnet", "clip": 128, "segments": 0, "position_offset": 2},
}
"""What makes a shape that of a family."""


def tokenizer(pad=0):
    pieces = [each for each in PIECES if each != "[PAD]"]
    return Tokenizer.from_pieces([*pieces[:pad], "[PAD]", *pieces[pad:]])


def shape_of(*, vocabulary=VOCABULARY, visibility="full", **changes):
    sizes = {"layers": 2, "width": 16, "heads": 2, "max_length": 24, **changes}
    return ModelConfig(**sizes).shape(vocabulary, visibility)


def network_of(shape, *, pooler=False, seed=0):
    network = Network(shape, pooler=pooler)
    initialise(network, 0.3, seed)
    return network.eval()


def heads_of(shape, names, seed=0):
    heads = {}
    for name in names:
        heads[name] = task_head(name, shape, 3) if name in TASKS else OBJECTIVES.get(name)().head(shape)
        initialise(heads[name], 0.3, seed, prefix=f"heads.{name}")
    return heads


def model_of(*names, pooler=False, seed=0, with_tokenizer=True, pad=0, **changes):
    """`pad`: the id of [PAD]."""
    shape = shape_of(**changes)
    return Model(
        network_of(shape, pooler=pooler, seed=seed),
        heads_of(shape, names, seed),
        tokenizer(pad) if with_tokenizer else None,
    )


def model_of_family(family, *names, **changes):
    """With [PAD] where the family wants it: positions may be counted from its id."""
    sizes = {**FAMILY_SHAPES[family], **changes}
    return model_of(*names, pad=1 if FAMILIES[family].offset_from_pad else 0, **sizes)
