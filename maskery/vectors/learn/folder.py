"""The encoder at the top of its run: put in file by file, so that metrics, state and checkpoints stay where they are.

RUN/modules.json, config.json, model.safetensors, ...    the encoder, as sentence-transformers opens it
RUN/writer/                                              SimBERT: the same network as a model that writes
RUN/metrics.jsonl, state.json, checkpoints/              the run
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from maskery import files
from maskery.checkpoint.locate import CONFIG
from maskery.checkpoint.model import Model
from maskery.model.heads import TokenHead
from maskery.model.transformer import Network
from maskery.objectives.next_token import NextToken
from maskery.vectors.folder import write_encoder
from maskery.vectors.model import VectorModel
from maskery.vectors.modules import MODULES

Say = Callable[[str], None]
WRITER = "writer"


def put_encoder(made: VectorModel, run: Path, say: Say) -> None:
    """config.json goes first and comes last: without it there is no encoder here."""
    with files.scratch_folder(run / "model", run) as scratch:
        for note in write_encoder(made, scratch / "encoder"):
            say(note)
        with files.writing(run):
            _move_in(scratch / "encoder", run)


def _move_in(made: Path, run: Path) -> None:
    for name in (CONFIG, MODULES):
        (run / name).unlink(missing_ok=True)
    names = sorted(path.name for path in made.iterdir())
    for name in (*(each for each in names if each != CONFIG), CONFIG):
        if (run / name).is_dir():
            files.remove_folder(run / name)
        os.replace(made / name, run / name)
    files.sync(run)


def put_writer(made: VectorModel, head: TokenHead, run: Path) -> None:
    """The network as one that writes for a source, under the visibility that it was trained with."""
    shape = made.model.config.model_copy(update={"visibility": "prefix"})
    network = Network(shape, pooler=made.model.network.pooler is not None)
    network.load_state_dict(made.model.network.state_dict())
    model = Model(network, {NextToken.name: head}, made.tokenizer)
    model.save(run / WRITER, replace=True)
