"""Corpora of pairs: a source and its target, of one vocabulary or of two, and the rows made of them."""

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

from maskery.cli import main
from maskery.corpus.encode import Pairs, encode
from maskery.corpus.store import Corpus
from maskery.errors import CorpusError, InputError, TextError
from maskery.feed import Feed
from maskery.objectives.cross_entropy import tied_cross_entropy
from maskery.recipes.recipe import recipe
from maskery.rows.source_target import _cut
from maskery.text.training import KINDS
from maskery.text.words import segmenter

PAIRS = [("我 爱 你。真的!", "i love. you"), ("你好", "hello"), ("天 气 好", "fine\tday"), ("再见", "bye")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same pairs in every format that has columns."""
    folder = tmp_path_factory.mktemp("pairs")
    records = [{"zh": a, "other": 1, "en": b.replace("\t", " ")} for a, b in PAIRS]
    lines = [f"{each['en']}\t{each['zh']}" for each in records]
    (folder / "bare.tsv").write_text("\n".join(lines) + "\n")
    (folder / "named.tsv").write_text("\n".join(["en\tzh", *lines]) + "\n")
    (folder / "named.csv").write_text("en,zh\n" + "\n".join(line.replace("\t", ",") for line in lines) + "\n")
    (folder / "named.jsonl").write_text("\n".join(json.dumps(each, ensure_ascii=False) for each in records) + "\n")
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(records), folder / "named.parquet")
    return folder


def built(files, out, name="named.jsonl", pairs=("zh", "en"), **options):
    given = {"kind": "char", "heldout": 0, "workers": 0, **options}
    return Corpus.build(files / name, out, pairs=pairs, **given)


@pytest.fixture(scope="module")
def one(files, tmp_path_factory):
    return built(files, tmp_path_factory.mktemp("one") / "corpus")


@pytest.fixture(scope="module")
def two(files, tmp_path_factory):
    return built(files, tmp_path_factory.mktemp("two") / "corpus", target_tokenizer="train")


def texts(corpus):
    """The two texts of every document, as tokens."""
    found = []
    for first, last in zip(corpus.document_start[:-1], corpus.document_start[1:], strict=True):
        assert last - first == 2
        cut = corpus.sentence_start[first : last + 1]
        sides = (np.array(corpus.tokens[a:b]).tolist() for a, b in pairwise(cut))
        source, target = sides
        found.append((corpus.tokenizer.shown(source), corpus.target_tokenizer.shown(target)))
    return found


WANTED = [(list(a.replace(" ", "▁")), list(b.replace("\t", "▁").replace(" ", "▁"))) for a, b in PAIRS]


def test_a_pair_is_a_document_of_two_sentences(one, two):
    assert texts(one) == texts(two) == WANTED
    assert one.pairs
    assert (one.target_vocabulary, one.target_tokenizer) == (0, one.tokenizer)
    assert two.target_vocabulary == two.target_tokenizer.vocabulary != two.vocabulary
    assert one.fingerprint != two.fingerprint
    two.verify()


def test_two_vocabularies_hold_their_own_side(two):
    assert two.counts["unknown"] == 0
    assert two.tokenizer.encode("love")[0].count(two.specials.unk) > 0
    assert two.target_tokenizer.encode("爱")[0].count(two.target_specials.unk) > 0


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("bare.tsv", ("2", "1")),
        ("named.tsv", ("zh", "en")),
        ("named.csv", ("zh", "en")),
        ("named.parquet", ("zh", "en")),
    ],
)
def test_every_format_gives_the_same(files, one, tmp_path, name, pairs):
    assert built(files, tmp_path / "corpus", name, pairs).fingerprint == one.fingerprint


def test_workers_and_chunks_change_nothing(files, two, tmp_path, monkeypatch):
    monkeypatch.setattr("maskery.corpus.builder._CHUNK", 5)
    again = built(files, tmp_path / "corpus", target_tokenizer="train", workers=1)
    assert again.fingerprint == two.fingerprint


def test_a_pair_without_one_of_its_texts_is_left_out_and_counted(tmp_path):
    (tmp_path / "a.tsv").write_text("你\ti\n\tyou\n好\t \n再见\tbye\n")
    made = Corpus.build(tmp_path / "a.tsv", tmp_path / "c", pairs=("1", "2"), kind="char", heldout=0, workers=0)
    assert made.counts["documents"] == 2
    assert made.counts["empty_documents"] == 2


def test_encode_interleaves_two_tokenizers_like_each_alone():
    ours, theirs = (KINDS.get("char")([text], 200, None) for text in ("甲乙丙丁 甲乙", "abcd xyz abcd"))
    text = "甲乙 丙\nab c\n\n丁\nxyz d"
    piece = encode(text, ours, segmenter("none"), Pairs(theirs))
    sides = [ours.encode_flat([line]).ids.tolist() for line in ("甲乙 丙", "丁")]
    others = [theirs.encode_flat([line]).ids.tolist() for line in ("ab c", "xyz d")]
    assert piece.tokens.tolist() == [*sides[0], *others[0], *sides[1], *others[1]]
    assert piece.sentences.tolist() == [4, 4, 1, 5]
    assert piece.parts.tolist() == [2, 2]
    assert piece.unknown == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["named.tsv", "--pairs", "zh"], "two columns are needed"),
        (["named.tsv", "--pairs", "zh,zh"], "both texts are the same"),
        (["named.tsv", "--pairs", "zh,2"], "one is the name of a column, the other a number"),
        (["named.tsv", "--pairs", "zh,fr"], "the header has no column 'fr'; it has en, zh"),
        (["bare.tsv", "--pairs", "1,3"], "but --pairs 3 is asked for"),
        (["named.jsonl", "--pairs", "zh,fr"], "the object has no field 'fr'"),
        (["named.jsonl", "--pairs", "zh,other"], "holds a number, not text"),
        (["named.jsonl", "--pairs", "zh,en", "--field", "zh"], "both say where the text is"),
        (["named.jsonl", "--field", "zh", "--target-tokenizer", "train"], "no pairs"),
        (["named.tsv", "--pairs", "zh,en", "--format", "text"], "plain text has no columns"),
    ],
)
def test_what_is_no_pair_is_refused(files, tmp_path, capsys, arguments, told):
    name, *options = arguments
    assert main(["corpus", "build", str(files / name), "--out", str(tmp_path / "c"), *options]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_a_text_that_would_be_cut_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("maskery.corpus.reader.LONGEST_LINE", 10)
    (tmp_path / "a.tsv").write_text("甲乙\tab\n丙\t" + "x" * 11 + "\n")
    with pytest.raises(TextError, match="a text of a pair has 11 characters") as caught:
        Corpus.build(tmp_path / "a.tsv", tmp_path / "c", pairs=("1", "2"), kind="char", workers=0)
    assert caught.value.where.endswith("a.tsv:2")


def rows_of(corpus, **settings):
    given = recipe("transformer", {"training.batch": 4, "training.length": 16, **settings}, size="tiny")
    return Feed(given, corpus, 0).batch(0)


@pytest.mark.parametrize("which", ["one", "two"])
def test_the_decoder_is_asked_for_the_target(request, which):
    corpus = request.getfixturevalue(which)
    batch = rows_of(corpus)
    special, theirs = corpus.specials, corpus.target_specials
    found = set()
    for row in range(batch.size):
        read = batch.ids[row, : batch.length[row]].tolist()
        assert (read[0], read[-1]) == (special.cls, special.sep)
        written = batch.decoder.ids[row, : batch.decoder.length[row]].tolist()
        mine = batch.decoder.targets["next_token"].index // batch.decoder.ids.shape[1] == row
        asked = batch.decoder.targets["next_token"].label[mine].tolist()
        assert written[0] == theirs.cls
        assert asked == [*written[1:], theirs.sep]
        found.add(("".join(corpus.tokenizer.shown(read[1:-1])), "".join(corpus.target_tokenizer.shown(asked[:-1]))))
    assert found == {("".join(a), "".join(b)) for a, b in WANTED}


def test_each_side_is_cut_to_its_own_row_and_counted(one):
    feed = Feed(recipe("transformer", {"training.batch": 4, "training.length": 8}, size="tiny"), one, 0)
    plan = feed.plan(feed.phases[0])
    lengths = [(len(a), len(b)) for a, b in WANTED]
    assert plan.counts["cut_tokens"] == sum(max(0, a - 6) + max(0, b - 6) for a, b in lengths)
    assert plan.counts["cut_rows"] == sum(a > 6 or b > 6 for a, b in lengths)


@pytest.mark.parametrize(("left", "right"), [(3, 4), (20, 2), (2, 20), (9, 9), (30, 31), (0, 40)])
def test_in_one_row_the_longer_side_is_cut_first(left, right):
    a, b = left, right
    while a + b > 13:
        a, b = (a - 1, b) if a >= b else (a, b - 1)
    made = _cut(left, right, 16, alone=False)
    assert sum(made) == a + b
    assert abs(made[0] - a) <= 1


def test_of_running_text_a_sentence_and_the_one_behind_it(tmp_path):
    (tmp_path / "plain.txt").write_text("甲甲。乙。丙。\n丁丁丁。\n\n戊。己。庚。\n\n辛。\n")
    plain = Corpus.build(tmp_path / "plain.txt", tmp_path / "c", kind="char", heldout=0, workers=0)
    feed = Feed(recipe("transformer", {"training.batch": 3, "training.length": 16}, size="tiny"), plain, 0)
    batch = feed.batch(0)
    shown = plain.tokenizer.shown
    sides = zip(batch.ids.tolist(), batch.decoder.ids.tolist(), strict=True)
    wanted = {"[CLS]": "", "[SEP]": "", "[PAD]": ""}
    found = {tuple("".join(wanted.get(t, t) for t in shown(side)) for side in both) for both in sides}
    assert found == {("甲甲。", "乙。"), ("丙。", "丁丁丁。"), ("戊。", "己。")}
    assert feed.plan(feed.phases[0]).counts["left_out_sentences"] == 2


def test_targets_with_a_vocabulary_of_their_own_need_a_decoder(two):
    with pytest.raises(CorpusError, match="a vocabulary of their own"):
        Feed(recipe("bert", size="tiny"), two, 0)


def test_smoothing_is_that_of_torch():
    generator = torch.Generator().manual_seed(0)
    states, matrix = (torch.randn(n, 6, generator=generator, dtype=torch.float64).requires_grad_() for n in (9, 11))
    bias = torch.randn(11, generator=generator, dtype=torch.float64).requires_grad_()
    labels = torch.randint(11, (9,), generator=generator)
    ours = tied_cross_entropy(states, matrix, bias, labels, 0.1)
    theirs = torch.nn.functional.cross_entropy(states @ matrix.t() + bias, labels, reduction="sum", label_smoothing=0.1)
    assert torch.allclose(ours, theirs)
    leaves = (states, matrix, bias)
    pairs = zip(torch.autograd.grad(ours, leaves), torch.autograd.grad(theirs, leaves), strict=True)
    assert all(torch.allclose(a, b) for a, b in pairs)


def test_python_refuses_a_column_that_is_none(files, tmp_path):
    with pytest.raises(InputError, match="two columns are needed"):
        built(files, tmp_path / "c", pairs=("zh", ""))
