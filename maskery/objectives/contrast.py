"""Which words were hidden here? Asked of the whole row, among the hidden words of other rows (InfoWord, Kong et al.).

A row's run of hidden words is read by the same network as a row of its own. The row's pooled state s is to score its
own run g higher than the others: those of all rows of the batch, and its own with the words in another order.

    loss(row i) = -log exp(s_i . g_i) / sum over candidates c of exp(s_i . c)

Left out of the candidates, because they would be right answers counted as wrong: another row's run with the same ids,
and the other order where it has the same ids. Departures from the paper are told in docs/recipes/infoword.md.

Shapes: R rows that are asked, D width.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from maskery.batches import Batch, Targets
from maskery.model.config import Shape
from maskery.model.stack import Stack
from maskery.model.transformer import Hidden
from maskery.objectives.ngrams import fingerprints, ngram_rows, ngrams_of, order_matters
from maskery.objectives.protocol import Answers, Compared, Metrics, cached_total
from maskery.rows.ragged import Rows


class Contrast:
    name: ClassVar[str] = "contrast"
    needs_pooler: ClassVar[bool] = True
    whole_batch: ClassVar[bool] = True

    def ask(self, rows: Rows, slots: int) -> Targets:
        """The label is the run's fingerprint: equal runs have equal labels."""
        ngrams = ngrams_of(rows)
        number = torch.arange(len(ngrams))
        return Targets(
            index=torch.from_numpy(ngrams.row),
            label=torch.from_numpy(fingerprints(rows, ngrams)),
            extra={
                "as_it_stood": number,
                "reordered": number + len(ngrams),
                "differs": torch.from_numpy(order_matters(rows, ngrams)),
            },
        )

    def view(self, rows: Rows) -> Rows:
        return ngram_rows(rows, ngrams_of(rows))

    def head(self, shape: Shape) -> nn.Module:
        """Nothing of its own: the pooler is what learns."""
        return nn.Module()

    def count(self, batch: Batch) -> int:
        return int(batch.targets[self.name].label.numel())

    def reads(self, batch: Batch) -> Tensor:
        return batch.rows.new_empty(0)

    def vectors(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        """(R,3,D) of each asked row: itself, its run, its run in another order."""
        assert hidden.pooled is not None, "a system gives the network a pooler when an objective needs one"
        targets, below = batch.targets[self.name], batch.view_start(self.name)
        places = (targets.index, below + targets.extra["as_it_stood"], below + targets.extra["reordered"])
        return torch.stack([hidden.pooled.index_select(0, place) for place in places], dim=1)

    def compare(self, vectors: Tensor, targets: Targets) -> Compared:
        with torch.autocast(vectors.device.type, enabled=False):
            row, run, reordered = vectors.unbind(1)
            scores = row @ run.t()
            own = scores.diagonal()
            truth = torch.eye(len(own), dtype=torch.bool, device=own.device)
            alike = (targets.label.unsqueeze(1) == targets.label) & ~truth
            last = (row * reordered).sum(1).masked_fill(~targets.extra["differs"], -torch.inf)
            rivals = torch.cat([scores.masked_fill(alike | truth, -torch.inf), last.unsqueeze(1)], dim=1)
            losses = torch.cat([own.unsqueeze(1), rivals], dim=1).logsumexp(1) - own
        return Compared(losses=losses, hits=own > rivals.amax(1))

    def total(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Tensor:
        vectors, targets = self.vectors(network, head, hidden, batch), batch.targets[self.name]
        known = cached_total(vectors, targets)
        return self.compare(vectors, targets).losses.sum() if known is None else known

    def measure(self, network: Stack, head: nn.Module, hidden: Hidden, batch: Batch) -> Metrics:
        targets, count = batch.targets[self.name], self.count(batch)
        if "loss" in targets.extra:
            found = Compared(losses=targets.extra["loss"], hits=targets.extra["hit"])
        else:
            found = self.compare(self.vectors(network, head, hidden, batch), targets)
        return {
            "loss": (float(found.losses.sum(dtype=torch.float64)), count),
            "accuracy": (float(found.hits.sum()), count),
        }

    def answers(self, batch: Batch) -> Answers | None:
        """A run stands in no slot of its row."""
        return None
