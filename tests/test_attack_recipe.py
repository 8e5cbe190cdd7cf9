"""Recipes under attack: tables as overrides, pipes, endless keys and digits, networks that no machine holds."""

import os
import tomllib

import pytest
from small_run import corpus_in, tiny_recipe

from maskery.cli.app import run
from maskery.cli.settings import parse_settings
from maskery.errors import InputError, RecipeError
from maskery.recipes import problems
from maskery.recipes.layers import line_of
from maskery.recipes.recipe import diff, names, recipe
from maskery.system import System
from maskery.train.fits import least_parameters, require_memory
from maskery.train.options import dotted
from maskery.train.run import pretrain

SPAN = '{law = "geometric", p = 0.2, longest = 10}'
TABLES = [
    ("corruption.span", SPAN),
    ("corruption.replace", "{mask = 0.5, random = 0.25, keep = 0.25}"),
    ("visibility", '{kind = "causal"}'),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_in(tmp_path_factory.mktemp("corpus"))


# Tables as overrides


@pytest.mark.parametrize("parent", ["spanbert", "macbert", "xlnet", "unilm"])
@pytest.mark.parametrize(("table", "text"), TABLES)
def test_a_table_as_an_override_is_the_same_table_in_a_file(tmp_path, parent, table, text):
    child = tmp_path / "child.toml"
    child.write_text(f'extends = "{parent}"\nname = "{parent}"\n{table} = {text}\n')
    overridden = recipe(parent, parse_settings([f"{table}={text}"]))
    assert diff(recipe(child), overridden).keys() <= {"problem", "problem_zh", "paper"}
    *outer, last = table.split(".")
    if outer:
        nested = {last: tomllib.loads(f"value = {text}")["value"]}
        assert recipe(parent, {".".join(outer): nested}) == overridden


def test_a_mixture_as_an_override_has_no_shares_left_of_the_recipes_own():
    made = recipe("unilm", {"visibility.mixture": {"full": 0.5, "causal": 0.5}})
    assert made.visibility.shares == {"full": 0.5, "causal": 0.5}
    assert made.visibility.kind == "full"


def test_a_training_reads_a_table_as_the_other_commands_do():
    asked = dotted(parse_settings([f"corruption.span={SPAN}", "model={layers = 2, width = 96}"]))
    assert asked.keys() == {"corruption.span", "model.layers", "model.width"}
    assert recipe("macbert", asked).corruption.span.law == "geometric"


# Files that are none


@pytest.mark.parametrize("extended", [False, True])
def test_a_pipe_is_no_recipe(tmp_path, extended):
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    child = tmp_path / "child.toml"
    child.write_text('extends = "pipe.toml"\n')
    with pytest.raises(RecipeError, match="is a pipe"):
        recipe(child if extended else pipe)
    with pytest.raises(RecipeError, match="is a device"):
        recipe("/dev/zero")


def test_thousands_of_unknown_keys_are_counted_and_a_few_named(tmp_path, monkeypatch):
    places = []
    monkeypatch.setattr(problems, "_place", lambda location, layers: places.append(location) or "there")
    path = tmp_path / "keys.toml"
    path.write_text("\n".join(f"key{number} = 1" for number in range(20_000)))
    with pytest.raises(RecipeError) as caught:
        recipe(path)
    assert "20,000 problems in the recipe" in str(caught.value)
    assert "and 19,980 more" in str(caught.value)
    assert len(places) == 20


def test_a_key_of_a_million_letters_is_shortened(tmp_path):
    path = tmp_path / "long.toml"
    path.write_text("k" * 1_000_000 + " = 1\n")
    with pytest.raises(RecipeError) as caught:
        recipe(path)
    assert len(str(caught.value)) < 2000


def test_the_line_of_a_key_is_found_among_many_spaces():
    spaces = " " * 200_000
    text = f'{spaces}x{spaces}y{spaces}\n[{spaces}z{spaces}\nproblem = "{spaces}"\nlayers {spaces} = 4\n'
    assert line_of(text, ("layers",)) == 4


def test_numbers_of_thousands_of_digits_are_refused(tmp_path):
    digits = "9" * 5000
    path = tmp_path / "digits.toml"
    path.write_text(f"[model]\nlayers = {digits}\n")
    with pytest.raises(RecipeError, match=r"digits.toml:2: a number has too many digits"):
        recipe(path)
    with pytest.raises(RecipeError, match="digits"):
        recipe("bert", {"model.layers": 10**5000})
    with pytest.raises(InputError, match="digits"):
        parse_settings([f"model.layers={digits}"])
    with pytest.raises(RecipeError, match="layers"):
        recipe("bert", {"model.layers": 10**4000})


# Sizes


@pytest.mark.parametrize("key", ["layers", "width", "max_length", "feedforward", "decoder", "memory"])
def test_a_size_beyond_every_network_is_refused_at_once(key):
    with pytest.raises(RecipeError, match=f"{key} = 1,200,000,000 is beyond"):
        recipe("bert", {f"model.{key}": 12 * 10**8})


def test_the_repair_of_heads_is_found_without_counting_to_a_billion():
    with pytest.raises(RecipeError, match="set heads = 1, or"):
        recipe("bert", {"model.width": 10**9 + 7, "model.heads": 10**9})


@pytest.mark.parametrize("name", names())
def test_the_least_weights_are_no_more_than_those_there_are(name):
    made = tiny_recipe(name)
    for settings in ({}, {"model.share": "all", "model.first_norm": True} if not made.model.decoder else {}):
        changed = made.changed(settings)
        system = System(changed, 101)
        shape, small = system.network.shape, system.generator
        least = least_parameters(shape) + (0 if small is None else least_parameters(small.shape, borrowed=True))
        there = sum(each.numel() for each in system.parameters())
        assert 0.3 * there < least <= there


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model.layers": 10_000, "model.width": 1 << 20}, "layers"),
        ({"training.batch": 10**12}, "1,000,000,000,000 rows"),
        ({"training.length": 1 << 20, "model.max_length": 1 << 20, "model.layers": 100}, "one row"),
    ],
)
def test_what_no_memory_holds_is_refused_before_anything_is_made(corpus, tmp_path, capsys, changes, named):
    chosen = tiny_recipe("bert", **{key.replace(".", "__"): value for key, value in changes.items()})
    with pytest.raises(InputError, match="this machine has") as caught:
        require_memory(chosen, corpus.vocabulary)
    assert named in str(caught.value)
    with pytest.raises(InputError, match="this machine has"):
        pretrain(chosen, corpus, tmp_path / "run", say=print)
    flags = [part for key, value in changes.items() for part in ("--set", f"{key}={value}")]
    small = ["--set", "model.layers=2", "--set", "model.width=16", "--set", "model.heads=2"]
    small = [] if "model.width" in changes or "model.layers" in changes else small
    command = ["pretrain", "bert", "--corpus", str(corpus.path), "--out", str(tmp_path / "run"), *small, *flags]
    assert run(command) == 2
    assert "this machine has" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_the_rows_of_a_step_count_with_what_their_drawing_needs(monkeypatch):
    """10^9 rows: 22 GiB of numbers, which 23 GiB hold, and 54 GiB while they are drawn."""
    monkeypatch.setattr("maskery.train.machine.total_memory", lambda: 23 * 2**30)
    with pytest.raises(InputError, match="1,000,000,000 rows a step"):
        require_memory(tiny_recipe("bert", training__batch=10**9), 101)
    require_memory(tiny_recipe("bert", training__batch=10**8), 101)
