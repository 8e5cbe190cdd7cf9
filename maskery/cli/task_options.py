"""The options of `maskery finetune`, one a line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TaskOption = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="T", help="classify, pair, regress, multilabel, tag, qa, choice, rank or seq2seq; found."
    ),
]
ProcessorOption = Annotated[
    str | None, typer.Option("--processor", metavar="FILE.py:CLASS", help="Your own code reads the data; it is run.")
]
EpochsOption = Annotated[
    float | None, typer.Option("--epochs", metavar="N", help="Passes over all examples; chosen by rows and model.")
]
TruncateOption = Annotated[
    str | None, typer.Option("--truncate", help="What stays of a long text: head, tail, head+tail; all, fuse.")
]
WindowsOption = Annotated[
    int | None, typer.Option("--windows", metavar="N", help="Long texts in windows that overlap by N tokens.")
]
TowersOption = Annotated[
    str | None, typer.Option("--towers", metavar="T", help="Each text in a row of its own: encoders shared or apart.")
]
PoolOption = Annotated[
    str | None,
    typer.Option("--pool", help="What is read off: first, mean, max, mean_last_four, cls_last_four_concat, mix ..."),
]
PatienceOption = Annotated[
    int | None, typer.Option("--patience", metavar="N", help="End after N evaluations without a better one.")
]
TaskSetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A key of task.toml, e.g. head.dropout=0.2.")
]
DataOption = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Holds train.tsv, dev.tsv ...")]
TrainOption = Annotated[Path | None, typer.Option("--train", metavar="F", help="A file to learn from.")]
DevOption = Annotated[Path | None, typer.Option("--dev", metavar="F", help="A file that tells the best model.")]
TestOption = Annotated[Path | None, typer.Option("--test", metavar="F", help="A file to answer at the end.")]
BatchOption = Annotated[
    int | None, typer.Option("--batch", metavar="N", help="Examples of one update; 16 or 32 by rows.")
]
LrOption = Annotated[
    float | None, typer.Option("--lr", metavar="RATE", help="Peak learning rate; chosen by model size.")
]
LengthOption = Annotated[int | None, typer.Option("--length", metavar="N", help="Slots of a row at most.")]
FreezeOption = Annotated[bool, typer.Option("--freeze", help="Train only what stands on top of the encoder.")]
CrfOption = Annotated[bool, typer.Option("--crf", help="tag: score neighbouring tags together.")]
SeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", help="Of everything that is drawn.")]
SeedsOption = Annotated[int, typer.Option("--seeds", metavar="N", min=1, help="Train with N seeds; the best is kept.")]
CurveOption = Annotated[bool, typer.Option("--curve", help="Train on 1/16, 1/8 ... and all of the examples.")]
AdaptOption = Annotated[
    int, typer.Option("--adapt", metavar="STEPS", min=0, help="Go on pretraining on the task's texts first.")
]
BudgetOption = Annotated[str | None, typer.Option("--budget", metavar="TIME", help="End in time: 30s, 10m or 2h.")]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")]
