"""The drawing of a network has every part with its parameters, in the right order, once; and fits its paper."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from networks import FAMILY_SHAPES, model_of
from pages import SVG, check_page, check_svg, texts

import maskery
from maskery.checkpoint.heads import TASKS
from maskery.checkpoint.whole import whole_of
from maskery.errors import InputError, UnknownName
from maskery.explain.network import network
from maskery.explain.network_words import network_words
from maskery.model.config import POSITIONS, VISIBILITIES
from maskery.objectives.config import OBJECTIVES
from maskery.picture.svg import text_width
from maskery.recipes.recipe import names, recipe

HAN = re.compile("[\u4e00-\u9fff]")


def drawn(source, lang="en", **changes):
    made = recipe(source, {f"model.{key}": value for key, value in changes.items()}) if changes else recipe(source)
    return check_svg(network(made, lang=lang).svg)


def upward(root):
    """Texts with their places, the lowest first."""
    found = [(float(each.get("y")), "".join(each.itertext())) for each in root.iter(f"{SVG}text")]
    return [text for _, text in sorted(found, key=lambda pair: -pair[0])]


def boxes(root):
    """Left, upper, right and lower edges."""
    found = [[float(each.get(key)) for key in ("x", "y", "width", "height")] for each in root.iter(f"{SVG}rect")
             if each.get("x")]  # fmt: skip
    return [(x, y, x + width, y + height) for x, y, width, height in found]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", names())
def test_every_recipe_is_drawn_with_its_numbers_inside_the_paper(name, lang):
    root = drawn(name, lang)
    said = texts(root)
    whole = whole_of(recipe(name), 30522)
    assert any(f"{whole.parameters()['total']:,}" in text for text in said)
    for part in [*whole.parts(), *(whole.generator.parts() if whole.generator else [])]:
        assert f"{part.each:,}" in said or not part.count, part
    wide, tall = float(root.get("width")), float(root.get("height"))
    assert all(0 <= left < right <= wide and 0 <= top < low <= tall for left, top, right, low in boxes(root))
    for each in root.iter(f"{SVG}text"):
        x, size = float(each.get("x")), text_width("".join(each.itertext()))
        if not each.get("transform"):
            left = {"start": x, "end": x - size, "middle": x - size / 2}[each.get("text-anchor")]
            assert left >= 0
            assert left + size <= wide, "".join(each.itertext())
        assert 0 <= float(each.get("y")) <= tall


def test_layers_stand_in_the_order_of_the_norm():
    post = [
        text for text in upward(drawn("bert")) if text in ("attention", "feed-forward", "add & norm", "norm", "add")
    ]
    assert post == ["norm", "attention", "add & norm", "feed-forward", "add & norm"], "the first is of the embeddings"
    pre = upward(drawn("bert", norm="pre"))
    inside = [text for text in pre if text in ("attention", "feed-forward", "add & norm", "norm", "add")]
    assert inside == ["norm", "attention", "add", "norm", "feed-forward", "add", "norm"]


def test_shared_layers_are_drawn_once_with_their_number():
    assert "× 12" in texts(drawn("bert"))
    albert = texts(drawn("albert"))
    assert "× 12, shared" in albert
    assert albert.count("attention") == 1
    assert "× 12: 3 groups, shared" in texts(drawn("albert", groups=3))
    half = texts(drawn("bert", share="attention"))
    assert "attention (shared × 12)" in half
    assert "feed-forward" in half
    assert "× 12" in half


def test_a_generator_stands_beside_the_model_and_borrows_its_embeddings():
    said = texts(drawn("electra"))
    assert "embeddings: the model's own" in said
    assert "one and the same" in said
    assert said.count("tokens") == 1
    assert said.count("× 12") == 2
    assert {"masked_token", "replaced_token", "the generator reads", "the model reads"} <= set(said)
    assert "the generator reads" not in texts(drawn("bert"))


def test_who_sees_whom_and_positions_are_named():
    assert "sees, by row: 1/3 full, 1/3 prefix, 1/6 causal, 1/6 reverse" in texts(drawn("unilm"))
    assert "every slot sees every slot" in texts(drawn("bert"))
    assert "distances: fixed waves, clip 64" in texts(drawn("nezha"))
    assert "positions" not in texts(drawn("nezha"))
    shaw = whole_of(recipe("bert", {"model.positions": "shaw"}), 30522)
    one = next(part.count for part in shaw.parts() if part.name == "positions") // 12
    assert f"{one:,}" in texts(drawn("bert", positions="shaw"))
    assert "positions: fixed waves" in texts(drawn("bert", positions="sinusoidal"))
    assert "projection" in texts(drawn("albert"))


def test_a_loaded_model_and_a_page():
    picture = maskery.explain.network(model_of("masked_token", "sequence_class_gelu", pooler=True, visibility="causal"))
    said = texts(check_svg(picture.svg))
    assert {"sees what stands before", "which class?", "which token stood here?", "pooler: first slot"} <= set(said)
    check_page(picture.html())


def test_windows_gates_and_turned_distances_are_named():
    said = texts(check_svg(network(model_of("masked_token", **FAMILY_SHAPES["modernbert"])).svg))
    assert "all of it in 1 of 2 layers, else 3 slots to either side" in said
    assert "16 → 2×64 → 16, gated gelu" in said
    assert "distances: queries and keys are turned, base 160,000" in said
    model = model_of("masked_token", **FAMILY_SHAPES["deberta-v2"])
    said = texts(check_svg(network(model).svg))
    count = sum(each.numel() for each in model.network.embeddings.positions.parameters())
    assert said[said.index("distances: 8 buckets a side, of all layers") + 1] == f"{count:,}"


def test_both_languages_say_everything():
    english, chinese = network_words("en"), network_words("zh-Hans")
    for each in fields(english):
        ours, theirs = getattr(english, each.name), getattr(chinese, each.name)
        if isinstance(ours, dict):
            assert ours.keys() == theirs.keys(), each.name
            pairs = [(ours[key], theirs[key]) for key in ours]
        elif isinstance(ours, str):
            pairs = [(ours, theirs)]
        else:
            pairs = []
        for one, other in pairs:
            assert not HAN.search(one)
            assert sorted(re.findall(r"{\w+}", one)) == sorted(re.findall(r"{\w+}", other))
    with pytest.raises(UnknownName, match="language"):
        network_words("fr")


@pytest.mark.parametrize(("name", "hides"), [("bert", True), ("xlnet", False), ("gpt2", False), ("bart", True)])
def test_a_mask_is_read_only_where_something_is_hidden(name, hides):
    assert ("[MASK]" in texts(drawn(name, "en"))) == hides


def test_every_choice_has_words():
    words = network_words("en")
    assert set(OBJECTIVES.names()) <= set(words.questions)
    assert all(any(name.startswith(question) for question in words.questions) for name in TASKS)
    assert {*VISIBILITIES.names(), "mixture"} == set(words.sees)
    assert {name for name in POSITIONS.names() if POSITIONS.get(name).in_attention} == set(words.distances)


def test_names_and_folders_are_drawn_too(tmp_path):
    model = model_of("masked_token")
    model.save(tmp_path / "m")
    assert network("electra").svg == network(recipe("electra")).svg
    assert network(tmp_path / "m").svg == network(model).svg
    assert network(str(tmp_path / "m")).svg == network(model).svg
    with pytest.raises(UnknownName, match="elctra"):
        network("elctra")
    with pytest.raises(InputError, match=r"source is 3 \(int\)"):
        network(3)
