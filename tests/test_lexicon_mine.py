"""`maskery lexicon mine`: phrases and entities of a small corpus, the file that `corpus mark` reads, and bad input."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import groupby, pairwise
from random import Random

import numpy as np
import pytest
import rjieba

from maskery.cli import main
from maskery.corpus.store import Corpus
from maskery.errors import CorpusError, ExistsError, InputError, UnknownName
from maskery.words import mining
from maskery.words.entities import TAGS, tags_of
from maskery.words.mining import Asked, mine
from maskery.words.phrases import Limits
from maskery.words.texts import run_texts
from maskery.words.vocabulary import read_words

FREE = ["我们", "今天", "看", "苹果", "桌子", "喜欢", "the", "dog", "河流", "很", "大", "，"]
FIXED = ["热带 气旋", "New York", "囚徒 困境", "卡尔 · 马克思", "北京 上海", "北京", "张三"]
LOW = Limits(count=5, pmi=1.0, entropy=0.5)


def text_of(documents=60, seed=0):
    """Fixed expressions among words that stand anywhere."""
    draw = Random(seed)

    def sentence():
        parts = [draw.choice(FREE) for _ in range(draw.randint(4, 9))]
        for _ in range(2):
            parts.insert(draw.randint(0, len(parts)), draw.choice(FIXED))
        return " ".join(parts) + "。"

    return "\n\n".join("\n".join(sentence() for _ in range(draw.randint(3, 8))) for _ in range(documents))


@pytest.fixture(scope="module", params=["wordpiece", "bpe", "char"])
def corpus(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "text.txt").write_text(text_of(), encoding="utf-8")
    vocab = {} if request.param == "char" else {"vocab": 400}
    return Corpus.build(folder / "text.txt", folder / "corpus", kind=request.param, heldout=0.1, workers=0, **vocab)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    (folder / "text.txt").write_text(text_of(), encoding="utf-8")
    return Corpus.build(folder / "text.txt", folder / "corpus", vocab=400, heldout=0.1, workers=0)


def rows_of(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("# ")]


def test_fixed_expressions_are_phrases(corpus, tmp_path):
    made = mine(corpus, tmp_path / "phrases.txt", Asked(limits=LOW))
    rows = rows_of(tmp_path / "phrases.txt")
    assert [tuple(row) for row in rows] == made.rows
    found = {"".join(text.split()).lower() for text, *_ in rows}
    assert {"热带气旋", "newyork", "囚徒困境", "卡尔·马克思"} <= found
    scores = [float(pmi) * float(entropy) for _, _, pmi, entropy in rows]
    assert all(one >= other - 0.1 for one, other in pairwise(scores)), "the best first"
    assert scores[0] > 2 * scores[-1]


def test_mark_finds_each_phrase_as_often_as_it_was_counted(corpus, tmp_path):
    """The file feeds `corpus mark` as it is; one phrase at a time, so that none hides another."""
    mine(corpus, tmp_path / "phrases.txt", Asked(limits=LOW))
    sentences = sentences_of(corpus)
    for at, (text, count, _, _) in enumerate(rows_of(tmp_path / "phrases.txt")[:6]):
        name = "".join(text.split())
        runs = Counter("".join(each[a:b]) for each in sentences for a in range(len(each)) for b in range(a + 2, a + 6))
        joined = sum("".join(each).count(name) for each in sentences)
        assert 0 < int(count) <= joined
        assert runs[name] >= int(count)
        (tmp_path / "one.txt").write_text(f"{text}\t{count}\n", encoding="utf-8")
        marked = corpus.mark(tmp_path / f"marked{at}", phrases=tmp_path / "one.txt")
        assert marked.manifest["options"]["marks"]["phrases"]["matches"] >= int(count), "held-out text is marked too"


def test_runs_are_written_so_that_they_are_read_back(corpus):
    words = read_words(corpus, min_count=1)
    starts = words.sentence_start[:-1]
    length = np.minimum(np.diff(words.sentence_start), 4)
    texts = run_texts(corpus, starts, length)
    spelt = [
        "".join(words.words[word] for word in words.number[place : place + many].tolist())
        for place, many in zip(starts.tolist(), length.tolist(), strict=True)
    ]
    assert ["".join(text.split()) for text in texts] == spelt
    assert run_texts(corpus, starts[:0], length[:0]) == []


def sentences_of(corpus):
    """The training text as words."""
    read = read_words(corpus, min_count=1)
    names = [read.words[word] if word >= 0 else "?" for word in read.number.tolist()]
    return [names[begin:end] for begin, end in pairwise(read.sentence_start.tolist())]


def slow_entities(sentences, longest):
    """{(text, tag): count}: rjieba.tag over whole sentences; words, and the longest stretches of one tag."""
    found = Counter()
    for words in sentences:
        tagged = [(word, tag) for word, tag in rjieba.tag(" ".join(words)) if word != " "]
        assert [word for word, _ in tagged] == words
        tags = [tag[:2] if tag[:2] in TAGS and len(word) > 1 else "" for word, tag in tagged]
        found.update((word, tag) for word, tag in zip(words, tags, strict=True) if tag)
        for at in range(1, len(words) - 1):
            if words[at] == "·" and tags[at - 1] == tags[at + 1] == "nr":
                tags[at] = "nr"
        for tag, stretch in groupby(zip(tags, words, strict=True), key=lambda each: each[0]):
            run = [word for _, word in stretch]
            if tag and 2 <= len(run) <= longest:
                found["".join(run), tag] += 1
    return found


def test_entities_are_what_the_tagger_says_of_the_sentences(plain, tmp_path):
    made = mine(plain, tmp_path / "names.txt", Asked(kind="entities", limits=Limits(count=3, words=4)))
    wanted = {(*key, count) for key, count in slow_entities(sentences_of(plain), 4).items() if count >= 3}
    assert {(text, tag, int(count)) for text, count, tag in made.rows} == wanted
    assert {"北京", "上海", "北京上海", "张三", "卡尔·马克思"} <= {text for text, _, _ in made.rows}
    assert [int(count) for _, count, _ in made.rows] == sorted((count for *_, count in wanted), reverse=True)


def test_tags_are_those_of_single_words():
    assert [TAGS[tag] for tag in tags_of(["北京", "苹果", "周杰伦", "北", "dog", "，", "新华社"])] == [
        "ns", "", "nr", "", "", "", "nt",
    ]  # fmt: skip


def test_a_list_is_counted_in_the_text(plain, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text("new york\tns\n北京\n热带气旋\t7\tnz\n北京\tns\n火星\n龘龘\nNew York\n", encoding="utf-8")
    made = mine(plain, tmp_path / "names.txt", Asked(kind="entities", limits=Limits(count=1), list_file=listed))
    counts = {text: int(count) for text, count, *_ in made.rows}
    text = [plain.tokenizer.decode(plain.tokens[a:b]) for a, b in train_sentences(plain)]
    for name in ("new york", "北京", "热带气旋"):
        assert counts.pop(name) == sum(each.count(name) for each in text)
    assert not counts
    assert {row[0]: row[2:] for row in made.rows} == {"new york": ("ns",), "北京": (), "热带气旋": ("nz",)}
    assert made.left_out == {"repeated": 2, "unknown": 2}


def train_sentences(corpus):
    for document in corpus.documents("train").tolist():
        for sentence in range(corpus.document_start[document], corpus.document_start[document + 1]):
            yield corpus.sentence_start[sentence], corpus.sentence_start[sentence + 1]


def test_the_verb_writes_tells_and_leads_on(plain, tmp_path, capsys):
    out, low = tmp_path / "phrases.txt", ["--min-count", "5", "--min-pmi", "1", "--min-entropy", "0.5"]
    assert main(["lexicon", "mine", str(plain.path), "--out", str(out), *low, "--top", "3", "--json"]) == 0
    told = capsys.readouterr()
    summary = json.loads(told.out)
    assert summary["path"] == str(out)
    assert summary["entries"] == 3 == len(rows_of(out))
    assert f"left out: {summary['left_out']['top']:,} not written, because of --top" in told.err
    head = out.read_text(encoding="utf-8").splitlines()
    assert head[0].startswith(
        f"# phrases of the corpus corpus, {plain.fingerprint[:12]}: 2 to 5 words, at least 5 times"
    )
    assert head[1] == "# phrase\tcount\tpmi\tentropy"
    marking = ["corpus", "mark", str(plain.path), "--phrases", str(out), "--out", str(tmp_path / "marked")]
    assert f"mark them: maskery corpus mark {plain.path} --phrases {out} --out DIR" in told.err
    assert main([*marking, "--json"]) == 0
    marks = json.loads(capsys.readouterr().out)["phrases"]
    assert (marks["entries"], marks["found"], marks["unknown"]) == (3, 3, 0)


def test_the_same_corpus_gives_the_same_bytes(plain, tmp_path):
    for name in ("one", "two"):
        mine(plain, tmp_path / name, Asked(limits=LOW))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("limits", "told", "repair"),
    [
        (Limits(count=100_000), "100000 occurrences and ends", "--min-count 25000"),
        (Limits(count=5, pmi=50), "a mutual information of 50: the closest has", "--min-pmi"),
        (Limits(count=5, pmi=0, entropy=50), "an entropy of 50: the freest has", "--min-entropy"),
    ],
    ids=["count", "pmi", "entropy"],
)
def test_nothing_found_names_the_limit_to_lower(plain, tmp_path, limits, told, repair):
    with pytest.raises(CorpusError) as caught:
        mine(plain, tmp_path / "phrases.txt", Asked(limits=limits))
    assert told in caught.value.cause
    assert caught.value.repair.startswith(repair)
    assert not (tmp_path / "phrases.txt").exists()
    option, value = caught.value.repair.replace(",", "").split()[:2]
    if option != "--min-count":
        lower = Limits(count=5, pmi=float(value) if option == "--min-pmi" else 0, entropy=0)
        assert mine(plain, tmp_path / "phrases.txt", Asked(limits=lower)).rows, "the repair repairs"


def test_no_names_are_refused(plain, tmp_path):
    with pytest.raises(CorpusError, match=r"no name .* the most frequent stands \d+ times") as caught:
        mine(plain, tmp_path / "names.txt", Asked(kind="entities", limits=Limits(count=100_000)))
    most = re.match(r"--min-count (\d+), or", caught.value.repair)
    assert mine(plain, tmp_path / "some.txt", Asked(kind="entities", limits=Limits(count=int(most[1])))).rows
    listed = tmp_path / "list.txt"
    listed.write_text("北京\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"the most frequent stands \d+ times") as caught:
        mine(plain, tmp_path / "names.txt", Asked(kind="entities", limits=Limits(count=100_000), list_file=listed))
    assert caught.value.repair.startswith("--min-count ")
    listed.write_text("龘龘\n", encoding="utf-8")
    with pytest.raises(InputError, match="none is in the text at all"):
        mine(plain, tmp_path / "names.txt", Asked(kind="entities", list_file=listed))


@pytest.mark.parametrize("asked", [Asked(), Asked(kind="entities"), "list"], ids=["phrases", "entities", "list"])
def test_a_corpus_without_words_is_refused(tmp_path, asked):
    (tmp_path / "text.txt").write_text(text_of(5), encoding="utf-8")
    (tmp_path / "list.txt").write_text("北京\n", encoding="utf-8")
    corpus = Corpus.build(tmp_path / "text.txt", tmp_path / "corpus", kind="char", words="none", heldout=0, workers=0)
    asked = Asked(kind="entities", list_file=tmp_path / "list.txt") if asked == "list" else asked
    with pytest.raises(CorpusError, match="--words none"):
        mine(corpus, tmp_path / "out.txt", asked)


def test_what_is_there_is_not_overwritten(plain, tmp_path):
    (tmp_path / "out.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ExistsError, match="is already there") as caught:
        mine(plain, tmp_path / "out.txt", Asked(limits=LOW))
    assert f"rm {tmp_path / 'out.txt'}" in caught.value.repair
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "mine"
    with pytest.raises(InputError, match="no such folder"):
        mine(plain, tmp_path / "no" / "out.txt", Asked(limits=LOW))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "names"}, "unknown kind of lexicon"),
        ({"limits": Limits(count=0)}, "--min-count 0"),
        ({"limits": Limits(words=1)}, "--longest 1"),
        ({"limits": Limits(words=99)}, "--longest 99"),
        ({"top": 0}, "--top 0"),
        ({"list_file": "list.txt"}, "--list goes with entities"),
    ],
    ids=["kind", "count", "longest 1", "longest 99", "top", "list"],
)
def test_wrong_options_are_refused(given, told):
    with pytest.raises(InputError, match=told) as caught:
        Asked(**given)
    assert caught.value.repair
    assert isinstance(caught.value, UnknownName) == ("kind" in given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--kind", "entities", "--min-pmi", "3"], "--min-pmi goes with phrases"),
        (["--kind", "entities", "--min-entropy", "0"], "--min-entropy goes with phrases"),
        (["--kind", "entities", "--list", "names.txt", "--longest", "3"], "--longest has no meaning for the entries"),
    ],
    ids=["pmi", "entropy", "longest"],
)
def test_limits_that_are_not_read_are_refused(plain, tmp_path, capsys, given, told):
    assert main(["lexicon", "mine", str(plain.path), *given, "--out", str(tmp_path / "out.txt")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out.txt").exists()


def test_entities_that_are_counted_together_move_up(plain, tmp_path, monkeypatch):
    """All but the most frequent read the same, so together they are the most frequent."""
    monkeypatch.setattr(mining, "run_texts", lambda corpus, place, length: ["one", *["others"] * (len(place) - 1)])
    rows = mine(plain, tmp_path / "out.txt", Asked(kind="entities", limits=LOW)).rows
    assert [text for text, *_ in rows] == ["others", "one"]
    assert int(rows[0][1]) > int(rows[1][1])
