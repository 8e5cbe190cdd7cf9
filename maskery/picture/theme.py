"""Colours and fonts in light and dark, as CSS variables below one class, so that nothing leaks into a page around.

A notebook says its theme on the body (Jupyter, VS Code) or the root (Colab); the system's wish counts where nothing
else does. Series are those of Okabe and Ito, darkened or lightened until they stand out from the paper; every use of
them has a second sign beside the colour: a dash, a shape or a word.
"""

from __future__ import annotations

from pathlib import Path

LIGHT = {
    "paper": "#ffffff", "panel": "#f5f6f8", "ink": "#1c2024", "soft": "#5b636d", "line": "#d5d9df", "accent": "#0b62c4",
    "mask": "#b3261e", "mask-back": "#fde7e5", "random": "#8a5a00", "random-back": "#fdf0d2",
    "keep": "#186a3b", "keep-back": "#ddf3e4", "similar": "#0a6070", "similar-back": "#d8f1f5",
    "other": "#6b3fa0", "other-back": "#eee5f8", "unmatched": "#8f2a6b", "unmatched-back": "#fbe3f2",
    "infilled": "#8f3d00", "infilled-back": "#ffe4d3", "ngram": "#2a4fae", "ngram-back": "#e2eafc", "head": "38%",
}  # fmt: skip
DARK = {
    "paper": "#15181c", "panel": "#20252b", "ink": "#e8eaed", "soft": "#a3abb5", "line": "#3a424c", "accent": "#7ab4ff",
    "mask": "#ffb4ab", "mask-back": "#5c1f1a", "random": "#ffd48a", "random-back": "#513a08",
    "keep": "#96dfb0", "keep-back": "#173f28", "similar": "#8fdcea", "similar-back": "#0c3f49",
    "other": "#d6bcf7", "other-back": "#41295f", "unmatched": "#f7b3dd", "unmatched-back": "#571f43",
    "infilled": "#ffc09a", "infilled-back": "#5a2c0d", "ngram": "#b3c8ff", "ngram-back": "#22356b", "head": "70%",
}  # fmt: skip
SERIES_LIGHT = ("#0072b2", "#c84e00", "#00795a", "#a23b7e", "#7d6400", "#2b7fa8", "#595f66", "#6f4bb0")
SERIES_DARK = ("#5cb8f0", "#ff9a57", "#35c99d", "#eb9fce", "#e6d84a", "#9fd8f5", "#c3c8ce", "#bea2ee")
FONT = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", '
    '"Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "Noto Color Emoji", sans-serif'
)
SCOPE = "maskery-picture"
_BASE = Path(__file__).with_name("base.css").read_text(encoding="utf-8")
_DRAWING = Path(__file__).with_name("drawing.css").read_text(encoding="utf-8")
_LIGHT_PAGES = (":root[data-theme=light]", "body[data-jp-theme-light=true]", "body.vscode-light", ":root[theme=light]")
_DARK_PAGES = (":root[data-theme=dark]", "body[data-jp-theme-light=false]", "body.vscode-dark", ":root[theme=dark]")


def _variables(colours: dict[str, str], series: tuple[str, ...], scheme: str) -> str:
    every = {**colours, **{f"s{number}": colour for number, colour in enumerate(series)}}
    return f"color-scheme:{scheme};" + "".join(f"--mk-{name}:{value};" for name, value in every.items())


def _series() -> str:
    """Attributes carry the light colours for programs that know no variables; these rules win where they are known."""
    return "".join(
        f".mk-s{n}{{stroke:var(--mk-s{n})}}.mk-f{n}{{fill:var(--mk-s{n})}}" for n in range(len(SERIES_LIGHT))
    )


def page_css() -> str:
    """For a page or a notebook's cell."""
    light, dark = _variables(LIGHT, SERIES_LIGHT, "light"), _variables(DARK, SERIES_DARK, "dark")
    scope = f".{SCOPE}"

    def below(pages: tuple[str, ...]) -> str:
        return ",".join(f"{page} {scope},{page}{scope}" for page in pages)

    return (
        f"{scope}{{{light}}}@media (prefers-color-scheme:dark){{{scope}{{{dark}}}}}"
        f"{below(_LIGHT_PAGES)}{{{light}}}{below(_DARK_PAGES)}{{{dark}}}"
        f"{scope}{{font-family:{FONT}}}{_BASE}{_DRAWING}{_series()}"
    )


def drawing_css() -> str:
    """For an SVG file that stands alone."""
    light, dark = _variables(LIGHT, SERIES_LIGHT, "light"), _variables(DARK, SERIES_DARK, "dark")
    return (
        f".mk-drawing{{{light}font-family:{FONT}}}@media (prefers-color-scheme:dark){{.mk-drawing{{{dark}}}}}"
        f"{_DRAWING}{_series()}"
    )
