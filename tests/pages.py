"""What every page has to be: offline, well formed, readable in both themes, with nothing that clashes."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "br", "hr", "img", "input", "link"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(HTMLParser):
    """A page as it was written: every element closed in order, its ids, attributes, texts and scripts."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.attributes, self.texts, self.scripts, self.data = [], [], [], [], [], []
        self.classes: set[str] = set()
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        self.classes |= set((given.get("class") or "").split())
        if tag not in VOID:
            self.open.append((tag, given))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1][0]}"
        self.open.pop()

    def handle_data(self, data):
        tag, attributes = self.open[-1] if self.open else ("", {})
        if tag == "script" and attributes.get("type") == "application/json":
            self.data.append(json.loads(data))
        elif tag == "script":
            self.scripts.append(data)
        elif tag != "style":
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)


def check_fragment(text):
    """Well formed, and nothing is fetched from anywhere."""
    page = Page(text)
    outside = [found for found in re.findall(r"https?://[^\"'\s<>)]*", text) if found != SVG[1:-1]]
    assert not outside
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket", text)
    for tag, name, value in page.attributes:
        assert name not in ("src", "href", "srcset", "data", "action", "poster"), f"<{tag} {name}={value}>"
        assert not name.startswith("on"), f"<{tag} {name}={value}>"
    assert len(page.ids) == len(set(page.ids))
    return page


def check_page(text):
    page = check_fragment(text)
    assert text.startswith("<!doctype html>")
    assert re.search(r'<html lang="[\w-]+">', text)
    assert "default-src 'none'" in text.replace("&#x27;", "'")
    assert "@media (prefers-color-scheme:dark)" in text
    assert {":root[data-theme=dark] .maskery-picture", ":root[data-theme=light] .maskery-picture"} <= set(
        re.findall(r":root\[data-theme=\w+\] \.maskery-picture", text)
    )
    return page


def check_svg(text):
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}title").text
    assert "prefers-color-scheme:dark" in text
    check_fragment(text)
    return root


def texts(root):
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]
