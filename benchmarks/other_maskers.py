"""How others mask: transformers' collators as installed, and four behaviours of other projects, written here anew.

UER, Megatron and PaddleNLP are not installed. What they do is described in a sentence each, and the few lines that
follow do what the sentence says. They are no copies of those projects' code, and no more is claimed of them than that.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import rjieba
from numpy.typing import NDArray

from maskery.text.tokenizer import Tokenizer

MASK = "[MASK]"


def transformers() -> Any:
    try:
        return import_module("transformers")
    except ModuleNotFoundError:
        print("the other side is not installed: pip install transformers", file=sys.stderr)
        sys.exit(2)


def runs(name: str, folder: Path, text: str) -> str:
    """Whether the installed transformers has a collator of this name that can be called: runs, fails or gone."""
    library = transformers()
    if not hasattr(library, name):
        return "gone"
    tokenizer = library.AutoTokenizer.from_pretrained(folder)
    row = dict(tokenizer(text, return_special_tokens_mask=True))
    return works(lambda: getattr(library, name)(tokenizer=tokenizer)([row | {"sentence_order_label": 0}] * 2))


def works(call: Callable[[], Any]) -> str:
    """runs or fails; whatever the other side raises is its answer."""
    try:
        call()
    except Exception:
        return "fails"
    return "runs"


def collator(folder: Path, **options: Any) -> tuple[Any, list[str]]:
    """`DataCollatorForLanguageModeling` with the tokenizer of a corpus, and what it warns of."""
    library = transformers()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made = library.DataCollatorForLanguageModeling(library.AutoTokenizer.from_pretrained(folder), **options)
    return made, [str(each.message) for each in told]


def masked(made: Any, text: str, draws: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """(T,) the ids of the text; (draws,T) ids after as many calls' worth of masking, and which were chosen."""
    whole = made.whole_word_mask
    row = made.tokenizer(text, return_special_tokens_mask=True, return_offsets_mapping=whole)
    before = np.array(row["input_ids"])
    batch = made([dict(row) for _ in range(draws)])
    return before, batch["input_ids"].numpy(), batch["labels"].numpy() != -100


def joined_and_cut(tokens: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """UER and TencentPretrain, whole words: the row's tokens are joined without spaces, [UNK] and ## are taken out, the
    result is cut by jieba, and every word is tokenized again. Outer [CLS] and [SEP] are spared, an inner one is not."""
    inner = "".join(tokens[1:-1]).replace("[UNK]", "").replace("##", "")
    again = [piece for word in rjieba.cut(inner, True) for piece in _pieces(word, tokenizer)]
    return [tokens[0], *again, tokens[-1]]


def _pieces(word: str, tokenizer: Tokenizer) -> list[str]:
    return tokenizer.tokens(tokenizer.encode_raw([word])[0][0])


def capped_geometric(draws: int, p: float, longest: int, draw: np.random.Generator) -> NDArray[np.int64]:
    """Megatron and PaddleNLP, spans: the smaller of a geometric draw and the longest span."""
    return np.minimum(draw.geometric(p, draws), longest)


def swapped_pairs(documents: Sequence[Sequence[str]], rows: int, draw: Random) -> list[tuple[int, int, bool]]:
    """Megatron and PaddleNLP, the question named NSP: a document is cut in two, and half of the time the halves change
    places; that is what the label says. Each row as (document of A, document of B, label "random")."""
    places = [draw.randrange(len(documents)) for _ in range(rows)]
    return [(place, place, draw.random() < 0.5) for place in places]


def collapsed_masks(tokens: Sequence[str], rate: float, draw: Random) -> tuple[list[str], list[int]]:
    """UER, BART: 15 % of the tokens are chosen; 80 % of those become [MASK], the rest is random or kept; then every run
    of [MASK] becomes one. The new row, and how many tokens stood behind each mask."""
    out: list[str] = []
    behind: list[int] = []
    running = False
    for token in tokens:
        fate = draw.random() / rate
        if fate >= 0.8:
            out.append(draw.choice(tokens) if fate < 0.9 else token)
            running = False
        elif running:
            behind[-1] += 1
        else:
            out.append(MASK)
            behind.append(1)
            running = True
    return out, behind


def order_once(sentences: int, epochs: int, draw: Random) -> list[tuple[int, ...]]:
    """UER, BART: sentences are put in random order when the data is prepared, so every epoch reads the same order."""
    order = tuple(draw.sample(range(sentences), sentences))
    return [order] * epochs
