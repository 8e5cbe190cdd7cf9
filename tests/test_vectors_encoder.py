"""`maskery.Encoder`: every pooling against its definition, lengths, prompts, precision, similarity, bad input."""

from __future__ import annotations

import datasets
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import model_of, tokenizer
from small_tokenizers import bpe, unigram, wordpiece
from vector_models import LENGTH, PROMPTS, TEXTS, made_of, quiet, slowly

import maskery
from maskery.errors import ArgumentError, ArgumentTypeError, CheckpointError, InputError, UnknownName
from maskery.train.machine import Heap
from maskery.vectors.arithmetic import TOKENS
from maskery.vectors.encoder import Encoder
from maskery.vectors.model import VectorModel
from maskery.vectors.precision import from_bytes, quantised, ranges_of, signs
from maskery.vectors.rows import batches, rows_of_texts
from maskery.vectors.settings import POOLINGS, SIMILARITIES, VectorsConfig
from maskery.vectors.similarity import similarity

DRAWS = np.random.default_rng(0)


def learned(made):
    if made.pooling.attention is not None:
        with torch.no_grad():
            made.pooling.attention.query.copy_(torch.linspace(-1, 1, 16))
    return made


@pytest.mark.parametrize("pool", POOLINGS)
def test_every_pooling_is_its_definition(pool):
    made = learned(made_of(pool))
    found = Encoder(made, say=quiet).encode(TEXTS)
    assert found.dtype == np.float32
    assert found == pytest.approx(np.stack([slowly(made, pool, text) for text in TEXTS]), abs=1e-5)


@pytest.mark.parametrize("pool", POOLINGS)
def test_a_prompt_may_be_left_out_of_the_pooling(pool):
    made = learned(made_of(pool, prompts=PROMPTS, pool_prompt=False))
    skip = 1 + len(made.tokenizer.encode_raw([PROMPTS["query"]])[0][0])
    found = Encoder(made, say=quiet).encode_query(TEXTS)
    slow = [slowly(made, pool, text, PROMPTS["query"], skip) for text in TEXTS]
    assert found == pytest.approx(np.stack(slow), abs=1e-5)


@pytest.mark.parametrize("pool", POOLINGS)
@pytest.mark.parametrize("prompts", [{}, PROMPTS])
def test_many_texts_are_read_in_numbers_of_slots_that_recur(pool, prompts, monkeypatch):
    """Rows of padding fill them up, and touch no vector."""
    made = learned(made_of(pool, prompts=prompts, pool_prompt=False))
    many = [" ".join(TEXTS[number % len(TEXTS)].split()[: number % 7]) for number in range(150)]
    slots, read = [], VectorModel.read

    def counting(self, inputs, skip=0):
        slots.append(inputs.layout.count)
        return read(self, inputs, skip)

    monkeypatch.setattr(VectorModel, "read", counting)
    plain, quick = (Encoder(made, arithmetic=name, say=quiet).encode_query(many) for name in ("plain", "float32"))
    assert slots[0] > 512
    assert slots[0] % 64
    assert slots[1] == slots[0] + -slots[0] % 64
    assert quick.shape == plain.shape
    assert quick == pytest.approx(plain, abs=1e-5)


def test_memory_is_looked_after_batch_by_batch(monkeypatch):
    """Freed blocks leave holes, and many texts would make the process larger and larger."""
    looked = []
    monkeypatch.setattr(Heap, "look", lambda heap: looked.append(heap))
    monkeypatch.setitem(TOKENS, "plain", 32)
    Encoder(made_of(), say=quiet).encode(TEXTS * 20)
    assert len(looked) > 10
    assert len(set(looked)) == 1
    assert 0 < looked[0].room < 2**20


def test_several_poolings_are_side_by_side():
    found = Encoder(made_of("max", "mean"), say=quiet).encode(TEXTS)
    parts = [Encoder(made_of(pool), say=quiet).encode(TEXTS) for pool in ("max", "mean")]
    assert found == pytest.approx(np.concatenate(parts, 1), abs=1e-6)


def test_prompts_are_put_in_front():
    encoder = Encoder(made_of(prompts=PROMPTS, prompt="document"), say=quiet)
    plain = Encoder(made_of(), say=quiet)
    for found, name in [
        (encoder.encode(TEXTS, prompt="query"), "query"),
        (encoder.encode_query(TEXTS), "query"),
        (encoder.encode_document(TEXTS), "document"),
        (encoder.encode(TEXTS), "document"),
    ]:
        assert found == pytest.approx(plain.encode([PROMPTS[name] + text for text in TEXTS]), abs=1e-6)
    assert (plain.encode_query(TEXTS) == plain.encode(TEXTS)).all()
    assert np.array_equal(plain.encode(TEXTS, prompt="document"), plain.encode(TEXTS)), "a name that all folders have"
    with pytest.raises(ArgumentError, match="no prompt is called 'passage'"):
        encoder.encode(TEXTS, prompt="passage")


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(1, 60))
@settings(max_examples=10)
def test_the_company_of_a_text_does_not_change_its_vector(lengths, tokens):
    encoder = COMPANY
    texts = [" ".join("cat"[:: 1 + n % 2] for n in range(length)) for length in lengths]
    found = encoder.encode(texts)
    alone = np.stack([encoder.encode(text) for text in texts])
    assert found == pytest.approx(alone, abs=1e-6)
    rows = encoder.made.rows(texts, "")
    parts = list(batches(rows, tokens))
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(texts))), "every row is in one batch"
    sizes = [int(rows.length[part].sum()) for part in parts]
    assert all(size <= tokens or len(part) == 1 for size, part in zip(sizes, parts, strict=True))


COMPANY = Encoder(made_of("weighted"), say=quiet)


def test_what_is_cut_and_empty_is_told():
    said = []
    Encoder(made_of(), say=said.append).encode(["cat " * 30, "", "cat", "  \n"])
    assert said == [
        f"1 of 4 texts are longer than {LENGTH} slots and were cut",
        "2 of 4 texts are empty: their vector is that of the marks alone",
    ]
    said.clear()
    prompted = Encoder(made_of(prompts=PROMPTS), say=said.append)
    prompted.encode_query(["", "cat"])
    assert said == ["1 of 2 texts are empty: their vector is that of the marks alone"]


def test_one_text_none_and_an_iterator():
    encoder = Encoder(made_of(), say=quiet)
    assert encoder.encode("the cat").shape == (16,)
    assert encoder.encode([]).shape == (0, 16)
    assert encoder.encode(iter(TEXTS)).shape == (len(TEXTS), 16)
    assert encoder.encode(np.array(["the cat", "mat"])).shape == (2, 16)
    assert encoder.encode([], precision="int8").dtype == np.int8


def test_dimensions_then_length_one():
    encoder = Encoder(made_of(), say=quiet)
    whole = encoder.encode(TEXTS)
    short = whole[:, :5] / np.linalg.norm(whole[:, :5], axis=1, keepdims=True)
    assert encoder.encode(TEXTS, dimensions=5, normalize=True) == pytest.approx(short, abs=1e-6)
    for wrong in (0, 17):
        with pytest.raises(ArgumentError, match=f"{wrong} dimensions of 16"):
            encoder.encode(TEXTS, dimensions=wrong)


@pytest.mark.parametrize(
    ("texts", "cause"),
    [
        (["a", 7], r"text 1 is int \(7\), not a string"),
        (["a", None], "text 1 is NoneType"),
        ([b"a"], "text 0 is bytes"),
        (["a", "b\ud800"], "text 1 holds half a character"),
    ],
)
def test_members_that_are_no_texts_are_refused(texts, cause):
    with pytest.raises(ArgumentError, match=cause):
        COMPANY.encode(texts)


@pytest.mark.parametrize(
    ("texts", "cause"),
    [
        (b"abc", r"texts is b'abc' \(bytes\)"),
        (7, r"texts is 7 \(int\)"),
        (None, "texts is None"),
        ({"a": 1}, "texts is of type dict"),
        ({"a", "b"}, "texts is of type set"),
        (np.array("a"), "texts is of type ndarray"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(texts, cause):
    with pytest.raises(ArgumentTypeError, match=cause):
        COMPANY.encode(texts)


@pytest.mark.parametrize("make", [tuple, np.array, pd.Series, pd.Index, iter], ids=str)
def test_whatever_yields_texts_is_a_list_of_them(make):
    given = make(TEXTS)
    assert COMPANY.encode(given) == pytest.approx(COMPANY.encode(TEXTS))


@pytest.mark.parametrize(
    "make",
    [
        lambda texts: pd.DataFrame({"label": range(len(texts)), "text": texts}),
        lambda texts: pd.DataFrame({"body": texts}),
        lambda texts: datasets.Dataset.from_dict({"label": range(len(texts)), "text": texts}),
        lambda texts: [{"text": text, "label": 1} for text in texts],
        lambda texts: ({"body": text} for text in texts),
    ],
    ids=["frame", "one column", "dataset", "dicts", "generator"],
)
def test_the_column_of_texts_is_found_in_a_table(make):
    assert COMPANY.encode(make(TEXTS)) == pytest.approx(COMPANY.encode(TEXTS))


def test_a_table_that_does_not_say_which_column_is_meant_is_refused():
    with pytest.raises(ArgumentError, match="texts has the columns a, b, and none is called text") as caught:
        COMPANY.encode(pd.DataFrame({"a": ["x"], "b": ["y"]}))
    assert 'texts["a"]' in caught.value.repair
    with pytest.raises(ArgumentError, match="text 1 is NoneType"):
        COMPANY.encode(pd.DataFrame({"text": ["x", None]}))


def test_settings_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(UnknownName, match="unknown pooling 'men'"):
        Encoder(made_of(), pool="men", say=quiet)
    with pytest.raises(UnknownName, match="unknown precision"):
        COMPANY.encode(TEXTS, precision="int4")
    with pytest.raises(ArgumentError, match="the model reads 24 slots"):
        Encoder(made_of(), length=25, say=quiet)
    with pytest.raises(ArgumentError, match="a length of 2 leaves no slot for text beside 2 marks"):
        Encoder(made_of(), length=2, say=quiet).encode("cat")
    with pytest.raises(ArgumentError, match="length"):
        Encoder(made_of(), length=1, say=quiet)
    with pytest.raises(ArgumentError, match="and the prompt's"):
        Encoder(made_of(prompts={"query": "cat " * 20}), say=quiet).encode_query("cat")
    with pytest.raises(ArgumentError, match="the model has no pooler"):
        VectorModel(model_of(), VectorsConfig(pool=("pooler",), length=LENGTH))
    with pytest.raises(ArgumentError, match="cannot be used"):
        Encoder(made_of(), device="nowhere", say=quiet)
    with pytest.raises(CheckpointError, match="no such folder"):
        Encoder(tmp_path / "none", say=quiet)
    with pytest.raises(CheckpointError, match="no model folder"):
        Encoder(tmp_path, say=quiet)


def test_weights_that_are_not_finite_never_give_a_vector(tmp_path):
    made = made_of()
    Encoder(made, say=quiet).save(tmp_path / "whole")
    with torch.no_grad():
        made.model.network.embeddings.tokens[made.tokenizer.id("b")] = float("nan")
    with pytest.raises(InputError, match="not finite"):
        Encoder(made, say=quiet).encode(["cat", "b"])
    Encoder(made, say=quiet).save(tmp_path / "broken")
    with pytest.raises(CheckpointError, match="not finite numbers"):
        maskery.Encoder(tmp_path / "broken", say=quiet)
    assert np.isfinite(maskery.Encoder(tmp_path / "whole", say=quiet).encode("b")).all()


@pytest.mark.parametrize(
    "text",
    ["the cat sat on a mat. " * 2_000, "我去了北京" * 4_000, "c" * 20_000, " " * 20_000 + "cat", "a,b" * 6_000],
    ids=["words", "han", "one word", "spaces", "marks"],
)
@pytest.mark.parametrize("make", [wordpiece, bpe, unigram])
def test_a_very_long_text_is_read_as_far_as_it_is_needed(text, make):
    made, tokens = made_of(), make()
    whole = tokens.encode_ids([text])[0]
    rows = rows_of_texts(tokens, made.frame, [text, "cat"], 20)
    assert rows.ids[1 : min(len(whole), 18) + 1].tolist() == whole[:18].tolist()
    assert rows.cut == (len(whole) > 18)


def test_little_of_a_very_long_text_is_tokenised():
    text = "the cat sat on a mat. " * 50_000
    assert len(tokenizer().beginning(text, 18, 288)) < 2000


# -- precision and similarity


def test_binary_and_int8():
    encoder = Encoder(made_of(), say=quiet)
    plain = encoder.encode(TEXTS)
    bits = encoder.encode(TEXTS, precision="binary")
    assert bits.tolist() == np.packbits(plain > 0, axis=1).tolist()
    codes = encoder.encode(TEXTS, precision="int8")
    step = (plain.max(0) - plain.min(0)) / 255
    assert (encoder.ranges == np.stack([plain.min(0), plain.max(0)])).all()
    assert (np.abs(from_bytes(codes, encoder.ranges) - plain) <= step / 2 + 1e-6).all()
    again = encoder.encode(TEXTS[:1], precision="int8")
    assert (again == codes[:1]).all(), "ranges are kept"
    with pytest.raises(ArgumentError, match="1 is given"):
        Encoder(made_of(), say=quiet).encode("cat", precision="int8")
    with pytest.raises(ArgumentError, match="for vectors of 5 dimensions"):
        encoder.encode(TEXTS, dimensions=5, precision="int8")


@given(st.lists(st.lists(st.floats(-1e3, 1e3, width=32), min_size=3, max_size=3), min_size=2, max_size=9))
@settings(max_examples=50)
def test_bytes_come_back_within_half_a_step(rows):
    vectors = np.array(rows, dtype=np.float32)
    ranges = ranges_of(vectors)
    back = from_bytes(quantised(vectors, "int8"), ranges)
    assert (np.abs(back - vectors) <= (ranges[1] - ranges[0]) / 510 + 1e-3).all()
    beyond = quantised(np.array([[-1e6, 0, 1e6]], dtype=np.float32), "int8", ranges)
    assert beyond[0, 0] == -128


@pytest.mark.parametrize("kind", SIMILARITIES)
def test_similarity_is_its_definition(kind):
    a, b = (DRAWS.normal(size=(n, 7)).astype(np.float32) for n in (4, 3))
    slow = {
        "dot": lambda x, y: x @ y,
        "cosine": lambda x, y: x @ y / (np.linalg.norm(x) * np.linalg.norm(y)),
        "euclidean": lambda x, y: -np.linalg.norm(x - y),
        "manhattan": lambda x, y: -np.abs(x - y).sum(),
    }[kind]
    assert similarity(a, b, kind) == pytest.approx(np.array([[slow(x, y) for y in b] for x in a]), abs=1e-5)
    assert similarity(a, a, "euclidean").diagonal() == pytest.approx(0, abs=1e-6)


def test_similarity_of_bytes_and_bits():
    encoder = Encoder(made_of(), say=quiet)
    plain = encoder.similarity(encoder.encode(TEXTS))
    codes = encoder.encode(TEXTS, precision="int8")
    assert encoder.similarity(codes) == pytest.approx(plain, abs=0.02)
    bits = encoder.encode(TEXTS, precision="binary")
    differ = np.unpackbits(bits[:, None] ^ bits[None], axis=-1).sum(-1)
    assert encoder.similarity(bits) == pytest.approx(1 - 2 * differ / 16, abs=1e-6)
    assert signs(bits[0], 16).tolist() == np.where(encoder.encode(TEXTS)[0] > 0, 1, -1).tolist()
    with pytest.raises(ArgumentError, match="bytes without their ranges"):
        Encoder(made_of(), say=quiet).similarity(codes)
    with pytest.raises(ArgumentError, match="compare those of one encoder"):
        encoder.similarity(plain, plain[:, :3])


def test_progress(capsys):
    done = []
    COMPANY.encode(TEXTS, progress=done.append)
    assert sum(done) == len(TEXTS)
    COMPANY.encode(TEXTS, progress=True)
    assert "100%" in capsys.readouterr().err
