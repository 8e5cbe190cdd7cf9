"""A model -> a folder of Hugging Face, or a refusal: what saving would write as our own type has no place there."""

from __future__ import annotations

from pathlib import Path

from maskery import files
from maskery.checkpoint.families import FAMILIES, OWN, Choice, choose
from maskery.checkpoint.folder import Beside, Saved, held_by, write_model
from maskery.checkpoint.locate import write_manifest
from maskery.checkpoint.model import Model
from maskery.errors import CheckpointError, ExistsError, UnknownName


def require_new(out: Path) -> None:
    """Refuse, before long work, a folder that holds something or cannot be made."""
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ExistsError("something is there already", where=out, repair="give a new folder: --out FOLDER")
    files.require_writable(out)


def export_model(model: Model, out: Path, family: str | None = None) -> Saved:
    """Write the model to the new folder `out` as a `family` of Hugging Face; None: one that fits."""
    if family is not None and family not in FAMILIES:
        raise UnknownName("family", family, FAMILIES)
    require_new(out)
    origin = model.origin if family is None or model.family == family else None
    chosen = _choice(model, family or (None if origin is None else origin.model_type))
    if family is not None and chosen.name != family:
        _refuse_family(model, family, chosen)
    if chosen.family is None:
        raise CheckpointError(
            f"no family of Hugging Face can express this model: {'; '.join(chosen.reasons)}",
            repair="use the folder as it is: maskery opens it",
        )
    second = model.generator
    beside = None if second is None else Beside(second.network, second.heads, second.origin if origin else None)
    with files.new_folder(out.resolve()) as made:
        saved = write_model(
            made,
            model.network,
            model.heads,
            model.tokenizer,
            origin=origin,
            generator=beside,
            prefer=family,
            rows=model.rows,
        )
        write_manifest(made, saved.files)
    return saved


def _choice(model: Model, prefer: str | None) -> Choice:
    pad = None if model.tokenizer is None else model.tokenizer.specials.pad
    return choose(model.config, held_by(model.network, model.heads), pad, prefer=prefer)


def _refuse_family(model: Model, family: str, chosen: Choice) -> None:
    pad = None if model.tokenizer is None else model.tokenizer.specials.pad
    against = FAMILIES[family].objections(model.config, held_by(model.network, model.heads), pad)
    other = f"leave out --family: {chosen.name} can" if chosen.name != OWN else "use the folder as it is"
    raise CheckpointError(f"{family} cannot express this model: {'; '.join(against)}", repair=other)
