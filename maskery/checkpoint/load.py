"""Opening a model: a Hugging Face folder, a folder of ours, or a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from maskery import arguments
from maskery.arguments import checked
from maskery.checkpoint.families import FAMILIES
from maskery.checkpoint.family import Family
from maskery.checkpoint.finite import guard
from maskery.checkpoint.heads import build_head, names_of_heads
from maskery.checkpoint.locate import (
    CONFIG,
    GENERATOR,
    POOLER,
    TENSORLESS,
    has_tokenizer,
    holds_tensorflow,
    locate,
    placed,
    read_config,
    rows_of,
    verify,
)
from maskery.checkpoint.model import Model
from maskery.checkpoint.state import Imported, LoadReport, Origin, float32, import_state, same_bits
from maskery.checkpoint.tensors import HEADS, read_safetensors, read_weights, require_finite
from maskery.errors import CheckpointError, UnknownName
from maskery.model.config import Shape
from maskery.model.heads import TokenHead
from maskery.model.transformer import Network
from maskery.text.tokenizer import Tokenizer

Built = TypeVar("Built", bound=nn.Module)

TIED = "tie_word_embeddings"
_MOST_SHARING = 1000
"""Layers that share their weights have no tensors to be counted by."""
_OTHER_WEIGHTS = "config.json and weights do not belong together: fetch or save the folder again"


@checked
def load(path: str | os.PathLike[str], *, allow_pickle: bool = False) -> Model:
    """The model in a folder, in float32 and evaluation mode; with its generator, if the folder holds one.

        maskery.load("my-run")

    `path` is a model folder, a run folder, a folder of TensorFlow's files (read as `maskery import` reads it; nothing
    is written), or the name of a published model in the Hugging Face cache.
    """
    place = arguments.path("path", path, "the path of a model or run folder")
    if holds_tensorflow(place):
        from maskery.checkpoint.importing import open_tensorflow  # which opens what it has read as this file does

        return open_tensorflow(place)
    folder, note = locate(place)
    verify(folder)
    model = _load(folder, allow_pickle, note)
    model.rows = rows_of(folder)
    if (folder / GENERATOR / CONFIG).is_file():
        model.generator = tied(_load(folder / GENERATOR, allow_pickle), model, folder / GENERATOR)
        guard([model.generator.network, *model.generator.heads.values()], str(folder / GENERATOR))
    guard([model.network, *model.heads.values()], str(path))
    return model


AnyModel = Model | str | os.PathLike[str]
"""A model, or the path or name that `load` opens."""


def model_of(given: AnyModel, name: str = "model") -> Model:
    """What a Python call was given for its argument `name`, opened."""
    return arguments.opened(name, given, Model, load, "a Model, or the path of a model or run folder")


def tied(second: Model, model: Model, folder: Path) -> Model:
    """The second network with the model's embeddings in the place of its copies of them."""
    network = Network(second.config, pooler=second.network.pooler is not None, lender=model.network)
    theirs = dict(second.network.embeddings.named_parameters())
    for name, ours in network.embeddings.borrowed().items():
        if name not in theirs or not same_bits(theirs.pop(name), ours):
            raise CheckpointError(
                f"embeddings.{name} differs from the model's, of which it should be a copy",
                where=folder,
                repair=f"fetch or save the whole folder again; to use both apart, move {GENERATOR}/ elsewhere",
            )
    network.load_state_dict({name: second.network.state_dict()[name] for name in network.state_dict()})
    return Model(network, second.heads, second.tokenizer, origin=second.origin, report=second.report)


def _load(folder: Path, allow_pickle: bool, note: str = "") -> Model:
    config = read_config(folder)
    tensors = read_weights(folder, allow_pickle=allow_pickle)
    heads = read_safetensors(folder / HEADS) if (folder / HEADS).is_file() else {}
    model = assembled(config, tensors, heads, folder)
    model.note = note
    return model


def assembled(
    config: dict[str, Any],
    tensors: dict[str, Tensor],
    beside: Mapping[str, Tensor],
    folder: Path,
    tokenizer: Tokenizer | None = None,
) -> Model:
    """The model of a config and its tensors, with what lies `beside` them under our names. `folder` is where they come
    from, and where the tokenizer is looked for if none is given."""
    family = FAMILIES.get(config["model_type"])
    try:
        shape = _own_shape(config) if family is None else family.shape_of(config)
    except CheckpointError as error:
        raise placed(error, folder / CONFIG) from None
    _require_layers(shape, tensors, folder)
    try:
        imported = _import(family, config, tensors, shape)
    except CheckpointError as error:
        raise placed(error, folder) from None
    _add_heads(imported, beside)
    require_finite({imported.names.get(name, name): tensor for name, tensor in imported.state.items()}, folder)
    network, heads = _build(shape, imported, folder)
    heads |= _tensorless_heads(family, config, shape, folder)
    if tokenizer is None and has_tokenizer(folder):
        tokenizer = Tokenizer.load(folder)
    _check_expressed(family, shape, imported, folder)
    config = _tied_words(config, heads, imported)
    _require_room_for_pieces(shape, tokenizer, folder)
    report = LoadReport(
        missing=tuple(
            name
            for name, ours in imported.missing.items()
            if ours not in imported.state and (config.get(POOLER, True) or not ours.startswith("pooler."))
        ),
        unused=tuple(sorted(imported.unused)),
        ignored=tuple(imported.buffers),
        notes=tuple(imported.notes),
    )
    origin = Origin(
        model_type=config["model_type"],
        config=config,
        dtypes=imported.dtypes,
        buffers=imported.buffers,
        tied=frozenset(imported.tied),
        bare=family is not None and not any(name.startswith(family.prefix) for name in tensors),
    )
    return Model(network, heads, tokenizer, origin=origin, report=report)


def _own_shape(config: Mapping[str, Any]) -> Shape:
    try:
        return Shape.model_validate(config.get("shape"), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(["shape", *map(str, first["loc"])])
        raise CheckpointError(
            f"{key}: {first['msg']}", repair="use the version of maskery that wrote the folder, or a newer one"
        ) from None


def _require_layers(shape: Shape, tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Before anything is made as large as config.json says."""
    layers = max(shape.layers, shape.decoder)
    if layers > (len(tensors) if shape.share == "none" else _MOST_SHARING):
        told = f"there are only {len(tensors)} tensors" if shape.share == "none" else f"{_MOST_SHARING} is the most"
        raise CheckpointError(f"config.json says {layers} layers, but {told}", where=folder, repair=_OTHER_WEIGHTS)


def _import(family: Family | None, config: Mapping[str, Any], tensors: dict[str, Tensor], shape: Shape) -> Imported:
    if family is not None:
        return import_state(family, family.named(config), tensors, shape)
    imported = Imported()
    imported.state = {name: float32(name, tensor, imported) for name, tensor in tensors.items()}
    return imported


def _add_heads(imported: Imported, tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if name in imported.state or not name.startswith(("heads.", "pooler.")):
            imported.unused.append(name)
            continue
        imported.state[name] = float32(name, tensor, imported)


def _build(shape: Shape, imported: Imported, folder: Path) -> tuple[Network, dict[str, nn.Module]]:
    """Modules filled with the imported tensors. Sizes are compared before memory is taken."""
    state = imported.state
    pooler = {"pooler.weight", "pooler.bias"} <= state.keys()
    network = _on_meta(shape, pooler, folder)
    own = {name: state[name] for name in network.state_dict() if name in state}
    _require_whole(network, own, imported, folder)
    heads: dict[str, nn.Module] = {}
    taken = set(own)
    for name in names_of_heads(state):
        prefix = f"heads.{name}."
        inside = {each.removeprefix(prefix): tensor for each, tensor in state.items() if each.startswith(prefix)}
        with torch.device("meta"):
            head = build_head(name, shape, inside)
        absent = [] if head is None else [prefix + each for each in head.state_dict() if each not in inside]
        if head is None or absent:
            known = set(imported.missing.values())
            imported.missing |= {each: each for each in absent if each not in known}
            continue
        _require_sizes(head, inside, prefix, imported, folder)
        heads[name] = _filled(head, inside)
        taken |= {prefix + each for each in head.state_dict()}
    imported.unused += [name for name in state if name not in taken]
    return _filled(network, own), heads


def _tensorless_heads(
    family: Family | None, config: Mapping[str, Any], shape: Shape, folder: Path
) -> dict[str, nn.Module]:
    """Heads that are the network's own tensors again: by the class that config.json names, or the family's first where
    it names none of ours; and those that it names beside."""
    told = () if family is None else (family.named(config) or family.classes[0]).tensorless
    beside = config.get(TENSORLESS, [])
    names = [*told, *beside] if isinstance(beside, list) else [beside]
    heads = {name: build_head(name, shape, {}) for name in names if isinstance(name, str)}
    wrong = [name for name in names if not isinstance(name, str) or _has_tensors(heads[name])]
    if wrong:
        raise CheckpointError(
            f"{TENSORLESS}: {wrong[0]!r} is no head without tensors", where=folder / CONFIG, repair=_OTHER_WEIGHTS
        )
    return {name: head for name, head in heads.items() if head is not None}


def _has_tensors(head: nn.Module | None) -> bool:
    return not isinstance(head, TokenHead) or any(True for _ in head.parameters())


def _on_meta(shape: Shape, pooler: bool, folder: Path) -> Network:
    try:
        with torch.device("meta"):
            return Network(shape, pooler=pooler)
    except UnknownName as error:
        raise CheckpointError(error.cause, where=folder / CONFIG, repair=error.repair) from None
    except (RuntimeError, TypeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise CheckpointError(
            f"config.json asks for tensors larger than memory can be: {reason}", where=folder, repair=_OTHER_WEIGHTS
        ) from None


def _require_whole(network: Network, own: Mapping[str, Tensor], imported: Imported, folder: Path) -> None:
    ours = {name for name in network.state_dict() if name not in own}
    if ours:
        absent = [name for name, our in imported.missing.items() if our in ours]
        absent += sorted(ours - set(imported.missing.values()))
        shown = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
        raise CheckpointError(
            f"{len(absent)} tensors of the encoder are missing: {shown}",
            where=folder,
            repair=_OTHER_WEIGHTS,
        )
    _require_sizes(network, own, "", imported, folder)


def _require_sizes(
    module: nn.Module, tensors: Mapping[str, Tensor], prefix: str, imported: Imported, folder: Path
) -> None:
    for name, expected in module.state_dict().items():
        if tensors[name].shape != expected.shape:
            raise CheckpointError(
                f"{imported.names.get(prefix + name, prefix + name)} has the size {tuple(tensors[name].shape)}, "
                f"by config.json it would be {tuple(expected.shape)}",
                where=folder,
                repair=_OTHER_WEIGHTS,
            )


def _filled(module: Built, tensors: Mapping[str, Tensor]) -> Built:
    """A module of the meta device with memory of its own, holding these numbers in float32."""
    module = module.to_empty(device="cpu")
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(tensors[name])
    return module


def _check_expressed(family: Family | None, shape: Shape, imported: Imported, folder: Path) -> None:
    """A folder can hold what its family computes differently from us: better refused than silently wrong."""
    found = [] if family is None else family.objections(shape, imported.state, None)
    if found:
        raise CheckpointError(
            f"not supported: {'; '.join(found)}", where=folder / CONFIG, repair="use another model of this family"
        )


def _tied_words(config: dict[str, Any], heads: Mapping[str, nn.Module], imported: Imported) -> dict[str, Any]:
    """Our heads over the vocabulary are the token vectors. A folder that says otherwise is told of, and written as it
    is here; a matrix of other numbers was refused before."""
    if config.get(TIED) is not False or not any(isinstance(head, TokenHead) for head in heads.values()):
        return config
    held = "the matrix in the file is equal to them" if imported.tied else "the file holds no matrix of its own"
    imported.notes.append(
        f"{TIED} = false, and the head over the vocabulary is the token vectors here: {held}; "
        "the two are trained as one and saved with true"
    )
    return {**config, TIED: True}


def _require_room_for_pieces(shape: Shape, tokenizer: Tokenizer | None, folder: Path) -> None:
    if tokenizer is not None and tokenizer.vocabulary > shape.vocabulary:
        raise CheckpointError(
            f"the tokenizer has {tokenizer.vocabulary} pieces, the model vectors for {shape.vocabulary} only: "
            "it belongs to another model",
            where=folder,
            repair="put the model's own tokenizer into the folder, or take this one out to load the weights alone",
        )
