"""Building a corpus against bare tokenization, in one run, alternating: `python -m benchmarks.corpus [FILE]`.

The bare side is one `tokenizers.Tokenizer.encode_batch` over lines that already lie in memory, with its own threads,
its result thrown away. Our side is the whole build: read, sentences, words, tokens, flags, held-out documents,
checksums, files on the disk.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tokenizers

from maskery import randomness
from maskery.corpus.store import DATA, Corpus
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import train_wordpiece
from maskery.text.wordpiece import assemble

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
RESULT = Path(__file__).parent / "results" / "corpus.json"


def generated(megabytes: float) -> str:
    """Mixed text for a machine without data: made-up Latin words and Han characters by a skewed law."""
    draw = randomness.scalars(randomness.key(0, "benchmark text"))
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    latin = ["".join(draw.choices(letters, k=draw.randint(1, 10))) for _ in range(5000)]
    han = [chr(0x4E00 + draw.randrange(3000)) for _ in range(3000)]
    lines: list[str] = []
    size = 0
    while size < megabytes * 1e6:
        skewed = [int(draw.paretovariate(0.6)) % 3000 for _ in range(60)]
        chinese = len(lines) % 3 > 0
        line = "".join(han[n] for n in skewed) + "。" if chinese else " ".join(latin[n] for n in skewed) + "."
        lines += [line] if draw.random() > 0.1 else [line, ""]
        size += len(line.encode()) + 1
    return "\n".join(lines)


def read(path: Path, megabytes: float) -> str:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        data = file.read(int(megabytes * 1e6) if megabytes else -1)
    return data[: data.rfind(b"\n") + 1].decode()


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of processor time with child processes: the second is fair on a busy machine too."""
    start, before = time.perf_counter(), sum(os.times()[:4])
    work()
    return time.perf_counter() - start, sum(os.times()[:4]) - before


def measure(text: str, tokenizer: Tokenizer, rounds: int) -> dict[str, float | int | str]:
    lines = [line for line in text.split("\n") if line]
    bare = assemble(tokenizer.pieces, lowercase=True)
    times: dict[str, list[tuple[float, float]]] = {"bare": [], "build": []}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "text.txt"
        source.write_text(text, encoding="utf-8")
        for number in range(rounds):
            times["bare"].append(seconds(lambda: bare.encode_batch(lines, add_special_tokens=False)))
            out = Path(folder) / f"corpus-{number}"
            times["build"].append(seconds(lambda out=out: Corpus.build(source, out, tokenizer=tokenizer)))
        corpus = Corpus.open(out)
        stored = sum((out / name).stat().st_size for name in DATA)
        tokens = corpus.counts["tokens"]
    best = {side: min(clock for clock, _ in values) for side, values in times.items()}
    busy = {side: min(used for _, used in values) for side, values in times.items()}
    return {
        "text_bytes": len(text.encode()),
        "tokens": tokens,
        "bare_seconds": round(best["bare"], 3),
        "build_seconds": round(best["build"], 3),
        "build_speed_of_bare": round(best["bare"] / best["build"], 3),
        "bare_processor_seconds": round(busy["bare"], 3),
        "build_processor_seconds": round(busy["build"], 3),
        "build_speed_of_bare_by_processor": round(busy["bare"] / busy["build"], 3),
        "load_at_end": round(os.getloadavg()[0], 1),
        "build_tokens_per_second": round(tokens / best["build"]),
        "bytes_per_token": round(stored / tokens, 4),
        "rounds": rounds,
        "cores": os.cpu_count() or 0,
        "tokenizers": tokenizers.__version__,
        "machine": platform.machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--vocab", type=Path)
    parser.add_argument("--megabytes", type=float, default=12, help="how much of the text; 0 = all of it")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULT)
    options = parser.parse_args()
    file, vocab = options.file, options.vocab
    if file is None and (SHARED / "corpus" / "zhwiki.txt.gz").is_file():
        file = SHARED / "corpus" / "zhwiki.txt.gz"
        vocab = vocab or SHARED / "vocab" / "vocab_zh_21128.txt"
    text = read(file, options.megabytes) if file else generated(options.megabytes or 12)
    tokenizer = Tokenizer.load(vocab) if vocab else train_wordpiece(text.split("\n"), 8000)
    result = {"text": file.name if file else "generated", **measure(text, tokenizer, options.rounds)}
    for name, value in result.items():
        print(f"{name:33} {value}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
