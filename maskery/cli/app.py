"""The entry of the command line: a table of verbs. A verb's module is imported when it is called, so help is quick.

A verb is a function with typer's annotations, or a `typer.Typer` where it has verbs of its own. It prints its result
on stdout, talks on stderr, and returns None or an exit code: 0 done, 1 failed, 2 usage or bad input, 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from maskery.cli import streams
from maskery.errors import DiskError, EndedElsewhere, InputError, MaskeryError, UnknownName


class Verb(NamedTuple):
    piece: str
    help: str


VERBS: dict[str, Verb] = {
    "recipes": Verb("maskery.cli.recipes:app", "List, show and compare recipes"),
    "corpus": Verb("maskery.cli.corpus:app", "Turn text files into a corpus"),
    "words": Verb("maskery.cli.words:app", "Train word vectors, ask them, make tables of similar words"),
    "lexicon": Verb("maskery.cli.lexicon:app", "Find the phrases and entities of a corpus"),
    "inspect": Verb("maskery.cli.inspect:inspect", "Show the rows that training will see"),
    "pretrain": Verb("maskery.cli.pretrain:pretrain", "Train a model from a recipe and a corpus"),
    "compare": Verb("maskery.cli.compare:compare", "Train several variants alike and examine them alike"),
    "finetune": Verb("maskery.cli.finetune:app", "Train a model for a task on labelled text"),
    "predict": Verb("maskery.cli.predict:predict", "Answer for each text of a file with a fine-tuned model"),
    "evaluate": Verb("maskery.cli.evaluate:evaluate", "Tell how good a fine-tuned model is on labelled text"),
    "embed": Verb("maskery.cli.embed:embed", "Turn each text of a file into a vector"),
    "bench": Verb("maskery.cli.bench:bench", "Tell which way to make vectors is the quickest here"),
    "vectors": Verb("maskery.cli.vectors:app", "Train encoders of sentences, mine negatives, whiten and draw vectors"),
    "download": Verb(
        "maskery.cli.download:download", "Fetch the weights of a published model from the Hugging Face hub"
    ),
    "import": Verb("maskery.cli.import_:import_", "Turn a published model into a folder of ours"),
    "export": Verb("maskery.cli.export:export", "Write a model for the tools of Hugging Face"),
    "info": Verb("maskery.cli.info:info", "Describe a model, a run or a recipe; compare runs"),
    "explain": Verb("maskery.cli.explain:explain", "Show where the attention heads look in a text"),
    "fill": Verb("maskery.cli.fill:fill", "Fill the [MASK] in a text"),
    "generate": Verb("maskery.cli.generate:generate", "Write text from a prompt"),
    "score": Verb("maskery.cli.score:score", "Tell how probable texts are: log-probability and perplexity"),
    "doctor": Verb("maskery.cli.doctor:doctor", "Check this machine and installation"),
    "demo": Verb("maskery.cli.demo:demo", "Walk the whole way once: text, corpus, training, use"),
    "completion": Verb("maskery.cli.completion:completion", "Print a script that completes commands in your shell"),
}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    streams.prepare()
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except EndedElsewhere as error:
        return error.exit_code
    except MaskeryError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        streams.give_up_stdout()  # the reader has gone
        return 1
    except Exception as error:
        told = _refusal_of_disk(error)
        if told is not None:
            streams.give_up_stdout()
            print(told.text(), file=sys.stderr)
            return told.exit_code
        traceback.print_exc()
        print("this is a defect in maskery; please report it with the lines above", file=sys.stderr)
        return 1


def _refusal_of_disk(error: Exception) -> MaskeryError | None:
    """Files name themselves in what their writing refuses; what names nothing was written to a stream."""
    from maskery.files import OF_WRITING, disk_error

    if not isinstance(error, OSError):
        return None
    if error.filename is None and error.errno in OF_WRITING:
        repair = "lead stdout to a place that takes what is written: > FILE on a disk with space left"
        return DiskError(f"cannot be written to: {error.strerror}", where="stdout", repair=repair)
    return disk_error(error)


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        print(help_text(), file=sys.stderr)
        return 2
    first, rest = arguments[0], arguments[1:]
    if first in ("--help", "-h"):
        print(help_text())
        return 0
    if first == "--version":
        import maskery

        print(f"maskery {maskery.__version__}")
        return 0
    if first.startswith("-"):
        raise InputError(f"unknown option {first!r} before the command", repair="maskery --help")
    if first not in VERBS:
        raise UnknownName("command", first, VERBS)
    return _run_verb(first, rest)


def help_text() -> str:
    width = max(map(len, VERBS))
    lines = [
        "One Transformer, every mask: pretrain, look into and use models of the BERT family.",
        "",
        "Usage: maskery COMMAND ...        maskery COMMAND --help        maskery --version",
        "",
        "Commands:",
        *(f"  {name:{width}}  {verb.help}" for name, verb in VERBS.items()),
    ]
    return "\n".join(lines)


def load_verb(name: str) -> Any:
    module, _, attribute = VERBS[name].piece.partition(":")
    return getattr(import_module(module), attribute)


def _run_verb(name: str, arguments: list[str]) -> int:
    piece = load_verb(name)
    import typer

    from maskery.cli.settings import new_app
    from maskery.language import speak

    speak(None)  # until --lang is read
    app = piece
    if not isinstance(piece, typer.Typer):
        app = new_app()
        app.command()(piece)
    usage_error: Any = typer.BadParameter.__mro__[2]  # click's base of all usage errors; typer does not export it
    try:
        result = typer.main.get_command(app).main(
            args=arguments, prog_name=f"maskery {name}", standalone_mode=False, obj=[name, *arguments]
        )
    except typer.Abort:
        raise KeyboardInterrupt from None
    except usage_error as error:
        if os.environ.get("RANK", "0") == "0":  # torchrun starts a command several times
            error.show()
        return int(error.exit_code)
    return result if isinstance(result, int) else 0
