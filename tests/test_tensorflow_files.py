"""TensorFlow's checkpoint files: checksums against a slow reference, tables of any keys, damage of any byte."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import tf_writer
import torch
from hypothesis import given
from hypothesis import strategies as st

from maskery.checkpoint.tensorflow import crc32c as fast
from maskery.checkpoint.tensorflow.bundle import open_bundle
from maskery.checkpoint.tensorflow.table import is_table, read_table
from maskery.errors import CheckpointError
from maskery.text import wire


def random_bytes(number, seed=0):
    return np.random.default_rng(seed).integers(0, 256, number, dtype=np.uint8)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
    ids=["nothing", "digits", "zeros", "ones", "up", "down"],
)
def test_known_checksums(data, expected):
    assert fast.crc32c(data) == tf_writer.crc32c(data) == expected


def test_the_convenient_polynomial_is_a_multiple():
    value = sum(1 << exponent for exponent in fast.MULTIPLE)
    while value.bit_length() > 32:
        value ^= fast.POLYNOMIAL << value.bit_length() - 33
    assert value == 0


@pytest.mark.parametrize("size", [1, 3, 4, 6776, 6777, 6778, 13070, 13071, 54215, 54216, 54217, 120_001])
def test_checksums_of_every_way_through(size):
    data = random_bytes(size, size)
    assert fast.crc32c(data) == fast.crc32c(data.tobytes()) == tf_writer.crc32c(data.tobytes())


def test_a_message_in_pieces(monkeypatch):
    data, told = random_bytes(300_000), []
    expected = tf_writer.crc32c(data.tobytes())
    monkeypatch.setattr(fast, "_PIECE", 70_001)
    assert fast.crc32c(data, told.append) == expected
    assert told == [70_001] * 4 + [300_000 - 4 * 70_001]


def test_a_short_message_is_told_too():
    told = []
    fast.crc32c(b"abc", told.append)
    assert told == [3]


@given(st.binary(max_size=300), st.integers(min_value=0), st.integers(0, 7))
def test_a_changed_bit_changes_the_checksum(data, at, bit):
    if data:
        other = bytearray(data)
        other[at % len(data)] ^= 1 << bit
        assert fast.crc32c(data) != fast.crc32c(bytes(other))
    assert fast.masked(fast.crc32c(data)).to_bytes(4, "little") == tf_writer.masked(data)


@given(st.integers(0, (1 << 64) - 1), st.binary(max_size=3))
def test_numbers_of_any_size(number, before):
    data = before + tf_writer.varint(number)
    assert wire.varint(data, len(before)) == (number, len(data))


def test_messages_are_read_and_nonsense_is_refused():
    message = tf_writer.field(1, 7) + tf_writer.field(2, b"ab") + tf_writer.field(2, b"c") + tf_writer.field(5, -2)
    found = wire.fields(message)
    assert (wire.number(found, 1), wire.number(found, 9), wire.number(found, 5)) == (7, 0, -2)
    assert wire.messages(found, 2) == [b"ab", b"c"]
    with pytest.raises(ValueError, match="number"):
        wire.number(found, 2)
    with pytest.raises(ValueError, match="message"):
        wire.messages(found, 1)
    for wrong in (b"\x80", b"\x80" * 11, b"\x0a\x05ab", b"\x0b"):
        with pytest.raises(ValueError, match=r"ends inside|64 bits|unknown kind"):
            wire.fields(wrong)


@given(st.dictionaries(st.binary(max_size=12), st.binary(max_size=40), max_size=60), st.integers(1, 20))
def test_tables_of_any_keys(entries, per_block):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.index"
        path.write_bytes(tf_writer.table(entries, per_block))
        assert read_table(path) == entries
        assert is_table(path)


TENSORS = {
    "a/kernel": torch.arange(6, dtype=torch.float32).view(2, 3),
    "a/bias": torch.tensor([1.5, -2.0], dtype=torch.float16),
    "b/kernel": torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).bfloat16(),
    "global_step": torch.tensor(123_456_789_012, dtype=torch.int64),
    "double": torch.tensor([0.1], dtype=torch.float64),
    "flags": torch.tensor([True, False]),
    "none": torch.zeros(0, 4),
    "large": torch.randn(30, 300, generator=torch.Generator().manual_seed(1)),
}


@pytest.mark.parametrize("shards", [1, 3])
def test_tensors_come_back(tmp_path, shards):
    tf_writer.write_checkpoint(tmp_path / "model.ckpt-7", TENSORS, shards=shards)
    bundle = open_bundle(tmp_path / "model.ckpt-7")
    bundle.require_shards()
    assert (bundle.shards, list(bundle.entries)) == (shards, sorted(TENSORS))
    for name, tensor in TENSORS.items():
        found = bundle.tensor(name)
        assert found.dtype == tensor.dtype
        assert found.shape == tensor.shape
        assert torch.equal(found, tensor)


def error_of(read, path):
    """The refusal, or None for what is read."""
    try:
        read(path)
    except CheckpointError as error:
        return error
    return None


def test_a_changed_bit_of_the_index_is_never_believed(tmp_path):
    """A bit of every byte is flipped in turn: refused, or it stands where nothing is read from."""
    tf_writer.write_checkpoint(tmp_path / "x", {name: TENSORS[name] for name in ("a/kernel", "a/bias", "global_step")})
    path = tmp_path / "x.index"
    whole, expected = path.read_bytes(), read_table(path)
    remarks, _ = wire.varint(whole, len(whole) - 48)  # a block that TensorFlow leaves empty
    unread = {*range(remarks, remarks + 13), *range(len(whole) - 48, len(whole) - 8)}
    believed = set()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        error = error_of(read_table, path)
        if error is None:
            believed.add(at)
            assert read_table(path) == expected
        else:
            assert error.where == str(path)
            assert error.repair
    assert believed
    assert believed <= unread


def test_an_index_cut_anywhere_is_refused(tmp_path):
    tf_writer.write_checkpoint(tmp_path / "x", TENSORS)
    path = tmp_path / "x.index"
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="does not end as the index"):
            open_bundle(tmp_path / "x")


@given(st.binary(max_size=80))
def test_blocks_of_nonsense_are_refused(content):
    """Right checksums around bytes that mean nothing: a clear refusal, or a table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.index"
        path.write_bytes(tf_writer.table({b"": content, b"name": content}))
        error = error_of(open_bundle, Path(folder) / "x")
        assert error is None or str(path) in error.where


def read_all(prefix):
    bundle = open_bundle(prefix)
    bundle.require_shards()
    for name in bundle.entries:
        bundle.tensor(name)


def refused(prefix, match):
    with pytest.raises(CheckpointError, match=match) as caught:
        read_all(prefix)
    assert caught.value.repair
    return caught.value


def test_a_changed_byte_of_the_data_names_its_tensor(tmp_path):
    tf_writer.write_checkpoint(tmp_path / "x", TENSORS, shards=2)
    data = tmp_path / "x.data-00001-of-00002"
    bundle = open_bundle(tmp_path / "x")
    name = next(name for name, entry in bundle.entries.items() if entry.shard == 1 and entry.size > 8)
    tf_writer.flip(data, bundle.entries[name].offset + 5)
    error = refused(tmp_path / "x", "wrong checksum of the tensor")
    assert name in error.cause
    assert error.where == str(data)


def test_a_block_with_a_wrong_checksum_names_its_place(tmp_path):
    tf_writer.write_checkpoint(tmp_path / "x", TENSORS)
    tf_writer.flip(tmp_path / "x.index", 20)
    error = refused(tmp_path / "x", "wrong checksum of the block at bytes 0 to")
    assert error.where == str(tmp_path / "x.index")


def test_missing_and_short_data(tmp_path):
    tf_writer.write_checkpoint(tmp_path / "x", TENSORS, shards=2)
    data = tmp_path / "x.data-00001-of-00002"
    data.write_bytes(data.read_bytes()[:-1])
    assert refused(tmp_path / "x", "ends at byte").where == str(data)
    data.unlink()
    assert refused(tmp_path / "x", "data file 2 of 2 is missing").where == str(data)


def test_kinds_of_checkpoints_that_are_not_read(tmp_path):
    tf_writer.write_checkpoint(tmp_path / "big", TENSORS, endian=tf_writer.BIG)
    refused(tmp_path / "big", "big-endian")
    tf_writer.write_checkpoint(tmp_path / "sliced", TENSORS, sliced=("large",))
    refused(tmp_path / "sliced", "large is partitioned")
    tf_writer.write_checkpoint(tmp_path / "packed", TENSORS, packed=1)
    refused(tmp_path / "packed", "compressed")
    path = tmp_path / "text.index"
    header = tf_writer.field(1, 1)
    path.write_bytes(tf_writer.table({b"": header, b"words": tf_writer.entry(7, (1,), 0, 0, b"abc")}))
    (tmp_path / "text.data-00000-of-00001").write_bytes(b"abc")
    refused(tmp_path / "text", "words holds text")
    path.write_bytes(tf_writer.table({b"": header, b"odd": tf_writer.entry(1, (2,), 0, 0, b"abc")}))
    refused(tmp_path / "text", r"would take 8 bytes, and has 3")
    path.write_bytes(tf_writer.table({b"": header, b"far": tf_writer.entry(1, (1,), 3, 0, b"abcd")}))
    refused(tmp_path / "text", "lies in no data file")
    path.write_bytes(tf_writer.table({b"far": tf_writer.entry(1, (1,), 0, 0, b"abcd")}))
    refused(tmp_path / "text", "no header")
