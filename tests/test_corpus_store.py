from __future__ import annotations

import json
import pickle
import shutil

import numpy as np
import pytest
from vocabularies import TEXT, mixed_tokenizer

from maskery.corpus.store import Corpus
from maskery.errors import CorpusError, UnknownName
from maskery.files import sealed


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    (folder / "text.txt").write_text("\n\n".join([TEXT] * 5), encoding="utf-8")
    return Corpus.build(folder / "text.txt", folder / "corpus", tokenizer=mixed_tokenizer())


@pytest.fixture
def copy(made, tmp_path):
    shutil.copytree(made.path, tmp_path / "corpus")
    return tmp_path / "corpus"


def test_open_gives_what_was_built(made):
    corpus = Corpus.open(str(made.path))
    assert corpus.fingerprint == made.fingerprint
    assert corpus.specials == mixed_tokenizer().specials
    assert corpus.tokenizer.fingerprint == mixed_tokenizer().fingerprint
    assert isinstance(corpus.tokens, np.memmap)
    assert not corpus.tokens.flags.writeable
    first = corpus.tokens[: corpus.sentence_start[1]]
    assert corpus.tokenizer.decode(first) == "我们今天去北京大学看周杰伦演唱会。"


def test_facts(made):
    facts = made.facts
    assert facts.vocabulary == made.vocabulary
    assert facts.frequency.sum() == made.tokens.size
    assert facts.frequency[made.tokenizer.id("北")] == np.count_nonzero(made.tokens == made.tokenizer.id("北"))
    assert made.specials.mask not in facts.ordinary
    assert made.tokenizer.id("the") in facts.ordinary


def test_a_pickled_corpus_is_its_path(made):
    data = pickle.dumps(made)
    assert len(data) < 1000
    assert np.array_equal(pickle.loads(data).tokens, made.tokens)


def test_splits_are_closed(made):
    assert made.documents().size + made.documents("heldout").size == made.heldout.size
    with pytest.raises(UnknownName, match="split"):
        made.documents("dev")


def refused(path, cause):
    with pytest.raises(CorpusError, match=cause) as caught:
        Corpus.open(path)
    assert "maskery corpus build" in caught.value.repair
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    "name", ["tokens.bin", "flags.bin", "sentences.bin", "documents.bin", "heldout.bin", "tokenizer.json"]
)
def test_cut_or_missing_files(copy, name):
    data = (copy / name).read_bytes()
    (copy / name).write_bytes(data[:-1])
    refused(copy, f"{name} has {len(data) - 1} bytes, the manifest says {len(data)}")
    (copy / name).unlink()
    refused(copy, f"{name} is missing")


def test_folders_that_are_no_corpus(tmp_path, copy):
    refused(tmp_path / "nothing", "no such folder")
    refused(tmp_path, "no manifest.json")
    (copy / "manifest.json").write_text("{")
    refused(copy, "cannot be read")
    (copy / "manifest.json").write_bytes(b"\xff")
    refused(copy, "cannot be read")
    for other in ("[]", "{}", '{"maskery": "run"}'):
        (copy / "manifest.json").write_text(other)
        refused(copy, "another kind")


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"format": 99}, "format 99"),
        ({"specials": None}, "lacks specials"),
        ({"files": {}}, "lacks tokens.bin"),
    ],
)
def test_manifests_that_do_not_fit(copy, change, cause):
    reseal(copy, lambda manifest: {k: v for k, v in {**manifest, **change}.items() if v is not None})
    refused(copy, cause)


def reseal(corpus, change):
    """A manifest of another making: not damaged, but not what we wrote."""
    manifest = json.loads((corpus / "manifest.json").read_text())
    del manifest["seal"]
    (corpus / "manifest.json").write_text(json.dumps(sealed(change(manifest))))


def test_files_that_do_not_agree(copy):
    flags = (copy / "flags.bin").read_bytes() + b"\0"
    (copy / "flags.bin").write_bytes(flags)

    def longer(manifest):
        manifest["files"]["flags.bin"]["bytes"] = len(flags)
        return manifest

    reseal(copy, longer)
    refused(copy, "do not agree")


def test_verify_finds_one_changed_bit(copy):
    data = bytearray((copy / "tokens.bin").read_bytes())
    data[7] ^= 1
    (copy / "tokens.bin").write_bytes(data)
    corpus = Corpus.open(copy)
    with pytest.raises(CorpusError, match=r"tokens\.bin does not match its checksum") as caught:
        corpus.verify()
    assert "maskery corpus build" in caught.value.repair
