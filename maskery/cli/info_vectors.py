"""What `maskery info` tells of a folder that says how vectors are made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskery.checkpoint.model import Model


def model_and_vectors(source: str, allow_pickle: bool) -> tuple[Model, dict[str, Any]]:
    """The model of a folder, and facts of its vectors: none, where the folder does not say how they are made, and a
    note, where it says so in a way that is unknown here."""
    from maskery.checkpoint.load import load
    from maskery.errors import CheckpointError
    from maskery.vectors.folder import is_encoder, read_encoder

    path = Path(source)
    if not is_encoder(path):
        return load(source, allow_pickle=allow_pickle), {}
    try:
        made = read_encoder(path, allow_pickle=allow_pickle)
    except CheckpointError as error:
        return load(source, allow_pickle=allow_pickle), {"note": f"no vectors can be made: {error.cause}"}
    facts = made.config.plain() | {"dimensions": made.dimensions}
    return made.model, facts | {"steps": [type(step).__name__ for step in made.steps]}


def vectors_line(facts: dict[str, Any]) -> str:
    """mean of at most 256 slots, then Normalize; 384 dimensions, compared by cosine"""
    if "note" in facts:
        return str(facts["note"])
    steps = f", then {', '.join(facts['steps'])}" if facts["steps"] else ""
    prompts = f"; prompts: {', '.join(facts['prompts'])}" if facts["prompts"] else ""
    pool = " and ".join(facts["pool"])
    return (
        f"{pool} of at most {facts['length']} slots{steps}; {facts['dimensions']} dimensions, "
        f"compared by {facts['similarity']}{prompts}"
    )
