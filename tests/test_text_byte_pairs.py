"""Tokenizers of the GPTs: vocab.json with merges.txt, tokenizer.json, against transformers' own; one mark for all."""

from __future__ import annotations

import json

import numpy as np
import pytest
import transformers
from tokenizers import Tokenizer as RustTokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from maskery.cli import main
from maskery.corpus.store import Corpus
from maskery.errors import InputError
from maskery.rows.config import RowsConfig
from maskery.rows.plan import plan_rows
from maskery.rows.ragged import gather
from maskery.text.roles import END, Specials
from maskery.text.tokenizer import Tokenizer

TEXTS = ["The cat sat on the mat.", " Hello  world\n", "北京 is 好 <|endoftext|> <unk> 123", "naïve\tcafé", ""]
MERGES = ["Ġ t", "h e", "Ġt he", "a t", "c at", "o n"]


def byte_files(folder, marks=(END,)):
    """GPT-2's layout: 256 letters of bytes, what merges make of them, the mark last."""
    pieces = [*sorted(ByteLevel.alphabet()), *(pair.replace(" ", "") for pair in MERGES), *marks]
    return written(folder, {piece: number for number, piece in enumerate(pieces)}, MERGES)


def word_files(folder):
    """The first GPT's: letters alone and at the end of a word, and <unk> first."""
    letters = "abcdefghijklmnopqrstuvwxyz.,"
    merges = ["t h", "th e</w>", "c a", "ca t</w>"]
    pieces = ["<unk>", *letters, *(f"{letter}</w>" for letter in letters), *(pair.replace(" ", "") for pair in merges)]
    return written(folder, {piece: number for number, piece in enumerate(pieces)}, merges)


def written(folder, numbers, merges):
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    return folder


def theirs(kind, folder):
    return getattr(transformers, kind)(vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt"))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return byte_files(tmp_path_factory.mktemp("gpt2"))


def test_gpt2_reads_as_theirs_and_has_one_mark(gpt2):
    ours, other = Tokenizer.load(gpt2), theirs("GPT2Tokenizer", gpt2)
    end = len(ByteLevel.alphabet()) + len(MERGES)
    assert ours.specials == Specials(pad=end, unk=end, cls=end, sep=end, mask=None)
    assert f"{END} stands for pad, unk, cls, sep" in ours.note
    for text in TEXTS:
        ids, segments = ours.encode(text)
        assert ids == other(text)["input_ids"]
        assert ours.decode(ids, specials=True) == other.decode(ids)
        assert set(segments) <= {0}
    raw, _ = ours.encode_ids([f"a {END} b"])
    assert end not in raw, "in raw text the mark is text"


def test_the_folder_comes_back_as_tokenizer_json(gpt2, tmp_path):
    ours = Tokenizer.load(gpt2)
    ours.save(tmp_path)
    again, opened = Tokenizer.load(tmp_path), transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert again.fingerprint == ours.fingerprint
    assert (opened.eos_token, opened.bos_token, opened.pad_token) == (END, END, END)
    assert [opened(text)["input_ids"] for text in TEXTS] == [again.encode(text)[0] for text in TEXTS]


def test_the_first_gpt_reads_as_theirs_and_its_unknown_takes_every_part(tmp_path):
    folder = word_files(tmp_path / "gpt")
    ours, other = Tokenizer.load(folder), theirs("OpenAIGPTTokenizer", folder)
    assert set(ours.specials.ids) == {0}
    assert "<unk> stands for pad, cls, sep" in ours.note
    for text in ["The cat, the cat.", "Über cats", "thecat 12"]:
        assert ours.encode(text)[0] == other(text)["input_ids"]
    assert ours.decode(ours.encode("the cat.")[0]) == "the cat ."


def test_bytes_with_the_marks_of_roberta_are_framed(tmp_path):
    folder = byte_files(tmp_path / "roberta", ("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    ours, other = Tokenizer.load(folder), theirs("RobertaTokenizer", folder)
    for text in TEXTS:
        assert ours.encode(text)[0] == other(text)["input_ids"]
    assert ours.specials.mask is not None
    assert ours.specials.framed


def test_files_that_cannot_be_right(tmp_path):
    for name, damage, words in (
        ("vocab.json", "{", "cannot be read"),
        ("vocab.json", "[1]", "pieces and their numbers"),
        ("vocab.json", '{"a": 0, "b": 0}', "same number"),
        ("vocab.json", '{"a": 0}', "joins pieces that vocab.json has not"),
        ("merges.txt", "a b c\n", "no pair of pieces"),
        ("merges.txt", "\udcff".encode("utf-8", "surrogateescape"), "not UTF-8"),
    ):
        folder = byte_files(tmp_path / "damaged")
        (folder / name).write_bytes(damage if isinstance(damage, bytes) else damage.encode())
        with pytest.raises(InputError, match=words) as caught:
            Tokenizer.load(folder)
        assert caught.value.repair
        assert name in str(caught.value.where) or "both files" in caught.value.repair
    bare = RustTokenizer(BPE({"a": 0, "b": 1}, []))
    with pytest.raises(InputError, match="no pad token"):
        Tokenizer(bare)


def test_documents_of_such_a_corpus_end_with_the_mark(gpt2, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("the cat\nsat on\n\nthe mat\n", encoding="utf-8")
    call = ["corpus", "build", str(tmp_path / "text.txt"), "--out", str(tmp_path / "c"), "--tokenizer", str(gpt2)]
    assert main([*call, "--heldout", "0", "--workers", "0"]) == 0
    assert f"{END} stands for" in capsys.readouterr().err
    corpus = Corpus.open(tmp_path / "c")
    rows = gather(plan_rows(RowsConfig(kind="stream"), corpus, 8, 0), [0], corpus)
    end = corpus.specials.sep
    whole = np.concatenate([corpus.tokens[slice(*corpus.sentence_start[[0, 2]])], [end], corpus.tokens])
    assert rows.ids.tolist() == whole[:8].tolist()
    (tmp_path / "r.toml").write_text('extends = "roberta"', encoding="utf-8")
    call = ["pretrain", str(tmp_path / "r.toml"), "--corpus", str(tmp_path / "c"), "--out", str(tmp_path / "run")]
    assert main(call) == 2
    assert "mask" in capsys.readouterr().err
