"""A training of word vectors in its folder: words read, epochs trained and kept, vectors written at the end.

While it goes on, `OUT/state` holds the last epoch (state.json, arrays.safetensors), replaced in one step. At the end
the folder of vectors takes the place of all of it in one step.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError
from safetensors.numpy import load_file

from maskery import arguments
from maskery.errors import ExistsError, InputError, Stopped
from maskery.files import (
    MANIFEST,
    damage,
    describe,
    is_described,
    is_leftover,
    new_folder,
    require_writable_around,
    seal_broken,
    sealed,
    write_json,
)
from maskery.words.config import METHODS, WordsConfig
from maskery.words.folder import STATE, WORDS, write_arrays
from maskery.words.protocol import Epoch
from maskery.words.vectors import WordVectors
from maskery.words.vocabulary import Told, Words, read_words

if TYPE_CHECKING:
    from maskery.corpus.store import Corpus

_FACTS, _ARRAYS = "state.json", "arrays.safetensors"
_MAY_CHANGE = ("workers",)
_PASSED_OVER = ("run.lock",)
"""The lock of the process that trains is no content of a folder."""
Signal = Callable[[], int]
"""The number of a signal that asks for a stop, or 0."""


class Training:
    """Made, it has checked everything that can be checked before the long work; then `read`, then `run`."""

    def __init__(self, corpus: Corpus, config: WordsConfig, out: str | Path, *, resume: bool = False) -> None:
        self.corpus, self.config, self.out = corpus, config, Path(out)
        self.method = METHODS.get(config.method)
        arguments.processes("workers", config.workers)
        self.method.check()
        self._require_elsewhere()
        corpus.verify()
        self.losses: list[float] = []
        self.notes: list[str] = []
        """What is to be told of a training that goes on, one sentence each."""
        self.state: Epoch | None = None
        if resume:
            self.state = self._resumed()
        else:
            self._require_free()

    def read(self, progress: Told | None = None, signal: Signal = lambda: 0) -> Words:
        def tell(done: float, total: float) -> None:
            if number := signal():
                raise Stopped("stopped while reading the words: nothing is lost", signal_number=number)
            if progress is not None:
                progress(done, total)

        return read_words(self.corpus, self.config.min_count, progress=tell)

    def run(
        self,
        words: Words,
        progress: Told | None = None,
        signal: Signal = lambda: 0,
        epoch_done: Callable[[Epoch], None] | None = None,
    ) -> WordVectors:
        """Train what is left, keep every epoch, and write the folder."""
        last = self.state
        for epoch in self.method.train(words, self.config, progress, self.state, lambda: signal() != 0):
            self.losses += [] if epoch.loss is None else [epoch.loss]
            if epoch.number < self.config.epochs:
                self._keep(epoch)
            last = epoch
            if epoch_done is not None:
                epoch_done(epoch)
        if last is None or last.number < self.config.epochs:
            raise self._stopped(last.number if last else 0, signal())
        trained = self.method.vectors(words, self.config, last.arrays)
        made = WordVectors(words.words, words.counts, trained.matrix, self._facts(words), subwords=trained.subwords)
        made.save(self.out, replace=True)
        return made

    def _stopped(self, done: int, number: int) -> Stopped:
        if not done:
            cause, repair = "stopped in the first epoch: nothing is kept", "give the same command again"
        else:
            cause = f"stopped in epoch {done + 1} of {self.config.epochs}: the {done} before it are kept in {self.out}"
            repair = "give the same command with --resume"
        return Stopped(cause, signal_number=number, repair=repair)

    def _facts(self, words: Words) -> dict[str, Any]:
        left_out = {"rare": words.rare, "rare_words": words.rare_words, "unknown": words.unknown}
        return {
            "training": self.config.used(),
            "corpus": self._source(),
            "occurrences": words.total,
            "left_out": left_out,
            **({"loss": self.losses} if self.losses else {}),
            "versions": self._versions(),
        }

    def _versions(self) -> dict[str, str]:
        libraries = ("numpy",) if self.config.method == "glove" else ("numpy", "gensim")
        return {name: version(name) for name in libraries}

    def _source(self) -> dict[str, str]:
        return {"fingerprint": self.corpus.fingerprint, "tokenizer": self.corpus.tokenizer.fingerprint}

    def _require_elsewhere(self) -> None:
        """The folder is replaced at the end, so nobody may stand in it."""
        if Path.cwd().is_relative_to(self.out.resolve()):
            cause = "is the folder that this command is given in, or lies around it"
            raise InputError(cause, where=self.out, repair="give a new folder, for example --out my-vectors")

    def _require_free(self) -> None:
        if self.out.exists() and not self.out.is_dir():
            raise ExistsError("is a file, not a folder", where=self.out, repair="choose another --out")
        found = [each for each in self.out.iterdir() if not _passed_over(each)] if self.out.exists() else []
        if found:
            unfinished = (self.out / STATE).is_dir() and not (self.out / MANIFEST).is_file()
            repair = "--resume to go on with it" if unfinished else "give another --out"
            raise ExistsError("is already there", where=self.out, repair=f"{repair}, or remove it: rm -r {self.out}")
        require_writable_around(self.out)

    def _resumed(self) -> Epoch:
        if (self.out / MANIFEST).is_file() and not (self.out / WORDS).is_file():
            raise InputError(
                "is no run of maskery words train", where=self.out, repair="choose another --out, and no --resume"
            )
        if (self.out / MANIFEST).is_file():
            raise ExistsError(
                "this training has ended", where=self.out, repair="leave out --resume, give another --out"
            )
        folder = self.out / STATE
        if not folder.is_dir():
            raise InputError("there is no epoch to go on from", where=self.out, repair="leave out --resume")
        facts = _read_facts(folder)
        self._compare(facts)
        try:
            arrays = load_file(folder / _ARRAYS)
        except SafetensorError as error:
            raise InputError(f"{_ARRAYS} cannot be read ({error})", where=folder, repair=_again(self.out)) from None
        self.losses = list(facts["loss"])
        for name, now in self._versions().items():
            if (before := facts.get("versions", {}).get(name, now)) != now:
                self.notes.append(
                    f"it began with {name} {before}, this is {now}: the numbers may differ in the last digits"
                )
        return Epoch(facts["epochs"], arrays)

    def _compare(self, facts: dict[str, Any]) -> None:
        """Refuse to go on with other words or other numbers."""
        if facts["corpus"] != self._source():
            raise InputError(
                f"the training began with another corpus than {self.corpus.path}",
                where=self.out,
                repair="give the corpus that it began with, or another --out without --resume",
            )
        before, now = facts["training"], self.config.used()
        for name in sorted(now):
            if name not in _MAY_CHANGE and before.get(name) != now[name]:
                option = f"--{name.replace('_', '-')}"
                raise InputError(
                    f"the training began with {name} = {before.get(name)}, not {now[name]}",
                    where=self.out,
                    repair=f"{option} {before.get(name)}, or another --out without --resume",
                )

    def _keep(self, epoch: Epoch) -> None:
        with new_folder(self.out / STATE) as folder:
            write_arrays(folder / _ARRAYS, epoch.arrays)
            facts = {
                "maskery": "training of word vectors",
                "epochs": epoch.number,
                "loss": self.losses,
                "training": self.config.used(),
                "corpus": self._source(),
                "versions": self._versions(),
                "files": describe(folder, [_ARRAYS]),
            }
            write_json(folder / _FACTS, sealed(facts))


def _passed_over(path: Path) -> bool:
    return path.name in _PASSED_OVER or is_leftover(path)


def _read_facts(folder: Path) -> dict[str, Any]:
    file = folder / _FACTS
    try:
        facts: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read ({error})", where=file, repair=_again(folder.parent)) from None
    if not isinstance(facts, dict) or seal_broken(facts) or not is_described(facts.get("files")):
        cause = "does not match its own checksum: some byte has changed since it was written"
        raise InputError(cause, where=file, repair=_again(folder.parent))
    found = damage(folder, facts["files"], full=True)
    if found:
        raise InputError("; ".join(found), where=folder, repair=_again(folder.parent))
    return facts


def _again(out: Path) -> str:
    return f"begin anew: rm -r {out}, and leave out --resume"
