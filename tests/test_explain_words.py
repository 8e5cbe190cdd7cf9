"""Pictures in Chinese say the same things: every sentence is translated and takes the same values."""

import re
from dataclasses import fields

import pytest
from networks import model_of
from pages import check_page
from run_folders import line_of, run_folder
from vocabularies import mixed_tokenizer

from maskery.errors import UnknownName
from maskery.explain.curves import curves
from maskery.explain.heads import head_view
from maskery.explain.sentence import maskings
from maskery.explain.words import words_of
from maskery.recipes.recipe import recipe

HAN = re.compile("[\u4e00-\u9fff]")


def sentences(words):
    """Name -> text, those of the head view and of tables included."""
    found = {}
    for each in fields(words):
        value = getattr(words, each.name)
        if isinstance(value, dict):
            found |= {f"{each.name} {key}": text for key, text in value.items()}
        elif isinstance(value, str):
            found[each.name] = value
        else:
            found |= sentences(value)
    return found


def test_both_languages_say_everything():
    english, chinese = sentences(words_of("en")), sentences(words_of("zh"))
    assert english.keys() == chinese.keys()
    for name, text in chinese.items():
        assert not HAN.search(english[name])
        assert HAN.search(text) or name in ("comma", "last_comma", "stop", "full_stop", "reads", "curves", "of"), name
        values = [sorted(re.findall(r"\{(\w+)", each)) for each in (text, english[name])]
        assert values[0] == values[1], name


def test_pictures_in_chinese(tmp_path):
    run = run_folder(tmp_path / "run", [line_of(step, eval__loss=4.0) for step in range(1, 60)])
    pictures = {
        "验证集": curves(run, lang="zh"),
        "所有头": head_view(model_of(), "the cat", "sat", lang="zh"),
        "副本 1": maskings([recipe("bert")], mixed_tokenizer(), "我们今天去北京大学看周杰伦演唱会", 3, lang="zh-Hans"),
    }
    for told, picture in pictures.items():
        page = check_page(picture.html())
        assert HAN.search(picture.title), picture.title
        assert told in page.text
        assert picture.lang.startswith("zh")


def test_other_languages_are_refused():
    with pytest.raises(UnknownName, match="choices: en, zh"):
        words_of("fr")
