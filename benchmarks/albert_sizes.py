"""ALBERT's published sizes and its tables of embedding width and sharing, counted on networks that have no weights.

`python -m benchmarks.albert_sizes` prints the rows of the tables in docs/sharing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from maskery.checkpoint.parts import parameters_by_part
from maskery.model.config import ModelConfig
from maskery.model.transformer import Network
from maskery.recipes.recipe import recipe

VOCABULARY = 30_000
SIZES = {
    "base": ({"layers": 12, "width": 768, "heads": 12}, "12M"),
    "large": ({"layers": 24, "width": 1024, "heads": 16}, "18M"),
    "xlarge": ({"layers": 24, "width": 2048, "heads": 16}, "60M"),
    "xxlarge": ({"layers": 12, "width": 4096, "heads": 64}, "235M"),
}
"""Size -> its numbers, and the paper's count."""
TABLES = {
    "none": {64: ("87M", "81.3"), 128: ("89M", "81.7"), 256: ("93M", "81.8"), 768: ("108M", "82.3")},
    "attention": {128: ("64M", "81.7"), 768: ("83M", "81.6")},
    "feedforward": {128: ("38M", "80.2"), 768: ("57M", "79.5")},
    "all": {64: ("10M", "79.0"), 128: ("12M", "80.1"), 256: ("16M", "79.6"), 768: ("31M", "79.8")},
}
"""What is shared -> embedding width -> the paper's count, and its average over five tasks (its tables 3 and 4)."""


def parameters(model: ModelConfig) -> tuple[int, int]:
    """Without and with the pooler."""
    with torch.device("meta"):
        parts = parameters_by_part(Network(model.shape(VOCABULARY), pooler=True), {})
    return parts["encoder"], parts["total"]


def sizes() -> Iterator[list[str]]:
    for name, (changes, published) in SIZES.items():
        model = recipe("albert").model.model_copy(update=changes)
        bare = recipe("bert").model.model_copy(update=changes)
        numbers = [str(model.layers), f"{model.width:,}", str(model.heads), f"{4 * model.width:,}"]
        yield [name, *numbers, f"{parameters(model)[1]:,}", published, f"{parameters(bare)[1]:,}"]


def tables() -> Iterator[list[str]]:
    for share, row in TABLES.items():
        for embedding, (published, score) in row.items():
            model = recipe("albert").model.model_copy(update={"share": share, "embedding": embedding})
            yield [f"`{share}`", str(embedding), *(f"{each:,}" for each in parameters(model)), published, score]


def main() -> None:
    for rows in (sizes(), tables()):
        print("\n".join(f"| {' | '.join(row)} |" for row in rows), end="\n\n")


if __name__ == "__main__":
    main()
