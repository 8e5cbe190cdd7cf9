"""What a loss needs of an encoder and what the settings leave open, settled before training, and told."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from maskery.checkpoint.locate import locate
from maskery.errors import InputError
from maskery.model.heads import TokenHead
from maskery.model.initial import initialise
from maskery.rows.config import MODE_SEGMENTS
from maskery.tasks.framing.frame import longest_row
from maskery.vectors.encoder import Encoder
from maskery.vectors.folder import is_encoder
from maskery.vectors.learn.batches import VectorFeed
from maskery.vectors.learn.data import TextSet
from maskery.vectors.learn.settings import LOSSES, POOL, LearnConfig
from maskery.vectors.learn.system import VectorSystem
from maskery.vectors.model import VectorModel
from maskery.vectors.rows import rows_of_texts
from maskery.vectors.steps import Dense, Normalize

Say = Callable[[str], None]
Source = str | os.PathLike[str] | Encoder | VectorModel


def require_model(model: Source) -> None:
    """Refuse what is no folder of a model, before a file is read."""
    if not isinstance(model, Encoder | VectorModel) and not is_encoder(Path(model)):
        locate(Path(model))


def opened(model: Source, config: LearnConfig, say: Say) -> VectorModel:
    """The encoder to train; a model whose folder does not say how slots are pooled is pooled as the loss has it."""
    if isinstance(model, Encoder | VectorModel):
        return _pooled(model.made if isinstance(model, Encoder) else model, config)
    if is_encoder(Path(model)) or is_encoder(locate(Path(model))[0]):
        return _pooled(Encoder(model, say=say).made, config)
    usual, whose = POOL.get(config.loss, (None, ""))
    if not config.pool and usual is not None:
        say(f"{model} does not say how slots are pooled: the {usual} one is taken, as in {whose}")
    plain = Encoder(model, pool=None if not config.pool and usual is None else "mean", say=say).made
    return _pooled(plain, config if config.pool or usual is None else config.model_copy(update={"pool": (usual,)}))


def _pooled(made: VectorModel, config: LearnConfig) -> VectorModel:
    if not config.pool or config.pool == made.config.pool:
        return made
    found = made.changed(made.config.model_copy(update={"pool": config.pool}))
    if found.pooling.attention is not None and made.pooling.attention is None:
        initialise(found.pooling.attention, made.model.config.init_std, config.training.seed, prefix="attention")
    return found


def _length(made: VectorModel, config: LearnConfig, say: Say) -> int:
    """Slots of a text in training; what the encoder reads later is the encoder's own affair."""
    length, most = config.length or made.config.length, longest_row(made.model)
    room = most if most is None or not config.generate else (most + 2) // 2
    if room is not None and length > room:
        say(
            f"texts of at most {room} slots: the model reads {most}" + (" for both together" if config.generate else "")
        )
        length = room
    if length < made.config.length:
        say(f"texts of at most {length} slots in training (length); the encoder reads {made.config.length}")
    return length


def resolved(config: LearnConfig, train: TextSet, made: VectorModel, say: Say) -> LearnConfig:
    """The settings with nothing left open."""
    length = _length(made, config, say)
    changes: dict[str, object] = {"length": length}
    if config.loss == "softmax":
        changes["labels"] = train.labels
        say(f"classes: {', '.join(train.labels)}")
    if config.loss == "cosine" and not config.highest:
        highest = float(train.label.max())
        changes["highest"] = highest if highest > 1 else 1.0
        if highest > 1:
            say(f"a score of {highest:g} stands for the cosine 1 (highest)")
    batch = min(config.training.batch, len(train))
    if batch < config.training.batch:
        say(f"a batch of {batch}: there are no more units")
    _require_rivals(config, train, batch)
    steps = max(1, math.ceil(config.epochs * len(train) / batch))
    training = {"batch": batch, "steps": steps, "length": max(8, length)}
    return config.model_copy(update={**changes, "training": config.training.model_copy(update=training)})


def _require_rivals(config: LearnConfig, train: TextSet, batch: int) -> None:
    """A loss that compares needs something to compare with: other units, or negatives of the unit itself."""
    if batch > 1 or train.kind == "triplets" or not LOSSES.get(config.loss).whole_batch:
        return
    raise InputError(
        f"a batch of 1: {config.loss} compares the units of a batch with each other, and there is one",
        where=train.place,
        repair="--batch 32, and 2 units at least to learn from",
    )


def system_of(made: VectorModel, config: LearnConfig, say: Say) -> VectorSystem:
    """The encoder with all that is trained; `system.made` may have one more layer than what was given."""
    seed, shape = config.training.seed, made.model.config
    if config.loss == "simcse" and not (shape.dropout or shape.attention_dropout):
        raise InputError(
            "the model has no dropout, so both readings of a line are equal and there is nothing to learn",
            repair="take a model with dropout in its config.json, or another loss",
        )
    if config.generate and config.pool not in ((), ("first",)):
        cause = f"pool = {', '.join(config.pool)}: the vector of a model that also writes is the first slot's"
        raise InputError(cause, repair="leave out --pool, or --set generate=0")
    writes = _writer(made) if config.generate else None
    if writes is not None:
        made = _linear_pooler(made, seed, say)
    projection = None
    if config.projection != "none":
        projection = Dense(made.dimensions, made.dimensions, bend="tanh")
        initialise(projection, shape.init_std, seed, prefix="projection")
    if projection is not None and config.projection == "kept":
        made, projection = _kept(made, projection, say), None
    loss = LOSSES.get(config.loss).of(config, made.dimensions)
    skip = made.rows([""], prompt_of(made)).skip
    system = VectorSystem(made, loss, projection=projection, writes=writes, weight=config.generate, skip=skip)
    system.initialise(seed)
    return system


def prompt_of(made: VectorModel) -> str:
    return made.config.prompts[made.config.prompt] if made.config.prompt is not None else ""


def _kept(made: VectorModel, layer: Dense, say: Say) -> VectorModel:
    if any(isinstance(step, Dense) for step in made.steps):
        say("the encoder has a layer behind the pooling already: it is trained further, and no other is added")
        return made
    steps = list(made.steps)
    at = len(steps) - 1 if steps and isinstance(steps[-1], Normalize) else len(steps)
    return made.changed(made.config, [*steps[:at], layer, *steps[at:]])


def _writer(made: VectorModel) -> TokenHead:
    """The head that says tokens, of a model whose rows are [CLS] text [SEP]."""
    specials, model = made.tokenizer.specials, made.model
    frame = [[mark.id for mark in marks] for marks in (made.frame.front, made.frame.back_alone)]
    plain = frame == [[specials.cls], [specials.sep]] and not model.config.decoder and model.config.streams == 1
    if not plain or model.config.visibility != "full" or model.config.segments == MODE_SEGMENTS:
        raise InputError(
            f"a model of family {model.family} is not trained to write here",
            repair="take a bert or one like it; of a model of several modes (unilm) none is made",
        )
    if prompt_of(made):
        raise InputError("SimBERT has no prompt", repair="take an encoder without a prompt that is always used")
    return model.token_head()


def _linear_pooler(made: VectorModel, seed: int, say: Say) -> VectorModel:
    """SimBERT's vector: the first slot through the pooler, without its tanh."""
    is_so = [step.bend for step in made.steps if isinstance(step, Dense)] == ["identity"]
    if made.config.pool == ("first",) and is_so:
        return made
    width, pooler = made.model.config.width, made.model.network.pooler
    layer = Dense(width, width, bend="identity")
    initialise(layer, made.model.config.init_std, seed, prefix="pooler")
    if pooler is not None:
        with torch.no_grad():
            layer.linear.load_state_dict(pooler.state_dict())
    say("the vector is the first slot's through the pooler, without its tanh (SimBERT)")
    if made.config.pool != ("first",) or len(made.steps):
        left = [*made.config.pool, *(type(step).__name__ for step in made.steps)]
        say(f"which takes the place of how the encoder made its vectors: {', '.join(left)}")
    return made.changed(made.config.model_copy(update={"pool": ("first",)}), [layer])


def feed_of(made: VectorModel, texts: TextSet, config: LearnConfig, say: Say) -> VectorFeed:
    """The texts as rows; a line is read twice."""
    rows = rows_of_texts(made.tokenizer, made.frame, texts.texts, config.length, prompt_of(made))
    if rows.cut:
        say(f"{rows.cut:,} of {len(rows):,} texts are longer than {config.length} slots and are cut")
    units = np.repeat(texts.units, 2, axis=1) if texts.kind == "lines" else texts.units
    feed = VectorFeed(
        rows=rows,
        units=units,
        label=texts.label,
        training=config.training,
        pad=made.tokenizer.specials.pad,
        offset=made.model.config.position_offset,
        end=made.tokenizer.specials.sep if config.generate else None,
        segments=made.model.config.segments,
    )
    if LOSSES.get(config.loss).whole_batch and config.loss != "cosent":
        many, batches = feed.no_negatives(config.rivals)
        if many:
            say(f"{many:,} comparisons in {batches:,} batches are left out: the texts are equal, no false negatives")
    return feed
