"""The sentences on which other maskers go wrong, side by side with ours.

    python -m benchmarks.masking_correctness [--draws 2000]

Every line counts one thing over many draws, on their side and on ours. "measured" means the installed transformers;
"described" means a behaviour of a project that is not installed, written anew in a few lines (`other_maskers.py`).
The vocabulary is made of the sentences themselves: characters, English words, and letters to spell any other word. Ours
goes the whole way that training goes: text, corpus, rows, corruption. It fails if ours is wrong somewhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict
from difflib import SequenceMatcher
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import other_maskers as others
from benchmarks.masking_bench import (
    CHINESE,
    DOCUMENTS,
    ENGLISH,
    MIXED,
    PAIR,
    SENTENCES,
    UNEVEN,
    UNKNOWN,
    Bench,
    Line,
    drawn,
    drawn_lengths,
    grid,
    percent,
    places,
    read,
    shares,
    version,
    vocabulary,
)
from benchmarks.pretrain import RESULTS
from benchmarks.report_corruption import CASES
from maskery import randomness
from maskery.corpus.store import Corpus
from maskery.corruption.corrupt import corrupt
from maskery.edit import Edit
from maskery.rows.ragged import Rows

TOLERANCE = 0.03
"""How far a measured mean or share may be from its law."""


def all_or_nothing(bench: Bench) -> Line:
    """Rows of Chinese that are hidden whole or not at all."""
    before, _, theirs = bench.whole_words(CHINESE)
    _, ours = grid(bench.rows(CHINESE))

    def extreme(chosen: NDArray[np.bool_]) -> float:
        many = chosen.sum(axis=1)
        return float(((many == 0) | (many == len(before) - 2)).mean())

    them, us = extreme(theirs), extreme(ours)
    return Line(
        "all_or_nothing", 1, "measured", version(), CHINESE, percent(them), percent(us), "0 %", them == 0, us == 0
    )


def name_split(bench: Bench) -> Line:
    """Of the rows that hide a character of 周杰伦, those that leave another one to be seen. Plain collator."""
    where = places(bench, CHINESE, "周杰伦")
    made, _ = others.collator(bench.corpus([CHINESE]).path, seed=1)
    _, _, theirs = others.masked(made, CHINESE, bench.draws)
    _, ours = grid(bench.rows(CHINESE))

    def split(chosen: NDArray[np.bool_]) -> float:
        part = chosen[:, where]
        return float((~part.all(axis=1))[part.any(axis=1)].mean())

    them, us = split(theirs), split(ours)
    seen = int(ours[:, where].all(axis=1).sum())
    note = f"ours hid all three in {seen} of {bench.draws}"
    right = them == 0, us == 0 < seen
    return Line("name_split", 1, "measured", version(), CHINESE, percent(them), percent(us), "0 %", *right, note)


def dragged(case: str, text: str, hidden: str, along: str) -> Callable[[Bench], Line]:
    """Of the rows that hide one part of the text, those that hide a foreign part with it. Not always is right."""

    def line(bench: Bench) -> Line:
        one, other = places(bench, text, hidden), places(bench, text, along)
        _, _, theirs = bench.whole_words(text)
        _, ours = grid(bench.rows(text))
        them, us = (float(c[c[:, one].any(axis=1)][:, other].any(axis=1).mean()) for c in (theirs, ours))
        return Line(case, 1, "measured", version(), text, percent(them), percent(us), "< 50 %", them < 0.5, us < 0.5)

    return line


def forced_masks(bench: Bench) -> Line:
    """What becomes of hidden tokens: 80 / 10 / 10 was asked for on both sides."""
    before, after, chosen = bench.whole_words(ENGLISH)
    made, told = others.collator(bench.corpus([CHINESE]).path, whole_word_mask=True, mask_replace_prob=0.8)
    kept, mask = after == before, after == made.tokenizer.mask_token_id
    them = [float((mask & chosen).sum() / chosen.sum()), 0.0, float((kept & chosen).sum() / chosen.sum())]
    them[1] = 1 - them[0] - them[2]
    edit, ours = grid(bench.rows(ENGLISH))
    us = shares(edit[ours])

    def right(found: list[float]) -> bool:
        return max(abs(a - b) for a, b in zip(found, (0.8, 0.1, 0.1), strict=True)) < TOLERANCE

    shown = [" / ".join(f"{100 * share:.0f}" for share in found) for found in (them, us)]
    wanted, note = "80 / 10 / 10", "; ".join(told)
    return Line("forced_masks", 2, "measured", version(), ENGLISH, *shown, wanted, right(them), right(us), note)


def square_memory(bench: Bench) -> Line:
    """Bytes of numpy at the peak, for each slot, when 16 rows of 512 slots are masked."""
    rows, length = 16, 512
    made, _ = others.collator(bench.corpus([CHINESE]).path, whole_word_mask=True)
    offsets = np.stack([2 * np.arange(length), 2 * np.arange(length) + 1], axis=1)[None].repeat(rows, axis=0)
    special = np.zeros((rows, length), dtype=np.int64)
    chosen = np.arange(length)[None].repeat(rows, axis=0) % 7 == 0
    feed = bench.feed(bench.corpus([CHINESE] * (length // 10)), {"training.length": length})
    plain, keys = read(feed, rows)

    def theirs() -> None:
        words, _ = made._calc_word_ids_and_prob_mask(offsets, special)
        made._whole_word_mask(words, chosen)

    them = _peak(theirs) / (rows * length)
    us = _peak(lambda: corrupt(plain, feed.recipe.corruption, keys, feed.corpus.facts)) / len(plain.ids)
    shown = f"{them:,.0f}", f"{us:,.0f}", f"< {length}"
    return Line("square_memory", 2, "measured", version(), f"{rows} x {length}", *shown, them < length, us < length)


def _peak(work: Callable[[], Any]) -> int:
    work()
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def gone(case: str, defect: int, name: str) -> Callable[[Bench], Line]:
    """An entry point that the installed version may have lost; ours is a recipe that makes targets."""

    def line(bench: Bench) -> Line:
        theirs = others.runs(name, bench.corpus([CHINESE]).path, CHINESE)
        sentence_order = {"rows.kind": "segment_pair", "rows.pair": "order", "rows.short": 0.0}
        changes = sentence_order if case == "sentence_order" else {}
        rows = drawn(bench.feed(bench.corpus(*DOCUMENTS), changes), bench.draws)
        answers = int((rows.label >= 0).sum()) if changes else int((rows.edit != Edit.NONE).sum())
        ours = "runs" if answers else "fails"
        return Line(case, defect, "measured", version(), name, theirs, ours, "runs", theirs == "runs", answers > 0)

    return line


def rebuilt(case: str, *texts: str) -> Callable[[Bench], Line]:
    """How many of the row's tokens are still there, in their order, when its words have been found."""

    def line(bench: Bench) -> Line:
        ids = bench.tokenizer.encode(*texts)[0]
        before = bench.tokenizer.tokens(ids)
        after = others.joined_and_cut(before, bench.tokenizer)
        rows = _read(bench, *texts)
        row = bench.tokenizer.tokens(rows.original[rows.start[0] : rows.start[1]])
        shown = [f"{_common(before, found)} / {len(before)}" for found in (after, row, before)]
        right, note = (after == before, row == before), " ".join(after)
        return Line(case, 6, "described", "UER", " [SEP] ".join(texts), *shown, *right, note)

    return line


def _common(before: list[str], after: list[str]) -> int:
    return sum(block.size for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks())


def _read(bench: Bench, *texts: str) -> Rows:
    """The texts as a row of ours: one segment, or two that follow each other."""
    if len(texts) == 1:
        return bench.rows(*texts)
    changes = {"rows.kind": "sentence_pair", "rows.pair": "order"}
    feed = bench.feed(bench.corpus(list(texts)), changes)
    rows = drawn(feed, bench.draws)
    swapped = bool(rows.label[0])
    return drawn(bench.feed(bench.corpus(list(texts[::-1])), changes), bench.draws) if swapped else rows


def capped(bench: Bench) -> Line:
    """Spans of 1 to 10 words, p = 0.2: the mean, and the share of the longest."""
    draws = 100 * bench.draws
    them = others.capped_geometric(draws, 0.2, 10, randomness.generator(randomness.key(0, "benchmark lengths")))
    us = drawn_lengths(bench.feed(bench.corpus([ENGLISH] * 10), name="spanbert"), bench.draws)
    shown = [f"{found.mean():.2f}, {percent((found == 10).mean())}" for found in (them, us)]
    right = [abs(found.mean() - 3.797) < TOLERANCE for found in (them, us)]
    wanted = "3.80, 3.0 %"
    return Line("capped", 9, "described", "Megatron, PaddleNLP", "p = 0.2, 1-10", *shown, wanted, *map(bool, right))


def swap_called_next(bench: Bench) -> Line:
    """Rows of the question "next sentence" with the label "other": B comes from another document."""
    them = [a != b for a, b, label in others.swapped_pairs(DOCUMENTS, bench.draws, Random(0)) if label]
    corpus = bench.corpus(*DOCUMENTS)
    feed = bench.feed(corpus, {"rows.kind": "segment_pair", "rows.pair": "next", "training.length": 32})
    plan = feed.plan(feed.phases[0])
    first = plan.row_start[:-1][plan.label == 1]
    a, b = (_document(corpus, plan.piece_start[piece]) for piece in (first, first + 1))
    us = float((a != b).mean())
    shown, text = (percent(float(np.mean(them))), percent(us), "100 %"), DOCUMENTS[0][0]
    return Line("swap_called_next", 11, "described", "Megatron, PaddleNLP", text, *shown, all(them), us == 1)


def _document(corpus: Corpus, token: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whose the tokens are, by the offsets of the store."""
    sentence = np.searchsorted(corpus.sentence_start, token, "right") - 1
    return np.searchsorted(corpus.document_start, sentence, "right") - 1


def infilled(bench: Bench) -> Line:
    """What one [MASK] stands for, Poisson 3: the mean number of words, and the share of masks for no word at all."""
    tokens = bench.tokenizer.tokens(bench.tokenizer.encode(CHINESE)[0])[1:-1] * 10
    draw = Random(0)
    them = np.concatenate([others.collapsed_masks(tokens, 0.15, draw)[1] for _ in range(bench.draws // 10)])
    changes = {"corruption.rate": 0.3, "corruption.decide": "span", "corruption.span": {"law": "poisson", "mean": 3.0}}
    changes |= {"corruption.replace": {"mask": 0.0, "random": 0.0, "keep": 0.0, "infill": 1.0}}
    us = drawn_lengths(bench.feed(bench.corpus([CHINESE] * 5), changes), bench.draws)
    shown = [f"{found.mean():.2f}, {percent((found == 0).mean())}" for found in (them, us)]
    right = [abs(found.mean() - 3) < TOLERANCE and abs((found == 0).mean() - 0.0498) < 0.01 for found in (them, us)]
    return Line("infilled", 12, "described", "UER", CHINESE, *shown, "3.00, 5.0 %", *map(bool, right))


def one_order(bench: Bench) -> Line:
    """Different orders of three sentences in 100 epochs; six are possible."""
    them = len(set(others.order_once(3, 100, Random(0))))
    rows = drawn(bench.feed(bench.corpus(SENTENCES), {"corruption.order": {"sentences": True}}), 100)
    us = len(np.unique(rows.original.reshape(100, -1), axis=0))
    return Line("one_order", 12, "described", "UER", "".join(SENTENCES), str(them), str(us), "6", them == 6, us == 6)


def uneven_rows(bench: Bench) -> Line:
    """Two rows of different lengths in one batch, whole words."""
    made, _ = others.collator(bench.corpus([CHINESE]).path, whole_word_mask=True)
    rows = [dict(made.tokenizer(t, return_special_tokens_mask=True, return_offsets_mapping=True)) for t in UNEVEN]
    theirs = others.works(lambda: made(rows))
    feed = bench.feed(bench.corpus(*([text] for text in UNEVEN)))
    lengths = feed.make(0, feed.phases[0], np.zeros(2, dtype=np.int64), np.arange(2)).length.tolist()
    right = sorted(lengths) == sorted(len(row["input_ids"]) for row in rows)
    ours, text = "runs" if right else "fails", " / ".join(UNEVEN)
    return Line("uneven_rows", 2, "measured", version(), text, theirs, ours, "runs", theirs == "runs", right)


LINES: tuple[Callable[[Bench], Line], ...] = (
    all_or_nothing,
    name_split,
    dragged("comma", ENGLISH, "Hello", ","),
    dragged("mixed", MIXED, "Google", "他"),
    dragged("behind_unknown", UNKNOWN, "住", "旁边"),
    forced_masks,
    gone("second_entry", 2, "DataCollatorForWholeWordMask"),
    uneven_rows,
    square_memory,
    gone("sentence_order", 3, "DataCollatorForSOP"),
    rebuilt("glued", ENGLISH),
    rebuilt("lost_unknown", UNKNOWN),
    rebuilt("torn_separator", *PAIR),
    capped,
    swap_called_next,
    infilled,
    one_order,
)


def lines(draws: int) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), draws, vocabulary())
        for line in LINES:
            yield line(bench)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--json", type=Path, default=RESULTS / "masking_correctness.json")
    options = parser.parse_args()
    if options.draws < 100:
        parser.error(f"--draws {options.draws}: at least 100, or shares mean nothing")
    found = []
    for line in lines(options.draws):
        found.append(line)
        print(f"{line.case} ({line.side}: {line.who})\n  {line.text}\n  {CASES[line.case]['en']}")
        for side, value, right in (("theirs", line.theirs, line.theirs_right), ("ours", line.ours, line.ours_right)):
            print(f"    {side:8}{value:20}{'right' if right else 'WRONG'}")
        print(f"    {'wanted':8}{line.wanted}", flush=True)
    wrong = [line.case for line in found if not line.ours_right]
    print(f"{len(found)} cases; ours is wrong in {len(wrong)}{''.join(f' {case}' for case in wrong)}")
    report = {"draws": options.draws, "transformers": others.transformers().__version__}
    report["lines"] = [asdict(line) for line in found]
    options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
