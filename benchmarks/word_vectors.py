"""Word vectors on real text: what training costs, and what comes out, as tables for the docs.

    python -m benchmarks.word_vectors cost CORPUS --out DIR [--workers 2] [--methods cbow,skipgram,fasttext,glove]
    python -m benchmarks.word_vectors words VECTORS TABLE [--many 50]
    python -m benchmarks.word_vectors analogies VECTORS...
    python -m benchmarks.word_vectors gensim VECTORS CILIN

`cost` trains with each method in a process of its own, with its defaults, and writes time, memory and words a second.
`words` shows the neighbours of common words, and their similar words in a table of `maskery words similar`. Nobody
picks them: of the commonest words of two Chinese characters or more it takes one in twenty. `analogies` asks the twenty
below. `gensim` has both sides evaluate the same vectors on the same analogies and on pairs of words out of Cilin.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

from benchmarks.similar_words import codes
from maskery.knowledge.table import SimilarTable
from maskery.words.vectors import WordVectors

METHODS = ("cbow", "skipgram", "fasttext", "glove")
EVERY = 20
"""Of the commonest words one in so many is shown."""
ANALOGIES = """
中国 北京 日本 东京
日本 东京 法国 巴黎
英国 伦敦 德国 柏林
法国 巴黎 意大利 罗马
德国 柏林 俄罗斯 莫斯科
北京 中国 华盛顿 美国
广东 广州 浙江 杭州
四川 成都 湖北 武汉
日本 日语 法国 法语
英国 英语 德国 德语
日本 日圆 美国 美元
中国 人民币 美国 美元
父亲 母亲 儿子 女儿
哥哥 姐姐 弟弟 妹妹
丈夫 妻子 王子 公主
男人 女人 国王 王后
左 右 上 下
夏天 冬天 白天 夜晚
歌手 歌曲 导演 电影
医生 医院 教师 学校
"""
"""A is to B as C is to D."""


def asked() -> list[list[str]]:
    return [line.split() for line in ANALOGIES.strip().splitlines()]


def cost(corpus: Path, out: Path, methods: list[str], workers: int, result: Path | None) -> None:
    """Train with each method, alone in a process."""
    found: list[dict[str, Any]] = []
    for method in methods:
        command = [sys.executable, "-m", "maskery", "words", "train", str(corpus), "--method", method]
        command += ["--out", str(out / method), "--workers", str(workers), "--json"]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        told = json.loads(process.stdout.read())
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{method} failed")
        found.append(
            {
                "method": method,
                "workers": workers,
                "seconds": round(time.perf_counter() - began, 1),
                "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
                "peak_mib": round(used.ru_maxrss / 1024),
                "told": told,
            }
        )
        print(json.dumps({key: value for key, value in found[-1].items() if key != "told"}), flush=True)
        if result is not None:
            result.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def common(vectors: WordVectors, many: int) -> list[str]:
    """One in twenty of the commonest words of at least two Chinese characters."""
    chinese = (word for word in vectors.words if len(word) > 1 and all("一" <= sign <= "鿿" for sign in word))
    return list(islice(chinese, 0, many * EVERY, EVERY))


def words_table(vectors: WordVectors, table: SimilarTable, many: int, top: int = 5) -> list[str]:
    lines = ["| word | nearest vectors | similar words of the table |", "|---|---|---|"]
    for word in common(vectors, many):
        near = "、".join(other for other, _ in vectors.neighbours(word, top))
        like = "、".join(other for other, _ in islice(table.entries.get(word, ()), top))
        lines.append(f"| {word} | {near} | {like or '(none)'} |")
    return lines


def analogies_table(named: dict[str, WordVectors], top: int = 3) -> list[str]:
    """Every question with the first answers of each set of vectors; bold where the wanted word is the first."""
    lines = [f"| a : b = c : ? | wanted | {' | '.join(named)} |", "|---|---|" + "---|" * len(named)]
    right = dict.fromkeys(named, 0)
    for a, b, c, wanted in asked():
        cells = []
        for name, vectors in named.items():
            if missing := [word for word in (a, b, c, wanted) if word not in vectors.index]:
                cells.append(f"({missing[0]} has no vector)")
                continue
            first = [word for word, _ in vectors.analogy(a, b, c, top)]
            right[name] += first[0] == wanted
            cells.append("、".join(f"**{word}**" if word == wanted else word for word in first))
        lines.append(f"| {a} : {b} = {c} : ? | {wanted} | {' | '.join(cells)} |")
    lines.append("| first is right | | " + " | ".join(f"{right[name]} of {len(asked())}" for name in named) + " |")
    return lines


def cilin_pairs(cilin: Path, words: set[str], many: int) -> list[tuple[str, str, int]]:
    """Pairs of words and the letters of the code that they share: half are drawn from one line, half at random."""
    known = {word: sorted(found)[0] for word, found in codes(cilin).items() if word in words}
    lines: dict[str, list[str]] = {}
    for word, code in known.items():
        lines.setdefault(code, []).append(word)
    draw, every = random.Random(0), sorted(known)
    several = [each for each in lines.values() if len(each) > 1]
    pairs = [draw.sample(draw.choice(several), 2) for _ in range(many // 2)]
    pairs += [draw.sample(every, 2) for _ in range(many - len(pairs))]
    return [(a, b, _shared(known[a], known[b])) for a, b in pairs]


def _shared(one: str, two: str) -> int:
    """Letters at the beginning in which two codes agree."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, two, strict=False)))


def beside_gensim(path: Path, cilin: Path) -> dict[str, Any]:
    """The same vectors, analogies and pairs, evaluated by both."""
    from gensim.models import KeyedVectors

    vectors = WordVectors.load(path)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        questions, pairs, text = folder / "analogies.txt", folder / "pairs.txt", folder / "vectors.bin"
        questions.write_text(": all\n" + "\n".join(map(" ".join, asked())) + "\n", encoding="utf-8")
        drawn = cilin_pairs(cilin, set(vectors.words), 4000)
        pairs.write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in drawn), encoding="utf-8")
        vectors.export(text, binary=True)
        command = [
            sys.executable,
            "-m",
            "maskery",
            "words",
            "evaluate",
            str(path),
            str(questions),
            str(pairs),
            "--json",
        ]
        ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        theirs = KeyedVectors.load_word2vec_format(str(text), binary=True)
        # gensim asks among the 300,000 commonest only, and takes the small letters of every word.
        score, sections = theirs.evaluate_word_analogies(str(questions), restrict_vocab=len(vectors.words))
        _, spearman, unknown = theirs.evaluate_word_pairs(str(pairs), restrict_vocab=len(vectors.words))
    return {
        "ours": ours,
        "gensim": {
            "analogies": score,
            "asked": len(sections[-1]["correct"]) + len(sections[-1]["incorrect"]),
            "spearman": float(spearman[0]),
            "unknown_percent": unknown,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("cost")
    one.add_argument("corpus", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--workers", type=int, default=2)
    one.add_argument("--methods", default=",".join(METHODS))
    one.add_argument("--json", type=Path)
    two = verbs.add_parser("words")
    two.add_argument("vectors", type=Path)
    two.add_argument("table", type=Path)
    two.add_argument("--many", type=int, default=50)
    three = verbs.add_parser("analogies")
    three.add_argument("vectors", type=Path, nargs="+")
    four = verbs.add_parser("gensim")
    four.add_argument("vectors", type=Path)
    four.add_argument("cilin", type=Path)
    given = parser.parse_args()
    if given.verb == "cost":
        cost(given.corpus, given.out, given.methods.split(","), given.workers, given.json)
    elif given.verb == "words":
        table = SimilarTable.read(given.table)
        print("\n".join(words_table(WordVectors.load(given.vectors), table, given.many)))
    elif given.verb == "analogies":
        print("\n".join(analogies_table({path.name: WordVectors.load(path) for path in given.vectors})))
    else:
        print(json.dumps(beside_gensim(given.vectors, given.cilin), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
