"""Which encoding bytes that are no UTF-8 are likely in: a cheap guess, for the repair that an error names."""

from __future__ import annotations

import re

_HIGH = re.compile(rb"[\x80-\xff]+")
_ASKED = 1 << 12
_CHINESE = {"gb2312": "GB18030", "big5": "Big5", "gb18030": "GB18030"}
CHINESE = frozenset(_CHINESE.values())
_WESTERN = {"cp1252": "Windows-1252"}
"""Codec -> the name that iconv knows; the first that fits is taken."""
_UTF16 = ("UTF-16LE", "UTF-16BE")

_MAGIC = {
    b"\x1f\x8b": "gzip: name it .gz, or gunzip it first",
    b"\x28\xb5\x2f\xfd": "zstd: name it .zst, or unzstd it first",
    b"PAR1": "parquet: name it .parquet, or say --format parquet",
    b"BZh": "bzip2: bunzip2 it first",
    b"\xfd7zXZ\0": "xz: unxz it first",
    b"PK\x03\x04": "a zip archive (or an office document): unpack it first and give the text",
    b"%PDF": "PDF: turn it into text first (pdftotext)",
}


def other_kind(head: bytes) -> str | None:
    """What a file that begins so is, if it is no text; with what to do."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def of_bytes(line: bytes, at: int) -> str | None:
    """The likely encoding of a line whose byte `at` cannot be UTF-8, judged from there on."""
    begin = at
    while begin and line[begin - 1] >= 0x80:
        begin -= 1
    part = line[begin : begin + _ASKED]
    runs = [len(run) for run in _HIGH.findall(part)]
    # Characters of two bytes stand together; accented letters stand alone.
    tried = _CHINESE if sum(runs) >= 1.5 * len(runs) else _WESTERN
    return next((name for codec, name in tried.items() if _fits(part, codec)), None)


def of_zeros(block: bytes) -> str | None:
    """UTF-16 of which order, if bytes with zeros among them can be printed in it; the order with more common signs."""
    head = block[: min(_ASKED, len(block) // 2 * 2)]
    if 4 * head.count(0) < len(head) and 8 * sum(map(len, _HIGH.findall(head))) < len(head):
        return None  # ASCII with a zero byte somewhere: in pairs its bytes would pass for Chinese
    found = {name: _common(head.decode(name, "ignore")) for name in _UTF16 if _fits(head, name)}
    best = max(found, key=found.__getitem__, default=None)
    return best if best is not None and found[best] >= 0.5 else None


def _common(text: str) -> float:
    """The share of signs that are ASCII, Chinese or Chinese punctuation; 0 if many cannot be printed."""
    if not text or sum(sign.isprintable() or sign in "\r\n\t" for sign in text) < 0.9 * len(text):
        return 0.0
    return sum(sign.isascii() or "\u3000" <= sign <= "\u9fff" or sign >= "\uff00" for sign in text) / len(text)


def _fits(part: bytes, codec: str) -> bool:
    """Whether the bytes are text in this encoding; a character that the end of the window cut in two may be missing."""
    for end in (len(part), len(part) - 1) if len(part) == _ASKED else (len(part),):
        try:
            part[:end].decode(codec)
        except UnicodeDecodeError:
            continue
        return True
    return False
