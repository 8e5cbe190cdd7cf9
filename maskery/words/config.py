"""How word vectors are trained: the methods, and the numbers of each with its origin's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from maskery.config import Config
from maskery.errors import InputError
from maskery.registry import Registry

if TYPE_CHECKING:
    from maskery.words.protocol import Method

METHODS: Registry[Method] = Registry(
    "method of word vectors",
    {
        "cbow": "maskery.words.gensim_training:GENSIM",
        "skipgram": "maskery.words.gensim_training:GENSIM",
        "fasttext": "maskery.words.gensim_training:GENSIM",
        "glove": "maskery.words.glove:GLOVE",
    },
)

DEFAULTS: dict[str, dict[str, Any]] = {
    "cbow": {"lr": 0.05, "sample": 1e-3, "power": 0.75},
    "skipgram": {"lr": 0.025, "sample": 1e-3, "power": 0.75},
    "fasttext": {"lr": 0.05, "sample": 1e-4, "power": 0.5},
    "glove": {"width": 50, "window": 15, "epochs": 25, "lr": 0.05},
}
"""Where a method departs from the defaults of `WordsConfig`: word2vec.c, fastText's args.cc, glove.c and cooccur.c."""


_PREDICTING = ("cbow", "skipgram", "fasttext")
READ_BY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("negative", "sample", "power"), _PREDICTING),
    **dict.fromkeys(("shortest", "longest", "buckets"), ("fasttext",)),
    **dict.fromkeys(("x_max", "alpha", "clip", "adagrad"), ("glove",)),
}
"""Numbers that not every method reads -> the methods that do."""


class WordsConfig(Config):
    """All numbers of a training."""

    method: Annotated[str, AfterValidator(METHODS.validator())] = "cbow"
    width: int = Field(100, ge=1, le=65536)
    window: int = Field(5, ge=1)
    """Words on each side at most; cbow, skipgram and fasttext draw 1..window for each word, glove takes all."""
    epochs: int = Field(5, ge=1)
    min_count: int = Field(5, ge=1)
    lr: float = Field(0.025, gt=0)
    """At the start; falls linearly to 1e-4 of it, except for glove, which has AdaGrad."""
    seed: int = Field(0, ge=0)
    workers: int = Field(1, ge=1)
    """Threads; with more than one the result is not reproducible."""
    negative: int = Field(5, ge=1)
    """Words that are drawn beside each right one; cbow, skipgram, fasttext."""
    sample: float = Field(1e-3, ge=0, lt=1)
    """A word with a share f of the text is kept with probability sqrt(sample / f) + sample / f; 0 keeps all."""
    power: float = 0.75
    """Of the count, in the law by which negatives are drawn."""
    shortest: int = Field(3, ge=1)
    """Characters of the shortest and longest n-gram; fasttext."""
    longest: int = Field(6, ge=1)
    buckets: int = Field(2_000_000, ge=1, lt=1 << 32)
    """Numbers that n-grams are hashed to; fasttext."""
    x_max: float = Field(100.0, gt=0)
    """Glove: weight of a pair that occurs x times is min(1, (x / x_max) ** alpha)."""
    alpha: float = Field(0.75, gt=0)
    clip: float = Field(100.0, gt=0)
    """Glove: the largest part of a vector's gradient."""
    adagrad: Literal["paper", "code"] = "paper"
    """Glove: AdaGrad as the paper names it, or with what its published code does otherwise."""

    def used(self) -> dict[str, Any]:
        """The numbers that the method reads."""
        return {name: value for name, value in self.plain().items() if _reads(self.method, name)}


def _reads(method: str, name: str) -> bool:
    return method in READ_BY.get(name, (method,))


def words_config(method: str, given: Mapping[str, Any] | None = None) -> WordsConfig:
    """The method's defaults with what is given put in; None stands for not given. What it does not read is refused."""
    METHODS.check(method)
    asked = {key: value for key, value in (given or {}).items() if value is not None}
    for name in asked:
        if not _reads(method, name):
            raise InputError(
                f"{_option(name)} has no meaning for {method}",
                repair=f"leave it out, or --method {' or '.join(READ_BY[name])}",
            )
    try:
        config = WordsConfig(**{**DEFAULTS[method], **asked, "method": method})
    except ValidationError as error:
        wrong = error.errors()[0]
        name = str(wrong["loc"][0])
        raise InputError(
            f"{_option(name)} {wrong['input']}: {wrong['msg']}", repair="leave it out for the default"
        ) from None
    if config.shortest > config.longest:
        cause = f"the shortest n-gram has {config.shortest} characters, the longest {config.longest}"
        raise InputError(cause, repair="shortest <= longest")
    return config


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
