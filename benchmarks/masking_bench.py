"""What the correctness benchmark is made of: its sentences, a vocabulary for them, and ways to count on either side."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import other_maskers as others
from maskery.corpus.store import Corpus
from maskery.corruption.corrupt import candidates, corrupt
from maskery.edit import Edit
from maskery.feed import Feed
from maskery.randomness import Keys
from maskery.recipes.recipe import recipe
from maskery.rows.ragged import Rows, gather
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT

CHINESE = "周杰伦昨天在台北开演唱会，唱了三首新歌。"
ENGLISH = "Hello, world. The dog is masking its bone, they said."
MIXED = "他在Google工作三年，喜欢machine learning和音乐。"
UNKNOWN = "他叫王龘，住在北京大学旁边。"
PAIR = ("今天天气很好。", "我们去公园玩。")
DOCUMENTS = [[f"第{a}篇第{b}句说的是{c}。" for b, c in enumerate("山水花鸟鱼虫")] for a in "一二三四五六七八"]
UNEVEN = (CHINESE, PAIR[0])
SENTENCES = ["狗在睡觉。", "猫在吃鱼。", "鸟在唱歌。"]
SPELT = ("masking",)
"""Words that are in no vocabulary whole: mask ##ing."""


@dataclass(frozen=True)
class Line:
    case: str
    defect: int
    """The number of the kind of mistake; several lines may show one."""
    side: str
    """measured or described"""
    who: str
    text: str
    theirs: str
    ours: str
    wanted: str
    theirs_right: bool
    ours_right: bool
    note: str = ""
    """Something that a reader of the file may want to know."""


@dataclass(frozen=True)
class Bench:
    folder: Path
    draws: int
    tokenizer: Tokenizer
    made: dict[str, Corpus] = field(default_factory=dict)

    def corpus(self, *documents: list[str]) -> Corpus:
        """A corpus of a few documents, each a list of lines."""
        text = "\n\n".join("\n".join(lines) for lines in documents) + "\n"
        if text not in self.made:
            path = self.folder / f"corpus-{len(self.made)}"
            source = path.with_suffix(".txt")
            source.write_text(text, encoding="utf-8")
            self.made[text] = Corpus.build(source, path, tokenizer=self.tokenizer, heldout=0.0, workers=0)
        return self.made[text]

    def rows(self, text: str) -> Rows:
        """One row of the text, corrupted anew in each of `draws` epochs."""
        return drawn(self.feed(self.corpus([text])), self.draws)

    def feed(self, corpus: Corpus, changes: dict[str, Any] | None = None, name: str = "bert-wwm") -> Feed:
        alone = {"rows.kind": "doc_sentences", "rows.pair": "none", "objectives": {"masked_token": {"weight": 1.0}}}
        steady = {"training.phases": [], "training.length": 128, "corruption.when": "dynamic", "rows.copies": 1}
        return Feed(recipe(name, alone | steady | (changes or {})), corpus, 0)

    def whole_words(self, text: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        made, _ = others.collator(self.corpus([CHINESE]).path, whole_word_mask=True, seed=1)
        return others.masked(made, text, self.draws)


def read(feed: Feed, draws: int) -> tuple[Rows, Keys]:
    """The first row of the plan as often as wanted, not corrupted yet, with the keys of as many epochs."""
    phase, numbers = feed.phases[0], np.zeros(draws, dtype=np.int64)
    return gather(feed.plan(phase), numbers, feed.corpus), feed.mask_keys(phase, np.arange(draws), numbers)


def drawn(feed: Feed, draws: int) -> Rows:
    rows, keys = read(feed, draws)
    return corrupt(rows, feed.recipe.corruption, keys, feed.corpus.facts, feed.similar)


def drawn_lengths(feed: Feed, draws: int) -> NDArray[np.int64]:
    """How many units each candidate span was drawn with."""
    rows, keys = read(feed, draws)
    return candidates(rows, feed.recipe.corruption, keys)[1].drawn


def vocabulary() -> Tokenizer:
    texts = [CHINESE, ENGLISH, MIXED, UNKNOWN, *PAIR, *SENTENCES, *(line for each in DOCUMENTS for line in each)]
    words = re.findall(r"[a-z]+|[^a-z\s]", " ".join(texts).lower())
    known = [word for word in words if word not in ("龘", *SPELT)]
    letters = [*ascii_lowercase, *digits]
    pieces = [*LAYOUT, *letters, *(f"##{letter}" for letter in letters), "[", "]", "mask", "##ing", *known]
    return Tokenizer.from_pieces(list(dict.fromkeys(pieces)))


def grid(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(draws,T) the codes of rows that have one length, and where something was chosen."""
    edit = rows.edit.reshape(len(rows), -1)
    return edit, edit != Edit.NONE


def places(bench: Bench, text: str, part: str) -> list[int]:
    """The slots of a part of the text in its row, [CLS] counted."""
    pieces = bench.tokenizer.tokens(bench.tokenizer.encode(text)[0])
    wanted = bench.tokenizer.tokens(bench.tokenizer.encode(part)[0])[1:-1]
    starts = range(len(pieces) - len(wanted) + 1)
    first = next(start for start in starts if pieces[start : start + len(wanted)] == wanted)
    return list(range(first, first + len(wanted)))


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share == round(share, 2) else f"{100 * share:.1f} %"


def shares(codes: NDArray[Any]) -> list[float]:
    """mask, random, keep among the codes of what was chosen."""
    return [float((codes == code).mean()) for code in (Edit.MASK, Edit.RANDOM, Edit.KEEP)]


def version() -> str:
    return f"transformers {others.transformers().__version__}"
