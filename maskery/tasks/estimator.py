"""Fine-tuning as scikit-learn has it: `Classifier` and `Regressor` over texts, or over tuples of texts.

Every `fit` starts from the folder's weights in a temporary run; the same seed gives the same model. `save` writes what
transformers opens as well. Scores to be learnt should be of the size of 1; for others there is sklearn.compose's
TransformedTargetRegressor(maskery.Regressor(...), transformer=StandardScaler()).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from maskery import arguments, files
from maskery.checkpoint.tensors import read_json
from maskery.errors import ArgumentError, CheckpointError, ExistsError, Stopped
from maskery.extras import optional
from maskery.randomness import bits, keys
from maskery.tasks.arrays import Texts, columns_of, folder_of, named, texts_of
from maskery.tasks.base import AnyTaskModel
from maskery.tasks.examples import Example, Examples
from maskery.tasks.finetune import finetune, say_on_stderr
from maskery.tasks.judge.measure import Judgement
from maskery.tasks.model import TaskModel
from maskery.tasks.own_loss import taken_loss
from maskery.tasks.questions import Predicted
from maskery.tasks.resolve import Splits
from maskery.tasks.settings import TaskConfig
from maskery.tasks.together import first_of

_USE = "the estimator (maskery.Classifier, maskery.Regressor)"
BaseEstimator: Any = optional("sklearn.base", _USE).BaseEstimator
ClassifierMixin: Any = optional("sklearn.base", _USE).ClassifierMixin
RegressorMixin: Any = optional("sklearn.base", _USE).RegressorMixin
_validation: Any = optional("sklearn.utils.validation", _USE)
_multiclass: Any = optional("sklearn.utils.multiclass", _USE)
ESTIMATOR_FILE = "estimator.json"
_PLACES = {
    "epochs": ("epochs",),
    "patience": ("patience",),
    "length": ("rows", "length"),
    "truncate": ("rows", "truncate"),
    "pool": ("read", "pool"),
    "frozen": ("read", "frozen"),
    "lr": ("training", "lr"),
    "batch": ("training", "batch"),
    "seed": ("training", "seed"),
}
"""Parameter -> its key in task.toml."""


class TextEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share.

    After `fit`: `model_` (the trained TaskModel), `notes_` (what was found by itself, and what was cut), `judgement_`
    (on the texts set aside by `dev`, else None), `n_features_in_` (texts of an example), `feature_names_in_` (of a
    table).
    """

    model_: AnyTaskModel
    notes_: list[str]
    judgement_: Judgement | None
    n_features_in_: int
    _estimator_type: str

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        epochs: float | None = None,
        lr: float | None = None,
        batch: int | None = None,
        length: int = 0,
        truncate: str = "head",
        pool: str = "auto",
        frozen: bool = False,
        dev: float = 0.0,
        patience: int = 0,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        """`epochs`, `lr`, `batch`: None is chosen by the model and the number of texts (`notes_` says what and why).

        `dev`: the share of the texts set aside to choose the best epoch by; 0: all are learnt, the last one is kept.
        `settings`: further tables of task.toml as nested values, {"head": {"dropout": 0.2}}.
        """
        self.model = model
        self.epochs = epochs
        self.lr = lr
        self.batch = batch
        self.length = length
        self.truncate = truncate
        self.pool = pool
        self.frozen = frozen
        self.dev = dev
        self.patience = patience
        self.seed = seed
        self.settings = settings
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True  # of one dimension or two; one_d_array would say that two are refused
        tags.target_tags.required = True
        return tags

    # -- training

    def _tuned(self, X: Any, labels: Sequence[str | float], classes: tuple[str, ...]) -> Self:  # noqa: N803
        arguments.require(TextEstimator.__init__, self.get_params(deep=False), but=("model",))
        texts = texts_of(X)
        if len(texts) != len(labels):
            raise ArgumentError(
                f"inconsistent numbers of samples: X has {len(texts)} texts, and y {len(labels)} values",
                repair="give one value of y a text",
            )
        splits = self._splits(named(columns_of(X), len(texts[0])), texts, labels, classes)
        notes: list[str] = []

        def say(note: str) -> None:
            notes.append(note)
            if self.verbose or note.startswith("warning: "):
                say_on_stderr(note)

        with TemporaryDirectory(prefix="maskery-") as place:
            try:
                run = finetune(
                    folder_of(self.model),
                    out=Path(place) / "run",
                    train=splits.train,
                    dev=splits.dev,
                    settings=self._settings(),
                    say=say,
                )
            except Stopped as stopped:  # searches go on after an Exception, and Ctrl-C means all of it
                raise KeyboardInterrupt("stopped by a signal; nothing is kept of an unfinished fit") from stopped
        self.model_, self.notes_, self.judgement_ = first_of(run.model), notes, run.judgement
        self._remember(columns_of(X), len(texts[0]))
        return self

    def _remember(self, columns: tuple[str, ...], many: int) -> None:
        self.n_features_in_ = many
        self.__dict__.pop("feature_names_in_", None)
        if columns:
            self.feature_names_in_ = np.array(columns, dtype=object)

    def _settings(self) -> dict[str, Any]:
        """The parameters as tables of task.toml, with `settings` beside them."""
        further = deepcopy(dict(self.settings or {}))
        made = {**further, "training": {"save_every": 0, **further.get("training", {})}}
        for name, (*tables, key) in _PLACES.items():
            given = further.get(tables[0], {}) if tables else further
            if key in given:
                where = ".".join(("settings", *tables, key))
                raise ArgumentError("is a parameter of its own", where=where, repair=f"give {name}=... instead")
            value = _plain(getattr(self, name))
            if value in (None, "auto"):  # chosen by maskery/tasks/defaults.py
                continue
            table = made.setdefault(tables[0], {}) if tables else made
            table[key] = value
        return made

    def _splits(
        self, fields: tuple[str, ...], texts: Texts, labels: Sequence[str | float], classes: tuple[str, ...]
    ) -> Splits:
        task = "regress" if not classes else "pair" if len(fields) == 2 else "classify"
        items = [
            Example(guid=f"{number}", texts=each, label=label)
            for number, (each, label) in enumerate(zip(texts, labels, strict=True))
        ]
        aside = set(self._aside(labels, bool(classes)))
        kept = tuple(item for number, item in enumerate(items) if number not in aside)
        told = (f"dev: {len(aside):,} of {len(items):,} texts are set aside to choose the best epoch",) if aside else ()
        train = Examples(task=task, fields=fields, items=kept, labels=classes, notes=told)
        if not aside:
            return Splits(train)
        return Splits(train, Examples(task=task, fields=fields, items=tuple(items[at] for at in sorted(aside))))

    def _aside(self, labels: Sequence[str | float], by_class: bool) -> list[int]:
        """Numbers of the examples that choose the best epoch; of every class the same share."""
        if not 0 <= self.dev < 1:
            raise ArgumentError(f"dev is {self.dev!r}, not a share", repair="dev=0.1 sets a tenth aside, dev=0 nothing")
        if not self.dev:
            if self.patience:
                raise ArgumentError("patience needs texts that are set aside", repair="give dev=0.1 with it")
            return []
        drawn = bits(keys(self.seed, "set-aside", np.arange(len(labels))), "order")
        groups: dict[str | float, list[int]] = {}
        for at in np.argsort(drawn, kind="stable").tolist():
            groups.setdefault(labels[at] if by_class else "", []).append(at)
        found = [at for group in groups.values() for at in group[: int(self.dev * len(group))]]
        if not found:
            raise ArgumentError(
                f"dev={self.dev} of {len(labels)} texts sets none aside",
                repair="give more texts, a larger dev, or dev=0",
            )
        return found

    # -- answers

    def _predicted(self, X: Any) -> Predicted:  # noqa: N803
        _validation.check_is_fitted(self)
        texts, columns, own = texts_of(X), columns_of(X), type(self).__name__
        if len(texts[0]) != self.n_features_in_:
            raise ArgumentError(
                f"X has {len(texts[0])} features, but {own} is expecting {self.n_features_in_} features as input",
                repair=f"give as many texts an example as fit was given: {self.n_features_in_}",
            )
        known = tuple(getattr(self, "feature_names_in_", ()))
        if known and columns and known != columns:
            raise ArgumentError(
                f"X has the columns {', '.join(columns)}, and fit was given {', '.join(known)}",
                repair="give the same columns in the same order",
            )
        items = tuple(Example(guid=f"{number}", texts=each) for number, each in enumerate(texts))
        config = self.model_.config
        asked = Examples(task=config.task, fields=config.columns.text, items=items)
        return self.model_.predict(asked, say_on_stderr if self.verbose else lambda note: None)

    # -- folders and pickles

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the model and the parameters into a folder, which `load`, `maskery predict` and transformers open."""
        _validation.check_is_fitted(self)
        folder = Path(path)
        if folder.exists() and not replace:
            raise ExistsError("is already there", where=folder, repair="save(..., replace=True), or another folder")
        facts = self._facts()
        self.model_.save(folder, say_on_stderr if self.verbose else lambda note: None)
        files.write_json(folder / ESTIMATOR_FILE, facts)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """What `save`, or `maskery finetune`, has written."""
        folder = Path(path)
        trained = TaskModel.load(folder)
        facts = read_json(folder / ESTIMATOR_FILE) if (folder / ESTIMATOR_FILE).is_file() else {}
        made = cls(**(facts.get("parameters") or _parameters(trained.config)))
        made.model_, made.notes_, made.judgement_ = trained, [], None
        made._remember(tuple(facts.get("columns", ())), len(trained.config.columns.text))
        made._recall(facts, folder)
        return made

    def _facts(self) -> dict[str, Any]:
        parameters = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        parameters["model"] = folder_of(self.model)
        return {"parameters": parameters, "columns": list(getattr(self, "feature_names_in_", ()))}

    def _recall(self, facts: Mapping[str, Any], folder: Path) -> None:
        raise AssertionError("each estimator has its own")

    def __getstate__(self) -> dict[str, Any]:
        """Pickles hold the trained model as the files of its folder: they outlive changes of the code."""
        state = dict(super().__getstate__())
        if "model_" not in state:
            return state
        with TemporaryDirectory(prefix="maskery-") as place:
            self.model_.save(Path(place), lambda note: None)
            paths = sorted(path for path in Path(place).rglob("*") if path.is_file())
            state["model_"] = {path.relative_to(place).as_posix(): path.read_bytes() for path in paths}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        written = state.get("model_")
        if isinstance(written, dict):
            with TemporaryDirectory(prefix="maskery-") as place:
                for name, data in written.items():
                    (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
                    (Path(place) / name).write_bytes(data)
                state = {**state, "model_": TaskModel.load(place)}
        super().__setstate__(state)


class Classifier(ClassifierMixin, TextEstimator):  # type: ignore[misc]
    """One class a text, or a tuple of texts: `classes_` are those of y, in the order of their values. X and y are
    lists, arrays, Series or columns of a `datasets.Dataset`; X of several texts is tuples, or a table, a text a column.

    judge = maskery.Classifier("my-model", epochs=2).fit(frame["text"], frame["label"])
    judge.predict_proba(["a text"]), cross_val_score(judge, texts, labels)
    """

    classes_: NDArray[Any]

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Train on texts X and their classes y, two or more of them."""
        given = _targets(y, self)
        _multiclass.check_classification_targets(given)
        classes, number = np.unique(given, return_inverse=True)
        names = tuple(str(each) for each in classes.tolist())
        if len(names) < 2:
            raise ArgumentError(
                f"all {len(given)} texts are of the class {names[0]}: there is nothing to learn",
                where="y",
                repair="give texts of at least two classes",
            )
        self._tuned(X, [names[at] for at in number], names)
        self.classes_ = classes
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The likeliest class of each."""
        chances = self.predict_proba(X)
        found: NDArray[Any] = self.classes_[chances.argmax(axis=1)]
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """(E,C) of each, in the order of `classes_`."""
        found = self._predicted(X).of_classes
        assert found is not None
        return np.asarray(found, dtype=np.float64)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "classes": self.classes_.tolist(), "type": self.classes_.dtype.str}

    def _recall(self, facts: Mapping[str, Any], folder: Path) -> None:
        _require_task(self.model_.config.task, ("classify", "pair"), folder, "Classifier")
        names = facts.get("classes", list(self.model_.config.labels))
        self.classes_ = np.array(names, dtype=facts.get("type", object))


class Regressor(RegressorMixin, TextEstimator):  # type: ignore[misc]
    """One number a text, or a tuple of texts; X and y are what `Classifier` takes.

    maskery.Regressor("my-model", epochs=2).fit(frame["text"], frame["score"]).predict(["a text"])
    """

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Train on texts X and a number y for each."""
        given = _targets(y, self)
        try:
            scores = given.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ArgumentError(str(error), where="y", repair="give one number a text") from None
        if len(np.unique(scores)) < 2:
            raise ArgumentError(
                f"all {len(given)} texts have the score {scores[0]}: there is nothing to learn",
                where="y",
                repair="give texts of different scores",
            )
        return self._tuned(X, scores.tolist(), ())

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """A number for each."""
        return np.array(self._predicted(X).answers, dtype=np.float64)

    def _recall(self, facts: Mapping[str, Any], folder: Path) -> None:
        _require_task(self.model_.config.task, ("regress",), folder, "Regressor")


def _targets(y: Any, estimator: TextEstimator) -> NDArray[Any]:
    """y as one value a text, none of them missing."""
    own = type(estimator).__name__
    if y is None:
        raise ArgumentError(
            f"{own} requires y to be passed, but the target y is None", repair="fit(X, y): one value a text"
        )
    given: NDArray[Any] = _validation.column_or_1d(y, warn=True)
    if len(given) < 2:
        many = f"n_samples = {len(given)}"
        raise ArgumentError(f"{many}: there is nothing to learn", repair="give at least two texts, of different y")
    values = given.tolist()
    for number, value in enumerate(values):
        if value is None or (isinstance(value, float) and not np.isfinite(value)):
            raise ArgumentError(
                f"Input y contains {'infinity' if value in (np.inf, -np.inf) else 'NaN'}: {value!r} says nothing",
                where=f"y[{number}]",
                repair="leave out the texts that have no value, from X as well",
            )
    return given


def _plain(value: Any) -> Any:
    """A value of Python: searches draw theirs from numpy's arrays. A function in settings is written by its name."""
    if isinstance(value, Mapping):
        return taken_loss(value, say_on_stderr)[0]
    return value.item() if isinstance(value, np.generic) else value


def _parameters(config: TaskConfig) -> dict[str, Any]:
    """The parameters that would make the task of a folder."""
    plain = config.model_dump(mode="json")
    found = {name: plain[place[0]] if len(place) == 1 else plain[place[0]][place[1]] for name, place in _PLACES.items()}
    return {"model": config.model, **found}


def _require_task(task: str, wanted: tuple[str, ...], folder: Path, own: str) -> None:
    if task not in wanted:
        others = {"classify": "maskery.Classifier", "pair": "maskery.Classifier", "regress": "maskery.Regressor"}
        raise CheckpointError(
            f"is a model for {task}, and {own} is for {' and '.join(wanted)}",
            where=folder,
            repair=f"open it with {others[task]}" if task in others else "maskery predict reads it",
        )
