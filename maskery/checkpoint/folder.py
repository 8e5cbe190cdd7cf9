"""Writing a model: the Hugging Face layout where it can express the network, our own otherwise, and saying which."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from maskery import files
from maskery.checkpoint.families import OWN, Choice, choose
from maskery.checkpoint.family import Family, HuggingFaceClass
from maskery.checkpoint.locate import CONFIG, GENERATOR, POOLER, ROWS, TENSORLESS, is_run, write_manifest
from maskery.checkpoint.state import Origin, export_state, fitting_class
from maskery.checkpoint.tensors import HEADS, INDEX, PICKLE, WEIGHTS, write_safetensors
from maskery.errors import ExistsError
from maskery.model.config import Shape
from maskery.model.heads import TokenHead
from maskery.model.transformer import Network
from maskery.rows.config import SOURCES, RowsConfig
from maskery.system import System

if TYPE_CHECKING:
    from maskery.text.tokenizer import Tokenizer

_FORMAT = 1

Heads = Mapping[str, nn.Module] | nn.ModuleDict


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What was written."""

    files: tuple[str, ...]
    family: str
    """The model_type of config.json."""
    notes: tuple[str, ...]
    """What a user should be told."""


@dataclass(frozen=True)
class Beside:
    """A second network that is saved with a model, in a folder of its own inside the model's. What it has in common
    with the model is written again, so that it can be opened alone; loading both makes it one again."""

    network: Network
    heads: Heads
    origin: Origin | None = None


def beside(system: System) -> Beside | None:
    """The generator of a system, if it has one."""
    return None if system.generator is None else Beside(system.generator, system.heads_of(system.generator))


def state_of(network: Network, heads: Heads) -> dict[str, Tensor]:
    """Every tensor of a model by our names, borrowed ones too."""
    borrowed = {f"embeddings.{name}": each for name, each in network.embeddings.borrowed().items()}
    state: dict[str, Tensor] = {
        name: each.detach() for name, each in {**dict(network.named_parameters()), **borrowed}.items()
    }
    for head, module in heads.items():
        state |= {f"heads.{head}.{name}": each.detach() for name, each in module.named_parameters()}
    return state


def held_by(network: Network, heads: Heads) -> set[str]:
    """Our names of all that a model holds: of its tensors, and of heads that have none (`heads.NAME`)."""
    return {*state_of(network, heads), *(f"heads.{name}" for name in tensorless(heads))}


def tensorless(heads: Heads) -> list[str]:
    """The token heads that are nothing but the network's own tensors again."""
    return [name for name, head in heads.items() if isinstance(head, TokenHead) and not list(head.parameters())]


def write_model(
    folder: Path,
    network: Network,
    heads: Heads,
    tokenizer: Tokenizer | None,
    *,
    origin: Origin | None = None,
    generator: Beside | None = None,
    prefer: str | None = None,
    rows: RowsConfig | None = None,
    labels: Sequence[str] = (),
) -> Saved:
    """Write config, weights and tokenizer into an existing folder. The manifest is left to the caller, who may have
    more files to add: `write_manifest(folder, names)`. `prefer` is the family to write where several will do; `rows`
    are those of the training, if they are known; `labels` are the names of a task's classes in their order."""
    shape, state = network.shape, state_of(network, heads)
    pad = None if tokenizer is None else tokenizer.specials.pad
    held = held_by(network, heads)
    choice = choose(shape, held, pad, prefer=origin.model_type if origin else prefer)
    if choice.family is None:
        config, weights, rest, notes = _own(network, state, choice)
    else:
        config, weights, rest, notes = _hugging_face(network, state, held, choice.family, origin, tokenizer)
    config |= _tensorless_heads(config, choice.family, heads)
    if network.decoder is not None and (origin is None or choice.family is None):
        config |= _told_start(origin) | _beginnings(choice.family, tokenizer, rows)
    config |= _sources(shape, rows)
    if labels:
        config |= named_labels(labels)
    names = [CONFIG, WEIGHTS]
    files.write_json(folder / CONFIG, dict(sorted(config.items())))
    write_safetensors(folder / WEIGHTS, weights)
    if rest:
        write_safetensors(folder / HEADS, rest)
        names.append(HEADS)
    if tokenizer is not None:
        limit = None if origin else shape.max_length
        names += tokenizer.save(folder, max_length=limit, segments=origin is not None or shape.segments > 1)
    if generator is not None:
        inside = _write_beside(folder / GENERATOR, generator, tokenizer, choice.name)
        names += [f"{GENERATOR}/{name}" for name in (*inside.files, files.MANIFEST)]
        notes += [f"{GENERATOR}: {note}" for note in inside.notes]
    return Saved(files=tuple(names), family=choice.name, notes=tuple(notes))


def _write_beside(folder: Path, second: Beside, tokenizer: Tokenizer | None, family: str) -> Saved:
    folder.mkdir()
    saved = write_model(folder, second.network, second.heads, tokenizer, origin=second.origin, prefer=family)
    write_manifest(folder, saved.files)
    return saved


_Written = tuple[dict[str, Any], dict[str, Tensor], dict[str, Tensor], list[str]]


def _own(network: Network, state: dict[str, Tensor], choice: Choice) -> _Written:
    config = {"model_type": OWN, "format": _FORMAT, "shape": network.shape.plain(), "dtype": "float32"}
    notes = [f"saved as model_type {OWN!r}, which Hugging Face tools cannot open: {'; '.join(choice.reasons)}"]
    return config, state, {}, notes


def _beginnings(family: Family | None, tokenizer: Tokenizer | None, rows: RowsConfig | None) -> dict[str, int]:
    """The token that a decoder reads first, and those that begin and end a text. Where no rows tell, a family does as
    its published models do: it begins with the end."""
    if tokenizer is None or (rows is None and family is None):
        return {}
    begin, end = tokenizer.specials.cls, tokenizer.specials.sep
    start = {"decoder_start_token_id": end if rows is None or rows.decoder_start == "end" else begin}
    ends = {"bos_token_id": begin, "eos_token_id": end, "forced_eos_token_id": end}
    return start if family is None else {**start, **ends}


def _told_start(origin: Origin | None) -> dict[str, int]:
    told = None if origin is None else origin.config.get("decoder_start_token_id")
    return {"decoder_start_token_id": told} if isinstance(told, int) else {}


def _sources(shape: Shape, rows: RowsConfig | None) -> dict[str, str]:
    """A model that reads from the left may have learnt that a prompt is a source: nothing else tells."""
    told = rows is not None and rows.kind == SOURCES and not shape.decoder and shape.visibility != "prefix"
    return {ROWS: SOURCES} if told else {}


def _tensorless_heads(config: Mapping[str, Any], family: Family | None, heads: Heads) -> dict[str, list[str]]:
    """What no tensor and no name of a class tells."""
    named = None if family is None else family.named(config)
    told = () if named is None else named.tensorless
    others = [name for name in tensorless(heads) if name not in told]
    return {TENSORLESS: others} if others else {}


def _hugging_face(
    network: Network,
    state: dict[str, Tensor],
    held: set[str],
    family: Family,
    origin: Origin | None,
    tokenizer: Tokenizer | None,
) -> _Written:
    shape = network.shape
    pad = None if tokenizer is None else tokenizer.specials.pad
    if origin is not None and origin.model_type != family.model_type:
        origin = None
    before = dict(origin.config) if origin else {}
    chosen = fitting_class(family, held, shape, before)
    weights, rest, widened = export_state(family, chosen, state, shape, origin)
    config = before or {"dtype": "float32"}
    if widened:
        config |= {key: "float32" for key in ("dtype", "torch_dtype") if key in before} or {"dtype": "float32"}
    if not before or family.shape_of(before) != shape:
        config |= family.config_of(shape, pad)
        if family.ends and tokenizer is not None:
            config |= {"bos_token_id": tokenizer.specials.sep, "eos_token_id": tokenizer.specials.sep}
    config |= {"model_type": family.model_type, "architectures": [chosen.name], **chosen.says}
    config |= _labels(chosen, state, before)
    notes = [f"saved as {family.model_type}: {family.remark}"] if family.remark and not before else []
    notes += _widened_note(widened)
    if before and family.named(before) is not chosen:
        notes.append(f"saved as {chosen.name}, the class that holds these tensors")
    if rest:
        kinds = ", ".join(sorted({".".join(name.split(".")[:-1]) for name in rest}))
        notes.append(f"{HEADS} holds what {chosen.name} has no place for: {kinds}")
    config.pop(POOLER, None)
    if chosen.bare and "pooler.weight" in chosen.ours(shape) - set(state):
        config[POOLER] = False
        without = f"{chosen.name}.from_pretrained(DIR, add_pooling_layer=False)"
        notes.append(f"there is no pooler: {without} opens it; without this word Hugging Face makes an untrained one")
    return config, weights, rest, notes


def _widened_note(widened: Mapping[str, torch.dtype]) -> list[str]:
    if not widened:
        return []
    kinds = " and ".join(sorted({str(dtype).removeprefix("torch.") for dtype in widened.values()}))
    one = len(widened) == 1
    told = f"{len(widened)} {'tensor was' if one else 'tensors were'} loaded from {kinds} and changed since"
    return [f"{told}: written as float32, because rounding would lose the change"]


def _labels(chosen: HuggingFaceClass, state: Mapping[str, Tensor], before: Mapping[str, Any]) -> dict[str, Any]:
    """The number of classes, which Hugging Face reads from the names of the labels."""
    if not chosen.classes:
        return {}
    inside = f"heads.{chosen.classes}"
    last = state.get(f"{inside}.answer.weight", state.get(f"{inside}.dense.weight"))
    assert last is not None, "a class is chosen because its tensors are there"
    number = int(last.shape[0])
    names = before.get("id2label")
    if (isinstance(names, dict) and len(names) == number) or (names is None and before and number == 2):
        return {}
    return named_labels([f"LABEL_{each}" for each in range(number)])


def named_labels(labels: Sequence[str]) -> dict[str, Any]:
    return {
        "id2label": {str(n): label for n, label in enumerate(labels)},
        "label2id": {label: n for n, label in enumerate(labels)},
    }


def save_model(
    path: str | os.PathLike[str],
    network: Network,
    heads: Heads,
    tokenizer: Tokenizer | None,
    *,
    origin: Origin | None = None,
    generator: Beside | None = None,
    replace: bool = False,
    rows: RowsConfig | None = None,
    labels: Sequence[str] = (),
) -> Saved:
    """Write a whole model folder. A path that exists is refused, unless it is an empty folder or to be replaced."""
    folder = Path(path).resolve()
    if folder.exists() and not (replace or _is_empty(folder)):
        raise ExistsError(
            "something is there already", where=Path(path), repair="give a new path, or save(path, replace=True)"
        )
    if _is_empty(folder) or is_run(folder):
        return _fill(folder, network, heads, tokenizer, origin, generator, rows, labels)
    with files.new_folder(folder) as temporary:
        saved = write_model(
            temporary, network, heads, tokenizer, origin=origin, generator=generator, rows=rows, labels=labels
        )
        write_manifest(temporary, saved.files)
        if folder.exists():
            _keep_others(folder, temporary)
    return saved


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _keep_others(folder: Path, temporary: Path) -> None:
    """What a folder holds besides its model goes along into the folder that takes its place."""
    model = {HEADS, INDEX, PICKLE, GENERATOR, *(path.name for path in temporary.iterdir())}
    for path in folder.iterdir():
        if path.name in model or files.is_leftover(path):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, temporary / path.name, symlinks=True)
        else:
            shutil.copy2(path, temporary / path.name, follow_symlinks=False)


def save_into(
    folder: Path,
    network: Network,
    heads: Heads,
    tokenizer: Tokenizer | None,
    say: Callable[[str], None],
    generator: Beside | None = None,
    rows: RowsConfig | None = None,
) -> Saved:
    """Put a run's final model at the top of its folder, telling what is worth telling."""
    saved = _fill(folder, network, heads, tokenizer, None, generator, rows)
    for note in saved.notes:
        say(note)
    return saved


def _fill(
    folder: Path,
    network: Network,
    heads: Heads,
    tokenizer: Tokenizer | None,
    origin: Origin | None,
    generator: Beside | None,
    rows: RowsConfig | None,
    labels: Sequence[str] = (),
) -> Saved:
    """Put a model into an empty folder or a run's. config.json goes first and comes last: without it there is no
    model here, and a run stands for its newest checkpoint."""
    with files.scratch_folder(folder / "model", folder) as made:
        saved = write_model(
            made, network, heads, tokenizer, origin=origin, generator=generator, rows=rows, labels=labels
        )
        write_manifest(made, saved.files)
        with files.writing(folder):
            files.sync_inside(made)
            _move_in(made, folder, {*saved.files, files.MANIFEST})
    return saved


def _move_in(made: Path, folder: Path, names: set[str]) -> None:
    for part in sorted({name.partition("/")[0] for name in names}):
        files.require_kind(folder / part, folder=(made / part).is_dir())
    (folder / CONFIG).unlink(missing_ok=True)
    for name in {HEADS, INDEX, PICKLE} - names:
        (folder / name).unlink(missing_ok=True)
    if (folder / GENERATOR).is_dir():
        files.remove_folder(folder / GENERATOR)
    files.sync(folder)
    for name in sorted({name.partition("/")[0] for name in names} - {CONFIG}):
        os.replace(made / name, folder / name)
    files.sync(folder)
    os.replace(made / CONFIG, folder / CONFIG)
    files.sync(folder)
