"""Training word vectors: the numbers of gensim, reproducible, and resumed as if it had never stopped."""

from __future__ import annotations

import json
from importlib.metadata import version
from random import Random

import numpy as np
import pytest
from crash import contents
from gensim.models import FastText, Word2Vec
from gensim.models.fasttext import ft_ngram_hashes
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError
from tiny import build

from maskery.corpus.store import Corpus
from maskery.errors import DiskError, ExistsError, InputError, Stopped, UnknownName
from maskery.randomness import key
from maskery.words import folder, gensim_training
from maskery.words.config import DEFAULTS, METHODS, words_config
from maskery.words.gensim_training import train_gensim, vectors_gensim
from maskery.words.protocol import Epoch
from maskery.words.subwords import initial_ngrams, initial_rows, ngrams
from maskery.words.training import Training
from maskery.words.vectors import WordVectors
from maskery.words.vocabulary import Words, read_words

GENSIM = ["cbow", "skipgram", "fasttext"]
ANY = {"width": 8, "epochs": 3, "min_count": 1}
SMALL = {**ANY, "sample": 0.05}


def small(method, **more):
    """Few numbers for a method, of those that it reads."""
    own = {"cbow": SMALL, "skipgram": SMALL, "fasttext": {**SMALL, "buckets": 500}, "glove": ANY}
    return words_config(method, {**own[method], **more})


def made_words(seed=0, sentences=400):
    """Words in which two topics do not mix."""
    draw = Random(seed)
    topics = [["猫", "狗", "鸟鸣", "animal", "run"], ["酒", "茶水", "咖啡", "drink", "cup"]]
    text = [
        [draw.choice(draw.choice(topics[n % 2 :][:1])) for _ in range(draw.randint(1, 9))] for n in range(sentences)
    ]
    flat = [word for sentence in text for word in sentence]
    names = sorted(set(flat), key=lambda word: (-flat.count(word), flat.index(word)))[:-1]  # the rarest is left out
    number = [names.index(word) if word in names else -1 for word in flat]
    return Words(
        words=names,
        counts=np.array([flat.count(name) for name in names]),
        number=np.array(number, dtype=np.int32),
        sentence_start=np.concatenate(([0], np.cumsum([len(sentence) for sentence in text]))),
        total=len(flat),
    )


def sentences_of(words):
    cut = [
        words.number[start:end] for start, end in zip(words.sentence_start[:-1], words.sentence_start[1:], strict=True)
    ]
    return [[words.words[number] for number in sentence if number >= 0] for sentence in cut]


def plain_gensim(words, config):
    """What gensim makes of it in the ordinary way, from the same beginning; a full table of n-grams for fasttext."""
    settings = {
        "vector_size": config.width, "window": config.window, "negative": config.negative, "sample": config.sample,
        "ns_exponent": config.power, "min_count": 1, "sg": int(config.method != "cbow"), "workers": 1,
        "sorted_vocab": 0,
    }  # fmt: skip
    text = sentences_of(words)
    model = FastText(bucket=config.buckets, **settings) if config.method == "fasttext" else Word2Vec(**settings)
    model.build_vocab_from_freq(dict(zip(words.words, words.counts.tolist(), strict=True)))
    rows = np.arange(len(words.words))
    reach = (1.0 if config.method == "fasttext" else 0.5) / config.width
    begun = initial_rows(config.seed, "words.vectors", rows, config.width, reach)
    if config.method == "fasttext":
        model.wv.vectors_vocab = begun
        model.wv.vectors_ngrams = initial_ngrams(config.seed, np.arange(config.buckets), config.width)
    else:
        model.wv.vectors = begun
    for epoch in range(config.epochs):
        model.random = np.random.RandomState(key(config.seed, "words.epoch", epoch) % 2**32)
        rates = [config.lr * max(1e-4, 1 - done / config.epochs) for done in (epoch, epoch + 1)]
        total = sum(map(len, text))
        model.train(text, total_words=total, epochs=1, start_alpha=rates[0], end_alpha=rates[1])
    return model


@pytest.mark.parametrize("method", GENSIM)
def test_the_numbers_are_those_of_gensim(method):
    words, config = made_words(), small(method, seed=3)
    *_, last = train_gensim(words, config)
    assert last.number == 3
    trained = vectors_gensim(words, config, last.arrays)
    theirs = plain_gensim(words, config)
    assert theirs.wv.index_to_key == words.words
    assert trained.matrix == pytest.approx(theirs.wv.vectors, abs=1e-6)
    begun = initial_rows(3, "words.vectors", np.arange(len(words.words)), 8, 0.5 / 8)
    assert np.abs(trained.matrix - begun).max() > 0.05, "training moves them"
    if method == "fasttext":
        made = WordVectors(words.words, words.counts, trained.matrix, subwords=trained.subwords)
        for unseen in ("animals", "茶水杯", "drinking"):
            assert made.vector(unseen) == pytest.approx(theirs.wv.get_vector(unseen), abs=1e-6)
    else:
        assert trained.subwords is None


@pytest.mark.parametrize("method", GENSIM)
def test_words_of_one_topic_are_near(method):
    words = made_words()
    config = words_config(method, {"width": 12, "epochs": 30, "min_count": 1, "sample": 0, "lr": 0.1})
    *_, last = train_gensim(words, config)
    made = WordVectors(words.words, words.counts, vectors_gensim(words, config, last.arrays).matrix)
    for word, topic in (("猫", {"狗", "鸟鸣", "animal", "run"}), ("酒", {"茶水", "咖啡", "drink", "cup"})):
        nearest = {near for near, _ in made.neighbours(word, 3)}
        assert nearest <= topic


@pytest.mark.parametrize("method", GENSIM)
def test_a_training_that_goes_on_is_one_that_never_stopped(method):
    words, config = made_words(), small(method)
    kept, finals = [], []
    for epoch in train_gensim(words, config):
        kept.append(Epoch(epoch.number, {name: array.copy() for name, array in epoch.arrays.items()}))
    for state in (None, *kept[:-1]):
        start = None if state is None else Epoch(state.number, {k: v.copy() for k, v in state.arrays.items()})
        *_, last = train_gensim(words, config, None, start)
        finals.append(last.arrays)
    for arrays in finals:
        assert {name: array.tobytes() for name, array in arrays.items()} == {
            name: array.tobytes() for name, array in kept[-1].arrays.items()
        }
    other = list(train_gensim(words, small(method, seed=1)))[-1].arrays["words"]
    assert np.abs(other - kept[-1].arrays["words"]).max() > 1e-3


def test_progress_covers_all_epochs_and_a_stop_ends_it(monkeypatch):
    monkeypatch.setattr(gensim_training, "_LONGEST", 100)
    words, config, told = made_words(), words_config("cbow", SMALL), []
    list(train_gensim(words, config, lambda done, total: told.append(done / total)))
    assert told == sorted(told)
    assert len(told) > 20
    assert told[-1] == 1
    asked = []

    def stopped():
        asked.append(1)
        return len(asked) > 30

    yielded = [epoch.number for epoch in train_gensim(words, config, None, None, stopped)]
    assert yielded in ([1], [1, 2])


def test_long_sentences_are_cut_and_empty_ones_left_out():
    cuts = gensim_training._short(np.array([0, 0, 3, 3, 13, 14, 14]), 4)
    assert cuts.tolist() == [0, 3, 7, 11, 13, 14]


@given(st.lists(st.text(max_size=8), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 4))
def test_ngrams_are_hashed_as_gensim_does(words, shortest, more):
    words = [word for word in words if word.encode(errors="replace").decode() == word]
    found, many = ngrams(words, shortest, shortest + more, 12_345)
    wanted = [ft_ngram_hashes(word, shortest, shortest + more, 12_345) for word in words]
    assert many.tolist() == list(map(len, wanted))
    assert found.tolist() == [number for each in wanted for number in each]


def test_defaults_are_those_of_the_origins():
    assert set(DEFAULTS) == set(METHODS.names())
    numbers = ("width", "window", "negative", "epochs", "min_count", "lr", "sample", "power")
    shown = {method: tuple(getattr(words_config(method), name) for name in numbers) for method in GENSIM}
    assert shown == {
        "cbow": (100, 5, 5, 5, 5, 0.05, 1e-3, 0.75),
        "skipgram": (100, 5, 5, 5, 5, 0.025, 1e-3, 0.75),
        "fasttext": (100, 5, 5, 5, 5, 0.05, 1e-4, 0.5),
    }
    fast = words_config("fasttext")
    assert (fast.shortest, fast.longest, fast.buckets) == (3, 6, 2_000_000)
    with pytest.raises(UnknownName, match="unknown method of word vectors 'cbwo'"):
        words_config("cbwo")
    with pytest.raises(InputError, match="--width 0: Input should be greater than or equal to 1"):
        words_config("cbow", {"width": 0})
    with pytest.raises(InputError, match="the shortest n-gram has 7"):
        words_config("fasttext", {"shortest": 7})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return build(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("method", METHODS.names())
def test_a_folder_of_a_stopped_training_goes_on(corpus, tmp_path, method):
    config = small(method, epochs=4)
    whole = Training(corpus, config, tmp_path / "whole")
    made = whole.run(whole.read())
    assert made.words == read_words(corpus, 1).words
    asked = []
    first = Training(corpus, config, tmp_path / "parts")
    words = first.read()

    def stop_after_two(epoch):
        asked.append(epoch.number)

    with pytest.raises(Stopped, match="stopped in epoch 3 of 4: the 2 before it are kept") as caught:
        first.run(words, signal=lambda: 2 * (len(asked) >= 2), epoch_done=stop_after_two)
    assert caught.value.exit_code == 130
    assert "--resume" in caught.value.repair
    with pytest.raises(InputError, match="has not ended") as caught:
        WordVectors.load(tmp_path / "parts")
    assert "--resume" in caught.value.repair
    with pytest.raises(ExistsError, match="already there") as caught:
        Training(corpus, config, tmp_path / "parts")
    assert "--resume" in caught.value.repair
    rest = Training(corpus, config, tmp_path / "parts", resume=True)
    assert rest.state.number == 2
    rest.run(rest.read())
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    facts = WordVectors.load(tmp_path / "parts").facts
    assert facts["training"]["method"] == method
    assert facts["corpus"]["fingerprint"] == corpus.fingerprint
    assert facts["occurrences"] == words.total
    with pytest.raises(ExistsError, match="has ended"):
        Training(corpus, config, tmp_path / "parts", resume=True)


def stopped_training(corpus, out, config):
    asked = []
    training = Training(corpus, config, out)
    with pytest.raises(Stopped):
        training.run(training.read(), signal=lambda: 15 * bool(asked), epoch_done=lambda epoch: asked.append(epoch))


def test_what_a_method_does_not_read_is_refused_and_not_written(corpus, tmp_path):
    for method, name, value, told in (
        ("glove", "negative", 3, "cbow or skipgram or fasttext"),
        ("glove", "sample", 0.0, "cbow or skipgram or fasttext"),
        ("cbow", "x_max", 10.0, "glove"),
        ("fasttext", "adagrad", "code", "glove"),
        ("skipgram", "longest", 4, "fasttext"),
    ):
        with pytest.raises(InputError, match=f"--{name.replace('_', '-')} has no meaning for {method}") as caught:
            words_config(method, {name: value})
        assert caught.value.repair == f"leave it out, or --method {told}"
    everywhere = {"method", "width", "window", "epochs", "min_count", "lr", "seed", "workers"}
    drawn, parts = {"negative", "sample", "power"}, {"shortest", "longest", "buckets"}
    own = {"cbow": drawn, "skipgram": drawn, "fasttext": drawn | parts, "glove": {"x_max", "alpha", "clip", "adagrad"}}
    assert {method: set(words_config(method).used()) for method in METHODS.names()} == {
        method: everywhere | names for method, names in own.items()
    }
    training = Training(corpus, small("glove", epochs=1), tmp_path / "out")
    assert set(training.run(training.read()).facts["training"]) == everywhere | own["glove"]


def test_a_sample_that_gensim_would_take_for_a_count_is_refused():
    """From 1 on it means another thing to gensim: words beyond so many occurrences are thinned out."""
    with pytest.raises(InputError, match=r"--sample 1\.0: Input should be less than 1"):
        words_config("cbow", {"sample": 1.0})
    words = made_words()
    model = gensim_training._model(words, small("cbow", sample=0.5), gensim_training._begin(words, small("cbow")))
    share = words.counts / words.counts.sum()
    for name, f in zip(words.words, share.tolist(), strict=True):
        kept = min(1.0, (0.5 / f) ** 0.5 + 0.5 / f)
        assert model.wv.get_vecattr(name, "sample_int") == pytest.approx(kept * (2**32 - 1), rel=1e-3)


def test_the_folder_that_one_stands_in_is_refused_before_the_work(corpus, tmp_path, monkeypatch):
    (tmp_path / "here/inside").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here/inside")
    for out in (".", "..", tmp_path / "here"):
        with pytest.raises(
            InputError, match="is the folder that this command is given in, or lies around it"
        ) as caught:
            Training(corpus, small("cbow"), out)
        assert "--out my-vectors" in caught.value.repair


def test_a_disk_that_is_full_is_told_and_keeps_what_was_there(corpus, tmp_path, monkeypatch):
    stopped_training(corpus, tmp_path / "out", small("cbow"))
    before = contents(tmp_path / "out")

    def refuse(arrays, path):
        path.write_bytes(b"front")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    with monkeypatch.context() as patch:
        patch.setattr(folder, "save_file", refuse)
        training = Training(corpus, small("cbow"), tmp_path / "out", resume=True)
        with pytest.raises(DiskError, match="No space left on device") as caught:
            training.run(training.read())
        assert caught.value.repair.startswith("free some space")
    assert contents(tmp_path / "out") == before
    training = Training(corpus, small("cbow"), tmp_path / "out", resume=True)
    training.run(training.read())
    modes = {path.name: path.stat().st_mode for path in (tmp_path / "out").iterdir()}
    assert modes["vectors.safetensors"] == modes["words.txt"], "not readable by its owner alone"


def test_other_versions_of_the_libraries_are_told_when_it_goes_on(corpus, tmp_path, monkeypatch):
    stopped_training(corpus, tmp_path / "out", small("cbow"))
    assert Training(corpus, small("cbow"), tmp_path / "out", resume=True).notes == []
    monkeypatch.setattr("maskery.words.training.version", lambda name: "9.9" if name == "gensim" else version(name))
    (note,) = Training(corpus, small("cbow"), tmp_path / "out", resume=True).notes
    assert note.startswith(f"it began with gensim {version('gensim')}, this is 9.9: ")


def test_what_does_not_fit_is_not_gone_on_with(corpus, tmp_path):
    config = words_config("cbow", SMALL)
    with pytest.raises(InputError, match="no epoch to go on from"):
        Training(corpus, config, tmp_path / "new", resume=True)
    out = tmp_path / "out"
    stopped_training(corpus, out, config)
    for name, value in (("width", 9), ("seed", 1), ("lr", 0.5), ("method", "skipgram")):
        other = words_config(str(value) if name == "method" else "cbow", {**SMALL, name: value})
        with pytest.raises(
            InputError, match=f"the training began with {'lr' if name == 'method' else name} = "
        ) as caught:
            Training(corpus, other, out, resume=True)
        assert caught.value.repair.startswith(f"--{'lr' if name == 'method' else name} ")
    (tmp_path / "text.txt").write_text("one two one two.\n\nthree one two three.\n" * 9, encoding="utf-8")
    strange = Corpus.build(tmp_path / "text.txt", tmp_path / "strange", vocab=200, heldout=0, workers=0)
    with pytest.raises(InputError, match="began with another corpus"):
        Training(strange, config, out, resume=True)
    assert Training(corpus, words_config("cbow", {**SMALL, "workers": 2}), out, resume=True).state.number == 1
    for name in ("arrays.safetensors", "state.json"):
        file = out / "state" / name
        whole = file.read_bytes()
        file.write_bytes(whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:])
        with pytest.raises(InputError, match=r"checksum|cannot be read") as caught:
            Training(corpus, config, out, resume=True)
        assert "begin anew" in caught.value.repair
        file.write_bytes(whole)
    facts = json.loads((out / "state" / "state.json").read_text(encoding="utf-8"))
    assert facts["epochs"] == 1


def test_a_stop_while_words_are_read_leaves_nothing(corpus, tmp_path):
    training = Training(corpus, words_config("cbow", SMALL), tmp_path / "out")
    with pytest.raises(Stopped, match="nothing is lost") as caught:
        training.read(signal=lambda: 2)
    assert caught.value.exit_code == 130
    assert not (tmp_path / "out").exists()
    with pytest.raises(Stopped, match="first epoch: nothing is kept"):
        training.run(training.read(), signal=lambda: 2)
    assert not (tmp_path / "out").exists()


def test_without_gensim_it_says_what_to_install(corpus, tmp_path, monkeypatch):
    import sys

    for name in [each for each in sys.modules if each.partition(".")[0] == "gensim"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(InputError, match="needs the library gensim") as caught:
        Training(corpus, words_config("cbow"), tmp_path / "out")
    assert caught.value.repair == 'pip install "maskery[words]"'
