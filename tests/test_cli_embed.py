"""`maskery embed`: what every way through a file gives is what `encode` gives; formats, counts, refusals, no halves."""

from __future__ import annotations

import gzip
import io
import json
import signal
from concurrent.futures import Future
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from processes import Command
from vector_models import PROMPTS, made_of, quiet

from maskery.cli import main
from maskery.errors import CheckpointError, InputError
from maskery.vectors import stream, texts
from maskery.vectors.after.whitening import Whitening
from maskery.vectors.encoder import Encoder
from maskery.vectors.precision import quantised, ranges_of

LINES = [("the cat sat " * (n % 9)).strip() + ("北京" if n % 3 else "") for n in range(50)]


@pytest.fixture(scope="module")
def place(tmp_path_factory, no_waiting_for_the_disk):
    folder = tmp_path_factory.mktemp("embed")
    encoder = Encoder(made_of(prompts=PROMPTS), say=quiet)
    encoder.save(folder / "model")
    (folder / "texts.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    Whitening.fit(encoder.encode(LINES)).save(folder / "white.safetensors")
    return folder


@pytest.fixture(scope="module")
def encoder(place):
    return Encoder(place / "model", say=quiet)


@pytest.fixture
def run(place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setattr(texts, "CHUNK", 16)

    def call(*arguments, file="texts.txt", out="v.npy"):
        code = main(["embed", "model", str(file), "--out", str(tmp_path / out), *map(str, arguments)])
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


def test_a_file_is_what_encode_gives(run, encoder, tmp_path):
    code, out, err = run("--json")
    assert code == 0, err
    found = np.load(tmp_path / "v.npy")
    assert found.dtype == np.float32
    assert found == pytest.approx(encoder.encode(LINES), abs=1e-6)
    told = json.loads(out)
    assert {key: told[key] for key in ("texts", "dimensions", "cut", "empty", "precision")} == {
        "texts": 50, "dimensions": 16, "cut": sum(n % 9 >= 7 for n in range(50)), "empty": 6, "precision": "float32",
    }  # fmt: skip
    assert "6 of 50 texts are empty: their vector is that of the marks alone" in err
    assert "are longer than the model reads" in err
    assert (np.load(tmp_path / "v.npy", mmap_mode="r") == found).all()


def packed(path, data):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(data))
    elif path.suffix == ".zst":
        path.write_bytes(zstandard.compress(data))
    else:
        path.write_bytes(data)
    return path


RECORDS = [text for text in LINES[:20] if text] + ['two\nlines, one "text"', ""]
FILES = {
    "r.jsonl.gz": lambda: "".join(json.dumps({"n": 1, "body": text}) + "\n" for text in RECORDS).encode(),
    "r.csv.zst": lambda: b"n,body\n" + b"".join(f'1,"{t.replace(chr(34), chr(34) * 2)}"\n'.encode() for t in RECORDS),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_records_of_every_format(name, run, encoder, tmp_path):
    code, _, err = run("--field", "body", file=packed(tmp_path / name, FILES[name]()))
    assert code == 0, err
    assert np.load(tmp_path / "v.npy") == pytest.approx(encoder.encode(RECORDS), abs=1e-6)


def test_quotes_of_a_tsv_are_characters(run, encoder, tmp_path):
    """As in all tables that vectors are trained and judged with."""
    texts = ['"the cat" sat', 'the "cat', '"', '"the mat"', ""]
    (tmp_path / "r.tsv").write_text("n\tbody\n" + "".join(f"1\t{text}\n" for text in texts), encoding="utf-8")
    code, _, err = run("--field", "body", file=tmp_path / "r.tsv")
    assert code == 0, err
    assert np.load(tmp_path / "v.npy") == pytest.approx(encoder.encode(texts), abs=1e-6)
    (tmp_path / "r.tsv").write_text('n\tbody\n1\t"the\n2\tcat"\tsat\n', encoding="utf-8")
    (tmp_path / "v.npy").unlink()
    code, _, err = run("--field", "body", file=tmp_path / "r.tsv")
    assert code == 2
    assert "r.tsv:3: the record has 3 fields, the first line, the header, has 2" in err
    assert "quotes are plain characters in TSV; a file with quoted fields is read as .csv, with commas" in err


def test_parquet_in_and_out(run, encoder, tmp_path):
    given = [*RECORDS[:-1], None]
    pq.write_table(pa.table({"body": given}), tmp_path / "r.parquet")
    code, _, err = run("--field", "body", "--texts", file=tmp_path / "r.parquet", out="v.parquet")
    assert code == 0, err
    table = pq.read_table(tmp_path / "v.parquet")
    assert table.column("text").to_pylist() == [*RECORDS[:-1], ""]
    assert np.array(table.column("vector").to_pylist()) == pytest.approx(encoder.encode(RECORDS), abs=1e-6)
    assert pq.ParquetFile(tmp_path / "v.parquet").num_row_groups == 2
    kept = json.loads(table.schema.metadata[b"maskery"])
    assert kept["vectors"]["pool"] == ["mean"]


def test_stdin(run, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(LINES).encode())))
    code, _, err = run(file="-")
    assert code == 0, err
    assert np.load(tmp_path / "v.npy") == pytest.approx(encoder.encode(LINES), abs=1e-6)


def test_options_are_those_of_encode(run, encoder, place, tmp_path):
    run("--normalize", "--dimensions", 5, "--prompt", "query", out="a.npy")
    wanted = encoder.encode(LINES, prompt="query", normalize=True, dimensions=5)
    assert np.load(tmp_path / "a.npy") == pytest.approx(wanted, abs=1e-6)
    _, _, err = run("--pool", "first,mean", "--length", 7, out="b.npy")
    other = Encoder(place / "model", pool=("first", "mean"), length=7, say=quiet)
    assert np.load(tmp_path / "b.npy") == pytest.approx(other.encode(LINES), abs=1e-6)
    assert "model pools mean; first and mean is taken, as asked for" in err
    run("--after", "white.safetensors", out="c.npy")
    white = encoder.with_after(Whitening.load(place / "white.safetensors"))
    assert np.load(tmp_path / "c.npy") == pytest.approx(white.encode(LINES), abs=1e-4)
    run("--precision", "binary", out="d.npy")
    assert (np.load(tmp_path / "d.npy") == encoder.encode(LINES, precision="binary")).all()


@pytest.mark.parametrize("out", ["v.npy", "v.parquet"])
def test_int8_keeps_its_ranges(out, run, encoder, tmp_path):
    def read(path):
        if path.suffix == ".npy":
            return np.load(path)
        return np.array(pq.read_table(path).column("vector").to_pylist(), dtype=np.int8)

    run(out="plain.npy")
    plain = np.load(tmp_path / "plain.npy")
    code, _, err = run("--precision", "int8", out=out)
    assert code == 0, err
    ranges = np.load(tmp_path / "v.ranges.npy")
    assert (ranges == ranges_of(plain)).all()
    assert (read(tmp_path / out) == quantised(plain, "int8")).all()
    code, _, err = run("--precision", "int8", "--ranges", tmp_path / "v.ranges.npy", out=f"again-{out}")
    assert code == 0, err
    assert (read(tmp_path / f"again-{out}") == read(tmp_path / out)).all()


def test_more_workers_give_the_same_bits(run, tmp_path):
    run(out="one.npy")
    code, _, err = run("--workers", 2, out="two.npy")
    assert code == 0, err
    assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "two.npy").read_bytes()


def test_an_error_of_a_worker_is_told(place, tmp_path, monkeypatch):
    """Its answer is read from the bytes that it sends; what asks it is put in its place here."""

    class Unlucky:
        def part(self, texts, prompt):
            raise CheckpointError("no luck", repair="try again")

    @contextmanager
    def alone(workers, start, greeting, threads):
        def ask(message):
            sent = io.BytesIO()
            stream._answer(Unlucky(), json.loads(message), None, sent)
            found = Future()
            found.set_result(sent.getvalue()[8:])
            return found

        yield ask

    monkeypatch.setattr(stream, "pool", alone)
    with pytest.raises(InputError, match="no luck") as told:
        stream.embed(stream.Opening(str(place / "model")), place / "texts.txt", tmp_path / "v.npy", workers=2)
    assert told.value.repair == "try again"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--precision", "int4"], "unknown precision 'int4'"),
        (["--dimensions", "99"], "99 dimensions of 16"),
        (["--prompt", "passage"], "no prompt is called 'passage'"),
        (["--pool", "men"], "unknown pooling 'men'"),
        (["--length", "99"], "the model reads 24 slots"),
        (["--after", "none.safetensors"], "no such file"),
        (["--workers", "0"], "0 workers"),
        (["--ranges", "x.npy"], "ranges are for int8"),
        (["--precision", "int8", "--ranges", "x.npy"], "no such file"),
        (["--texts"], "a .npy file holds numbers"),
        (["--field", "body"], "plain text has no fields"),
        (["--format", "word"], "unknown text format 'word'"),
        (["--errors", "ignore"], "unknown way with bad bytes"),
        (["--device", "nowhere"], "cannot be used"),
    ],
)
def test_wrong_options_are_refused(arguments, told, run, tmp_path):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert "repair:" in err
    assert list(tmp_path.iterdir()) == []


def test_wrong_files_are_refused(run, place, tmp_path):
    bad = tmp_path / "bad.txt"
    for name, data, told in [
        ("bad.txt", b"good\nbad \xff\xfe line\n", f"{bad}:2: byte 9 (0xff) is not UTF-8"),
        ("empty.txt", b"", "the file is empty"),
        ("one.json", b"[]", "a JSON file is one value"),
        ("no.jsonl", b"\n\n", "there is no text"),
        ("field.jsonl", b'{"title": "x"}\n', "field.jsonl:1: the object has no field 'text'"),
        ("cut.txt.gz", gzip.compress(b"text\n" * 999)[:-9], "cut.txt.gz"),
    ]:
        (tmp_path / name).write_bytes(data)
        code, _, err = run(file=tmp_path / name)
        assert code == 2, name
        assert told in err
        (tmp_path / name).unlink()
        assert list(tmp_path.iterdir()) == []
    assert "no such file" in run(file="none.txt")[2]
    assert "no format" in run(out="v.bin")[2]
    assert main(["embed", str(tmp_path), "texts.txt", "--out", str(tmp_path / "v.npy")]) == 2, "no model"
    (tmp_path / "v.npy").write_bytes(b"mine")
    code, _, err = run()
    assert code == 2
    assert "is already there" in err
    assert (tmp_path / "v.npy").read_bytes() == b"mine"


def test_bad_bytes_may_be_replaced(run, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"good\nbad \xff line\n")
    code, _, err = run("--errors", "replace", file=tmp_path / "bad.txt")
    assert code == 0
    assert "1 characters of" in err
    assert np.load(tmp_path / "v.npy").shape == (2, 16)


@pytest.mark.parametrize(("out", "precision"), [("v.npy", "float32"), ("v.parquet", "binary"), ("v.npy", "int8")])
def test_one_chunk_is_held_at_a_time(out, precision, run, monkeypatch):
    """So that memory does not grow with the file: nothing is read before what was read is written."""
    seen, some, part, new_vectors = [], texts._some, Encoder.part, stream.new_vectors

    def reading(found):
        block = some(found)
        seen.append(("read", len(block)))
        return block

    def encoding(self, given, *more):
        seen.append(("encoded", len(given)))
        return part(self, given, *more)

    @contextmanager
    def writing(*arguments):
        with new_vectors(*arguments) as put:
            yield lambda vectors, given: (seen.append(("written", len(vectors))), put(vectors, given))

    monkeypatch.setattr(texts, "_some", reading)
    monkeypatch.setattr(Encoder, "part", encoding)
    monkeypatch.setattr(stream, "new_vectors", writing)
    code, _, err = run("--precision", precision, out=out)
    assert code == 0, err
    walks = [("read", "encoded"), ("read", "written")] if precision == "int8" else [("read", "encoded", "written")]
    sizes = (16, 16, 16, 2)
    assert seen == [
        step for walk in walks for step in [*((name, size) for size in sizes for name in walk), ("read", 0)]
    ]


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_a_signal_leaves_nothing(number, workers, place, tmp_path):
    long = tmp_path / "long.txt"
    long.write_text("the cat sat on the mat.\n" * 400_000, encoding="utf-8")
    arguments = ["embed", str(place / "model"), str(long), "--out", str(tmp_path / "v.npy")]
    arguments += ["--workers", str(workers)]
    command = Command(arguments, tmp_path / "said")
    assert command.wait_until(lambda: any(path.name.startswith(".partial") for path in tmp_path.iterdir()))
    command.signal_group(number)
    assert command.end()[0] == 128 + number
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.txt", "said"]
