"""Damaged model folders: `load` gives a model or an error that says what to do. Never a traceback, never all memory."""

import json
import resource
import shutil
import struct
from pathlib import Path

import pytest
import torch
from damage import any_damage, exchanges, survives, tries
from hypothesis import given
from hypothesis import strategies as st
from small_model import small_recipe
from small_run import word_tokenizer

import maskery
from maskery.checkpoint.model import Model
from maskery.errors import CheckpointError, InputError
from maskery.system import System
from maskery.text.tokenizer import Tokenizer

TOKENIZER = word_tokenizer()
RECIPES = {"bert": ("bert", {}), "roberta": ("roberta", {}), "own": ("bert", {"model__norm": "pre"})}
NAMES = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"]
FEW = tries(20, slow=True)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = tmp_path_factory.mktemp("models")
    for name, (origin, changes) in RECIPES.items():
        system = System(
            small_recipe(origin, model__layers=1, model__max_length=16, training__length=16, **changes),
            TOKENIZER.vocabulary,
        )
        system.initialise(0)
        Model(system.network, system.heads, TOKENIZER).save(made / name)
        (made / name / "manifest.json").rename(made / f"{name}.json")
    own = json.loads((made / "own/config.json").read_text())
    assert own["model_type"] == "maskery"
    return made


@pytest.fixture(autouse=True)
def _little_memory():
    """Whoever asks for gigabytes because a file says so fails here, and not only on small machines."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def opened(folder, name, data):
    """Whether a folder with this file in place of its own still opens."""
    kept = (folder / name).read_bytes()
    (folder / name).write_bytes(data)
    try:
        works = survives(maskery.load, folder)
        if name != "model.safetensors":
            survives(use, folder)
        return works
    finally:
        (folder / name).write_bytes(kept)


def use(folder):
    tokenizer = Tokenizer.load(folder)
    tokenizer.encode("bam [MASK].")
    tokenizer.encode_raw(["bam den."])
    tokenizer.decode([0, 1, 2])
    assert len(tokenizer.ordinary) < tokenizer.vocabulary
    assert tokenizer.fingerprint


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", RECIPES)
def test_a_damaged_file(folders, kind, name):
    """No manifest beside it, as in folders that are fetched."""
    data = (folders / kind / name).read_bytes()

    @FEW
    @given(any_damage(name, data))
    def check(damaged):
        opened(folders / kind, name, damaged)

    check()


@pytest.mark.parametrize("kind", RECIPES)
def test_weights_cut_anywhere_never_open(folders, kind, tmp_path):
    data = (folders / kind / "model.safetensors").read_bytes()
    header = 8 + struct.unpack("<Q", data[:8])[0]
    for at in sorted({*range(0, 64), *range(64, header, 97), header, header + 1, len(data) // 2, len(data) - 1}):
        assert not opened(folders / kind, "model.safetensors", data[:at]), at


@pytest.mark.parametrize("length", [0, 1, 2**20, 2**31, 2**40, 2**60, 2**64 - 1])
def test_a_header_that_says_any_length(folders, length):
    data = (folders / "bert/model.safetensors").read_bytes()
    assert not opened(folders / "bert", "model.safetensors", struct.pack("<Q", length) + data[8:])


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2**40, 2**20], "data_offsets": [0, 64]},
        {"dtype": "F32", "shape": [16], "data_offsets": [0, 2**60]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 64]},
        {"dtype": "F99", "shape": [16], "data_offsets": [0, 64]},
        {"dtype": "I64", "shape": [8], "data_offsets": [0, 64]},
        {"dtype": "F32", "shape": [], "data_offsets": [64, 0]},
        {},
        7,
    ],
    ids=["huge", "beyond", "negative", "type", "integers", "backwards", "empty", "number"],
)
def test_a_header_that_lies(folders, entry):
    header = json.dumps({"bert.embeddings.LayerNorm.bias": entry}).encode()
    assert not opened(folders / "bert", "model.safetensors", struct.pack("<Q", len(header)) + header + bytes(64))


@pytest.mark.parametrize("kind", RECIPES)
def test_every_value_of_a_config(folders, kind):
    """Sizes that no memory holds are refused before anything is made."""
    data = (folders / kind / "config.json").read_bytes()

    @tries(60, slow=True)
    @given(exchanges(data))
    def check(damaged):
        opened(folders / kind, "config.json", damaged)

    check()


@pytest.mark.parametrize("number", [10**5, 2**31, 2**32 - 1])
def test_a_piece_with_a_number_far_beyond_the_others(folders, number, tmp_path):
    """The library would make room for every number below it."""
    content = json.loads((folders / "bert/tokenizer.json").read_text())
    content["model"]["vocab"]["bam"] = number
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    if number == 10**5:
        assert Tokenizer.load(tmp_path).vocabulary == number + 1
        return
    with pytest.raises(InputError, match=r"'bam' has the number .* far beyond the 255 pieces"):
        Tokenizer.load(tmp_path)


@FEW
@given(st.binary(max_size=300))
def test_any_bytes_as_any_file(folders, data):
    for name in NAMES:
        opened(folders / "bert", name, data)


def test_json_that_is_nested_too_deeply(folders):
    for name in ("config.json", "tokenizer_config.json", "tokenizer.json"):
        assert not opened(folders / "bert", name, b"[" * 100_000)
        assert not opened(folders / "bert", name, b'{"a":' * 100_000)


@pytest.mark.parametrize("kind", RECIPES)
def test_a_damaged_manifest(folders, kind, tmp_path):
    """With checksums, nothing that was changed opens; a manifest that is none says so."""
    folder = tmp_path / kind
    shutil.copytree(folders / kind, folder)
    data = (folders / f"{kind}.json").read_bytes()
    (folder / "manifest.json").write_bytes(data)
    assert opened(folder, "manifest.json", data)

    @FEW
    @given(any_damage("manifest.json", data))
    def check(damaged):
        opened(folder, "manifest.json", damaged)

    check()
    for name in NAMES:
        kept = (folder / name).read_bytes()
        assert not opened(folder, name, kept[:-1])
        assert not opened(folder, name, kept[:40] + bytes([kept[40] ^ 1]) + kept[41:])


def test_damaged_heads(folders, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "heads"
    shutil.copytree(folders / "bert", folder)
    tensors = load_file(folder / "model.safetensors")
    save_file(
        {"heads.sequence_class.dense.weight": torch.zeros(3, 16), "pooler.extra": torch.zeros(2)},
        folder / "heads.safetensors",
    )
    model = maskery.load(folder)
    assert "heads.sequence_class.dense.bias" in model.report.missing
    assert "pooler.extra" in model.report.unused
    data = (folder / "heads.safetensors").read_bytes()

    @FEW
    @given(any_damage("heads.safetensors", data))
    def check(damaged):
        opened(folder, "heads.safetensors", damaged)

    check()
    name = "cls.predictions.bias"
    save_file(tensors | {name: torch.full_like(tensors[name], float("nan"))}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="not finite"):
        maskery.load(folder)
