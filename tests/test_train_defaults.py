"""The settings of a pretraining run: precedence, what is chosen and why, and what is kept as published."""

import pytest
import torch
from tiny import build

import maskery
from maskery.errors import InputError
from maskery.language import phrases
from maskery.model.config import ModelConfig
from maskery.recipes.recipe import names, recipe
from maskery.train import machine
from maskery.train.defaults import choose_size, choose_training, peak_rate
from maskery.train.options import Options, flat
from maskery.train.settle import _more, rows_and_size, settle


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("defaults"))


def settled(corpus, out, **options):
    said = []
    made = settle(Options(recipe=options.pop("recipe", "bert"), **options), corpus, out / "run", say=said.append)
    return made, said


def test_choices_on_a_cpu_have_reasons(corpus, tmp_path):
    made, said = settled(corpus, tmp_path, tokens=100_000)
    assert [each.split(":")[0] for each in said[:3]] == ["--size tiny", "--length 128", "--batch 32"]
    assert (made.model.layers, made.model.width, made.training.batch) == (2, 128, 32)
    assert [(each.length, each.batch) for each in made.training.phases] == [(32, 64), (128, 32)]
    assert (made.training.optimizer, made.training.lr, made.training.warmup) == ("adamw", 2e-3, 0.1)
    assert any(each.startswith("--lr 0.002 ") and "--as-published" in each for each in said)


def test_precedence_is_recipe_size_set_flags(corpus, tmp_path):
    def made(**options):
        return settled(corpus, tmp_path, tokens=1000, **options)[0]

    assert made(size="small").model.width == 512
    assert made(size="small", settings={"model.width": 64}).model.width == 64
    found = made(settings={"training.batch": 8, "training.seed": 4, "training.lr": 1.0}, batch=16, seed=5, lr=3e-4)
    assert (found.training.batch, found.training.seed, found.training.lr) == (16, 5, 3e-4)
    phases = [{"steps": 1, "length": 16, "batch": 7}, {"steps": 1, "length": 32}]
    assert made(settings={"training.phases": phases}).training.phases[0].batch == 7
    assert made(settings={"training.phases": phases}, length=64).training.phases == ()
    assert made(settings={"training.phases": phases}, batch=3).training.phases[0].batch == 0


def test_what_is_given_is_not_chosen(corpus, tmp_path):
    given = {
        **{"model.layers": 1, "model.width": 8, "model.heads": 1, "model.init_std": 0.1, "model.dropout": 0.3},
        **{"model.attention_dropout": 0.3, "training.optimizer": "lamb", "training.warmup": 0.2},
    }
    made, said = settled(corpus, tmp_path, tokens=1000, batch=256, length=512, lr=1e-5, settings=given)
    plain = made.plain()
    assert {key: plain[key.split(".")[0]][key.split(".")[1]] for key in given} == given
    assert (made.training.lr, made.training.batch, made.training.length) == (1e-5, 256, 512)
    assert not any(each.startswith(("--size", "--length", "--batch", "--set")) for each in said)
    only_width, _ = settled(corpus, tmp_path, tokens=1000, settings={"model.width": 64})
    assert (only_width.model.width, only_width.model.heads, only_width.model.layers) == (64, 2, 2)


def test_as_published_chooses_nothing(corpus, tmp_path):
    made, said = settled(corpus, tmp_path, recipe="bert-wwm", as_published=True)
    assert made == recipe("bert-wwm")
    assert said == []
    made, said = settled(corpus, tmp_path, recipe="bert-wwm", as_published=True, size="tiny", steps=2000)
    assert made == recipe("bert-wwm", {"training.steps": 2000}, size="tiny")
    assert said == []


def test_a_run_as_long_as_published_keeps_its_settings(corpus, tmp_path):
    made, _ = settled(corpus, tmp_path, recipe="bert-wwm", batch=2560, length=128, steps=100_000)
    assert (made.training.optimizer, made.training.lr) == ("lamb", 1e-4)


@pytest.mark.parametrize("name", names())
def test_every_recipe_has_settings_for_a_short_run(name):
    published = recipe(name)
    changes = {"training.length": 128, "training.batch": 32, "training.phases": [], "knowledge.synonyms": "some.txt"}
    drawn = recipe(name, changes, size="tiny")
    (first, *_) = chosen = choose_training(published, drawn, 1e6, 1e6)
    keys = {key: value for choice in chosen for key, value in choice.keys.items()}
    made = drawn.changed(keys)
    made.require()
    assert made.training.optimizer == "adamw"
    assert made.training.lr == 2e-3
    assert made.training.warmup == 0.1, "a number of steps could exceed those of a short run"
    assert first.reason.count("as published") == 1


def test_the_size_follows_the_tokens():
    def size(tokens):
        choice = choose_size(recipe("bert"), tokens=tokens)
        return choice.reason.split(":")[0].removeprefix("--size ")

    assert [size(tokens) for tokens in (1e4, 2e6, 1e9)] == ["tiny", "tiny", "small"]
    slow, quick = (choose_size(recipe("bert"), seconds=180, flops=flops).keys["model.width"] for flops in (1e9, 1e15))
    assert slow < quick
    assert choose_size(recipe("bert", size="tiny"), tokens=1e9) is None, "nothing is made larger"


def test_wider_networks_learn_at_lower_rates():
    rates = [peak_rate(recipe("bert", size=size).model) for size in ("tiny", "mini", "small", "base")]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 2e-3


def test_a_model_to_begin_with_is_not_unlearnt(corpus):
    published = recipe("bert", {"training.phases": []}, size="tiny")
    rates = [choose_training(published, published, 1e6, 1e6, starts=starts)[0].keys for starts in (False, True)]
    assert rates[1]["training.lr"] < rates[0]["training.lr"]


def test_many_passes_over_a_small_text_get_dropout():
    published = recipe("roberta", size="tiny")
    dropouts = []
    for passes in (1, 30, 100):
        chosen = choose_training(published, published, passes * 1e5, 1e5)
        made = published.changed({key: value for each in chosen for key, value in each.keys.items()})
        dropouts.append(made.model.dropout)
    assert dropouts == [0.0, 0.1, 0.2]


def test_a_small_recipe_of_ones_own_keeps_its_shape(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('extends = "bert"\n[model]\nlayers = 2\nwidth = 32\nheads = 2\n[training]\nlength = 64\nbatch = 8\n')
    assert rows_and_size(Options(recipe=str(own))) == []


OWN = {
    "model": {"layers": 6, "width": 384},
    "training": {"batch": 100, "length": 256, "steps": 200},
}


@pytest.fixture
def own(tmp_path):
    file = tmp_path / "own.toml"
    tables = [f"[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in table.items()) for name, table in OWN.items()]
    file.write_text('extends = "bert"\n' + "".join(tables))
    return str(file)


def test_what_ones_own_file_says_is_kept(own, corpus, tmp_path):
    made, said = settled(corpus, tmp_path, recipe=own)
    for name, table in OWN.items():
        assert {key: made.plain()[name][key] for key in table} == table
    assert (made.model.heads, made.training.phases) == (12, ())
    assert said == ["--save-every 50: the run is shorter than 1,000 steps"]


def test_the_recipe_of_a_run_repeats_it(own, corpus, tmp_path):
    made = recipe(own, {"training.save_every": 7})
    (tmp_path / "again.toml").write_text(made.toml())
    found, said = settled(corpus, tmp_path, recipe=str(tmp_path / "again.toml"))
    assert found.plain() | {"name": ""} == made.plain() | {"name": ""}
    assert said == []


def test_the_command_line_wins_over_ones_own_file(own, corpus, tmp_path):
    found, _ = settled(corpus, tmp_path, recipe=own, size="tiny", batch=4, length=16, tokens=1000)
    assert (found.model.layers, found.training.batch, found.training.length) == (2, 4, 16)
    assert found.training.steps < 200


def test_nothing_is_chosen_for_a_full_run_beside_a_gpu(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "device", lambda: torch.device("cuda"))
    assert settled(corpus, tmp_path) == (recipe("bert"), [])
    shape = ModelConfig(layers=3, width=48, heads=3).shape(100)
    (only,) = rows_and_size(Options(recipe="bert"), shape)
    assert only.keys["model.layers"] == 3
    short, _ = settled(corpus, tmp_path, steps=100)
    assert (short.model.layers, short.training.batch) == (12, 256), "size and rows are the user's"
    assert short.training.lr > 1e-4, "the rate follows the tokens to be read"


def test_the_shape_of_a_model_to_start_from():
    shape = ModelConfig(layers=3, width=48, heads=3).shape(100)
    keys = {key: value for each in rows_and_size(Options(recipe="bert"), shape) for key, value in each.keys.items()}
    assert (keys["model.layers"], keys["model.width"], keys["model.heads"]) == (3, 48, 3)


def test_one_limit_only():
    for limits in (
        {"steps": 1, "tokens": 5},
        {"steps": 1, "budget": "1m"},
        {"tokens": 1, "budget": "1m"},
        {"settings": {"training.steps": 3}, "tokens": 1},
    ):
        with pytest.raises(InputError, match="how long to train"):
            Options(recipe="bert", **limits)


def test_flat():
    assert flat({"model": {"layers": 2}, "a.b": [1]}) == {"model.layers": 2, "a.b": [1]}


# -- in Python

TINY = {"model.layers": 1, "model.width": 16, "model.heads": 2, "training.eval_rows": 8}


def test_a_recipe_by_name_is_settled_in_python(corpus, tmp_path):
    said = []
    run = maskery.pretrain("bert", corpus.path, tmp_path / "run", settings=TINY, steps=2, length=32, say=said.append)
    made = run.recipe
    assert (made.training.lr, made.training.batch, made.training.length, made.model.width) == (2e-3, 32, 32, 16)
    assert any("--as-published" in each for each in said)
    published = maskery.pretrain(
        *("bert", corpus, tmp_path / "published"),
        **{"settings": TINY, "steps": 1, "length": 32, "batch": 2, "as_published": True, "say": said.append},
    )
    assert published.recipe.training.lr == 1e-4


def test_a_recipe_object_is_trained_as_it_is(corpus, tmp_path):
    exact = recipe("bert", {**TINY, "training.steps": 1, "training.batch": 2, "training.length": 32})
    exact = exact.changed({"training.phases": [], "training.precision": "float32"})
    run = maskery.pretrain(exact, corpus, tmp_path / "run", say=lambda text: None)
    assert run.recipe == exact
    with pytest.raises(InputError, match="lr is given beside a Recipe, which is complete"):
        maskery.pretrain(exact, corpus, tmp_path / "other", lr=1e-3)


@pytest.mark.parametrize(
    ("limits", "remedy"), [({"budget": "1s"}, "--budget"), ({}, "--budget"), ({"steps": 1}, "--steps")]
)
def test_an_only_update_without_a_rate_is_mended_by_what_was_limited(limits, remedy):
    told = _more(Options(recipe="bert", **limits))
    assert remedy in told
    line = f"warning: the only update has rate 0 (decay linear): no weight moves; {told}"
    assert phrases("zh").line(line).startswith("警告：唯一的一次更新学习率为 0")
