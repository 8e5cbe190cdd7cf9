"""Names of published models: found in the local Hugging Face cache, fetched by `maskery download` and never else."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from networks import model_of
from small_run import corpus_in, tiny_recipe

import maskery
from maskery import hub
from maskery.checkpoint.download import needed
from maskery.checkpoint.load import load
from maskery.cli import main
from maskery.errors import CheckpointError, InputError
from maskery.text.tokenizer import Tokenizer
from maskery.train.run import pretrain

ROOT = Path(__file__).parent.parent
VARIABLES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HF_ENDPOINT")


@pytest.fixture(autouse=True)
def _no_cache_of_this_machine(monkeypatch, tmp_path):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def cached(folder: Path, name: str, commit="a1", main_ref=True) -> Path:
    repository = folder / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / commit
    model_of("masked_token").save(snapshot)
    if main_ref:
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / "main").write_text(commit)
    return snapshot


@pytest.mark.parametrize(
    ("variable", "value", "inside"),
    [
        ("HF_HUB_CACHE", "one", "one"),
        ("HF_HOME", "two", "two/hub"),
        ("XDG_CACHE_HOME", "three", "three/huggingface/hub"),
        (None, None, "home/.cache/huggingface/hub"),
    ],
)
def test_a_name_is_found_where_huggingface_hub_keeps_it(monkeypatch, tmp_path, capsys, variable, value, inside):
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / value))
    snapshot = cached(tmp_path / inside, "google-bert/bert-base-chinese")
    for name in ("bert-base-chinese", "google-bert/bert-base-chinese"):
        model = load(name)
        assert str(snapshot) in model.note
    assert main(["fill", "bert-base-chinese", "the cat [MASK] on the mat.", "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["masks"]
    assert "from the Hugging Face cache" in output.err


def test_training_begins_with_a_published_name(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    corpus, short = corpus_in(tmp_path / "text"), tiny_recipe(**{"training.steps": 2})
    snapshot = tmp_path / "hub" / "models--me--mine" / "snapshots" / "a1"
    snapshot.parent.mkdir(parents=True)
    pretrain(short, corpus, tmp_path / "first", say=print).path.rename(snapshot)
    second = pretrain(short, corpus, tmp_path / "second", start_from="me/mine", say=print)
    assert json.loads((second.path / "state.json").read_text())["from"] == str(snapshot)


def test_import_takes_a_published_name(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    cached(tmp_path / "hub", "me/mine")
    assert main(["import", "me/mine", "--out", str(tmp_path / "out")]) == 0
    assert load(tmp_path / "out").tokenizer is not None


def test_the_cache_is_where_the_library_says(monkeypatch, tmp_path):
    constants = pytest.importorskip("huggingface_hub.constants")
    source = Path(constants.__file__).read_text(encoding="utf-8")
    for name in VARIABLES[:4]:
        assert name in source, "the library reads another variable now"


def test_the_newest_snapshot_is_the_one_that_main_names(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    first = cached(tmp_path, "me/mine", "c1")
    cached(tmp_path, "me/mine", "c2", main_ref=False)
    assert hub.in_cache("me/mine") == first
    (tmp_path / "models--me--mine" / "refs" / "main").unlink()
    assert hub.in_cache("mine").name in ("c1", "c2")


def test_a_folder_wins_over_a_name(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    cached(tmp_path / "hub", "me/mine")
    model_of("masked_token").save(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert load("mine").note == ""


def test_a_name_of_two_owners_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cached(tmp_path, "me/mine")
    cached(tmp_path, "you/mine")
    with pytest.raises(InputError, match="give one of me/mine, you/mine"):
        load("mine")
    assert load("you/mine").tokenizer is not None


def test_a_snapshot_without_weights_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    (cached(tmp_path, "me/mine") / "model.safetensors").unlink()
    with pytest.raises(InputError, match="maskery download me/mine"):
        load("me/mine")
    assert Tokenizer.load("me/mine").vocabulary > 0, "its tokenizer is there"


@pytest.mark.parametrize("name", ["bert-base-chinese", "hfl/chinese-macbert-base"])
def test_a_name_that_is_not_there_says_how_to_fetch_it(capsys, name):
    assert main(["fill", name, "a [MASK]"]) == 2
    told = capsys.readouterr().err
    assert "no such folder, and no model of this name in the Hugging Face cache" in told
    assert f"maskery download {name}" in told
    assert "docs/weights.md" in told


def test_a_misspelt_name_is_mended_and_a_path_is_none():
    with pytest.raises(CheckpointError, match="maskery download bert-base-chinese"):
        load("bert-base-chinse")
    for path in ("/no/such/folder", "../run", "a/b/c", "runs/.hidden"):
        with pytest.raises(CheckpointError) as caught:
            load(path)
        assert "download" not in str(caught.value)


def test_every_verb_and_the_encoder_take_a_name(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cached(tmp_path, "me/mine")
    encoder = maskery.Encoder("mine", say=lambda text: None)
    assert encoder.encode("the cat").shape == (encoder.dimensions,)
    assert maskery.score("me/mine", "the cat").lines[0].tokens > 0


def test_info_and_the_verbs_of_tasks_take_a_name(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cached(tmp_path, "me/mine")
    for name in ("mine", "me/mine"):
        assert main(["info", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["family"] == "bert"
    snapshot = tmp_path / "models--me--judge" / "snapshots" / "a1"
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=32, num_labels=2)  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(snapshot)
    model_of("masked_token").tokenizer.save(snapshot)
    (tmp_path / "texts.tsv").write_text("label\ttext\n0\tthe cat\n1\tthe mat\n", encoding="utf-8")
    assert main(["predict", "me/judge", str(tmp_path / "texts.tsv"), "--text", "text"]) == 0
    assert capsys.readouterr().out.count("LABEL_") == 2
    assert main(["evaluate", "judge", "--data", str(tmp_path / "texts.tsv")]) == 0
    assert len(maskery.predict("judge", ["the cat"], say=lambda note: None).answers) == 1


FILES = {
    "safetensors": (
        ["config.json", "vocab.txt", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "onnx/model.onnx",
         "flax_model.msgpack", "README.md", ".gitattributes", "coreml/model.safetensors"],
        ["config.json", "vocab.txt", "model.safetensors", "README.md"],
    ),
    "bin": (
        ["config.json", "vocab.txt", "pytorch_model.bin", "tf_model.h5"],
        ["config.json", "vocab.txt", "pytorch_model.bin"],
    ),
    "parts": (
        ["config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
         "model-00002-of-00002.safetensors", "pytorch_model.bin"],
        ["config.json", "model.safetensors.index.json", "model-00001-of-00002.safetensors",
         "model-00002-of-00002.safetensors"],
    ),
    "encoder": (
        ["modules.json", "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors", "config.json",
         "sentencepiece.bpe.model", "model.safetensors", "openvino/openvino_model.bin"],
        ["modules.json", "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors", "config.json",
         "sentencepiece.bpe.model", "model.safetensors"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("there", "wanted"), FILES.values(), ids=FILES)
def test_only_what_a_model_is_opened_with_is_fetched(there, wanted):
    assert needed(there) == wanted


class FakeHub(ModuleType):
    """huggingface_hub with one repository, on a folder in place of the network."""

    def __init__(self, cache: Path, files=("config.json", "vocab.txt", "model.safetensors", "tf_model.h5"), fault=None):
        super().__init__("huggingface_hub")
        self.cache, self.files, self.fault, self.asked = cache, files, fault, []

    def HfApi(self):  # noqa: N802
        return self

    def model_info(self, name, *, revision, files_metadata):
        if self.fault:
            raise self.fault
        self.asked.append(name)
        siblings = [SimpleNamespace(rfilename=each, size=500_000) for each in self.files]
        return SimpleNamespace(sha="c0ffee", siblings=siblings)

    def snapshot_download(self, name, *, revision, allow_patterns, local_dir):
        self.fetched = allow_patterns
        if local_dir is None:
            return str(cached(self.cache, name))
        model_of("masked_token").save(local_dir)
        return str(local_dir)


def use(monkeypatch, fake):
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return fake


def test_download_fetches_into_the_cache_and_the_name_opens(monkeypatch, tmp_path, capsys):
    fake = use(monkeypatch, FakeHub(hub.cache()))
    assert main(["download", "bert-base-chinese"]) == 0
    output = capsys.readouterr()
    assert fake.asked == ["google-bert/bert-base-chinese"]
    assert fake.fetched == ["config.json", "vocab.txt", "model.safetensors"]
    assert "3 of 4 files, 1.5 MB" in output.err
    assert "maskery info bert-base-chinese" in output.out
    assert load("bert-base-chinese").tokenizer is not None


def test_download_writes_a_folder(monkeypatch, tmp_path, capsys):
    use(monkeypatch, FakeHub(hub.cache()))
    out = tmp_path / "m"
    assert main(["download", "me/mine", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "me/mine", "folder": str(out)}
    assert load(out).tokenizer is not None
    assert main(["download", "me/mine", "--out", str(out)]) == 2
    assert "is already there" in capsys.readouterr().err


def fault(name, *bases):
    return type(name, bases or (Exception,), {})("no")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (fault("OfflineModeIsEnabled", ConnectionError), "unset HF_HUB_OFFLINE"),
        (fault("GatedRepoError"), "HF_TOKEN"),
        (fault("RepositoryNotFoundError"), "has no such model"),
        (fault("RevisionNotFoundError"), "has no revision"),
        (fault("ConnectError", type("TransportError", (Exception,), {})), "HF_ENDPOINT"),
        (ConnectionError("no"), "cannot be reached"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_what_the_hub_refuses_is_told_with_a_repair(monkeypatch, tmp_path, capsys, error, words):
    use(monkeypatch, FakeHub(tmp_path, fault=error))
    assert main(["download", "me/mine"]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "repair:" in told


def test_another_server_is_named_where_it_fails(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HF_ENDPOINT", "https://another.example")
    use(monkeypatch, FakeHub(tmp_path, fault=ConnectionError("no")))
    assert main(["download", "me/mine"]) == 2
    assert "https://another.example cannot be reached" in capsys.readouterr().err


def test_the_real_library_refuses_offline_with_our_words(monkeypatch, capsys):
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert main(["download", "bert-base-chinese"]) == 2
    assert "unset HF_HUB_OFFLINE" in capsys.readouterr().err


def test_a_repository_without_weights_is_refused(monkeypatch, tmp_path, capsys):
    use(monkeypatch, FakeHub(tmp_path, files=("data.csv",)))
    assert main(["download", "me/mine"]) == 2
    assert "holds no weights" in capsys.readouterr().err


def test_without_the_library_the_message_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["download", "me/mine"]) == 2
    assert 'pip install "maskery[hub]"' in capsys.readouterr().err


def test_no_model_is_fetched_by_itself(monkeypatch, tmp_path):
    """Opening a name never imports the library."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(CheckpointError, match="maskery download"):
        load("bert-base-uncased")


@pytest.mark.parametrize("page", ["docs/weights.md", "docs/zh/weights.md"])
def test_the_page_of_weights_has_every_name_of_the_table(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    listed = set(re.findall(r"`([\w.-]+/[\w.-]+)`", text))
    missing = [f"{owner}/{name}" for owner, names in hub.OWNERS.items() for name in names]
    assert [name for name in missing if name not in listed] == []
