"""A task in a file: what is read, how a row is made of it, what is read off the encoder, the head, the training.

Written into every run as task.toml, so that predicting needs nothing else. Training itself has the keys of a recipe.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from maskery.config import Config
from maskery.tasks.framing.meta import Meta
from maskery.train.config import TrainingConfig

Task = Literal["classify", "pair", "regress", "multilabel", "tag", "qa", "choice", "rank", "seq2seq"]
Truncate = Literal["head", "tail", "head+tail"]
Read = Literal[
    "auto", "pooler", "first", "last", "mean", "max", "firsts", "cls_last_four", "cls_last_four_concat",
    "mean_last_four", "mix", "attention",
]  # fmt: skip


class ColumnsConfig(Config):
    """Which columns are what; empty: found by themselves, and told."""

    text: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """Numbers of the columns of the texts, from 1, where they were asked for by number: predicting reads the same."""
    label: str = ""
    meta: tuple[str, ...] = ()
    """Columns beside the text that are joined to its vector: numbers as they are, anything else by an embedding."""
    map: dict[str, str] = Field(default_factory=dict)
    """Label in the file -> label that is learned or evaluated; labels that are not named stay as they are."""
    by: tuple[str, ...] = ()
    """Columns whose values group the development set in the evaluation; "A,B" groups by both together."""
    format: str = ""
    """text formats go by the name of the file."""
    header: Literal["auto", "yes", "no"] = "auto"
    errors: Literal["strict", "replace"] = "strict"
    """Bytes that are no UTF-8: refused, or U+FFFD in their place and counted."""


class TaskRowsConfig(Config):
    length: int = Field(0, ge=0)
    """Slots of a row at most, marks counted; 0: enough for nearly all, at most what the model reads, and told."""
    truncate: Truncate = "head"
    """What is kept of a text that is too long: its head, its tail, or both ends."""
    limits: tuple[int, ...] = ()
    """Tokens of each field at most, before the row is cut as a whole."""
    windows: int = Field(0, ge=0)
    """Tokens by which the windows of a long text overlap; 0: texts are cut instead. qa always has windows."""
    marks: tuple[str, ...] = ()
    """Tokens of the user's own, such as [CAT=CULTURE], that take free rows of the vocabulary."""
    towers: Literal["one_row", "shared", "apart"] = "one_row"
    """Fields in one row, or each read by itself: by one encoder, or by one each. `read.pool` is common to all."""
    join: Literal["auto", "concat", "difference"] = "auto"
    """towers: the fields' vectors side by side, or u,v,|u-v| of two; auto: the difference where there are two."""
    orders: Literal["auto", "one", "both"] = "auto"
    """pair, regress: two fields as they stand, or read as a-b and as b-a, and the two vectors added; auto: both where
    openai-gpt learns a score of two texts, otherwise one; told."""


class ReadConfig(Config):
    """What is read off the encoder."""

    pool: Read = "auto"
    """auto: what the model's family reads for the task, with the layers of its head where none are given; told."""
    frozen: bool = False
    """The encoder stays as it is, and only what stands on top of it is trained."""


class LayerConfig(Config):
    """One layer of the head."""

    width: int = Field(ge=1)
    activation: Literal["tanh", "relu", "gelu", "gelu_tanh", "none"] = "relu"
    norm: bool | Literal["after"] = False
    """True: before the activation; "after": after it, with the epsilon and the biases of the model (ModernBERT)."""
    dropout: float = Field(0.0, ge=0, lt=1)


class HeadConfig(Config):
    layers: tuple[LayerConfig, ...] = ()
    """Between what is read and the answers; none: one matrix."""
    dropout: float = Field(0.1, ge=0, lt=1)
    samples: int = Field(1, ge=1)
    """Dropouts of which the losses' mean is taken (multi-sample dropout)."""
    crf: bool = False
    """tag: neighbouring tags are scored together."""
    loss: str = "auto"
    """By name (maskery/tasks/losses.py); auto: that of the task; own:NAME: a function that was given."""
    smoothing: float = Field(0.0, ge=0, lt=1)
    """cross_entropy: the share of a target that all classes have alike."""
    focus: float = Field(2.0, ge=0)
    """focal: how much less what is already sure counts; 0 is cross_entropy."""
    lm: float = Field(0.0, ge=0)
    """The weight of the language model's own loss on the task's text, beside the task's (GPT: 0.5)."""


class WriteConfig(Config):
    """seq2seq: how targets are written."""

    longest: int = Field(0, ge=0)
    """Tokens of a target at most, its end apart; 0: enough for nearly all of training, as far as the model reads; told.
    Longer targets are cut in training, and counted."""
    beams: int = Field(1, ge=1)
    """Texts in hand while one is searched; 1: always the most probable token (greedy)."""
    length_penalty: float = 1.0
    """beams: a text's log-probability is divided by its length to this power."""
    dev: int = Field(200, ge=0)
    """Examples of the development set that texts are written for at every evaluation; 0: all. In the end always all."""


class TaskConfig(Config):
    """What is not given is chosen when a fine-tuning starts (maskery/tasks/defaults.py); the values here are those of
    BERT base on thousands of rows."""

    task: Task
    model: str = ""
    """The folder that the run began with."""
    labels: tuple[str, ...] = ()
    """In the order of their numbers."""
    fused: tuple[str, ...] = ()
    """Folders inside the run's: its answers are the average of theirs, and it has no model of its own."""
    columns: ColumnsConfig = ColumnsConfig()
    rows: TaskRowsConfig = TaskRowsConfig()
    read: ReadConfig = ReadConfig()
    head: HeadConfig = HeadConfig()
    write: WriteConfig = WriteConfig()
    epochs: float = Field(3.0, gt=0)
    evaluate_every: int = Field(1, ge=1)
    """Epochs between two evaluations on the development set; the end of training always has one."""
    evaluate_rows: int = Field(0, ge=0)
    """Examples of the development set, a fixed random sample, that are evaluated on; 0: all."""
    report_rows: int = Field(0, ge=0)
    """The same of the report at the end."""
    meta: Meta = Meta()
    """What training knows of the columns beside the text."""
    threshold: float | None = None
    """qa: by how much "no answer" has to score better. None: there is always an answer; before training, where some
    questions have none, it is found on dev."""
    patience: int = Field(0, ge=0)
    """Evaluations without a better one after which training ends; 0: all epochs."""
    training: TrainingConfig = TrainingConfig(lr=5e-5, batch=32, warmup=0.1, length=128, eps=1e-8)
