"""Recipes: published values, layers and their precedence, errors that name the key, contradictions, TOML both ways."""

import subprocess
import sys

import pytest
from contradictions import DECODERS, ORDERED
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from maskery.errors import ArgumentError, RecipeError, RefusedError, UnknownName
from maskery.recipes.checks import CHECKS
from maskery.recipes.layers import IDENTITY, line_of
from maskery.recipes.recipe import Recipe, check, diff, loads, names, recipe


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# Published values


def test_bert_is_the_paper():
    bert = recipe("bert")
    training = bert.training
    assert (training.betas, training.eps, training.weight_decay) == ((0.9, 0.999), 1e-6, 0.01)
    assert (training.lr, training.warmup * training.steps, training.steps) == (1e-4, 10_000, 1_000_000)
    assert training.decay == "linear"
    assert training.bias_correction is False
    assert training.clip == 1.0
    assert [(phase.steps, phase.length) for phase in training.phases] == [(900_000, 128), (100_000, 512)]
    assert training.batch == 256
    replace = bert.corruption.replace
    shares = [bert.corruption.rate * share for share in (replace.mask, replace.random, replace.keep)]
    assert shares == pytest.approx([0.12, 0.015, 0.015])
    assert (bert.corruption.when, bert.rows.copies, bert.rows.short) == ("static", 10, 0.1)
    assert (bert.rows.kind, bert.rows.pair) == ("segment_pair", "next")
    assert list(bert.objectives) == ["masked_token", "next_sentence"]
    model = bert.model
    assert (model.layers, model.width, model.heads, model.shape(30_522).feedforward) == (12, 768, 12, 3072)
    assert (model.eps, model.dropout, model.attention_dropout) == (1e-12, 0.1, 0.1)
    assert (model.positions, model.norm, model.activation) == ("learned", "post", "gelu")


def test_roberta_is_the_paper_and_otherwise_bert():
    roberta = recipe("roberta")
    training = roberta.training
    assert (training.betas, training.eps, training.lr) == ((0.9, 0.98), 1e-6, 6e-4)
    assert (training.steps, training.batch, training.length) == (500_000, 8192, 512)
    assert training.warmup * training.steps == pytest.approx(24_000)
    assert training.phases == ()
    assert list(roberta.objectives) == ["masked_token"]
    changed = {key for key in diff(recipe("bert"), roberta) if key not in IDENTITY}
    assert {key for key in changed if key.startswith(("model", "corruption", "visibility"))} == {
        "model.eps",
        "corruption.when",
    }


@pytest.mark.parametrize("name", names())
def test_every_recipe_is_whole(name):
    made = recipe(name)
    assert made.name == name
    assert made.problem
    assert any("一" <= sign <= "鿿" for sign in made.problem_zh)
    assert made.paper
    assert loads(made.toml()) == made
    given = made.changed({"knowledge.synonyms": "words.txt"}) if made.corruption.replace.similar else made
    assert given.require() is given


# Layers


def test_precedence_of_extends_file_size_overrides(tmp_path):
    write(tmp_path, "parent.toml", "[model]\nlayers = 3\nwidth = 96\nheads = 3\ndropout = 0.3\n")
    child = write(tmp_path, "child.toml", 'extends = "parent.toml"\n[model]\nlayers = 5\nfeedforward = 7\n')
    plain = recipe(child).model
    assert (plain.layers, plain.width, plain.feedforward, plain.dropout) == (5, 96, 7, 0.3)
    sized = recipe(child, size="mini").model
    assert (sized.layers, sized.width, sized.heads, sized.feedforward, sized.dropout) == (4, 256, 4, 0, 0.3)
    overridden = recipe(child, {"model.layers": 9}, size="mini").model
    assert (overridden.layers, overridden.width) == (9, 256)


def test_tables_that_answer_as_a_whole_replace_the_parents(tmp_path):
    child = write(
        tmp_path,
        "child.toml",
        'extends = "bert"\n[corruption.replace]\nmask = 1.0\nrandom = 0.0\nkeep = 0.0\n[objectives.next_sentence]\n',
    )
    made = recipe(child)
    assert list(made.objectives) == ["next_sentence"]
    assert made.corruption.replace.mask == 1.0
    assert made.corruption.when == "static"
    half = write(
        tmp_path, "half.toml", 'extends = "child.toml"\n[corruption]\nreplace = { random = 0.2, keep = 0.0 }\n'
    )
    shares = recipe(half).corruption.replace
    assert (shares.mask, shares.random, shares.keep) == (0.8, 0.2, 0.0)


def test_overrides_merge_even_there():
    made = recipe("bert", {"objectives.masked_token.weight": 2})
    assert {name: each.weight for name, each in made.objectives.items()} == {"masked_token": 2, "next_sentence": 1}
    assert recipe("bert", {"model": {"layers": 4}}) == recipe("bert", {"model.layers": 4})


def test_an_override_can_leave_an_objective_out():
    made = recipe("bert", {"objectives.next_sentence": False, "rows.pair": "none"})
    assert list(made.objectives) == ["masked_token"]
    assert made.require() is made
    with pytest.raises(RecipeError, match="next_sentense"):
        recipe("bert", {"objectives.next_sentense": True})


def test_a_length_drops_phases_unless_phases_come_with_it():
    assert recipe("bert", {"training.length": 64}).training.phases == ()
    phases = [{"steps": 1, "length": 32}]
    kept = recipe("bert", {"training.length": 64, "training.phases": phases}).training
    assert [phase.length for phase in kept.phases] == [32]
    assert len(recipe("bert", {"training.steps": 10}).training.phases) == 2


def test_a_batch_or_rate_clears_the_phases_own(tmp_path):
    phases = "[training]\nphases = [{ steps = 1, length = 16, batch = 7, lr = 0.5 }, { steps = 1, length = 32 }]\n"
    path = write(tmp_path, "own.toml", phases)
    assert [phase.batch for phase in recipe(path).training.phases] == [7, 0]
    batch = recipe(path, {"training.batch": 3}).training
    assert [(phase.batch, phase.lr) for phase in batch.phases] == [(0, 0.5), (0, 0.0)]
    assert [phase.lr for phase in recipe(path, {"training.lr": 1e-3}).training.phases] == [0, 0]


def test_extends_a_path_relative_to_the_file_and_names_are_not_inherited(tmp_path, monkeypatch):
    write(tmp_path, "a/base.toml", 'problem = "old"\npaper = "x"\n[model]\nlayers = 2\n')
    path = write(tmp_path, "b/mine.toml", 'extends = "../a/base.toml"\n')
    monkeypatch.chdir(tmp_path)
    made = recipe("b/mine.toml")
    assert (made.name, made.problem, made.paper, made.model.layers) == ("mine", "", "", 2)
    assert recipe(path) == made


def test_a_circle_of_extends_is_refused(tmp_path):
    write(tmp_path, "a.toml", 'extends = "b.toml"\n')
    write(tmp_path, "b.toml", 'extends = "./a.toml"\n')
    with pytest.raises(RecipeError, match="circle: a -> b -> a"):
        recipe(tmp_path / "a.toml")


# Errors


def test_unknown_names_list_their_neighbours():
    with pytest.raises(UnknownName, match="did you mean roberta"):
        recipe("robrta")
    with pytest.raises(UnknownName, match="unknown size 'huge'"):
        recipe("bert", size="huge")


def test_unknown_parent_names_the_line_that_asks(tmp_path):
    path = write(tmp_path, "mine.toml", '# mine\nextends = "brt"\n')
    with pytest.raises(UnknownName, match=r"mine\.toml:2: unknown recipe 'brt'"):
        recipe(path)


def test_unknown_key_names_file_line_key_and_nearest(tmp_path):
    path = write(tmp_path, "mine.toml", 'extends = "bert"\n[corruption]\nrat = 0.2\n')
    with pytest.raises(RecipeError) as caught:
        recipe(path)
    assert f"{path}:3: corruption.rat is not a key" in str(caught.value)
    assert "did you mean corruption.rate" in str(caught.value)


def test_all_problems_come_in_one_message_each_with_its_place(tmp_path):
    path = write(tmp_path, "mine.toml", 'extends = "bert"\n[corruption]\nwhen = "now"\n[trainin]\nlr = 1\n')
    with pytest.raises(RecipeError) as caught:
        recipe(path, {"model.layers": "12", "objectives.masked_tokn.weight": 1, "training.phases": [{"steps": 1}]})
    text = str(caught.value)
    assert "5 problems" in text
    assert f"{path}:3: corruption.when = \"now\": must be 'static' or 'dynamic'" in text
    assert f"{path}:4: trainin is not a key of a recipe; did you mean training" in text
    assert 'override: model.layers = "12": must be a valid integer' in text
    assert "override: objectives.masked_tokn: unknown objective" in text
    assert "override: training.phases[0].length is missing" in text


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"training.batch": 0}, "training.batch = 0: must be greater than or equal to 1"),
        ({"training.lr": float("nan")}, "training.lr = NaN: must be a finite number"),
        ({"training.bias_correction": 1}, "training.bias_correction = 1: must be a valid boolean"),
        ({"rows.kind": "segment_pairs"}, "did you mean segment_pair"),
        ({"model.width": 100}, "model: width 100 is not a multiple of heads 12"),
        ({"corruption.replace.mask": 0.5}, "corruption.replace: shares sum to 0.7"),
        ({"model": 3}, "model = 3"),
        ({"name": object()}, "name = "),
        ({"training.phases.0.length": 64}, "training.phases"),
        ({"objectives.masked_token.wieght": 1}, "did you mean objectives.masked_token.weight"),
        ({"": 1}, "is not a key"),
        ({"rows.kind": ["full_sentences"]}, "rows.kind = "),
        ({"rows.kind": "full_sentences"}, "rows: kind 'full_sentences' goes with pair 'none' only"),
        ({"training.phases": [{"steps": 1, "lenght": 8}]}, "did you mean training.phases[0].length"),
        ({"model.layers": 3, "model": {"layers": 4}}, "model.layers is overridden twice"),
        ({"model": 3, "model.layers": 4}, "model is overridden twice"),
    ],
)
def test_wrong_values_name_key_value_and_what_is_allowed(overrides, words):
    with pytest.raises(RecipeError) as caught:
        recipe("bert", overrides)
    assert words in str(caught.value)
    assert "override" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[model]\nlayers = = 3\n", ":2: not valid TOML"),
        (b"[model]\nlayers = 3\nlayers = 4\n", ":3: not valid TOML"),
        (b"name = 'a'\n# \xff\n", ":2: byte 13 is not UTF-8"),
        (b"extends = 3\n", ":1: extends = 3 is not a text"),
        (b"name = 2020-01-01\n", ':1: name = "2020-01-01": must be a valid string'),
    ],
)
def test_broken_files_name_file_and_line(tmp_path, content, words):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(RecipeError) as caught:
        recipe(path)
    assert f"{path}{words}" in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(RecipeError, match=r"none\.toml: cannot be read: No such file"):
        recipe(tmp_path / "none.toml")
    with pytest.raises(RecipeError, match="is a folder"):
        recipe(f"{tmp_path}/")
    with pytest.raises(ArgumentError, match="which is no path"):
        recipe("a\0.toml")


keys = st.sampled_from(["model", "model.layers", "training", "training.phases", "objectives", "rows.kind", "x", "a..b"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(keys, values, max_size=3))
@settings(deadline=None)
def test_whatever_is_overridden_only_our_errors_come_out(overrides):
    try:
        assert isinstance(recipe("bert", overrides), Recipe)
    except ValidationError:
        pytest.fail("pydantic's error reached the user")
    except RecipeError as error:
        told = str(error)
        assert "override" in told


def test_line_of_headers_inline_tables_and_dotted_keys():
    text = '[model] # shape\nlayers = 3\n[a.b]\n"c".d = 1\n[[training.phases]]\nx = { y = 2 }\n'
    assert line_of(text, ("model",)) == 1
    assert line_of(text, ("model", "layers")) == 2
    assert line_of(text, ("a", "b", "c", "d")) == 4
    assert line_of(text, ("training", "phases", "x", "y")) == 6
    assert line_of(text, ("model", "width")) is None


# TOML, diff

texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    name=texts.filter(bool), problem=texts, lr=st.floats(1e-30, 1e3), steps=st.integers(1, 2**70), length=st.integers(8)
)
@settings(deadline=None)
def test_toml_comes_back_exactly(name, problem, lr, steps, length):
    made = recipe(
        "bert",
        {
            "name": name,
            "problem_zh": problem,
            "training": {"lr": lr, "steps": steps, "phases": [{"steps": steps, "length": length, "lr": lr}]},
        },
    )
    assert loads(made.toml()) == made
    assert list(loads(made.toml()).objectives) == list(made.objectives)


def test_a_written_recipe_reads_back_from_its_path(tmp_path):
    made = recipe("roberta", {"training.seed": 5}, size="tiny")
    assert recipe(write(tmp_path, "recipe.toml", made.toml())) == made


def test_diff():
    bert = recipe("bert")
    assert diff(bert, bert) == {}
    other = recipe("bert", {"model.layers": 4, "objectives.next_token.weight": 0.5})
    assert diff(bert, other) == {
        "model.layers": (12, 4),
        "objectives.next_token.weight": (None, 0.5),
        "objectives.next_token.smoothing": (None, 0.0),
    }


# Contradictions


REFUSED = {
    "no_weight": {"objectives.masked_token.weight": 0, "objectives.next_sentence.weight": 0},
    "distances_without_positions": {"model.clip": 127},
    "windows_without_layers": {"model.local": 8, "model.global_every": 1},
    "segments_too_few": {"model.segments": 1},
    "modes_without_vectors": {"rows.segments": "mode"},
    "mixture_without_kind": {"visibility.mixture": {"causal": 1.0}},
    "prefix_without_target": {"visibility.kind": "prefix", "rows.pair": "none"},
    "corruption_without_target": {"corruption.segment": "second", "rows.pair": "none"},
    "pair_taken_apart": {"visibility.kind": "packed"},
    "question_without_pairs": {"rows.pair": "none"},
    "question_out_of_sight": {"visibility.kind": "causal"},
    "chosen_without_corruption": {"corruption.rate": 0},
    "chosen_in_plain_sight": {"corruption.replace": {"mask": 0, "random": 0, "keep": 1}},
    "word_order_without_shuffle": {"objectives.word_order.weight": 1},
    "contrast_without_ngram": {"objectives.contrast.weight": 1},
    "ngram_without_contrast": {"corruption.ngram.longest": 4},
    "contrast_out_of_sight": {
        "objectives.contrast.weight": 1,
        "corruption.ngram.longest": 4,
        "visibility.kind": "causal",
    },
    "similar_without_synonyms": {
        "corruption": {"unit": "word", "decide": "word", "replace": {"mask": 0, "similar": 0.8}}
    },
    "answers_that_have_moved": {
        "corruption": {"decide": "span", "replace": {"mask": 0, "random": 0, "keep": 0, "infill": 1}}
    },
    "smoothing_of_others": {"objectives.masked_token.smoothing": 0.1},
    "bands_smoothed": {"objectives.masked_token.smoothing": 0.1, "model.cutoffs": [9]},
    "bands_of_generator": {"model.generator.width": 0.25, "model.cutoffs": [9]},
    "next_token_with_corruption": {"objectives.next_token.weight": 1},
    "next_token_in_sight": {"objectives.next_token.weight": 1},
    "replaced_without_generator": {"objectives.replaced_token.weight": 50},
    "generator_without_replaced": {"model.generator.width": 0.25},
    "generator_without_masked": {
        "model.generator.width": 0.25,
        "objectives.replaced_token.weight": 50,
        "objectives.masked_token": False,
    },
    "rows_longer_than_positions": {"model.max_length": 256},
    "warmup_without_end": {"training.warmup": 20, "training.steps": 10},
    "betas_out_of_range": {"training.betas": [0.9, 1.0]},
}


@pytest.mark.parametrize("contradiction", CHECKS, ids=lambda each: each.__name__)
def test_each_contradiction_is_refused_with_a_repair(contradiction, tmp_path):
    if contradiction.__name__ == "no_objective":
        made = recipe(write(tmp_path, "silent.toml", 'extends = "bert"\n[objectives]\n'))
    else:
        made = recipe("bert", (REFUSED | ORDERED | DECODERS)[contradiction.__name__])
    assert contradiction(recipe("bert")) is None
    refusals = check(made)
    assert contradiction(made) in refusals
    with pytest.raises(RefusedError) as caught:
        made.require()
    for refusal in refusals:
        assert f"{refusal.piece}: {refusal.reason}" in str(caught.value)
        assert refusal.repair in str(caught.value)


def test_rows_may_be_longer_where_positions_are_not_learned():
    assert check(recipe("bert", {"model.positions": "sinusoidal", "model.max_length": 256})) == []


def test_reading_a_recipe_needs_no_torch():
    code = (
        "import sys; from maskery.recipes.recipe import recipe, table; recipe('bert').require(); table(); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("kind", ["packed", "packed_causal"])
def test_packed_rows_do_not_part_a_pair(kind):
    changes = {"visibility.kind": kind, "objectives.next_sentence": False}
    with pytest.raises(RefusedError, match="hides the second segment of a pair"):
        recipe("bert", changes).require()
    assert recipe("bert", changes | {"rows.pair": "none"}).require()
