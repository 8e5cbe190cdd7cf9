"""The words of a corpus: those of a walk over its tokens one by one, whatever the tokenizer."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import KINDS

from maskery.corpus.store import Corpus, Flag
from maskery.errors import CorpusError
from maskery.words import vocabulary
from maskery.words.vocabulary import read_words

PARTS = ["我们", "今天", "去", "北京", "大学", "周杰伦", "the", "dog", "don't", "hello", "龘", "，", "a1", "unused"]


def text_of(documents=30, seed=0):
    draw = Random(seed)

    def sentence():
        return " ".join(draw.choice(PARTS) for _ in range(draw.randint(2, 9))) + "。"

    return "\n\n".join("\n".join(sentence() for _ in range(draw.randint(1, 4))) for _ in range(documents))


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    (folder / "text.txt").write_text(text_of(), encoding="utf-8")
    made = {}
    for name, tokenizer in KINDS.items():
        tokenizer.save(folder / f"{name}-tokenizer")
        made[name] = Corpus.build(
            folder / "text.txt", folder / name, tokenizer=str(folder / f"{name}-tokenizer"), heldout=0.2, workers=0
        )
    return made


def walked(corpus, split):
    """The words of each sentence of a split; None for one with a special token."""
    sentences = []
    for document in corpus.documents(split):
        for sentence in range(*corpus.document_start[document : document + 2]):
            runs = []
            for at in range(*corpus.sentence_start[sentence : sentence + 2]):
                if corpus.flags[at] & Flag.WORD:
                    runs.append([])
                runs[-1].append(int(corpus.tokens[at]))
            strange = set(corpus.specials.ids)
            sentences.append(
                [None if strange & set(run) else corpus.tokenizer.decode(run).replace(" ", "") for run in runs]
            )
    return sentences


@pytest.mark.parametrize("split", ["train", "heldout"])
@pytest.mark.parametrize("kind", KINDS)
def test_words_are_those_of_a_walk(corpora, kind, split):
    corpus = corpora[kind]
    sentences = walked(corpus, split)
    flat = [word for sentence in sentences for word in sentence]
    counts = Counter(word for word in flat if word is not None)
    wanted = [word for word, count in counts.most_common() if count >= 6]  # of equals the first met comes first
    found = read_words(corpus, min_count=6, split=split)
    assert found.words == wanted
    assert found.counts.tolist() == [counts[word] for word in wanted]
    number = {word: place for place, word in enumerate(wanted)}
    assert found.number.tolist() == [number.get(word, -1) for word in flat]
    assert found.number.dtype == np.int32
    assert np.diff(found.sentence_start).tolist() == [len(sentence) for sentence in sentences]
    assert found.sentence_start[0] == 0
    assert found.total == len(flat)
    assert found.unknown == flat.count(None)
    assert found.rare == sum(count for count in counts.values() if count < 6)
    assert found.rare_words == sum(count < 6 for count in counts.values())
    if split == "train":
        assert {"我们", "北京", "the", "dog", "don't"} <= set(found.words), "spaces and ## are no part of a word"


def test_a_word_is_one_however_it_is_written(corpora):
    """Byte-level pieces write `dog` in another way behind a space than at the start of a line."""
    corpus = corpora["bpe"]
    starts = np.flatnonzero(corpus.flags & Flag.WORD)
    runs = np.split(np.asarray(corpus.tokens), starts[1:])
    dogs = {tuple(run) for run in runs if corpus.tokenizer.decode(run).strip() == "dog"}
    assert len(dogs) == 2
    assert read_words(corpus, min_count=1).words.count("dog") == 1


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=60), st.integers(1, 6))
def test_runs_are_told_apart_and_numbered_by_their_first_place(runs, longest):
    tokens = np.array([token for run in runs for token in run], dtype=np.uint16)
    length = np.array([len(run) for run in runs])
    begin = np.cumsum(length) - length
    old, vocabulary.LONGEST = vocabulary.LONGEST, longest
    try:
        found = vocabulary._runs(tokens, begin, length, 4, lambda done, total: None)
    finally:
        vocabulary.LONGEST = old
    seen: dict[tuple[int, ...], int] = {}
    wanted = [seen.setdefault(tuple(run), len(seen)) if len(run) <= longest else -1 for run in runs]
    assert found.number.tolist() == wanted
    assert found.first.tolist() == [wanted.index(number) for number in range(len(seen))]


def test_progress_goes_up_to_the_whole(corpora):
    told = []
    read_words(corpora["wordpiece"], min_count=1, progress=lambda done, total: told.append(done / total))
    assert told == sorted(told)
    assert 0 < told[0] <= told[-1] <= 1


def test_what_has_no_words_is_refused(corpora, tmp_path):
    with pytest.raises(CorpusError, match="no word stands 100000 times or more; the commonest of") as caught:
        read_words(corpora["wordpiece"], min_count=100_000)
    assert "--min-count " in caught.value.repair
    (tmp_path / "strange.txt").write_text("龘靐 齉龘\n靐。\n" * 9, encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ndog\n", encoding="utf-8")
    options = {"tokenizer": str(tmp_path / "vocab.txt"), "heldout": 0, "workers": 0}
    with pytest.raises(CorpusError, match=r"each of the \d+ words holds a token that the tokenizer does not") as caught:
        read_words(Corpus.build(tmp_path / "strange.txt", tmp_path / "strange", **options), min_count=1)
    assert "--tokenizer train" in caught.value.repair
    (tmp_path / "text.txt").write_text(text_of(3), encoding="utf-8")
    bare = Corpus.build(tmp_path / "text.txt", tmp_path / "bare", vocab=200, words="none", heldout=0, workers=0)
    with pytest.raises(CorpusError, match="--words none") as caught:
        read_words(bare)
    assert "--words auto" in caught.value.repair
    with pytest.raises(CorpusError, match="no word in the split heldout"):
        read_words(
            Corpus.build(tmp_path / "text.txt", tmp_path / "whole", vocab=200, heldout=0, workers=0), split="heldout"
        )
