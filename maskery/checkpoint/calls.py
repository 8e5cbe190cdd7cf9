"""What a caller hands to a model -> what the network reads, with a clear refusal of what it could not use.

Shapes: B rows, T slots.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from maskery import arguments
from maskery.errors import InputError
from maskery.model.config import VISIBILITIES, Shape
from maskery.model.layout import layout_of
from maskery.model.stack import Inputs, Stack
from maskery.model.transformer import Network
from maskery.model.visibility import Visibility


def with_decoder(
    network: Network, inputs: Inputs, ids: Tensor | None, mask: Tensor | None, positions: Tensor | None
) -> Inputs:
    """The same with what the decoder has written so far."""
    if ids is None:
        if mask is not None or positions is not None:
            name = "decoder_positions" if mask is None else "decoder_mask"
            raise InputError(f"{name} given without decoder_ids", repair="give decoder_ids as well")
        return inputs
    if network.decoder is None:
        raise InputError("decoder_ids given to a model without a decoder", repair="leave decoder_ids out")
    written = prepare(network.decoder, ids, mask, None, positions)
    if len(written.ids) != len(inputs.ids):
        raise InputError(
            f"decoder_ids have {len(written.ids)} rows, ids {len(inputs.ids)}", repair="give one for each row"
        )
    return replace(inputs, decoder=written)


def shifted(ids: Tensor, mask: Tensor | None, start: int) -> Tensor:
    """(B,T) each real slot with the token before it, the first of a row with the start."""
    real = _real(mask, ids)
    first = real & (real.cumsum(1) == 1)
    before = ids.clone()
    before[real] = ids[real].roll(1)
    return before.masked_fill(first, start)


def prepare(
    network: Stack,
    ids: Tensor,
    mask: Tensor | None,
    segments: Tensor | None,
    positions: Tensor | None,
    visibility: str | None = None,
    tasks: Tensor | None = None,
) -> Inputs:
    reader = network.visibility if visibility is None else _visibility(visibility, segments)
    shape, device = network.shape, network.embeddings.tokens.device
    ids = _whole_numbers("ids", ids, device)
    if ids.ndim != 2 or 0 in ids.shape:
        raise InputError(
            f"ids have the shape {tuple(ids.shape)}; (rows, slots) is needed, neither of them 0",
            repair="for one row: model(ids.unsqueeze(0))",
        )
    real = _real(mask, ids)
    segments = torch.zeros_like(ids) if segments is None else _whole_numbers("segments", segments, device)
    positions = _positions(network, real) if positions is None else _whole_numbers("positions", positions, device)
    for name, given in (("segments", segments), ("positions", positions)):
        if given.shape != ids.shape:
            raise InputError(
                f"{name} have the shape {tuple(given.shape)}, ids {tuple(ids.shape)}", repair="give one a slot"
            )
    _in_range("id", ids, real, shape.vocabulary, "the tokenizer does not belong to this model")
    known = shape.segments or (2 if "document" in reader.needs else 1)  # without vectors they still part the row
    if not network.embeddings.positions.tells_segments:  # such positions compare segments, whatever their numbers
        _in_range("segment", segments, real, known, "use segments below this number, or none")
    limit = network.embeddings.positions.limit
    if limit is not None:
        _require_room(positions, real, limit, shape)
    slots = {"document": _pieces(segments, real)} if "document" in reader.needs else {}
    if tasks is not None:
        slots["task"] = _tasks(tasks, ids, real, shape)
    return Inputs(
        ids=ids, layout=layout_of(real), segments=segments, positions=positions, slots=slots, visibility=reader
    )


def _tasks(tasks: Tensor, ids: Tensor, real: Tensor, shape: Shape) -> Tensor:
    tasks = _whole_numbers("tasks", tasks, ids.device)
    if tasks.shape != ids.shape:
        raise InputError(f"tasks have the shape {tuple(tasks.shape)}, ids {tuple(ids.shape)}", repair="give one a slot")
    if not shape.tasks:
        raise InputError("tasks given to a model that knows none", repair="leave tasks out")
    _in_range("task", tasks, real, shape.tasks, "use tasks below this number, or none")
    return tasks


def _visibility(name: str, segments: Tensor | None) -> Visibility:
    if name == "prefix" and segments is None:
        raise InputError(
            'visibility "prefix" reads a source and what follows it, and nothing tells them apart',
            repair="segments=, one number for the source and another for what follows; all one number: a source alone",
        )
    return VISIBILITIES.get(name)()


def _pieces(segments: Tensor, real: Tensor) -> Tensor:
    """(B,T) the number of each slot's piece of its row: a new one begins where the segment is another than that of the
    real slot before."""
    order = torch.argsort((~real).long(), dim=1, stable=True)  # real slots first, wherever the padding stands
    packed = segments.gather(1, order)
    begins = torch.zeros_like(packed)
    begins[:, 1:] = packed[:, 1:] != packed[:, :-1]
    return torch.zeros_like(packed).scatter(1, order, begins.cumsum(1))


def _whole_numbers(name: str, given: Tensor, device: torch.device) -> Tensor:
    numbers = _tensor(name, given)
    if numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
        raise InputError(f"{name} hold {numbers.dtype}; whole numbers are needed", repair=f"{name}.long()")
    return numbers.to(device=device, dtype=torch.long)


def _tensor(name: str, given: object) -> Tensor:
    text = isinstance(given, str) or (isinstance(given, list | tuple) and any(isinstance(each, str) for each in given))
    if text:
        raise arguments.wrong(
            name,
            given,
            "a tensor",
            "a model reads ids: torch.tensor([model.tokenizer.encode(text)[0]]); for vectors of "
            "texts maskery.Encoder(folder).encode(texts)",
        )
    try:
        return torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise arguments.wrong(name, given, "a tensor of whole numbers, (rows, slots)") from None


def _real(mask: Tensor | None, ids: Tensor) -> Tensor:
    """(B,T) true at real slots; every row has one."""
    if mask is None:
        return torch.ones_like(ids, dtype=torch.bool)
    mask = _tensor("mask", mask).to(ids.device)
    if mask.shape != ids.shape:
        raise InputError(
            f"mask has the shape {tuple(mask.shape)}, ids {tuple(ids.shape)}", repair="give one number a slot"
        )
    if not bool(((mask == 0) | (mask == 1)).all()):
        raise InputError("mask holds something other than 0 and 1", repair="1 at real slots, 0 at padding")
    real = mask.to(torch.bool)
    empty = (~real.any(1)).nonzero()
    if len(empty):
        raise InputError(f"row {int(empty[0])} has no real slot", repair="leave the row out")
    return real


def _positions(network: Stack, real: Tensor) -> Tensor:
    """Slot numbers; where an encoder alone starts at an offset (RoBERTa), real slots are counted instead."""
    offset = network.shape.position_offset
    if offset == 0 or not isinstance(network, Network) or network.decoder is not None:
        return torch.arange(offset, offset + real.shape[1], device=real.device).expand(real.shape)
    return (real.cumsum(1) - 1 + offset).clamp(min=0)


def _in_range(what: str, given: Tensor, real: Tensor, limit: int, repair: str) -> None:
    wrong = (real & ((given < 0) | (given >= limit))).nonzero()
    if len(wrong):
        row, slot = wrong[0].tolist()
        raise InputError(
            f"{what} {int(given[row, slot])} at row {row}, slot {slot}: the model has {limit}, numbered from 0",
            repair=repair,
        )


def _require_room(positions: Tensor, real: Tensor, limit: int, shape: Shape) -> None:
    wrong = (real & ((positions < 0) | (positions >= limit))).nonzero()
    if len(wrong):
        row = int(wrong[0, 0])
        raise InputError(
            f"row {row} has {int(real[row].sum())} real slots in {real.shape[1]}, and reaches beyond the model's last "
            f"position: it has {shape.max_length}",
            repair=f"cut rows to {shape.max_length} slots",
        )
