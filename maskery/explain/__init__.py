"""Looking at rows, runs and models: each of these functions gives a picture that shows itself in a notebook.

`maskery.explain.head_view(maskery.load("my-run"), "The cat sat on the mat.")`
"""

from maskery.explain.curves import curves
from maskery.explain.heads import head_view
from maskery.explain.matrices import visibility
from maskery.explain.network import network
from maskery.explain.order import order
from maskery.explain.rows import corrupted_rows
from maskery.explain.runs import comparison
from maskery.explain.sentence import maskings
from maskery.explain.word_map import word_map

__all__ = [
    "comparison",
    "corrupted_rows",
    "curves",
    "head_view",
    "maskings",
    "network",
    "order",
    "visibility",
    "word_map",
]
