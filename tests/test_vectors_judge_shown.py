"""MTEB's model, the pictures of vectors, and the words behind `maskery evaluate --task sts`."""

import re
import sys
from enum import Enum
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pydantic import BaseModel, ConfigDict
from torch.utils.data import DataLoader
from vector_models import made_of, quiet

from maskery import extras
from maskery.errors import ArgumentError, InputError, UnknownName
from maskery.vectors.encoder import Encoder
from maskery.vectors.judge.draw_heat import heat_map
from maskery.vectors.judge.draw_map import vector_map
from maskery.vectors.judge.mteb import MtebModel, texts_of


class Letters:
    def encode(self, texts):
        return np.array([[len(text), *(text.count(sign) for sign in "abcde")] for text in texts], dtype=np.float32)

    def encode_query(self, texts):
        return -self.encode(texts)


class Prompt(Enum):
    query = "query"
    document = "document"


TEXTS = ["ab", "abc", "eee", "", "ab"]


def test_both_versions_of_mteb_get_the_same_vectors():
    model = MtebModel(Letters(), "me/letters")
    expected = Letters().encode(TEXTS)
    rows = [{"text": text, "title": ""} for text in TEXTS]
    loader = DataLoader(rows, batch_size=2)
    new = model.encode(
        loader, task_metadata=SimpleNamespace(name="STS12"), hf_split="test", hf_subset="en", batch_size=2
    )
    old = model.encode(TEXTS, task_name="STS12", prompt_type=None, batch_size=32)
    assert (new == expected).all()
    assert (old == expected).all()
    assert (model.encode(TEXTS, prompt_type=Prompt.query) == -expected).all()
    assert (model.encode(TEXTS, prompt_type=Prompt.document) == expected).all()
    assert (model.encode(TEXTS, prompt_type="passage") == expected).all()
    assert texts_of([{"title": "T", "text": "b"}, "c"]) == ["T b", "c"]


def test_what_mteb_may_ask_and_is_not_there_is_refused():
    model = MtebModel(Letters())
    with pytest.raises(InputError, match="it has image"):
        model.encode([{"image": [1]}])
    with pytest.raises(InputError, match="float32"):
        model.encode(TEXTS, precision="int8")
    with pytest.raises(InputError, match="'song'"):
        model.encode(TEXTS, prompt_type="song")
    with pytest.raises(ArgumentError, match="organisation/model"):
        MtebModel(Letters(), "letters")


def test_similarities_take_arrays_and_tensors():
    model = MtebModel(Letters())
    one, other = Letters().encode(["ab", "cd"]), Letters().encode(["ab", "e", "dd"])
    all_pairs = model.similarity(torch.tensor(one), other)
    assert all_pairs.shape == (2, 3)
    assert all_pairs[0, 0] == pytest.approx(1)
    row_by_row = model.similarity_pairwise(one, torch.tensor(other[:2]))
    assert row_by_row.tolist() == pytest.approx([float(all_pairs[0, 0]), float(all_pairs[1, 1])], abs=1e-6)
    assert float(model.similarity(one[0], other[0])) == pytest.approx(1)  # as tasks of summaries ask it
    assert isinstance(all_pairs, torch.Tensor)
    assert isinstance(row_by_row, torch.Tensor)


@pytest.mark.parametrize("measure", ["cosine", "dot", "euclidean", "manhattan"])
def test_vectors_are_compared_by_the_measure_of_the_folder(measure):
    encoder = Encoder(made_of(similarity=measure), say=quiet)
    model = MtebModel(encoder)
    vectors = encoder.encode(TEXTS[:3])
    wanted = encoder.similarity(vectors)
    assert model.similarity(vectors, vectors).numpy() == pytest.approx(wanted, abs=1e-5)
    pairs = model.similarity_pairwise(vectors[:2], vectors[1:]).tolist()
    assert pairs == pytest.approx([wanted[0, 1], wanted[1, 2]], abs=1e-4)


def test_facts_of_the_model_fill_whatever_table_mteb_has(monkeypatch):
    class ModelMeta(BaseModel):
        model_config = ConfigDict(extra="forbid")
        name: str | None
        revision: str | None
        loader: object | None
        framework: list[str]
        max_tokens: float | None
        embed_dim: int | None
        similarity_fn_name: str | None = None

    model = MtebModel(Letters(), "me/letters", "3")
    assert model.mteb_model_meta is None
    monkeypatch.setitem(sys.modules, "mteb.models.model_meta", SimpleNamespace(ModelMeta=ModelMeta))
    found = model.mteb_model_meta
    assert (found.name, found.revision, found.loader, found.similarity_fn_name) == ("me/letters", "3", None, "cosine")
    assert (found.embed_dim, found.max_tokens) == (None, None)
    found = MtebModel(Encoder(made_of(similarity="euclidean"), say=quiet)).mteb_model_meta
    assert (found.embed_dim, found.max_tokens, found.similarity_fn_name) == (16, 20, None)


def test_a_heat_map_has_a_number_and_both_texts_in_every_cell(tmp_path):
    texts = ["今天天气很好，适合出去散步。", "abc <b>", "aab"]
    found = heat_map(Letters(), texts, "zh")
    svg = found.save(tmp_path / "heat.svg").read_text(encoding="utf-8")
    assert svg.count("<rect") == 1 + 9
    vectors = Letters().encode(texts).astype(float)
    cosine = vectors[0] @ vectors[2] / np.linalg.norm(vectors[0]) / np.linalg.norm(vectors[2])
    assert f"<title>{cosine:.4f}\n今天天气很好，适合出去散步。\naab</title>" in svg
    assert f">{cosine:.2f}</text>" in svg
    assert "<b>" not in svg
    assert 'lang="zh-Hans"' in found.html()
    many = heat_map(Letters(), ["ab" * k + "c" for k in range(24)])
    assert re.search(r">\.\d\d</text>", many.svg)
    for wrong in (["a"], ["a"] * 61):
        with pytest.raises(ArgumentError, match="2 to 60"):
            heat_map(Letters(), wrong)


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_a_map_has_a_mark_for_every_text_and_every_label(method):
    texts = ["ab" * k + "c" * (k % 3) for k in range(12)]
    found = vector_map(Letters(), texts, [f"kind {k % 3}" for k in range(12)], method)
    assert found.svg.count("<path") == 12 + 3
    assert all(f"<title>kind {k % 3}\n{text}</title>" in found.svg for k, text in enumerate(texts))
    assert ("%" in found.note) == (method == "pca")
    assert "NaN" not in found.svg
    assert "nan" not in found.svg


def test_maps_of_many_labels_and_of_vectors_that_are_alike():
    found = vector_map(Letters(), ["a" * (k + 1) for k in range(60)], [k // 2 for k in range(60)])
    assert "7 other labels" in found.svg
    assert "nan" not in vector_map(Letters(), ["ab"] * 5).svg
    with pytest.raises(ArgumentError, match="make no map"):
        vector_map(Letters(), ["a", "b"])
    with pytest.raises(ArgumentError, match="1 labels for 3 texts"):
        vector_map(Letters(), ["a", "b", "c"], ["x"])
    with pytest.raises(UnknownName, match="pca"):
        vector_map(Letters(), ["a", "b", "c"], method="umap")


def test_without_scikit_learn_tsne_says_what_to_install(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name, name="sklearn")

    monkeypatch.setattr(extras, "import_module", absent)
    with pytest.raises(InputError, match=re.escape('pip install "maskery[sklearn]"')):
        vector_map(Letters(), ["a", "b", "c"], method="tsne")


def test_the_command_tells_figures_and_json(tmp_path, monkeypatch, capsys):
    from maskery.cli.vectors_evaluate import evaluate_vectors_of

    monkeypatch.setattr("maskery.vectors.encoder.Encoder", lambda path, say: Letters())
    data = tmp_path / "p.tsv"
    data.write_text("one\ttwo\tscore\nab\tabc\t3\neee\tab\t1\nd\tdd\t5\n", encoding="utf-8")
    evaluate_vectors_of(tmp_path, "sts", data, False, {"columns.text": ["one", "two"]})
    shown = capsys.readouterr()
    assert re.search(r"spearman +1\.0000  \[", shown.out)
    assert "only 3 pairs" in shown.err
    evaluate_vectors_of(tmp_path, "sts", data, True, {"columns.text": ["one", "two"]})
    assert '"spearman":' in capsys.readouterr().out
