"""The estimators: what they answer, what they refuse, and that scikit-learn's own tools take them for its own."""

import pickle
import sys
import tempfile

import numpy as np
import pytest
from networks import model_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import maskery
from maskery.errors import ArgumentError, CheckpointError, ExistsError, InputError, Stopped
from maskery.tasks import estimator

TEXTS = ["the cat sat", "a b c", "the mat", "d e f g"] * 4
NAMES = ["cat", "abc"] * 8
SCORES = [1.5, -0.5] * 8
PAIRS = [(one, other) for one, other in zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True)]
QUICK = {"epochs": 1, "lr": 1e-2, "batch": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("estimator") / "model"
    model_of(pooler=True).save(path)
    return path


@pytest.fixture(scope="module")
def judge(folder):
    return maskery.Classifier(folder, **QUICK).fit(TEXTS, NAMES)


def test_classes_are_learnt(folder):
    judge = maskery.Classifier(folder, epochs=5, lr=1e-2, batch=8)
    assert judge.fit(TEXTS, NAMES) is judge
    assert judge.classes_.tolist() == ["abc", "cat"]
    assert judge.n_features_in_ == 1
    assert judge.predict(TEXTS).tolist() == NAMES
    assert judge.score(TEXTS, NAMES) == 1.0
    chances = judge.predict_proba(TEXTS[:3])
    assert chances.shape == (3, 2)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert any("slots" in note for note in judge.notes_)


def test_scores_are_learnt(folder):
    judge = maskery.Regressor(folder, epochs=12, lr=1e-2, batch=8).fit(TEXTS, SCORES)
    assert judge.predict(TEXTS).shape == (16,)
    assert judge.score(TEXTS, SCORES) > 0.8


class Frame:
    """As much of a table as an estimator sees of one."""

    def __init__(self, rows, columns=None):
        self.rows = rows
        if columns is not None:
            self.columns = columns

    def __len__(self):
        return len(self.rows)

    def to_numpy(self):
        return np.array(self.rows, dtype=object)


def test_texts_come_in_many_forms(judge):
    wanted = judge.predict_proba(TEXTS)
    one_column = [[text] for text in TEXTS]
    forms = [tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), np.array(one_column), one_column]
    for form in [*forms, iter(TEXTS), Frame(TEXTS), Frame(one_column, ["review"])]:
        np.testing.assert_array_equal(judge.predict_proba(form), wanted)


def test_pairs_and_tables(folder):
    judge = maskery.Classifier(folder, **QUICK).fit(PAIRS, NAMES)
    assert (judge.n_features_in_, judge.model_.config.task) == (2, "pair")
    table = maskery.Classifier(folder, **QUICK).fit(Frame(PAIRS, ["title", "body"]), NAMES)
    assert table.feature_names_in_.tolist() == ["title", "body"]
    assert table.model_.config.columns.text == ("title", "body")
    np.testing.assert_array_equal(judge.predict_proba(np.array(PAIRS)), table.predict_proba(PAIRS))
    with pytest.raises(ArgumentError, match="columns body, title, and fit was given title, body"):
        table.predict(Frame(PAIRS, ["body", "title"]))
    with pytest.raises(ArgumentError, match="X has 1 features, but Classifier is expecting 2 features"):
        judge.predict(TEXTS)


@pytest.mark.parametrize(
    "values", [[3, 7], [True, False], [0.0, 1.0], ["是", "不"]], ids=["int", "bool", "float", "zh"]
)
def test_classes_come_back_as_they_were(folder, values, tmp_path):
    y = np.array(values * 8)
    judge = maskery.Classifier(folder, **QUICK).fit(TEXTS, y)
    judge.save(tmp_path / "saved")
    again = maskery.Classifier.load(tmp_path / "saved")
    for each in (judge, again):
        assert each.predict(TEXTS).dtype == each.classes_.dtype == y.dtype
        assert each.classes_.tolist() == sorted(values)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), judge.predict_proba(TEXTS))


def test_one_seed_one_model(folder, judge):
    wanted = judge.predict_proba(TEXTS)
    again = clone(judge)
    for _ in range(2):
        np.testing.assert_array_equal(again.fit(TEXTS, NAMES).predict_proba(TEXTS), wanted)
    other = clone(judge).set_params(seed=1).fit(TEXTS, NAMES)
    assert (other.predict_proba(TEXTS) != wanted).any()
    assert sorted(path.name for path in folder.parent.iterdir()) == ["model"]


def test_pickles_and_folders_answer_alike(judge, tmp_path):
    wanted = judge.predict_proba(TEXTS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(judge)).predict_proba(TEXTS), wanted)
    judge.save(tmp_path / "saved")
    again = maskery.Classifier.load(str(tmp_path / "saved"))
    np.testing.assert_array_equal(again.predict_proba(TEXTS), wanted)
    assert again.get_params() == {**judge.get_params(), "model": str(judge.model)}
    with pytest.raises(ExistsError, match="replace=True"):
        judge.save(tmp_path / "saved")
    judge.save(tmp_path / "saved", replace=True)
    with pytest.raises(CheckpointError, match=r"open it with maskery\.Classifier"):
        maskery.Regressor.load(tmp_path / "saved")
    (tmp_path / "saved/estimator.json").unlink()
    bare = maskery.Classifier.load(tmp_path / "saved")
    np.testing.assert_array_equal(bare.predict_proba(TEXTS), wanted)
    assert (bare.epochs, bare.lr, bare.batch, bare.model) == (1, 1e-2, 8, str(judge.model))


def test_nothing_is_left_behind(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    judge = maskery.Classifier(folder, **QUICK).fit(TEXTS, NAMES)
    pickle.loads(pickle.dumps(judge))
    with pytest.raises(InputError):
        clone(judge).set_params(lr=-1).fit(TEXTS, NAMES)
    assert list(tmp_path.iterdir()) == []


def test_texts_are_set_aside_only_when_asked(folder, judge, capsys):
    assert judge.judgement_ is None
    asked = clone(judge).set_params(dev=0.25, epochs=2, patience=1, verbose=True).fit(TEXTS, NAMES)
    told = "dev: 4 of 16 texts are set aside to choose the best epoch"
    assert told in asked.notes_
    assert told in capsys.readouterr().err
    assert 0 <= asked.judgement_.metrics["accuracy"] <= 1
    splits = asked._splits(("text",), [(text,) for text in TEXTS], NAMES, ("abc", "cat"))
    assert sorted(item.label for item in splits.dev) == ["abc", "abc", "cat", "cat"]
    assert {item.guid for item in splits.dev}.isdisjoint(item.guid for item in splits.train)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"dev": 0.1}, "sets none aside"), ({"dev": 1.0}, "not a share"), ({"patience": 1}, "give dev=0.1 with it")],
)
def test_shares_that_cannot_be_set_aside(judge, wrong, words):
    with pytest.raises(ArgumentError, match=words):
        clone(judge).set_params(**wrong).fit(TEXTS, NAMES)


def test_pipelines_and_searches(folder):
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    loud = [text.upper() for text in TEXTS]
    judge = maskery.Classifier(folder, **QUICK)
    piped = make_pipeline(lower, judge)
    assert piped.fit(loud, NAMES).predict(loud).tolist() == piped.predict(TEXTS).tolist()
    assert len(cross_val_score(judge, TEXTS, NAMES, cv=2, error_score="raise")) == 2
    grid = {"classifier__lr": np.array([1e-6, 1e-2]), "classifier__batch": np.array([8])}
    search = GridSearchCV(piped, grid, cv=2, error_score="raise", scoring="roc_auc").fit(np.array(loud), NAMES)
    assert set(search.best_params_) == set(grid)
    assert search.predict(loud).shape == (16,)


def test_further_settings(folder):
    judge = maskery.Classifier(folder, **QUICK, settings={"head": {"dropout": 0.5}, "training": {"clip": 2.0}})
    config = judge.fit(TEXTS, NAMES).model_.config
    assert (config.head.dropout, config.training.clip, config.training.warmup) == (0.5, 2.0, 0.1)
    assert judge.settings == {"head": {"dropout": 0.5}, "training": {"clip": 2.0}}
    with pytest.raises(ArgumentError, match=r"settings\.training\.lr: is a parameter of its own"):
        judge.set_params(settings={"training": {"lr": 1.0}}).fit(TEXTS, NAMES)


WRONG_TEXTS = {
    "numbers": (np.eye(4), r"X\[0\]: 1.0 \(float\) is no text"),
    "none": (None, "X is of type NoneType"),
    "one_text": ("the cat", "X is of type str"),
    "a_number": (7, "X is of type int"),
    "empty": ([], "X is empty"),
    "a_missing_one": (["a", None, "b", "c"], r"X\[1\]: None \(NoneType\) is no text"),
    "missing_in_a_table": (["a", "b", float("nan"), "c"], r"X\[2\]: NaN \(float\) is no text"),
    "bytes": ([b"a"] * 4, r"X\[0\]: b'a' \(bytes\) is no text"),
    "ragged": (["a", ("b", "c"), "d", "e"], r"X\[1\]: has 2 texts, and those before it have 1"),
    "nothing_in_it": ([(), ()], r"X\[0\]: has no text"),
    "a_dict": ({"a": 1}, "X is of type dict"),
    "three_dimensions": (np.full((2, 2, 2), "a"), "X has 3 dimensions"),
}


@pytest.mark.parametrize("kind", WRONG_TEXTS)
def test_what_is_no_text_is_refused(judge, kind):
    given, words = WRONG_TEXTS[kind]
    with pytest.raises(ArgumentError, match=words):
        clone(judge).fit(given, ["a", "b", "a", "b"])
    with pytest.raises(ValueError, match=words):
        judge.predict(given)


@pytest.mark.parametrize(
    ("made", "y", "words"),
    [
        (maskery.Classifier, None, "requires y to be passed"),
        (maskery.Classifier, ["a", "b"], "X has 3 texts, and y 2 values"),
        (maskery.Classifier, ["a"] * 3, "all 3 texts are of the class a"),
        (maskery.Classifier, ["a"], "n_samples = 1"),
        (maskery.Classifier, [0.5, 1.5, 2.25], "Unknown label type: continuous"),
        (maskery.Classifier, [[1, 0], [0, 1], [1, 1]], "1d array"),
        (maskery.Classifier, ["a", None, "b"], r"y\[1\]: Input y contains NaN"),
        (maskery.Regressor, [1.0, np.nan, 2.0], r"y\[1\]: Input y contains NaN"),
        (maskery.Regressor, [1.0, np.inf, 2.0], r"y\[1\]: Input y contains infinity"),
        (maskery.Regressor, [2.0] * 3, "all 3 texts have the score 2.0"),
        (maskery.Regressor, ["a", "b", "c"], "could not convert string to float"),
        (maskery.Regressor, [1.0, 2.0], "X has 3 texts, and y 2 values"),
    ],
)
def test_what_cannot_be_learnt_is_refused(folder, made, y, words):
    with pytest.raises(ValueError, match=words):
        made(folder, **QUICK).fit(TEXTS[:3], y)


def test_other_refusals(folder, tmp_path, monkeypatch):
    for made in (maskery.Classifier, maskery.Regressor):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            made(folder).predict(TEXTS)
        with pytest.raises(NotFittedError):
            made(folder).save(tmp_path / "saved")
    with pytest.raises(ArgumentError, match="model is of type NoneType, not a folder"):
        maskery.Classifier(None).fit(TEXTS, NAMES)
    with pytest.raises(InputError, match="nowhere"):
        maskery.Classifier(tmp_path / "nowhere").fit(TEXTS, NAMES)
    with pytest.raises(InputError, match="epochs"):
        maskery.Classifier(folder, epochs=0).fit(TEXTS, NAMES)

    def stopped(*_given, **_named):
        raise Stopped("stopped", signal_number=2)

    monkeypatch.setattr(estimator, "finetune", stopped)
    with pytest.raises(KeyboardInterrupt):  # a search takes anything less for a failed fit, and goes on
        cross_val_score(maskery.Classifier(folder), TEXTS, NAMES, cv=2)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "maskery.tasks.estimator")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for name in ("Classifier", "Regressor"):
        with pytest.raises(InputError, match=r'pip install "maskery\[sklearn\]"'):
            getattr(maskery, name)
