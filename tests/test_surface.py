"""What others rely on, as snapshots: public names, verbs and their options, registries, recipes and their keys.

A change here is a change of the contract. To accept it:
MASKERY_UPDATE_SNAPSHOTS=1 python -m pytest tests/test_surface.py
"""

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from small_encoder import small_encoder
from small_run import corpus_in

import maskery
from maskery import registry
from maskery.cli import app
from maskery.cli.settings import new_app
from maskery.recipes import recipe as recipes

FOLDER = Path(__file__).parent / "snapshots"
UPDATE = "MASKERY_UPDATE_SNAPSHOTS"


def exports():
    """Public names; functions with their parameters, classes with their public members."""
    found = {}
    for name in maskery.__all__:
        piece = getattr(maskery, name)
        if inspect.ismodule(piece):
            found[name] = {each: list(inspect.signature(getattr(piece, each)).parameters) for each in piece.__all__}
        elif inspect.isclass(piece):
            found[name] = sorted(member for member in own_members(piece) if not member.startswith("_"))
        else:
            found[name] = list(inspect.signature(piece).parameters)
    return found


def own_members(piece):
    ours = [each for each in piece.__mro__ if each.__module__.startswith("maskery")]
    return {member for each in ours for member in [*vars(each), *getattr(each, "__annotations__", {})]}


def verbs():
    found = {}
    for name in app.VERBS:
        piece = app.load_verb(name)
        if not isinstance(piece, typer.Typer):
            wrapped = new_app()
            wrapped.command()(piece)
            piece = wrapped
        found |= options(name, typer.main.get_command(piece))
    return found


def options(name, command):
    """Options by their names, arguments in capitals, for a command and those below it."""
    own = [
        ("/".join(each.opts) if each.opts[0].startswith("-") else each.name.upper()) + " (required)" * each.required
        for each in command.params
    ]
    inner = {}
    for part, each in getattr(command, "commands", {}).items():
        inner |= options(f"{name} {part}", each)
    return {name: own, **inner}


def registries():
    for path in sorted(Path(maskery.__file__).parent.rglob("*.py")):
        if "Registry(" in path.read_text(encoding="utf-8"):
            importlib.import_module(
                ".".join(["maskery", *path.relative_to(Path(maskery.__file__).parent).with_suffix("").parts])
            )
    return {kind: table.names() for kind, table in sorted(registry.ALL.items())}


def recipe_keys():
    """Recipes, and every key that a recipe may answer."""
    plain = recipes.recipe("bert").plain()
    tables = {name: values for name, values in plain.items() if isinstance(values, dict) and name != "objectives"}
    keys = [f"{name}.{key}" for name, values in tables.items() for key in values]
    return {"recipes": recipes.names(), "keys": sorted(keys)}


@pytest.mark.parametrize("section", [exports, verbs, registries, recipe_keys], ids=lambda section: section.__name__)
def test_the_surface_is_as_it_was(section):
    file, found = FOLDER / f"{section.__name__}.json", section()
    if os.environ.get(UPDATE):
        file.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    known = json.loads(file.read_text(encoding="utf-8"))
    again = f"if this change is meant: {UPDATE}=1 python -m pytest tests/test_surface.py"
    assert found == known, again


def test_every_name_of_a_registry_is_there():
    registries()
    for table in registry.ALL.values():
        for name in table.names():
            assert table.get(name) is not None


def test_public_names_are_what_they_say():
    assert dir(maskery) == maskery.__all__
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        maskery.lod  # noqa: B018
    assert maskery.load.__module__.startswith("maskery.")


def modules_after(code):
    script = f"import sys\n{code}\nprint(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import maskery",
        "from maskery.cli import main; main(['--help'])",
        "from maskery.cli import main; main(['recipes', 'show', 'bert'])",
        "from maskery.cli import main; main(['pretrain', '--help'])",
    ],
)
def test_no_torch_before_it_is_needed(code):
    loaded = modules_after(code)
    assert "maskery" in loaded
    assert "torch" not in loaded


@pytest.mark.parametrize("name", [name for name in maskery.__all__ if inspect.isfunction(getattr(maskery, name))])
def test_every_public_function_shows_its_use(name):
    text = inspect.getdoc(getattr(maskery, name)) or ""
    examples = re.findall(rf"^ *((?:\w+ = )?maskery\.{name}\(.*)$", text, re.MULTILINE)
    assert examples
    for example in examples:
        compile(example, name, "exec")


@pytest.mark.parametrize("name", [name for name in maskery.__all__ if inspect.isclass(getattr(maskery, name))])
def test_every_public_class_says_what_it_is_and_shows_its_use(name):
    text = vars(getattr(maskery, name)).get("__doc__") or ""
    first, _, example = inspect.cleandoc(text).partition("\n\n")
    assert first.endswith("."), "one sentence"
    code = "\n".join(line for line in inspect.cleandoc(example).splitlines())
    compile(code, name, "exec")
    assert "maskery." in code


@pytest.mark.parametrize("name", [name for name in maskery.__all__ if inspect.isclass(getattr(maskery, name))])
def test_every_public_member_of_a_class_is_explained(name):
    """`help(maskery.Corpus)` has no bare line: methods and properties of ours say what they give."""
    bare = []
    for kind in getattr(maskery, name).__mro__:
        for member, piece in vars(kind).items() if kind.__module__.startswith("maskery.") else ():
            function = getattr(piece, "fget", None) or getattr(piece, "func", None) or getattr(piece, "__func__", piece)
            if not member.startswith("_") and inspect.isfunction(function) and not function.__doc__:
                bare.append(member)
    assert not bare


def test_what_is_open_is_printed_with_what_it_holds(tmp_path):
    corpus = corpus_in(tmp_path)
    place = str(corpus.path)
    tokens, pieces = f"{corpus.counts['tokens']:,}", f"{corpus.vocabulary:,}"
    assert repr(corpus) == (
        f"Corpus({place!r}: {corpus.counts['documents']:,} documents, {tokens} tokens, {pieces} pieces)"
    )
    assert repr(corpus.tokenizer) == f"Tokenizer(WordPiece, {pieces} pieces)"
    assert repr(maskery.Mixture([(corpus, 3)])) == f"Mixture({place + '=1'!r})"
    encoder = maskery.Encoder(small_encoder())
    assert repr(encoder) == f"Encoder(bert, {encoder.dimensions} dimensions, pool mean, {encoder.config.length} slots)"


@pytest.mark.parametrize("name", [name for name in maskery.__all__ if inspect.isfunction(getattr(maskery, name))])
def test_every_public_function_is_explained(name):
    assert inspect.getdoc(getattr(maskery, name))
