"""The benchmark of mined lexicons: its table, and its arithmetic against a walk over the tokens."""

import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.phrases import agreement, covered, marked_stretches, top
from maskery.corpus.store import Corpus, Flag
from maskery.knowledge.lexicon import Lexicon


def test_the_best_are_a_table_to_be_judged(tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("# a note\n北京大学\t20\t9.50\t3.00\na|b\t7\t1.00\t1.00\nc\t5\t1\t1\n", encoding="utf-8")
    assert top(file, 2)[2:] == ["| 1 | 北京大学 | 20 9.50 3.00 | |", r"| 2 | a\|b | 7 1.00 1.00 | |"]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3)), max_size=12))
def test_stretches_are_read_from_flags(parts):
    """Each part is so many tokens, an entity or none."""
    flags, wanted, inside = [], [], []
    for named, length in parts:
        if named:
            wanted.append((len(flags), len(flags) + length))
        flags += [Flag.ENTITY if named else 0, *[Flag.IN_ENTITY if named else 0] * (length - 1)]
        inside += [named] * length
    start, stop = marked_stretches(np.array(flags, dtype=np.uint8))
    assert list(zip(start.tolist(), stop.tolist(), strict=True)) == wanted
    assert covered(start, stop, len(flags) + 1)[:-1].tolist() == inside


def test_agreement_is_that_of_the_places(tmp_path):
    """北京 is marked three times, and listed; 上海 is marked only, 大学 listed only."""
    (tmp_path / "text.txt").write_text("我 在 北京 和 上海 。\n北京 有 大学 。\n去 北京 。\n", encoding="utf-8")
    (tmp_path / "names.txt").write_text("北京\n上海\n", encoding="utf-8")
    (tmp_path / "titles.txt").write_text("北京\n大学\n火星\n", encoding="utf-8")
    built = Corpus.build(tmp_path / "text.txt", tmp_path / "corpus", kind="char", heldout=0, workers=0)
    marked = built.mark(tmp_path / "marked", entities=tmp_path / "names.txt")
    found = agreement(marked, Lexicon.read(tmp_path / "titles.txt", marked.tokenizer))
    assert (found.marked, found.listed, found.same) == (4, 4, 3)
    # A character is a token, and a space before a word goes with it: 北京 at the start of a sentence has two.
    assert (found.marked_tokens, found.listed_tokens, found.same_tokens) == (11, 11, 8)
    assert found.lines()[2].endswith("| 75.0 % | 75.0 % |")
