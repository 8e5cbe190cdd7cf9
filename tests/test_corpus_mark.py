"""Phrases and entities marked in a built corpus: only the flags differ, and corruption takes the marked whole."""

from __future__ import annotations

import json
import os
import shutil
from random import Random

import numpy as np
import pytest
from crash import contents, crashes_of

from maskery.cli import main
from maskery.corpus import mark as marking
from maskery.corpus.store import Corpus, Flag
from maskery.edit import Edit
from maskery.errors import CorpusError, ExistsError, InputError
from maskery.feed import Feed
from maskery.recipes.recipe import recipe

PARTS = ["我们 今天", "去 看", "周杰伦", "周杰伦 演唱会", "北京 大学", "大学", "New York", "the dog", "dog", "，"]
PHRASES = "我们今天\n去看\t17\n周杰伦\nthe dog\n龘龘\n去看\n京大\n"
ENTITIES = "周杰伦演唱会\n周杰伦\n北京大学\nnew york\tns\n"
MARKS = Flag.PHRASE | Flag.IN_PHRASE | Flag.ENTITY | Flag.IN_ENTITY


def text_of(documents=20, seed=0):
    draw = Random(seed)

    def sentence():
        return "".join(f" {draw.choice(PARTS)} " for _ in range(draw.randint(3, 12))).strip() + "。"

    return "\n\n".join("\n".join(sentence() for _ in range(draw.randint(3, 8))) for _ in range(documents))


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A corpus and two lists."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "text.txt").write_text(text_of(), encoding="utf-8")
    (folder / "phrases.txt").write_text(PHRASES, encoding="utf-8")
    (folder / "entities.txt").write_text(ENTITIES, encoding="utf-8")
    Corpus.build(folder / "text.txt", folder / "corpus", vocab=200, heldout=0.1, workers=0)
    return folder


@pytest.fixture(scope="module")
def marked(start):
    corpus = Corpus.open(start / "corpus")
    return corpus.mark(start / "marked", phrases=start / "phrases.txt", entities=[start / "entities.txt"])


def stretches(corpus, first, inside):
    """The marked stretches as text, sentence by sentence, read one flag after another."""
    pieces, found = corpus.tokenizer.tokens(corpus.tokens), []
    for piece, flag in zip(pieces, corpus.flags.tolist(), strict=True):
        assert not (flag & first and flag & inside)
        if flag & first:
            assert flag & Flag.WORD
            found.append("")
        if flag & (first | inside):
            found[-1] += piece.removeprefix("##")
    return found


def words_of(corpus):
    """The words of each sentence."""
    pieces, sentences = corpus.tokenizer.tokens(corpus.tokens), []
    for piece, flag in zip(pieces, corpus.flags.tolist(), strict=True):
        if flag & Flag.SENTENCE:
            sentences.append([])
        if flag & Flag.WORD:
            sentences[-1].append("")
        sentences[-1][-1] += piece.removeprefix("##")
    return sentences


def expected(corpus, entries, least):
    """Entries as runs of whole words, the longest first, left to right."""
    found = []
    for words in words_of(corpus):
        at = 0
        while at < len(words):
            ends = [end for end in range(at + 1, len(words) + 1) if "".join(words[at:end]) in entries]
            if ends and max(ends) - at >= least:
                found.append("".join(words[at : max(ends)]))
            at = max(ends, default=at + 1)
    return found


def test_the_marks_are_those_of_a_search_word_by_word(start, marked):
    phrases = stretches(marked, Flag.PHRASE, Flag.IN_PHRASE)
    entities = stretches(marked, Flag.ENTITY, Flag.IN_ENTITY)
    assert phrases == expected(marked, {"我们今天", "去看", "周杰伦", "thedog"}, 2)
    assert entities == expected(marked, {"周杰伦演唱会", "周杰伦", "北京大学", "newyork"}, 1)
    assert set(phrases) == {"我们今天", "去看", "thedog"}, "周杰伦 is a word, and no phrase of one word is marked"
    assert set(entities) == {"周杰伦演唱会", "周杰伦", "北京大学", "newyork"}
    told = marked.manifest["options"]["marks"]
    assert told["phrases"]["matches"] == len(phrases)
    assert told["entities"]["matches"] == len(entities)
    assert told["entities"]["tokens"] == int(((marked.flags & (Flag.ENTITY | Flag.IN_ENTITY)) != 0).sum())
    assert {key: told["phrases"][key] for key in ("entries", "repeated", "unknown", "too_long", "found")} == {
        "entries": 7,
        "repeated": 1,
        "unknown": 1,
        "too_long": 0,
        "found": 4,
    }
    assert told["phrases"]["single"] == sum(words.count("周杰伦") for words in words_of(marked))


def test_only_the_flags_differ(start, marked):
    plain = Corpus.open(start / "corpus")
    marked.verify()
    assert ((marked.flags & ~np.uint8(MARKS)) == plain.flags).all()
    here, there = ({name: sha for name, sha in contents(folder.path) if name} for folder in (marked, plain))
    assert {name for name in here if here[name] != there.get(name)} == {"flags.bin", "manifest.json"}
    assert here.keys() == there.keys()
    assert marked.fingerprint != plain.fingerprint
    different = {key for key in marked.manifest if marked.manifest[key] != plain.manifest[key]}
    assert different == {"fingerprint", "files", "options", "seal"}
    lists = marked.manifest["options"]["marks"]["phrases"]["lists"]
    assert [each["file"] for each in lists] == ["phrases.txt"]
    assert main(["doctor", str(marked.path)]) == 0


def test_marks_are_replaced_kind_by_kind(start, marked, tmp_path):
    (tmp_path / "other.txt").write_text("the dog\n", encoding="utf-8")
    again = marked.mark(tmp_path / "again", phrases=[tmp_path / "other.txt"])
    assert set(stretches(again, Flag.PHRASE, Flag.IN_PHRASE)) == {"thedog"}
    inside = np.uint8(Flag.ENTITY | Flag.IN_ENTITY)
    assert ((again.flags & inside) == (marked.flags & inside)).all()
    kept = again.manifest["options"]["marks"]
    assert kept["entities"] == marked.manifest["options"]["marks"]["entities"]
    assert kept["phrases"]["lists"][0]["file"] == "other.txt"


def test_pieces_of_the_text_and_copies_do_not_matter(start, marked, tmp_path, monkeypatch):
    monkeypatch.setattr(marking, "_BLOCK", 7)

    def refused(*_):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    told = []
    again = Corpus.open(start / "corpus").mark(
        tmp_path / "again",
        phrases=start / "phrases.txt",
        entities=start / "entities.txt",
        progress=lambda done, total: told.append(done / total),
    )
    assert again.fingerprint == marked.fingerprint
    assert contents(again.path) == contents(marked.path)
    assert len(told) > 20
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("step", "unit"), [(0, "token"), (4, "phrase"), (8, "entity")], ids=["token", "phrase", "entity"]
)
def test_ernie_takes_what_is_marked_whole_in_its_stage(marked, step, unit):
    asked = recipe("ernie", {"training.steps": 9, "training.phases": [], "training.length": 64, "training.batch": 60})
    feed = Feed(asked, marked, seed=0)
    assert feed.corruption(step).unit == unit
    rows = feed.corrupted(step, *feed.numbers(step))
    chosen, shown = rows.edit != Edit.NONE, marked.tokenizer.tokens(rows.original)
    hit = {"去看": [], "北京大学": [], "周杰伦演唱会": []}
    for entry, found in hit.items():
        marks = Flag.IN_PHRASE if entry == "去看" else Flag.IN_ENTITY
        for at in range(len(shown) - len(entry) + 1):
            whole = slice(at, at + len(entry))
            if "".join(shown[whole]) == entry and (rows.flags[whole][1:] & marks).all():
                found.append(chosen[whole].mean())
    assert min(map(len, hit.values())) > 20
    torn = {entry: sum(0 < share < 1 for share in found) for entry, found in hit.items()}
    assert {entry: count > 0 for entry, count in torn.items()} == {
        "去看": unit != "phrase",
        "北京大学": unit != "entity",
        "周杰伦演唱会": unit != "entity",
    }
    assert chosen.sum() / (~rows.special).sum() == pytest.approx(0.15, abs=0.02)


def test_a_crash_leaves_a_whole_corpus_or_none(start, tmp_path):
    def mark(place):
        Corpus.open(place / "corpus").mark(place / "new", entities=place / "entities.txt")

    shutil.copytree(start, tmp_path / "start", ignore=shutil.ignore_patterns("marked"))
    effects, crashes = crashes_of(mark, tmp_path / "start", tmp_path)
    assert {"link tokens.bin", "write flags.bin", "write manifest.json"} <= {
        each.replace(".partial-manifest", "manifest") for each in effects
    }
    assert {crash.way for crash in crashes} >= {"killed", "torn", "power"}
    there = [(crash.left / "new").exists() for crash in crashes]
    assert there == sorted(there)
    assert set(there) == {False, True}
    before = contents(tmp_path / "start/corpus")
    for crash, whole in zip(crashes, there, strict=True):
        assert contents(crash.left / "corpus") == before
        if whole:
            Corpus.open(crash.left / "new").verify()


def test_a_corpus_without_words_is_refused(start, tmp_path):
    """No unit could use its marks: phrases and entities are refused where there are no words."""
    bare = Corpus.build(start / "text.txt", tmp_path / "bare", vocab=200, words="none", workers=0)
    with pytest.raises(CorpusError, match="--words none") as caught:
        bare.mark(tmp_path / "new", phrases=start / "phrases.txt")
    assert "--words auto" in caught.value.repair
    assert not (tmp_path / "new").exists()


def test_bad_calls_are_refused(start, tmp_path):
    corpus, out = Corpus.open(start / "corpus"), tmp_path / "new"
    with pytest.raises(InputError, match="nothing to mark") as caught:
        corpus.mark(out)
    assert "--phrases FILE" in caught.value.repair
    with pytest.raises(ExistsError, match="already there"):
        corpus.mark(tmp_path, phrases=start / "phrases.txt")
    with pytest.raises(InputError, match="no such file"):
        corpus.mark(out, phrases=start / "nothing.txt")
    assert not out.exists()
    shutil.copytree(corpus.path, tmp_path / "broken")
    broken = tmp_path / "broken/tokens.bin"
    broken.write_bytes(bytes([broken.read_bytes()[0] ^ 1]) + broken.read_bytes()[1:])
    with pytest.raises(CorpusError, match=r"tokens\.bin does not match"):
        Corpus.open(tmp_path / "broken").mark(out, phrases=start / "phrases.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken"]


def command(start, *more):
    return ["corpus", "mark", str(start / "corpus"), *map(str, more)]


def test_the_command_tells_what_it_found(start, tmp_path, capsys):
    lists = ["--phrases", start / "phrases.txt", "--entities", start / "entities.txt"]
    assert main(command(start, *lists, "--out", tmp_path / "new")) == 0
    told = capsys.readouterr()
    assert "phrases     7 entries, 4 of them in the text" in told.out
    assert "phrases: 1 given again" in told.err
    assert "phrases: 1 left out: they hold a token that the tokenizer does not know" in told.err
    assert "the entry is one word" in told.err
    assert "warning" not in told.err
    assert main(command(start, *lists, "--out", tmp_path / "as-json", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fingerprint"] == Corpus.open(tmp_path / "new").fingerprint
    assert found["entities"]["matches"] > 100
    assert 0 < found["phrases"]["share"] < found["entities"]["share"] < 1
    assert main(command(start, *lists, "--out", tmp_path / "new")) == 2
    assert "is already there" in capsys.readouterr().err


def test_a_list_that_matches_nothing_is_told(start, tmp_path, capsys):
    (tmp_path / "none.txt").write_text("京大\nthe cat\n", encoding="utf-8")
    given = ["--phrases", tmp_path / "none.txt", "--out", tmp_path / "new"]
    assert main(command(start, *given)) == 0
    told = capsys.readouterr()
    assert f"warning: nothing of {tmp_path / 'none.txt'} is in the text as a run of whole words" in told.err
    assert "maskery inspect" not in told.err
    assert "phrases     2 entries, 0 of them in the text" in told.out
    assert Corpus.open(tmp_path / "new").fingerprint == Corpus.open(start / "corpus").fingerprint


@pytest.mark.parametrize(
    ("lists", "cause"),
    [
        ([], "there is nothing to mark"),
        (["--phrases", "empty.txt"], "the list has no entry"),
        (["--entities", "missing.txt"], "missing.txt: no such file"),
        (["--entities", "gbk.txt"], "gbk.txt:1: byte 0x"),
        (["--entities", "."], "is a folder"),
    ],
)
def test_the_command_refuses_bad_lists(start, tmp_path, monkeypatch, capsys, lists, cause):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "gbk.txt").write_bytes("北京\n".encode("gbk"))
    assert main(command(start, *lists, "--out", "new")) == 2
    told = capsys.readouterr().err
    assert cause in told
    assert "repair: " in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.txt", "gbk.txt"]


def test_words_and_marks_are_told_before_rows_are_shown(start, marked, tmp_path, capsys):
    words = tmp_path / "words.txt"
    words.write_text("北京 大学\n我们 今天\n周杰伦 演唱会\n龘 龘龘\n", encoding="utf-8")
    inspect = ["inspect", "macbert", "--rows", "20", "--set", "training.length=64", "--set"]
    assert main([*inspect, f"knowledge.synonyms={words}", "--corpus", str(marked.path)]) == 0
    told = capsys.readouterr().err
    assert f"similar words: 6 of {words}, 6 have a similar one of as many tokens; 2 left out" in told
    assert main(["inspect", "bert", *inspect[2:], f"knowledge.synonyms={words}", "--corpus", str(marked.path)]) == 0
    assert "is not read: corruption.replace.similar is 0" in capsys.readouterr().err
    ernie = ["inspect", "ernie", *inspect[2:-1], "--corpus"]
    assert main([*ernie, str(marked.path)]) == 0
    assert "no marked" not in capsys.readouterr().err
    assert main([*ernie, str(start / "corpus")]) == 0
    told = capsys.readouterr().err
    assert f"{start / 'corpus'} has no marked phrases: unit 'phrase' takes words there" in told
    assert f"maskery corpus mark {start / 'corpus'} --entities FILE --out DIR" in told


def test_reading_a_long_list_is_most_of_the_progress(start, tmp_path):
    (tmp_path / "long.txt").write_text(PHRASES * 2000, encoding="utf-8")
    told = []
    Corpus.open(start / "corpus").mark(
        tmp_path / "out", phrases=tmp_path / "long.txt", progress=lambda done, total: told.append(done / total)
    )
    assert told[0] > 0.9, "told when the list is read"
    assert told[-1] == pytest.approx(1)
