"""A published model, as Google's TensorFlow files or as a folder of Hugging Face -> a folder as we write it.

TensorFlow's tensors are put into a folder under Hugging Face's names, which is then opened as any other: one way in,
with the same checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from maskery import files
from maskery.checkpoint.exporting import require_new
from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.load import load
from maskery.checkpoint.locate import CONFIG, GENERATOR
from maskery.checkpoint.model import Model
from maskery.checkpoint.rules import expand
from maskery.checkpoint.tensorflow import convert
from maskery.checkpoint.tensorflow.bundle import Bundle, open_bundle
from maskery.checkpoint.tensorflow.convert import Conversion, Part
from maskery.checkpoint.tensorflow.source import Source, find_source
from maskery.checkpoint.tensors import HEADS, INDEX, PICKLE, WEIGHTS, is_pickle, read_safetensors, write_safetensors
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
    """Read the model at `path`, a folder or the path of one checkpoint, and write it to the new folder `out`."""
    require_new(out)
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


def _from_tensorflow(source: Source, out: Path, case: Case | None, tell: Tell) -> ImportReport:
    bundle = open_bundle(source.prefix)
    conversion = convert.plan(bundle, source.config)
    notes = conversion.notes
    tokenizer = _tokenizer(source, case, int(conversion.model.config.get("vocab_size", 0)), notes)
    bundle.require_shards()
    with files.scratch_folder(out.absolute(), out) as scratch:
        _write(scratch, bundle, conversion, tell)
        if tokenizer is not None:
            tokenizer.save(scratch)
        tell(conversion.size(bundle), conversion.size(bundle), "writing")
        model = _open(scratch, source)
        saved = model.save(out)
    unused = [*conversion.unused, *_unused_variables(model, conversion)]
    return ImportReport(
        source=str(source.prefix),
        format=f"TensorFlow, {bundle.shards} data file{'s' * (bundle.shards > 1)}",
        out=str(out),
        model=model,
        used=len(bundle.entries) - len(unused) - len(conversion.state),
        unused=tuple(sorted(unused)),
        state=conversion.state,
        notes=(*notes, *_told(model), *saved.notes),
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
        if tensor in unused or tensor.removeprefix(family.prefix) in unused
    ]


def _told(model: Model) -> list[str]:
    report = model.report
    return [*report.notes, *([f"missing: {', '.join(report.missing)}"] if report.missing else [])]


def _tokenizer(source: Source, case: Case | None, rows: int, notes: list[str]) -> Tokenizer | None:
    """The tokenizer of vocab.txt; letters are made small if the vocabulary has no capitals, unless it is said."""
    path = source.vocabulary
    if path is None:
        if source.sentencepiece is None:
            raise CheckpointError(
                "no vocab.txt here, the pieces that the checkpoint's numbers stand for",
                where=source.prefix.parent,
                repair="put vocab.txt beside the checkpoint, or give its path: --vocab FILE",
            )
        notes.append(
            f"the folder gets no tokenizer: {source.sentencepiece.name} is of SentencePiece, which is not read; "
            "put the tokenizer.json of the same model beside the weights"
        )
        return None
    pieces = wordpiece.read_vocabulary(path)
    if rows and len(pieces) > rows:
        raise CheckpointError(
            f"has {len(pieces):,} pieces, but the checkpoint has vectors for {rows:,}",
            where=path,
            repair="give the vocabulary of this model: --vocab FILE",
        )
    if len(pieces) < rows:
        notes.append(
            f"{path.name} has {len(pieces):,} pieces, the checkpoint {rows:,} vectors: the last stand for none"
        )
    lowercase = None if case is None else case == "uncased"
    tokenizer = Tokenizer.from_pieces(pieces, lowercase=lowercase, note=f"{case}: as you said")
    notes.append(tokenizer.note + _doubt(source, case, tokenizer.note))
    return tokenizer


def _doubt(source: Source, case: Case | None, note: str) -> str:
    """A folder's name that says otherwise than its vocabulary."""
    name = source.prefix.parent.resolve().name.lower()
    said = "uncased" if "uncased" in name else "cased" if "cased" in name else None
    if case is not None or said is None or note.startswith(said):
        return ""
    return f"; but the folder's name says {said}: --case {said} would follow it"


def _write(folder: Path, bundle: Bundle, conversion: Conversion, tell: Tell) -> None:
    """The checkpoint as a folder of Hugging Face."""
    total, done = conversion.size(bundle), 0

    def read(number: int) -> None:
        nonlocal done
        done += number
        tell(done, total, "reading")

    for name, part in (("", conversion.model), (GENERATOR, conversion.generator)):
        if part is not None:
            place = folder / name
            place.mkdir(exist_ok=True)
            files.write_json(place / CONFIG, dict(part.config))
            write_safetensors(place / WEIGHTS, convert.tensors(bundle, part, read))


def _open(folder: Path, source: Source) -> Model:
    """The folder as a model; what is wrong with it is told of the files that it was made from."""
    try:
        return load(folder)
    except CheckpointError as error:
        name = source.config.name if source.config else CONFIG
        repair = (error.repair or "").replace(CONFIG, name) or None
        raise CheckpointError(error.cause.replace(CONFIG, name), where=source.prefix, repair=repair) from None
