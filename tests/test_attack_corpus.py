"""Corpora under attack: characters that no piece writes, a text of one document, very much text, endless spaces."""

import gzip
import json
import os

import pytest
from small_run import text_of, word_tokenizer
from small_task import examples_of

from maskery.cli.app import run
from maskery.cli.generate import read_lines
from maskery.corpus import builder
from maskery.corpus.store import Corpus
from maskery.errors import InputError
from maskery.tasks.framing.tokens import encode as encode_examples
from maskery.text.sentences import boundaries
from maskery.text.tokenizer import Tokenizer
from maskery.text.unknown import about_unknown, unknown_characters, unknown_in, unknown_spans


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer()


def test_unknown_characters_are_named_with_counts_shares_and_the_remedy(tokenizer, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("“bam” — ban.\nbam “ban” bar …\n\nbar bam “.\n", encoding="utf-8")
    for workers in (0, 2):
        made = Corpus.build(text, tmp_path / f"corpus{workers}", tokenizer=tokenizer, workers=workers)
        note = next(each for each in made.manifest["notes"] if each.startswith("unknown: "))
        assert "unknown: “ 3 (42.9%), ” 2 (28.6%), — 1 (14.3%), … 1 (14.3%); " in note
        assert "--tokenizer train" in note
        assert "write “ ” ‘ ’" in note
        assert made.counts["unknown"] == 7


def test_of_a_word_the_characters_to_blame_are_named(tokenizer):
    spans = unknown_spans(tokenizer, ["bam 北京 zzz", "bax 北"])
    found = unknown_characters(tokenizer, spans)
    slow = {letter for letter in "北京zbax" if tokenizer.specials.unk in tokenizer.encode_raw([letter])[0][0]}
    assert set(found) <= slow | set(spans)
    assert found["北"] == 2
    assert found["京"] == 1
    assert about_unknown({}) == ""
    assert unknown_in(tokenizer, ["bam ban"]) == ""
    many = about_unknown({chr(0x4E00 + each): 100 - each for each in range(30)})
    assert many.count("%") == 10
    assert ", and 20 others; " in many


def test_examples_of_a_task_name_them_too(tokenizer):
    notes = encode_examples(examples_of("classify", 4), tokenizer).notes
    assert any(each.startswith("unknown: ") for each in notes)


def test_a_text_of_one_document_is_reported_before_the_work(tmp_path, monkeypatch, tokenizer):
    monkeypatch.setattr(builder, "_ONE_DOCUMENT", 500)
    text, said = tmp_path / "lines.txt", []
    text.write_text(text_of(20).replace("\n\n", "\n"))

    def progress(done, total):
        said.append("work")

    Corpus.build(text, tmp_path / "corpus", tokenizer=tokenizer, workers=0, say=said.append, progress=progress)
    note = next(each for each in said if "is one document" in each)
    assert f"sed G {text}" in note
    assert "work" in said[said.index(note) :]


def test_the_remedy_for_one_document_unpacks_what_is_packed(tmp_path, monkeypatch, tokenizer):
    monkeypatch.setattr(builder, "_ONE_DOCUMENT", 500)
    text, said = tmp_path / "lines.txt.gz", []
    text.write_bytes(gzip.compress(text_of(20).replace("\n\n", "\n").encode()))
    Corpus.build(text, tmp_path / "corpus", tokenizer=tokenizer, workers=0, say=said.append)
    note = next(each for each in said if "is one document" in each)
    assert f"gzip -dc {text} | sed G > NEW" in note


def test_a_vocabulary_is_learnt_from_a_part_of_very_much_text(tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "LEARNT_FROM", 3000)
    monkeypatch.setattr(builder, "_STRETCH", 100)
    text = tmp_path / "text.txt"
    text.write_text(text_of(90))
    found = []
    kept = builder._Lines.__iter__

    def walked(self):
        lines = list(kept(self))
        found.append(sum(map(len, lines)))
        return iter(lines)

    monkeypatch.setattr(builder._Lines, "__iter__", walked)
    made = Corpus.build(text, tmp_path / "corpus", vocab=300, workers=0)
    part = -(-made.counts["characters"] // 3000)
    assert part > 3
    assert f"one part in {part} of the text" in " ".join(made.manifest["notes"])
    assert all(1500 < each < 6000 for each in found)


def test_two_hundred_thousand_spaces_are_read(tmp_path, tokenizer):
    spaces = " " * 200_000
    assert boundaries(f"Bam.{spaces}Ban! {spaces}") == [0, 4 + 200_000]
    text = tmp_path / "spaces.txt"
    text.write_text(f"bam ban.{spaces}bar bas{spaces}.\n\nbam{spaces}\n")
    made = Corpus.build(text, tmp_path / "corpus", tokenizer=tokenizer, workers=0)
    assert made.counts["tokens"] == 7


def test_lines_of_prompts_and_scores(tmp_path, capsys):
    file = tmp_path / "lines.txt"
    file.write_bytes("\ufeffbam\r\nban\u2028bar\n".encode())
    assert read_lines(file) == ["bam", "ban\u2028bar"]
    file.write_bytes(b"")
    assert read_lines(file) == []
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="is a pipe"):
        read_lines(pipe)
    assert run(["score", str(tmp_path), str(pipe)]) == 2
    assert "is a pipe" in capsys.readouterr().err


def test_a_regular_expression_that_gives_up_is_reported_with_the_text(tokenizer):
    changed = json.loads(tokenizer.json)
    changed["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"Regex": "(a+)+$"},
        "behavior": "Isolated",
        "invert": False,
    }
    made = Tokenizer.from_json(json.dumps(changed))
    text = "a" * 60 + "b"
    for call in (made.encode, made.encode_marked, lambda each: made.encode_ids([each] * 3)):
        with pytest.raises(InputError, match=r"the tokenizer cannot read a text: .*retry-limit") as caught:
            call(text)
        assert "aaaa" in str(caught.value.where)


def test_an_unknown_token_that_is_no_piece_is_refused_when_it_is_opened(tokenizer):
    changed = json.loads(tokenizer.json)
    changed["model"]["unk_token"] = "[NONE]"
    with pytest.raises(InputError, match=r"the unknown token '\[NONE\]' is not in the vocabulary"):
        Tokenizer.from_json(json.dumps(changed))
