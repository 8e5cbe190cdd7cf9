"""One Transformer, every mask: the public names, imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from maskery import explain as explain
    from maskery.batches import Batch as Batch
    from maskery.checkpoint.load import load as load
    from maskery.checkpoint.model import Model as Model
    from maskery.corpus.mixture import Mixture as Mixture
    from maskery.corpus.store import Corpus as Corpus
    from maskery.errors import MaskeryError as MaskeryError
    from maskery.feed import batch as batch
    from maskery.picture import Picture as Picture
    from maskery.recipes.recipe import Recipe as Recipe
    from maskery.recipes.recipe import recipe as recipe
    from maskery.tasks.estimator import Classifier as Classifier
    from maskery.tasks.estimator import Regressor as Regressor
    from maskery.tasks.finetune import finetune as finetune
    from maskery.tasks.predict import predict as predict
    from maskery.text.tokenizer import Tokenizer as Tokenizer
    from maskery.train.loggers import Logger as Logger
    from maskery.train.run import Run as Run
    from maskery.train.start import pretrain as pretrain
    from maskery.vectors.encoder import Encoder as Encoder
    from maskery.vectors.evaluate import evaluate as evaluate
    from maskery.vectors.static import StaticEncoder as StaticEncoder
    from maskery.words.vectors import WordVectors as WordVectors
    from maskery.writing.fill import fill as fill
    from maskery.writing.generate import generate as generate
    from maskery.writing.score import score as score

_HOME = {
    "Batch": "maskery.batches",
    "Classifier": "maskery.tasks.estimator",
    "Corpus": "maskery.corpus.store",
    "Logger": "maskery.train.loggers",
    "MaskeryError": "maskery.errors",
    "Mixture": "maskery.corpus.mixture",
    "Model": "maskery.checkpoint.model",
    "Picture": "maskery.picture",
    "Recipe": "maskery.recipes.recipe",
    "Regressor": "maskery.tasks.estimator",
    "Run": "maskery.train.run",
    "Encoder": "maskery.vectors.encoder",
    "StaticEncoder": "maskery.vectors.static",
    "Tokenizer": "maskery.text.tokenizer",
    "WordVectors": "maskery.words.vectors",
    "batch": "maskery.feed",
    "evaluate": "maskery.vectors.evaluate",
    "explain": "maskery.explain",
    "fill": "maskery.writing.fill",
    "finetune": "maskery.tasks.finetune",
    "generate": "maskery.writing.generate",
    "load": "maskery.checkpoint.load",
    "predict": "maskery.tasks.predict",
    "pretrain": "maskery.train.start",
    "recipe": "maskery.recipes.recipe",
    "score": "maskery.writing.score",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _HOME:
        raise AttributeError(f"module 'maskery' has no attribute {name!r}")
    home = import_module(_HOME[name])
    return home if _HOME[name] == f"maskery.{name}" else getattr(home, name)


def _version() -> str:
    """Of the installed package; of a clone that nobody installed, as its pyproject.toml says."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("maskery")
    except PackageNotFoundError:
        import tomllib
        from pathlib import Path

        told = Path(__file__).parent.parent / "pyproject.toml"
        return str(tomllib.loads(told.read_text(encoding="utf-8"))["project"]["version"]) if told.is_file() else "0"


def __dir__() -> list[str]:
    return __all__
