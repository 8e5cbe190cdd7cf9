"""Small vocabularies and texts made on the spot."""

from __future__ import annotations

from maskery.text.tokenizer import Tokenizer
from maskery.text.training import LAYOUT

# Numbers that published examples of Chinese BERT rely on.
PLACED = {
    "你": 872, "想": 2682, "吃": 1391, "啥": 1567, "白": 4635, "切": 1147, "鸡": 7883,
    "老": 5439, "爸": 4268, "叫": 1373, "小": 2207, "宏": 2131, "去": 1343, "买": 743, "酱": 6996, "油": 3779,
    "，": 8024, "回": 1726, "来": 3341, "慢": 2714, "了": 749, "就": 2218, "骂": 7733, "他": 800, "。": 511,
    "我": 2769, "北": 1266, "京": 776, "？": 8043, "上": 677, "海": 3862, "是": 3221, "的": 4638, "不": 679,
}  # fmt: skip


def chinese_pieces() -> list[str]:
    """21,128 pieces: the usual layout, the characters above at their numbers, the rest filled up."""
    pieces = [f"##filler{number}" for number in range(21_128)]
    pieces[: len(LAYOUT)] = LAYOUT
    for piece, number in PLACED.items():
        pieces[number] = piece
    return pieces


def mixed_tokenizer() -> Tokenizer:
    """Letters, some endings and some Han characters: enough for words of several tokens and for unknown ones."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    signs = list("0123456789.,!?'\"()[]-。，！？；“”")
    han = list("我们今天去北京大学看周杰伦演唱会中国人民")
    pieces = [*LAYOUT, *letters, *(f"##{letter}" for letter in letters), *signs, "##1", *han]
    words = ["the", "dog", "mask", "un", "##used", "##ing", "hello"]
    return Tokenizer.from_pieces(list(dict.fromkeys([*pieces, *words])))


TEXT = """我们今天去北京大学看周杰伦演唱会。中国人民！真的吗？
The dog is Barking. Hello, Mr. Smith; don't [MASK] it.

第二 document: 我们hello中国。 It has two lines.
x

third one, cafe\u0301 naïve 北京"""
