"""`maskery vectors heat` and `map`: what an encoder finds alike, as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maskery.cli.settings import LangOption
from maskery.cli.task_files import ErrorsOption, FormatOption, HeaderOption, LabelOption, TextOption, column_flags
from maskery.language import phrases

if TYPE_CHECKING:
    from maskery.vectors.encoder import Encoder
    from maskery.vectors.judge.examples import LabelledTexts, PlainTexts

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model, a run or a folder of sentence-transformers.")
]
TextsArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A text a line, or a table.")]
PictureOption = Annotated[
    Path, typer.Option("--html", metavar="FILE", help="The picture: an offline page, .html, or .svg.")
]


def heat(
    model: ModelArgument,
    file: TextsArgument,
    html: PictureOption,
    text: TextOption = None,
    header: HeaderOption = None,
    format: FormatOption = None,
    errors: ErrorsOption = None,
    lang: LangOption = None,
) -> None:
    """Draw how alike a few texts are, each with each: a square of cosines, both texts on hovering."""
    from maskery.cli.output import save_picture
    from maskery.picture import require_place
    from maskery.vectors.judge.draw_heat import heat_map, require_few

    require_place(html)
    found = _read(file, column_flags(text, None, None, header, format, errors))
    require_few(found.texts)
    save_picture(heat_map(_opened(model), found.texts, phrases(lang).lang), html)


def vectors_map(
    model: ModelArgument,
    file: TextsArgument,
    html: PictureOption,
    method: Annotated[str, typer.Option("--method", metavar="M", help="pca or tsne.")] = "pca",
    text: TextOption = None,
    label: LabelOption = None,
    header: HeaderOption = None,
    format: FormatOption = None,
    errors: ErrorsOption = None,
    lang: LangOption = None,
) -> None:
    """Draw texts in two dimensions: a mark for each, its text on hovering, a colour and a shape for each label."""
    from maskery.cli.output import save_picture
    from maskery.picture import require_place
    from maskery.vectors.judge.draw_map import require_enough, require_method, vector_map
    from maskery.vectors.judge.examples import LabelledTexts

    require_place(html)
    by = require_method(method)
    found = _read(file, column_flags(text, label, None, header, format, errors))
    require_enough(found.texts)
    labels = found.labels if isinstance(found, LabelledTexts) else None
    save_picture(vector_map(_opened(model), found.texts, labels, by, lang=phrases(lang).lang), html)


def _read(file: Path, flags: dict[str, Any]) -> LabelledTexts | PlainTexts:
    """What is wrong with the texts is found before a model is opened."""
    from maskery.cli.output import say
    from maskery.cli.task_settings import checked
    from maskery.vectors.judge.read import read_shown

    found = read_shown(file, checked(flags).columns)
    for note in found.notes:
        say(note)
    return found


def _opened(model: str) -> Encoder:
    from maskery.cli.output import say
    from maskery.vectors.encoder import Encoder

    return Encoder(model, say=say)
