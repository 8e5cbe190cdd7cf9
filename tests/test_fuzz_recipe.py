"""Recipes of any form: one comes out that can be written and read again, or an error names the place and the repair."""

import tomllib

import pytest
from damage import survives, tries
from hypothesis import given
from hypothesis import strategies as st

from maskery.cli.settings import parse_settings
from maskery.errors import RecipeError
from maskery.recipes import layers
from maskery.recipes.recipe import loads, names, recipe

TEXTS = [recipe(name).toml() for name in names()] + [
    (layers.FOLDER / f"{name}.toml").read_text(encoding="utf-8") for name in names()
]
VALUES = [
    "1", "-1", "0", "true", "false", "1e400", "nan", "-inf", "9" * 30, "0x10", '"x"', '""', '"bert"', '"../x.toml"',
    '"\\u0000"', "[]", "[1]", "[[1]]", '["a", 1]', "{}", "{a = 1}", '{law = "geometric"}', "1979-05-27", "07:32:00",
    "1979-05-27T07:32:00Z", '"' + 300 * "a" + '"', "[{}]", "[{length = 8}]", "[{length = 8, steps = 1}]", "1e-320",
    "9223372036854775808",
]  # fmt: skip
PARTS = ["zz", '""', '"a.b"', "'q q'", "-", "1", "extends", "name", '"中文"', "__class__", "model", "objectives"]


def keys(tables, path=()):
    for key, value in tables.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from keys(value, (*path, key))


KEYS = list(dict.fromkeys(key for text in TEXTS for key in keys(tomllib.loads(text))))


def settle(made):
    """A recipe that came out is one: it is written and read again as the same."""
    assert loads(made.toml()) == made


@st.composite
def toml(draw):
    """A good recipe with a few lines changed, added or taken away."""
    lines = draw(st.sampled_from(TEXTS)).splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        value, key = draw(st.sampled_from(VALUES)), list(draw(st.sampled_from(KEYS)))
        change = draw(st.sampled_from(["value", "value", "key", "table", "tables", "gone", "character"]))
        if change == "value":
            lines[at] = f"{lines[at].partition('=')[0]} = {value}"
        elif change == "key":
            key[draw(st.integers(0, len(key) - 1))] = draw(st.sampled_from([*PARTS, *(each[-1] for each in KEYS)]))
            lines.insert(draw(st.sampled_from([0, at])), f"{'.'.join(key)} = {value}")
        elif change == "table":
            lines.insert(at, f"[{'.'.join(key)}]")
        elif change == "tables":
            lines.insert(at, f"[[{'.'.join(key)}]]")
        elif change == "gone" and len(lines) > 1:
            del lines[at]
        else:
            lines[at] += draw(st.characters(codec="utf-8"))
    return "\n".join(lines)


@tries(100)
@given(toml())
def test_any_toml(text):
    survives(lambda: settle(loads(text)))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("recipe") / "mine.toml"


@tries(80)
@given(toml(), st.integers(0, 10**6), st.integers(0, 7), st.booleans())
def test_any_damaged_file(file, text, place, bit, cut):
    data = bytearray(text.encode())
    place %= len(data)
    data[place] ^= 1 << bit
    file.write_bytes(data[:place] if cut else data)
    survives(lambda: settle(recipe(file)))


@tries(60)
@given(st.binary(max_size=200))
def test_any_bytes(file, data):
    file.write_bytes(data)
    survives(lambda: settle(recipe(file)))


FOREIGN = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
    st.builds(object),
)  # fmt: skip


@tries(100)
@given(st.dictionaries(st.sampled_from([".".join(key) for key in KEYS]) | st.text(".abm", max_size=5), FOREIGN))
def test_any_overrides(overrides):
    survives(lambda: settle(recipe("bert", overrides)))


DEEP = {
    "arrays": "a = " + "[" * 50_000,
    "keys": "a" + ".a" * 50_000 + " = 1",
    "tables": "[" + "a." * 50_000 + "a]",
    "inline": "a = " + "{a=" * 5000,
    "good": "a = " + "[" * 100 + "]" * 100,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_tables_that_are_nested_too_deeply(file, text):
    """Readers that call themselves would run out of stack."""
    file.write_text(text)
    with pytest.raises(RecipeError, match="tables inside tables"):
        recipe(file)


def test_overrides_that_are_nested_too_deeply():
    nested = {}
    for _ in range(5000):
        nested = {"a": nested}
    for overrides in ({".".join("a" * 50_000): 1}, {"model": nested}, parse_settings(["model.layers=" + "[" * 50_000])):
        with pytest.raises(RecipeError):
            recipe("bert", overrides)
