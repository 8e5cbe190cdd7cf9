"""Wrong calls of the public API: each is refused with an error that names the argument and the right form.

Nothing here may end in an AttributeError, a message of torch's or, worse, a result: a text is no list of letters.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
import torch
from networks import model_of
from small_run import corpus_in
from small_task import examples_of, quiet

import maskery
from maskery.arguments import checked
from maskery.errors import InputError, MaskeryError, UnknownName
from maskery.tasks.keys import as_tables
from maskery.words.config import words_config

if TYPE_CHECKING:
    from nowhere import Hidden


class Things:
    """One of everything, made once."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.model = model_of("masked_token")
        self.model.save(place / "m")
        self.corpus = corpus_in(place / "c")
        self.recipe = maskery.recipe("bert", size="tiny")
        self.encoder = maskery.Encoder(place / "m", say=quiet)
        matrix = np.eye(3, dtype=np.float32)
        self.words = maskery.WordVectors(["a", "b", "c"], np.ones(3, dtype=np.int64), matrix)


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    return Things(tmp_path_factory.mktemp("things"))


def _tuned(things, **arguments):
    return maskery.finetune(things.place / "m", out=things.place / "f", say=quiet, **arguments)


def _started(things, given):
    return maskery.pretrain(things.recipe, things.corpus, things.place / "p", start_from=given, say=quiet)


TWO = {"a": "the cat", "b": "a mat"}
ROW = {"text": "the cat", "label": "x"}
FRAME = pd.DataFrame([ROW, {"text": "a mat", "label": "y"}])
PAIRS = [("the cat", "a mat", 1.0), ("a cat", "the cat", 0.2), ("the mat", "a dog", 0.4), ("a", "the", 0.9)]
CALLS = {
    # what it is called with -> (call, words of the error)
    "load None": (lambda t: maskery.load(None), "path is None"),
    "load number": (lambda t: maskery.load(3), "path is 3 (int)"),
    "load bytes": (lambda t: maskery.load(b"m"), "path is b'm' (bytes)"),
    "load empty": (lambda t: maskery.load(""), "path is ''"),
    "load a list": (lambda t: maskery.load([t.place]), "path is of type list"),
    "recipe number": (lambda t: maskery.recipe(5), "name_or_path is 5 (int)"),
    "recipe None": (lambda t: maskery.recipe(None), "name_or_path is None"),
    "recipe overrides": (lambda t: maskery.recipe("bert", ["model.layers=4"]), "overrides is of type list"),
    "recipe size": (lambda t: maskery.recipe("bert", size=3), "size is 3 (int)"),
    "corpus None": (lambda t: maskery.Corpus.open(None), "path is None"),
    "corpus of a list": (lambda t: maskery.Corpus(["a", "b"]), "path is of type list"),
    "build of None": (lambda t: maskery.Corpus.build(None, t.place / "x"), "files is None"),
    "build of a number": (lambda t: maskery.Corpus.build([3], t.place / "x"), "files[0] is 3 (int)"),
    "build of a text": (lambda t: maskery.Corpus.build(["One line.\nAnother."], t.place / "x"), "files[0]"),
    "build of texts": (lambda t: maskery.Corpus.build(["One line.", "Another one."], t.place / "x"), "files[0]"),
    "build of tuples": (lambda t: maskery.Corpus.build([("a", "b")], t.place / "x"), "files[0] is of type tuple"),
    "build of a dict": (lambda t: maskery.Corpus.build({"text": ["a"]}, t.place / "x"), "files is of type dict"),
    "build of no rows": (lambda t: maskery.Corpus.build(FRAME[:0], t.place / "x"), "no document"),
    "build without out": (lambda t: maskery.Corpus.build("a.txt", None), "out is None"),
    "build with a tokenizer": (lambda t: maskery.Corpus.build("a.txt", t.place / "x", tokenizer=7), "tokenizer is 7"),
    "mixture of a path": (lambda t: maskery.Mixture("wiki"), "parts is 'wiki' (str)"),
    "mixture of numbers": (lambda t: maskery.Mixture([3]), "parts[0] is 3 (int)"),
    "mixture weight": (lambda t: maskery.Mixture([(t.corpus, "much")]), "parts[0]"),
    "pretrain corpus": (lambda t: maskery.pretrain(t.recipe, 3, t.place / "r"), "corpus is 3 (int)"),
    "pretrain corpora": (lambda t: maskery.pretrain("bert", ["a", "b"], t.place / "r"), "maskery.Mixture"),
    "pretrain recipe": (lambda t: maskery.pretrain(None, t.corpus, t.place / "r"), "recipe is None"),
    "pretrain out": (lambda t: maskery.pretrain(t.recipe, t.corpus, None), "out is None"),
    "pretrain workers": (lambda t: maskery.pretrain(t.recipe, t.corpus, t.place / "r", workers=1.5), "workers is 1.5"),
    "pretrain say": (lambda t: maskery.pretrain(t.recipe, t.corpus, t.place / "r", say="loud"), "say is 'loud'"),
    "batch step": (lambda t: maskery.batch(t.recipe, t.corpus, step=1.5), "step is 1.5 (float)"),
    "batch before the first": (lambda t: maskery.batch(t.recipe, t.corpus, step=-1), "step -1 is too small"),
    "batch rank": (lambda t: maskery.batch(t.recipe, t.corpus, rank=2, world=2), "rank 2 of 2"),
    "batch corpus": (lambda t: maskery.batch(t.recipe, None), "corpus is None"),
    "model of a text": (lambda t: t.model("a text"), "ids is 'a text' (str)"),
    "model of texts": (lambda t: t.model(["a text"]), "ids is of type list"),
    "model of None": (lambda t: t.model(None), "ids is None"),
    "model mask": (lambda t: t.model(torch.tensor([[2, 3]]), "all"), "mask is 'all' (str)"),
    "logits of a text": (lambda t: t.model.logits("a text"), "ids is 'a text' (str)"),
    "scores of no head": (lambda t: t.model.scores("nothing", torch.tensor([[2, 3]])), "no head 'nothing'"),
    "save": (lambda t: t.model.save(None), "path is None"),
    "fill None": (lambda t: maskery.fill(t.model, None), "text is None"),
    "fill a list": (lambda t: maskery.fill(t.model, ["a [MASK]"]), "text is of type list"),
    "fill top": (lambda t: maskery.fill(t.model, "[MASK]", top=2.5), "top is 2.5 (float)"),
    "fill order": (lambda t: maskery.fill(t.model, "[MASK]", order="right"), "unknown order 'right'"),
    "fill model": (lambda t: maskery.fill(t.corpus, "[MASK]"), "model is of type Corpus"),
    "score None": (lambda t: maskery.score(t.model, None), "texts is None"),
    "score bytes": (lambda t: maskery.score(t.model, b"a"), "texts is b'a' (bytes)"),
    "score with None": (lambda t: maskery.score(t.model, ["a", None]), "texts[1] is None"),
    "score mixed": (lambda t: maskery.score(t.model, [("a", "b"), "c"]), "texts[1] is one text"),
    "score triple": (lambda t: maskery.score(t.model, [("a", "b", "c")]), "texts[0] is of type tuple"),
    "score masks": (lambda t: maskery.score(t.model, "a", masks=0), "masks 0 is too small"),
    "score table": (lambda t: maskery.score(t.model, FRAME), "texts is of type DataFrame"),
    "score dict": (lambda t: maskery.score(t.model, {"text": "a"}), "texts is of type dict"),
    "generate model": (lambda t: maskery.generate(7, "a"), "model is 7 (int)"),
    "generate None": (lambda t: maskery.generate(t.model, None), "prompts is None"),
    "generate bytes": (lambda t: maskery.generate(t.model, [b"a"]), "prompts[0] is b'a' (bytes)"),
    "generate table": (lambda t: maskery.generate(t.model, FRAME), "prompts is of type DataFrame"),
    "generate new": (lambda t: maskery.generate(t.model, "a", new=2.5), "new is 2.5 (float)"),
    "generate stop": (lambda t: maskery.generate(t.model, "a", stop="."), "stop is '.' (str)"),
    "encoder of a number": (lambda t: maskery.Encoder(3), "path is 3 (int)"),
    "encoder of None": (lambda t: maskery.Encoder(None), "path is None"),
    "encoder length": (lambda t: maskery.Encoder(t.place / "m", length=-4), "length -4 is too small"),
    "encode None": (lambda t: t.encoder.encode(None), "texts is None"),
    "encode bytes": (lambda t: t.encoder.encode(b"a"), "texts is b'a' (bytes)"),
    "encode numbers": (lambda t: t.encoder.encode([1, 2]), "text 0"),
    "encode with None": (lambda t: t.encoder.encode(["a", None]), "text 1"),
    "encode table": (
        lambda t: t.encoder.encode(pd.DataFrame([TWO])),
        "texts has the columns a, b",
    ),
    "encode rows": (lambda t: t.encoder.encode([TWO]), "texts has the columns a, b"),
    "encode a mixture": (lambda t: t.encoder.encode(["a", ROW]), "text 1 is dict"),
    "finetune memory": (lambda t: maskery.finetune(t.model, train=FRAME, out=t.place / "f"), "model is of type Model"),
    "finetune settings": (lambda t: _tuned(t, train=FRAME, settings=["epochs"]), "settings is of type list"),
    "finetune setting": (lambda t: _tuned(t, train=FRAME, settings={3: 4}), "a key of settings is 3 (int)"),
    "start_from": (lambda t: _started(t, t.model), "start_from is of type Model"),
    "start_from number": (
        lambda t: maskery.pretrain(t.recipe, t.corpus, t.place / "p", start_from=3),
        "start_from is 3",
    ),
    "run of None": (lambda t: maskery.Run(None), "path is None"),
    "static": (lambda t: maskery.StaticEncoder(3), "vectors is 3 (int)"),
    "words load": (lambda t: maskery.WordVectors.load(None), "path is None"),
    "words vector": (lambda t: t.words.vector(3), "word is 3 (int)"),
    "words neighbours": (lambda t: t.words.neighbours("a", n=-1), "n -1 is too small"),
    "tokenizer": (lambda t: maskery.Tokenizer.load(None), "path is None"),
    "finetune model": (lambda t: maskery.finetune(3, out=t.place / "f", train="a.tsv"), "model is 3 (int)"),
    "finetune out": (lambda t: maskery.finetune(t.place / "m", out=None, train="a.tsv"), "out is None"),
    "finetune nothing": (lambda t: maskery.finetune(t.place / "m", out=t.place / "f"), "nothing to learn from"),
    "finetune rows": (lambda t: _tuned(t, train=[("a", "x")]), "train is of type list"),
    "finetune pairs of": (lambda t: _tuned(t, train=[("a", "x")]), "train[0] is of type tuple"),
    "finetune texts": (lambda t: _tuned(t, train=["a text"]), "train[0] is 'a text' (str)"),
    "finetune mixed": (lambda t: _tuned(t, train=[ROW, None]), "train[1] is None"),
    "finetune no rows": (lambda t: _tuned(t, train=FRAME[:0]), "empty: "),
    "finetune column": (lambda t: _tuned(t, train=FRAME["text"]), "train is of type Series"),
    "finetune names": (lambda t: _tuned(t, train=pd.DataFrame([("a", "x")])), "a column that is called 0 (int)"),
    "finetune columns": (lambda t: _tuned(t, train=FRAME[["label"]]), "train: no column looks like a text"),
    "finetune key": (lambda t: _tuned(t, train=[ROW, {"label": "x"}]), "train[1]: the record has no field 'text'"),
    "finetune cell": (lambda t: _tuned(t, train=[ROW | {"text": t}]), "train[0]['text'] is of type Things"),
    "finetune array": (lambda t: _tuned(t, train=np.zeros((2, 2))), "train is of type ndarray"),
    "finetune splits": (lambda t: _tuned(t, train={"train": FRAME}), "train is of type dict"),
    "finetune data of rows": (lambda t: _tuned(t, data=FRAME), "data is of type DataFrame"),
    "finetune data of names": (lambda t: _tuned(t, data={"text": ["a"]}), "data has no 'train'"),
    "finetune split": (lambda t: _tuned(t, data={"train": 3}), "data['train'] is 3 (int)"),
    "finetune two splits": (lambda t: _tuned(t, data={"train": [ROW], "dev": [ROW], "val": [ROW]}), "could be dev"),
    "finetune examples": (lambda t: _tuned(t, train=[ROW], dev=examples_of("classify")), "dev is Examples"),
    "finetune dev": (lambda t: _tuned(t, train="a.tsv", dev=3), "dev is 3 (int)"),
    "finetune both": (lambda t: _tuned(t, data="folder", dev="d.tsv"), "data and dev both say what to read"),
    "finetune data": (lambda t: _tuned(t, data=3), "data is 3 (int)"),
    "predict model": (lambda t: maskery.predict(None, "a"), "model is None"),
    "predict no model": (lambda t: maskery.predict([], "a"), "model is an empty list"),
    "evaluate model": (lambda t: maskery.evaluate(3, "a.tsv"), "model is 3 (int)"),
    "evaluate task": (lambda t: maskery.evaluate(t.place / "m", "a.tsv", task="chess"), "unknown task 'chess'"),
    "heads model": (lambda t: maskery.explain.head_view(3, "a"), "model is 3 (int)"),
    "heads text": (lambda t: maskery.explain.head_view(t.model, None), "text is None"),
    "heads layers": (lambda t: maskery.explain.head_view(t.model, "a", layers=1), "layers is 1 (int)"),
    "heads layer": (lambda t: maskery.explain.head_view(t.model, "a", layers=[1.5]), "layers[0] is 1.5"),
    "visibility": (lambda t: maskery.explain.visibility(3), "recipe is 3 (int)"),
    "rows": (lambda t: maskery.explain.corrupted_rows("bert", None), "corpus is None"),
    "rows many": (lambda t: maskery.explain.corrupted_rows("bert", t.corpus, rows=0), "rows 0 is too small"),
    "maskings": (lambda t: maskery.explain.maskings("bert", t.corpus, "a"), "recipes is 'bert' (str)"),
    "maskings text": (lambda t: maskery.explain.maskings(["bert"], t.corpus, 3), "text is 3 (int)"),
    "maskings source": (lambda t: maskery.explain.maskings(["bert"], None, "a"), "source is None"),
    "order tokens": (lambda t: maskery.explain.order("abc", [3, 1, 2]), "tokens is 'abc' (str)"),
    "order places": (lambda t: maskery.explain.order(["a", "b"], [1.0, 2.0]), "order[0] is 1.0"),
    "curves": (lambda t: maskery.explain.curves(3), "runs is 3 (int)"),
    "curves of None": (lambda t: maskery.explain.curves([None]), "runs[0] is None"),
    "network": (lambda t: maskery.explain.network(3), "source is 3 (int)"),
    "network vocabulary": (lambda t: maskery.explain.network("bert", vocabulary=0), "vocabulary 0 is too small"),
    "word map": (lambda t: maskery.explain.word_map(t.words, "cat"), "words is 'cat' (str)"),
    "load pickle": (lambda t: maskery.load(t.place / "m", allow_pickle=1), "allow_pickle is 1 (int)"),
    "changed": (lambda t: t.recipe.changed(["model.layers=4"]), "overrides is of type list"),
    "documents": (lambda t: t.corpus.documents(None), "split is None"),
    "build format": (lambda t: maskery.Corpus.build("a.txt", t.place / "x", format=["text"]), "format is of type list"),
    "build pairs": (lambda t: maskery.Corpus.build("a.txt", t.place / "x", pairs="a,b"), "pairs is 'a,b' (str)"),
    "build vocab": (lambda t: maskery.Corpus.build("a.txt", t.place / "x", vocab="30k"), "vocab is '30k' (str)"),
    "build heldout": (lambda t: maskery.Corpus.build("a.txt", t.place / "x", heldout=None), "heldout is None"),
    "build target": (
        lambda t: maskery.Corpus.build("a.txt", t.place / "x", pairs=("a", "b"), target_tokenizer=np.ones(2)),
        "target_tokenizer is of type ndarray",
    ),
    "build dictionary": (lambda t: maskery.Corpus.build("a.txt", t.place / "x", dictionary=[1]), "dictionary is of"),
    "build say": (lambda t: maskery.Corpus.build("a.txt", t.place / "x", say="loud"), "say is 'loud' (str)"),
    "mark": (lambda t: t.corpus.mark(t.place / "x", phrases=5), "phrases is 5 (int)"),
    "holding": (lambda t: maskery.Mixture([t.corpus]).holding(b"train"), "split is b'train' (bytes)"),
    "tokenizer of a path": (lambda t: maskery.Tokenizer(t.place / "m"), "rust is of type"),
    "tokenizer pieces": (lambda t: maskery.Tokenizer.from_pieces("abc"), "pieces is 'abc' (str)"),
    "tokenize a number": (lambda t: t.model.tokenizer.encode(3), "text is 3 (int)"),
    "tokenize a text": (lambda t: t.model.tokenizer.encode_raw("a text"), "texts is 'a text' (str)"),
    "decode": (lambda t: t.model.tokenizer.decode([1.5]), "ids is of type list"),
    "decode None": (lambda t: t.model.tokenizer.tokens(None), "ids is None"),
    "names": (lambda t: t.model.tokenizer.with_names({"[MASK]": 3}), "names is of type dict"),
    "vectors of words": (lambda t: maskery.WordVectors("ab", np.ones(2), np.eye(2)), "words is 'ab' (str)"),
    "vectors of counts": (lambda t: maskery.WordVectors(["a"], None, np.eye(1)), "counts is None"),
    "vectors of rows": (lambda t: maskery.WordVectors(["a"], [1], [["b"]]), "matrix is of type list"),
    "static rate": (lambda t: maskery.StaticEncoder(t.words, a="small"), "a is 'small' (str)"),
    "static fit": (lambda t: maskery.StaticEncoder(t.words, weighting="sif").fit("a"), "texts is 'a' (str)"),
    "encode prompt": (lambda t: t.encoder.encode("a", prompt=3), "prompt is 3 (int)"),
    "encode normalize": (lambda t: t.encoder.encode("a", normalize="yes"), "normalize is 'yes' (str)"),
    "similarity": (lambda t: t.encoder.similarity("a"), "one is 'a' (str)"),
    "similarity other": (lambda t: t.encoder.similarity(np.eye(2), [["b"]]), "other is of type list"),
    "after": (lambda t: t.encoder.with_after("whitening"), "after is 'whitening' (str)"),
    "after epochs": (lambda t: t.encoder.fit_after("flow", ["a", "b"], epochs="two"), "epochs is 'two' (str)"),
    "model of heads": (lambda t: maskery.Model(t.model.network, {"a": 1}), "heads['a'] is 1 (int)"),
    "model of a network": (lambda t: maskery.Model("bert", {}), "network is 'bert' (str)"),
    "model layers": (lambda t: t.model(torch.tensor([[2, 3]]), layers="all"), "layers is 'all' (str)"),
    "batch seed": (lambda t: maskery.batch(t.recipe, t.corpus, seed="7"), "seed is '7' (str)"),
    "batch split": (lambda t: maskery.batch(t.recipe, t.corpus, split=["train"]), "split is of type list"),
    "generate temperature": (lambda t: maskery.generate(t.model, "a", temperature="hot"), "temperature is 'hot'"),
    "generate top_p": (lambda t: maskery.generate(t.model, "a", top_p=[0.9]), "top_p is of type list"),
    "score begin": (lambda t: maskery.score(t.model, "a", begin=None), "begin is None"),
    "score progress": (lambda t: maskery.score(t.model, "a", progress=True), "progress is True (bool)"),
    "predict map": (lambda t: maskery.predict(t.place / "m", "a", map=["a=b"]), "map is of type list"),
    "evaluate by": (lambda t: maskery.evaluate(t.place / "m", "a.tsv", by="group"), "by is 'group' (str)"),
    "finetune resume": (lambda t: _tuned(t, train=[ROW], resume="yes"), "resume is 'yes' (str)"),
    "finetune task": (lambda t: _tuned(t, train=[ROW], task=3), "task is 3 (int)"),
    "pretrain lr": (lambda t: maskery.pretrain("bert", t.corpus, t.place / "r", lr="2e-3"), "lr is '2e-3' (str)"),
    "pretrain budget": (lambda t: maskery.pretrain("bert", t.corpus, t.place / "r", budget=600), "budget is 600 (int)"),
    "pretrain loggers": (lambda t: maskery.pretrain("bert", t.corpus, t.place / "r", loggers=["tb"]), "loggers[0] is"),
    "pretrain settings": (
        lambda t: maskery.pretrain("bert", t.corpus, t.place / "r", settings="model.layers=4"),
        "settings is 'model.layers=4' (str)",
    ),
    "estimator rate": (
        lambda t: maskery.Classifier(t.place / "m", lr="2e-5").fit(["a", "b"], ["x", "y"]),
        "lr is '2e-5' (str)",
    ),
    "picture": (lambda t: maskery.Picture(3, "b"), "title is 3 (int)"),
    "picture path": (lambda t: maskery.Picture("t", "b").save(None), "path is None"),
    "heads pair": (lambda t: maskery.explain.head_view(t.model, "a", pair=["b"]), "pair is of type list"),
    "network language": (lambda t: maskery.explain.network("bert", lang=None), "lang is None"),
    "word map vectors": (lambda t: maskery.explain.word_map(3, ["cat"]), "vectors is 3 (int)"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_names_the_argument_and_the_right_form(things, name):
    call, words = CALLS[name]
    with pytest.raises(MaskeryError) as caught:
        call(things)
    error = caught.value
    assert words in error.text(), error.text()
    assert error.repair, error.text()
    if " is " in words and "too small" not in words and not words.startswith(("model is an empty", "texts[1] is one")):
        assert isinstance(error, TypeError) or "''" in words or words.startswith("text "), "what libraries expect"


def test_a_text_is_scored_as_one_text(things):
    one, listed = maskery.score(things.model, "the cat"), maskery.score(things.model, ["the cat"])
    assert one == listed
    assert one.lines[0].text == "the cat"


def test_paths_are_taken_wherever_a_model_a_corpus_or_a_recipe_is(things, tmp_path):
    folder, corpus = things.place / "m", things.corpus.path
    for path in (folder, str(folder)):
        assert maskery.score(path, "the cat") == maskery.score(things.model, "the cat")
        assert maskery.fill(path, "the [MASK]") == maskery.fill(things.model, "the [MASK]")
        assert maskery.explain.head_view(path, "the cat").title
    for path in (corpus, str(corpus)):
        assert maskery.batch("bert", path).rows.equal(maskery.batch(maskery.recipe("bert"), things.corpus).rows)
        assert maskery.Mixture([path]).parts[0].fingerprint == things.corpus.fingerprint
        assert maskery.explain.corrupted_rows("bert", path, rows=1).title
        assert maskery.explain.maskings(["bert", "bert-wwm"], path, "a cat").title
    (tmp_path / "own.toml").write_text(things.recipe.toml(), encoding="utf-8")
    for recipe in ("bert", tmp_path / "own.toml", str(tmp_path / "own.toml")):
        assert maskery.explain.visibility(recipe, corpus).title
    things.words.save(tmp_path / "w")
    assert maskery.explain.word_map(tmp_path / "w", ["a", "b", "c"], near=1).title
    assert maskery.StaticEncoder(tmp_path / "w").encode(["a"]).shape == (1, 3)


def test_a_run_is_taken_wherever_the_path_of_its_folder_is(things, tmp_path):
    tiny = {"training.steps": 1, "training.batch": 4, "training.length": 32, "model.max_length": 64}
    run = maskery.pretrain(things.recipe.changed(tiny), things.corpus, tmp_path / "run", say=quiet)
    assert os.fspath(run) == str(tmp_path / "run")
    assert maskery.Run(str(tmp_path / "run")) == run
    assert maskery.fill(run, "the [MASK]") == maskery.fill(tmp_path / "run", "the [MASK]")
    assert maskery.load(run).tokenizer.vocabulary == things.corpus.vocabulary
    assert maskery.explain.network(run).title
    assert maskery.explain.curves(run).title == maskery.explain.curves([str(tmp_path / "run")]).title
    again = maskery.pretrain(run.recipe, things.corpus, tmp_path / "again", start_from=run, say=quiet)
    assert again.recipe == run.recipe


def test_a_model_in_memory_makes_vectors_as_its_folder_does(things):
    vectors = maskery.Encoder(things.model, pool="mean", say=quiet).encode(["the cat"])
    assert vectors == pytest.approx(things.encoder.encode(["the cat"]), abs=1e-5)
    judged = [maskery.evaluate(each, PAIRS, task="sts", say=quiet) for each in (things.model, things.place / "m")]
    assert judged[0].metrics == pytest.approx(judged[1].metrics, abs=1e-3)


@pytest.mark.parametrize("call", ["finetune memory", "start_from"])
def test_where_a_folder_is_needed_a_model_in_memory_is_to_be_saved(things, call):
    with pytest.raises(MaskeryError) as caught:
        CALLS[call][0](things)
    assert 'write one with .save("my-folder")' in caught.value.repair
    with pytest.raises(MaskeryError, match="of type Model") as caught:
        maskery.Classifier(things.model).fit(["a", "b"], [0, 1])
    assert '.save("my-folder")' in caught.value.repair


@pytest.mark.parametrize(
    ("settings", "hint"),
    [({"lr": 1e-4}, "training.lr"), ({"length": 16}, "rows.length"), ({"training": {"lrr": 1}}, "training.lr")],
)
def test_a_setting_in_the_wrong_place_is_told_its_own(things, settings, hint):
    with pytest.raises(UnknownName, match=r"unknown key of task\.toml") as caught:
        _tuned(things, train=FRAME, settings=settings)
    assert caught.value.repair.startswith(f"did you mean {hint}")


def test_settings_with_dots_are_those_in_tables():
    tables = {"epochs": 2, "rows": {"length": 16}, "columns": {"map": {"a.b": "c"}}}
    assert as_tables({"epochs": 2, "rows.length": 16, "columns.map": {"a.b": "c"}}) == as_tables(tables) == tables
    with pytest.raises(InputError, match=r"head\.loss is a key of the table head, and head is given as a value"):
        as_tables({"head": 3, "head.loss": "auto"})


def test_numbers_of_numpy_are_numbers(things):
    assert maskery.batch(things.recipe, things.corpus, step=np.int64(0)).size
    assert maskery.fill(things.model, "[MASK]", top=np.int32(2)).masks


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.model.tokenizer.tokens([-1]), "ids holds -1"),
        (lambda t: maskery.Tokenizer.from_pieces([]), "pieces is an empty list"),
        (lambda t: maskery.generate(t.model, "a", temperature=float("nan")), "temperature is nan"),
        (lambda t: maskery.fill(t.model, "[MASK] [MASK]", top=10**9), "top 1,000,000,000 is too large"),
        (
            lambda t: maskery.pretrain("bert", t.corpus, t.place / "r", workers=10**9),
            "workers 1,000,000,000 is too many",
        ),
        (lambda t: maskery.Corpus.build("a.txt", t.place / "x", workers=10**9), "workers 1,000,000,000 is too"),
        (lambda t: _tuned(t, train=FRAME, settings={"training": {"batch": 10**9}}), "1,000,000,000 examples a step"),
        (lambda t: words_config("cbow", {"width": 10**9}), "--width 1000000000"),
        (lambda t: _tuned(t, train=FRAME, settings={"rows": {"length": 5}}), "rows of 5 slots are too short"),
    ],
)
def test_a_value_out_of_range_is_refused(things, call, words):
    with pytest.raises(InputError) as caught:
        call(things)
    assert words in caught.value.text()
    assert caught.value.repair


def test_arguments_are_checked_where_the_annotation_says_what_they_are():
    @checked
    def call(path: str | Path, many: int = 1, names: Sequence[str] = (), thing: object = None, other: Hidden = None):
        return path, many, names, thing, other

    assert call("a", np.int64(2), ["b"], thing=7, other=8) == ("a", 2, ["b"], 7, 8)
    for wrong, cause in (
        ({"path": 1}, "path is 1"),
        ({"path": "a", "many": True}, "many is True"),
        ({"path": "a", "names": "bc"}, "names is 'bc'"),
        ({"path": "a", "names": ["b", 3]}, r"names\[1\] is 3"),
    ):
        with pytest.raises(TypeError, match=cause):
            call(**wrong)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'path'"):
        call()
