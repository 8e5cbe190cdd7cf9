"""A picture: a fragment of HTML that carries everything it needs, and the page, notebook cell or file made of it.

Pages are offline by force: a content policy forbids every request. Fragments have no ids; style and scripts find their
elements by class below one scope, so that several pictures, or one picture twice, can stand in one document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from maskery import arguments, files
from maskery.errors import InputError
from maskery.picture.markup import Markup, escape, joined, tag
from maskery.picture.theme import SCOPE, page_css

Text = str | Sequence[str]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_TOGGLE = Path(__file__).with_name("toggle.js").read_text(encoding="utf-8")
_WORDS = {"en": "Light or dark", "zh": "浅色或深色"}


@dataclass(frozen=True)
class Picture:
    """Shows itself in a notebook; `save` writes one offline file, .html or, where it is a plain drawing, .svg.

    maskery.explain.head_view("my-run", "The cat sat.").save("heads.html")
    """

    title: str
    body: str
    """HTML, complete in itself apart from the theme."""
    svg: str | None = None
    """The text of an SVG file, for a plain drawing."""
    note: str = ""
    """What a reader should know about the numbers shown."""
    lang: str = "en"
    """Of the title and the note."""

    def __post_init__(self) -> None:
        arguments.text("title", self.title)
        arguments.text("body", self.body)
        arguments.text("note", self.note)
        arguments.text("lang", self.lang)
        if self.svg is not None:
            arguments.text("svg", self.svg)

    def html(self) -> str:
        """One whole page."""
        word = _WORDS["zh" if self.lang.startswith("zh") else "en"]
        button = tag("button", word, {"type": "button", "class": "mk-theme"})
        top = tag("div", joined([tag("h1", self.title), button]), {"class": "mk-top"})
        head = joined(
            [
                Markup('<meta charset="utf-8">'),
                Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
                Markup(f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'),
                tag("title", self.title),
                tag("style", Markup(page_css())),
            ]
        )
        body = joined([tag("main", joined([top, Markup(self._figure())])), tag("script", Markup(_TOGGLE))])
        return (
            f'<!doctype html>\n<html lang="{escape(self.lang)}">\n<head>{head}</head>\n'
            f'<body class="mk-page {SCOPE}">{body}</body>\n</html>\n'
        )

    def save(self, path: str | Path) -> Path:
        """Write one file; the suffix says which kind. It appears whole or not at all."""
        path = require_place(arguments.path("path", path))
        files.write_text(path, self.html() if path.suffix == ".html" else self._drawing(path))
        return path

    def _drawing(self, path: Path) -> str:
        if self.svg is None:
            raise InputError(
                "this picture reacts to the reader or flows with the page, which an SVG file cannot",
                where=path,
                repair=f"save it as {path.stem}.html",
            )
        return self.svg

    def _repr_html_(self) -> str:
        """For a notebook's cell, where other pictures and a foreign style stand around it."""
        title = tag("h3", self.title, {"lang": self.lang})
        return tag("div", joined([tag("style", Markup(page_css())), title, Markup(self._figure())]), {"class": SCOPE})

    def _figure(self) -> str:
        caption = tag("figcaption", self.note, {"lang": self.lang}) if self.note else ""
        return tag("figure", joined([Markup(self.body), caption]))


def require_place(path: str | Path) -> Path:
    """The path, if a picture can be saved there: to be asked before long work."""
    path = Path(path)
    if path.is_dir():
        inside = path / "picture.html"
        raise InputError("is a folder", where=path, repair=f"name a file that ends in .html or .svg, such as {inside}")
    if path.suffix not in (".html", ".svg"):
        ending = path.suffix.lower() if path.suffix.lower() in (".html", ".svg") else ".html"
        raise InputError(
            f"a picture cannot be saved as {path.suffix or 'a file without a suffix'}",
            where=path,
            repair=f"name it {path.stem}{ending}",
        )
    files.require_place(path)
    if not path.parent.is_dir():
        raise InputError("no such folder", where=path.parent, repair=f"mkdir -p {path.parent}")
    return path


def report(
    title: str, sections: Sequence[tuple[str, Text, Picture | Sequence[Picture] | None]], lang: str = "en"
) -> Picture:
    """One page of several pictures: (heading, paragraphs, picture or pictures or None) each.

    Paragraphs are text and are escaped; what is HTML already (a `table`) says so by its type, `Markup`.
    """
    return Picture(title, joined(_section(*section) for section in sections), lang=lang)


def _section(heading: str, text: Text, shown: Picture | Sequence[Picture] | None) -> Markup:
    paragraphs = [text] if isinstance(text, str) else list(text)
    pictures = [shown] if isinstance(shown, Picture) else list(shown or ())
    parts: list[Markup] = [tag("h2", heading)] if heading else []
    parts += [each if isinstance(each, Markup) else tag("p", each) for each in paragraphs if each]
    for picture in pictures:
        parts += [tag("h3", picture.title, {"lang": picture.lang}), Markup(picture._figure())]
    return tag("section", joined(parts))
