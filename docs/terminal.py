"""A picture of what a command prints on a terminal: every character at its place, whatever the reader's font.

`python docs/terminal.py docs/pictures/NAME.svg "the command as shown" inspect bert --corpus DIR ...` runs it.
"""

from __future__ import annotations

import io
import sys
from itertools import pairwise
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from maskery.cli import main, output
from maskery.picture.markup import Markup, joined, tag

WIDTH = 104
"""Columns."""
CELL, LINE, MARGIN = 8.4, 19.0, 12.0
PAPER, INK, DIM = "#181b21", "#e2e5e9", "#8b949e"
COLOURS = {1: "#ff7b72", 2: "#56d364", 3: "#e3b341", 4: "#79b0ff", 5: "#db8bff", 6: "#56d4dd", 141: "#b8a4ff"}
COLOURS |= {208: "#ffa657"}
FONT = 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace'


def placed(x: float, y: float, text: str, colour: str, bold: bool = False) -> Markup:
    """Every character has its own x, so that wide ones stand in two columns."""
    places, signs = [], []
    for sign in text:
        if sign != " ":
            places.append(f"{x:g}")
            signs.append(sign)
        x += CELL * cell_len(sign)
    weight = {"font-weight": "bold"} if bold else {}
    return tag("text", "".join(signs), {"x": " ".join(places), "y": f"{y:g}", "fill": colour} | weight)


def drawn(printed: Text, command: str, console: Console) -> Markup:
    y = MARGIN + 14
    parts = [tag("title", command), tag("rect", "", {"width": "100%", "height": "100%", "rx": 8, "fill": PAPER})]
    parts.append(placed(MARGIN, y, f"$ {command}", DIM))
    y += 1.6 * LINE
    for line in printed.split("\n"):
        x = MARGIN
        edges = sorted({0, len(line.plain)} | {end for span in line.spans for end in (span.start, span.end)})
        for start, end in pairwise(edges):
            style, text = line.get_style_at_offset(console, start), line.plain[start:end]
            colour = DIM if style.dim else COLOURS.get(style.color.number or 0, INK) if style.color else INK
            if text.strip():
                parts.append(placed(x, y, text, colour, bool(style.bold)))
            x += CELL * cell_len(text)
        y += LINE
    size = {"viewBox": f"0 0 {2 * MARGIN + CELL * WIDTH:g} {y - LINE + MARGIN:g}"}
    look = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "font-family": FONT, "font-size": 14}
    return tag("svg", joined(parts, "\n"), look | size)


def run(path: Path, command: str, arguments: list[str]) -> int:
    paper = io.StringIO()
    console = Console(
        file=paper, width=WIDTH, force_terminal=True, color_system="256", markup=False, highlight=False, emoji=False
    )
    output.results = lambda: console
    code = main(arguments)
    path.write_text(drawn(Text.from_ansi(paper.getvalue().rstrip("\n")), command, console) + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
