"""Damaged corpora: opened and verified they work, or say what is wrong. A changed byte is never read as text."""

import json

import pytest
from damage import any_damage, exchanges, survives, tries
from hypothesis import given
from small_run import corpus_in

from maskery.corpus.store import DATA, Corpus
from maskery.files import sealed

NAMES = [*DATA, "manifest.json", "tokenizer.json", "vocab.txt"]
FEW = tries(20, slow=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"), documents=5).path


def use(folder):
    corpus = Corpus.open(folder)
    corpus.verify()
    assert corpus.tokenizer.vocabulary == corpus.vocabulary
    assert corpus.facts.frequency.sum() == corpus.tokens.size
    assert len(corpus.documents()) <= corpus.document_start.size


def opened(folder, name, data):
    kept = (folder / name).read_bytes()
    (folder / name).write_bytes(data)
    try:
        return survives(use, folder)
    finally:
        (folder / name).write_bytes(kept)


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_file_is_always_seen(folder, name):
    data = (folder / name).read_bytes()
    assert opened(folder, name, data)

    @FEW
    @given(any_damage(name, data))
    def check(damaged):
        same = damaged == data or (name == "manifest.json" and same_json(damaged, data))
        assert opened(folder, name, damaged) is same

    check()


def same_json(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except (ValueError, RecursionError):
        return False


def test_a_manifest_of_another_form_under_a_good_seal(folder):
    """Written by another version, or by hand: the seal fits, the contents do not."""
    data = (folder / "manifest.json").read_bytes()
    plain = {key: value for key, value in json.loads(data).items() if key != "seal"}

    @tries(100, slow=True)
    @given(exchanges(json.dumps(plain).encode()))
    def check(changed):
        value = json.loads(changed)
        if isinstance(value, dict):
            opened(folder, "manifest.json", json.dumps(sealed(value)).encode())

    check()
