"""A published model, as TensorFlow files or as a folder of Hugging Face -> a folder as we write it, or a model.

TensorFlow's tensors get Hugging Face's names and are then opened as those of any folder: one way in, with the same
checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from maskery import hub
from maskery.checkpoint.exporting import require_new
from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import assembled, load, tied
from maskery.checkpoint.locate import CONFIG, require_known
from maskery.checkpoint.model import Model
from maskery.checkpoint.rules import expand
from maskery.checkpoint.tensorflow import convert
from maskery.checkpoint.tensorflow.bundle import Bundle, open_bundle
from maskery.checkpoint.tensorflow.convert import Conversion, Part
from maskery.checkpoint.tensorflow.names import EVERY
from maskery.checkpoint.tensorflow.source import SENTENCEPIECE, Source, find_source
from maskery.checkpoint.tensors import HEADS, INDEX, PICKLE, WEIGHTS, is_pickle, read_safetensors
from maskery.errors import CheckpointError, InputError
from maskery.text import wordpiece
from maskery.text.tokenizer import Tokenizer

Case = Literal["cased", "uncased"]
Tell = Callable[[int, int, str], None]
"""Hears how many bytes are done, how many there are, and what is being done."""


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What was found and what became of it."""

    source: str
    format: str
    out: str
    model: Model
    used: int
    """Tensors of the source that the model holds."""
    unused: tuple[str, ...]
    state: tuple[str, ...]
    """Variables of the optimiser, left aside."""
    notes: tuple[str, ...]


def import_model(
    path: Path,
    out: Path,
    *,
    config: Path | None = None,
    vocabulary: Path | None = None,
    case: Case | None = None,
    allow_pickle: bool = False,
    tell: Tell = lambda done, total, what: None,
) -> ImportReport:
    """Read the model at `path`, a folder, a checkpoint or a name in the cache, and write it to the new folder `out`."""
    require_new(out)
    path = path if path.exists() else hub.in_cache(str(path)) or path
    if is_hugging_face(path):
        given = [flag for flag, value in _only_for_tensorflow(config, vocabulary, case).items() if value is not None]
        if given:
            raise InputError(
                f"{given[0]} is for TensorFlow's files; this folder has its own {CONFIG}",
                where=path,
                repair=f"leave out {given[0]}, or name the checkpoint: maskery import {path}/NAME.ckpt",
            )
        return _from_hugging_face(path, out, allow_pickle)
    return _from_tensorflow(find_source(path, config, vocabulary), out, case, tell)


def _only_for_tensorflow(config: Path | None, vocabulary: Path | None, case: Case | None) -> dict[str, object]:
    return {"--config": config, "--vocab": vocabulary, "--case": case}


def is_hugging_face(path: Path) -> bool:
    return (path / CONFIG).is_file() and any((path / name).is_file() for name in (WEIGHTS, INDEX, PICKLE))


def _from_hugging_face(path: Path, out: Path, allow_pickle: bool) -> ImportReport:
    pickled = is_pickle(path)
    model = load(path, allow_pickle=allow_pickle)
    saved = model.save(out)
    return ImportReport(
        source=str(path),
        format=f"Hugging Face, {PICKLE if pickled else 'safetensors'}",
        out=str(out),
        model=model,
        used=_written(out) - len(model.report.ignored),
        unused=model.report.unused,
        state=(),
        notes=(*filter(None, [model.note]), *model.report.notes, *saved.notes),
    )


def _written(out: Path) -> int:
    """Tensors in a folder: import, then export, gives the same ones."""
    return sum(len(read_safetensors(out / name)) for name in (WEIGHTS, HEADS) if (out / name).is_file())


def open_tensorflow(path: Path) -> Model:
    """The model of TensorFlow's files in memory; its note tells where it comes from."""
    read = _read_tensorflow(find_source(path), None, lambda done, total, what: None)
    model = read.model
    told = [f"read from the TensorFlow checkpoint {read.source.prefix}, {read.used} variables", *read.conversion.notes]
    model.note = "; ".join(told)
    return model


@dataclass(frozen=True)
class _Read:
    source: Source
    bundle: Bundle
    conversion: Conversion
    model: Model

    @property
    def unused(self) -> tuple[str, ...]:
        return tuple(sorted({*self.conversion.unused, *_unused_variables(self.model, self.conversion)}))

    @property
    def used(self) -> int:
        return len(self.bundle.entries) - len(self.unused) - len(self.conversion.state)


def _read_tensorflow(source: Source, case: Case | None, tell: Tell) -> _Read:
    bundle = open_bundle(source.prefix)
    conversion = convert.plan(bundle, source.config)
    tokenizer = _tokenizer(source, case, int(conversion.model.config.get("vocab_size", 0)), conversion.notes)
    bundle.require_shards()
    total, done = conversion.size(bundle), 0

    def count(number: int) -> None:
        nonlocal done
        done += number
        tell(done, total, "reading")

    model = _opened(bundle, conversion.model, source, tokenizer, count)
    if conversion.generator is not None:
        second = _opened(bundle, conversion.generator, source, tokenizer, count)
        model.generator = tied(second, model, source.prefix)
    return _Read(source, bundle, conversion, model)


def _opened(bundle: Bundle, part: Part, source: Source, tokenizer: Tokenizer, count: Callable[[int], None]) -> Model:
    """A part as a model; what is wrong with it is told of the files that it was made from."""
    name = source.config.name if source.config else CONFIG
    try:
        config = dict(part.config)
        require_known(config, source.config or source.prefix)
        return assembled(config, convert.tensors(bundle, part, count), {}, source.prefix, tokenizer)
    except CheckpointError as error:
        repair = (error.repair or "").replace(CONFIG, name) or None
        where = source.prefix if error.where and error.where.startswith(str(source.prefix / CONFIG)) else error.where
        raise CheckpointError(error.cause.replace(CONFIG, name), where=where, repair=repair) from None


def _from_tensorflow(source: Source, out: Path, case: Case | None, tell: Tell) -> ImportReport:
    read = _read_tensorflow(source, case, tell)
    size = read.conversion.size(read.bundle)
    tell(size, size, "writing")
    saved = read.model.save(out)
    shards = read.bundle.shards
    return ImportReport(
        source=str(source.prefix),
        format=f"TensorFlow, {shards} data file{'s' * (shards > 1)}",
        out=str(out),
        model=read.model,
        used=read.used,
        unused=read.unused,
        state=read.conversion.state,
        notes=(*read.conversion.notes, *_told(read.model), *saved.notes),
    )


def _unused_variables(model: Model, conversion: Conversion) -> set[str]:
    """What was read and then taken by no part of the model: a head that is not whole, for one."""
    read = [each for each in (model, model.generator) if each is not None]
    return {name for each, part in zip(read, conversion.parts(), strict=True) for name in _left_over(each, part)}


def _left_over(model: Model, part: Part) -> list[str]:
    """The variables of what a report names by their names or by ours."""
    family, unused = FAMILIES[model.family], set(model.report.unused)
    for each in family.classes:
        unused |= {name for rule in expand(each.rules, model.config) if rule.ours in unused for name in rule.theirs}
    return [
        variable
        for variable, tensor in part.variables.items()
        if (name := tensor.replace(EVERY, "0")) in unused or name.removeprefix(family.prefix) in unused
    ]


def _told(model: Model) -> list[str]:
    report = model.report
    return [*report.notes, *([f"missing: {', '.join(report.missing)}"] if report.missing else [])]


def _tokenizer(source: Source, case: Case | None, rows: int, notes: list[str]) -> Tokenizer:
    """The tokenizer of vocab.txt or of a SentencePiece model; letters are made small if the vocabulary has no capitals,
    unless it is said."""
    path = source.vocabulary
    lowercase = None if case is None else case == "uncased"
    if path.suffix == SENTENCEPIECE:
        tokenizer = Tokenizer.from_sentencepiece(path, {} if lowercase is None else {"do_lower_case": lowercase})
    else:
        pieces = wordpiece.read_vocabulary(path)
        tokenizer = Tokenizer.from_pieces(pieces, lowercase=lowercase, note=f"{case}: as you said")
    number = tokenizer.vocabulary
    if rows and number > rows:
        raise CheckpointError(
            f"has {number:,} pieces, but the checkpoint has vectors for {rows:,}",
            where=path,
            repair="give the vocabulary of this model: --vocab FILE",
        )
    if number < rows:
        notes.append(f"{path.name} has {number:,} pieces, the checkpoint {rows:,} vectors: the last stand for none")
    notes.append(tokenizer.note + _doubt(source, case, tokenizer.note))
    return tokenizer


def _doubt(source: Source, case: Case | None, note: str) -> str:
    """A folder's name that says otherwise than its vocabulary."""
    name = source.prefix.parent.resolve().name.lower()
    said = "uncased" if "uncased" in name else "cased" if "cased" in name else None
    if case is not None or said is None or note.startswith(said):
        return ""
    return f"; but the folder's name says {said}: --case {said} would follow it"
