"""The language of results: every English sentence has its Chinese one, and the environment chooses."""

import ast
import re
from pathlib import Path

import pytest

import maskery
from maskery.errors import UnknownName
from maskery.language import chosen, phrases
from maskery.language.chinese import CHINESE

PACKAGE = Path(maskery.__file__).parent
HAN = re.compile("[\u4e00-\u9fff，。：；（）、！？]")
BRACES = re.compile(r"\{[^{}]*\}")


def used():
    """Every sentence that is asked for by `phrase`, and where."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "phrase":
                for each in ast.walk(node.args[0]):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield each.value, f"{path.name}:{node.lineno}"


def test_every_sentence_has_its_chinese_one():
    missing = {text: place for text, place in used() if text not in CHINESE}
    assert not missing


def test_chinese_sentences_are_chinese_and_filled_alike():
    for english, text in CHINESE.items():
        assert not HAN.search(english)
        assert HAN.search(text) or text.strip() == english.strip(), english
        assert sorted(BRACES.findall(english)) == sorted(BRACES.findall(text)), english


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({}, "en"), ({"LANG": "zh_CN.UTF-8"}, "zh"), ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en"),
     ({"LC_MESSAGES": "zh_TW", "LANG": "de_DE"}, "zh"), ({"LC_ALL": "", "LANG": "zh"}, "zh"), ({"LANG": "C"}, "en"),
     ({"MASKERY_LANG": "zh", "LC_ALL": "en_US.UTF-8"}, "zh")],
)  # fmt: skip
def test_the_environment_chooses_and_an_option_wins(monkeypatch, variables, expected):
    for name in ("MASKERY_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert chosen() == expected
    assert (chosen("en"), chosen("zh-Hans"), chosen("zh_CN")) == ("en", "zh", "zh")
    with pytest.raises(UnknownName, match="unknown language 'fr'"):
        chosen("fr")


def test_a_name_without_chinese_stays_as_it_is():
    assert phrases("zh").name("f1_macro") == "f1_macro"
    assert phrases("zh").name("chosen") == "选中"
    assert phrases("en").name("chosen") == "chosen"
