"""Is it autoregression? XLNet's targets as transformers' collator makes them, and as our rows do, on the same text.

    python -m benchmarks.permutation_correctness [--rows 24]

The order says that a target is asked for in the sight of the true tokens of the targets before it. So the true token of
one target is changed, and it is looked at whose prediction moves: of all that come later, of none that come before, and
never its own. Both sides have the same rows, the same random weights, and a network that the parity tests find equal.
`DataCollatorForPermutationLanguageModeling` writes <mask> over the targets in the stream that the others read, so no
target ever learns of another. It fails if ours is wrong somewhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import other_maskers as others
from benchmarks.masking_bench import CHINESE, DOCUMENTS, ENGLISH, MIXED, Bench, Line, drawn_lengths, percent, vocabulary
from benchmarks.pretrain import RESULTS
from benchmarks.report_permutation import CASES
from maskery.batches import Batch
from maskery.checkpoint.load import load
from maskery.corruption.units import word_starts
from maskery.feed import Feed
from maskery.model.transformer import inputs_of
from maskery.recipes.recipe import recipe

LENGTH = 64
MOVED = 1e-5
MEAN = 300 / 137
"""Words of a span when p ~ 1/n, n = 1 .. 5."""


@dataclass(frozen=True)
class Table:
    feed: Feed
    batch: Batch
    theirs: Any
    ours: Any
    collator: Any

    def collated(self, ids: Tensor, seed: int) -> dict[str, Tensor]:
        """Their batch of one row; the same seed draws the same targets and the same order."""
        torch.manual_seed(seed)
        made: dict[str, Tensor] = self.collator([{"input_ids": ids.tolist()}])
        return made


def made_table(folder: Path, rows: int) -> Table:
    bench = Bench(folder, 100, vocabulary())
    corpus = bench.corpus(*([ENGLISH, CHINESE, MIXED, *lines] for lines in DOCUMENTS * 6))
    changes = {"training.length": LENGTH, "training.batch": rows, "model.memory": 0, "rows.both_ways": False}
    feed = Feed(recipe("xlnet", changes), corpus, 0)
    library = others.transformers()
    sizes = {"d_model": 32, "n_layer": 3, "n_head": 4, "d_inner": 64, "dropout": 0.0}
    torch.manual_seed(0)
    theirs = library.XLNetLMHeadModel(library.XLNetConfig(vocab_size=corpus.vocabulary, **sizes)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0, 0.3)
    theirs.save_pretrained(folder / "weights")
    collator = library.DataCollatorForPermutationLanguageModeling(library.AutoTokenizer.from_pretrained(corpus.path))
    return Table(feed, feed.batch(0), theirs, load(folder / "weights"), collator)


@torch.no_grad()
def moved_by_theirs(table: Table, row: int) -> tuple[Tensor, Tensor]:
    """(n,n) whose prediction moves when the token of each target changes, and (n,n) who comes before whom."""
    text = table.batch.original[row]
    plain = table.collated(text, row)
    targets = (plain["labels"][0] != -100).nonzero().flatten()
    made = [plain, *(table.collated(_changed(text, slot), row) for slot in targets.tolist())]
    ids = torch.cat([each["input_ids"] for each in made])
    order = {name: plain[name].expand(len(ids), -1, -1) for name in ("perm_mask", "target_mapping")}
    said = table.theirs(ids, **order).logits[:, targets]
    before = plain["perm_mask"][0][targets][:, targets].t() == 0
    return (said[1:] - said[:1]).abs().amax(2) > MOVED, before


@torch.no_grad()
def moved_by_ours(table: Table, row: int) -> tuple[Tensor, Tensor]:
    one = table.batch.one(row)
    assert one.asked is not None
    texts = [one.ids, *(_changed(one.ids[0], slot).unsqueeze(0) for slot in one.asked.tolist())]
    said = torch.stack([table.ours.network(inputs_of(replace(one, ids=ids))).predicted.packed for ids in texts])
    order = one.slots["order"][0][one.asked]
    return (said[1:] - said[:1]).abs().amax(2) > MOVED, order[:, None] < order[None, :]


def _changed(text: Tensor, slot: int) -> Tensor:
    """The text with another ordinary token at one place."""
    other = text.clone()
    other[slot] = 20 + (int(text[slot]) + 7) % 40
    return other


def dependence(table: Table) -> list[Line]:
    shares: dict[str, list[float]] = {"earlier": [], "later": [], "itself": []}
    for side in (moved_by_theirs, moved_by_ours):
        hits, many = dict.fromkeys(shares, 0), dict.fromkeys(shares, 0)
        for row in range(table.batch.size):
            moved, before = side(table, row)
            itself = torch.eye(len(moved), dtype=torch.bool)
            for name, pairs in (("earlier", before & ~itself), ("later", ~before & ~itself), ("itself", itself)):
                hits[name] += int((moved & pairs).sum())
                many[name] += int(pairs.sum())
        for name in shares:
            shares[name].append(hits[name] / many[name])
    wanted = {"earlier": 1.0, "later": 0.0, "itself": 0.0}
    return [_line(name, percent, *shares[name], wanted[name]) for name in shares]


def kept_tokens(table: Table) -> Line:
    """Targets whose true token stands in the stream that the other targets read."""
    batch = table.batch
    kept = total = 0
    for row in range(batch.size):
        made = table.collated(batch.original[row], row)
        targets = made["labels"] != -100
        kept += int((made["input_ids"] == made["labels"])[targets].sum())
        total += int(targets.sum())
    assert batch.asked is not None
    us = (batch.ids.flatten() == batch.original.flatten())[batch.asked].float().mean()
    return _line("kept", percent, kept / total, float(us), 1.0)


def split_words(table: Table) -> Line:
    """Words with a target of which another piece is none."""
    rows = table.feed.corrupted(0, table.feed.phases[0], *table.feed.numbers(0)[1:])
    word = np.cumsum(word_starts(rows))

    def split(asked: np.ndarray[Any, Any]) -> float:
        size, hit = np.bincount(word[~rows.special]), np.bincount(word[asked], minlength=word.max() + 1)
        return float(((hit > 0) & (hit < size)).sum() / (hit > 0).sum())

    theirs = [table.collated(table.batch.original[row], row)["labels"][0] != -100 for row in range(table.batch.size)]
    assert rows.asked is not None
    return _line("split", percent, split(torch.cat(theirs).numpy()), split(rows.asked), 0.0)


def span_lengths(table: Table) -> Line:
    """The mean of a span: theirs in pieces, ours in words."""
    torch.manual_seed(0)
    # Rows no longer than this: their order and their mapping take the square of it.
    asked = (table.collator.torch_mask_tokens(torch.full((40, 512), 30))[3] != -100).int()
    runs = torch.diff(asked, dim=1, prepend=asked.new_zeros(40, 1)).eq(1).sum()
    us = drawn_lengths(table.feed, 400).mean()
    return _line("spans", "{:.2f}".format, float(asked.sum() / runs), float(us), MEAN, near=0.05)


def second_stream(table: Table) -> Line:
    """Slots of the second stream for each target."""
    made = [table.collated(table.batch.original[row], row) for row in range(table.batch.size)]
    theirs = sum(each["target_mapping"].shape[1] for each in made) / sum(int((e["labels"] != -100).sum()) for e in made)
    assert table.batch.asked is not None
    ours = len(table.batch.asked) / int(table.batch.targets["permuted_token"].label.numel())
    return _line("second", "{:.1f}".format, theirs, ours, 1.0)


@torch.no_grad()
def beside_a_longer_row(table: Table) -> Line:
    """How far a row's states move when it is padded to the length of the row beside it."""
    rows = [table.batch.original[0][:40], table.batch.original[1]]
    torch.manual_seed(0)
    both = table.collator([{"input_ids": row.tolist()} for row in rows])
    given = {name: both[name] for name in ("input_ids", "attention_mask") if name in both}
    alone = table.theirs.transformer(rows[0].unsqueeze(0)).last_hidden_state[0]
    them = (table.theirs.transformer(**given).last_hidden_state[0, : len(alone)] - alone).abs().max()
    padded = torch.stack([torch.nn.functional.pad(rows[0], (0, LENGTH - 40)), rows[1]])
    mask = torch.arange(LENGTH) < torch.tensor([[40], [LENGTH]])
    us = (table.ours(padded, mask).last[0, :40] - table.ours(rows[0].unsqueeze(0)).last[0]).abs().max()
    return _line("beside", "{:.1e}".format, float(them), float(us), 0.0, near=1e-4)


def odd_length(table: Table) -> Line:
    theirs = others.works(lambda: table.collated(table.batch.original[0][:63], 0))
    feed = replace(table.feed, recipe=table.feed.recipe.changed({"training.length": 63}))
    ours = "runs" if feed.batch(0).ids.shape[1] == 63 else "fails"
    return Line("odd", 4, "measured", _who(), "", theirs, ours, "runs", theirs == "runs", ours == "runs")


def _line(
    case: str, shown: Callable[[float], str], theirs: float, ours: float, wanted: float, near: float = 1e-9
) -> Line:
    right = [abs(found - wanted) <= near for found in (theirs, ours)]
    return Line(case, 4, "measured", _who(), "", shown(theirs), shown(ours), shown(wanted), *right)


def _who() -> str:
    return f"transformers {others.transformers().__version__}"


LINES: tuple[Callable[[Table], Line | list[Line]], ...] = (
    dependence,
    kept_tokens,
    split_words,
    span_lengths,
    second_stream,
    beside_a_longer_row,
    odd_length,
)


def lines(rows: int) -> list[Line]:
    found: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        table = made_table(Path(folder), rows)
        for each in LINES:
            line = each(table)
            found += line if isinstance(line, list) else [line]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--json", type=Path, default=RESULTS / "permutation_correctness.json")
    options = parser.parse_args()
    found = lines(options.rows)
    for line in found:
        print(f"{CASES[line.case]['en']}\n    wanted {line.wanted}")
        for side, value, right in (("theirs", line.theirs, line.theirs_right), ("ours", line.ours, line.ours_right)):
            print(f"    {side:8}{value:12}{'right' if right else 'WRONG'}", flush=True)
    wrong = [line.case for line in found if not line.ours_right]
    report = {"rows": options.rows, "transformers": others.transformers().__version__}
    report["lines"] = [asdict(line) for line in found]
    options.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
