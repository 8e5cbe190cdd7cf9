"""Published worked examples around input rows, with exactly their numbers: ids of the marks, a word of three tokens,
what is kept of ten tokens, and the numbers of labels. Other examples of the kind stand in test_tasks_framing_frames.py
(pairs and their types), _marks.py ([unused1]), _cut.py (50/200/200), test_tasks_heads.py (800, five dropouts) and
test_tasks_pools.py (12 x H, weights that sum to one)."""

from __future__ import annotations

import numpy as np
import pytest
from fake_store import FakeFacts
from framing import counted, rows_config
from small_task import config_of, family_model, quiet
from test_corruption_units import W, copies, rows_of
from vocabularies import chinese_pieces, mixed_tokenizer

from maskery.corruption.config import CorruptionConfig
from maskery.corruption.corrupt import corrupt
from maskery.edit import Edit
from maskery.randomness import keys
from maskery.tasks.batches import TASK
from maskery.tasks.framing.frame import template
from maskery.tasks.framing.make import make_rows
from maskery.tasks.model import TaskModel
from maskery.tasks.read.labels import labels_of
from maskery.tasks.read.processor import examples_of_processor
from maskery.tasks.resolve import Splits, resolve
from maskery.text.tokenizer import Tokenizer


def test_ids_of_the_marks():
    ours = Tokenizer.from_pieces(chinese_pieces())
    found = [ours.id(name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
    assert found == [0, 100, 101, 102, 103]
    assert [ours.id(f"[unused{n}]") for n in (1, 2, 99)] == [1, 2, 99]
    assert ours.vocabulary == 21_128


def test_a_name_of_three_tokens_is_chosen_whole_or_not_at_all():
    """周杰伦 is 1453 3345 840; 去 before it, 。 behind it."""
    row = rows_of([101, 1343, 1453, 3345, 840, 511, 102], [0, W, W, 0, 0, W, 0], [True, *[False] * 5, True])
    config = CorruptionConfig(rate=0.6, unit="word")
    out = corrupt(copies(row, 400), config, keys(0, "mask", np.arange(400)), FakeFacts(21_128))
    chosen = (out.edit != Edit.NONE).reshape(400, 7)[:, 2:5]
    assert set(map(tuple, chosen.tolist())) == {(True, True, True), (False, False, False)}


@pytest.mark.parametrize(
    ("law", "kept"),
    [("tail", [6, 7, 8, 9]), ("head", [0, 1, 2, 3]), ("head+tail", [0, 1, 8, 9])],
)
def test_ten_tokens_in_room_for_four(law, kept):
    rows, cut = make_rows(counted(10, 4, 11), template(mixed_tokenizer()), rows_config(truncate=law), 6)
    assert rows[0].ids.tolist() == [101, *(1000 + n for n in kept), 102]
    assert rows[1].ids.tolist() == [101, 2000, 2001, 2002, 2003, 102]
    assert (cut.rows, cut.cut, cut.lost) == (3, 2, 6 + 7)


def test_labels_are_numbered_as_get_labels_has_them(tmp_path):
    (tmp_path / "demo.py").write_text(
        "from types import SimpleNamespace as Row\n"
        "class DemoProcessor:\n"
        "    def get_labels(self): return ['fashion', 'houseliving', 'game']\n"
        "    def get_train_examples(self, folder):\n"
        "        return [Row(guid=f'train-{n}', text_a='cat', text_b=None, label=name)\n"
        "                for n, name in enumerate(['game', 'fashion', 'houseliving', 'game'])]\n"
    )
    train = examples_of_processor(f"{tmp_path / 'demo.py'}:DemoProcessor", tmp_path, "train")
    assert labels_of(train, train.task) == ("fashion", "houseliving", "game")
    assert (train[0].guid, train[0].text_b) == ("train-0", None)
    model, splits = family_model(tmp_path / "model", "bert"), Splits(train)
    config = resolve(config_of("classify"), model, splits, labels_of(train, train.task), quiet)
    batch = TaskModel(model, config).feed(train, quiet).asked(np.arange(4))
    assert batch.targets[TASK].label.tolist() == [2, 0, 1, 2]
