"""What each of two ranks does in tests/test_ranks.py: run by torchrun, `rank_script.py CORPUS FOLDER KILLED`."""

import json
import os
import shutil
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from small_run import Talk, cut_back, tiny_recipe
from test_train_loop import rows_in

from maskery.batches import Targets
from maskery.corpus.store import Corpus
from maskery.errors import NonFiniteError, Stopped
from maskery.objectives.masked_token import MaskedToken
from maskery.objectives.sentences import NextSentence
from maskery.system import System
from maskery.train.build import build_trainer
from maskery.train.loop import batches_from
from maskery.train.ranks import joined
from maskery.train.run import pretrain

STILL = {
    "model__dropout": 0.0,
    "model__attention_dropout": 0.0,
    "training__steps": 20,
    "training__save_every": 8,
    "training__eval_every": 5,
}
PHASES = [{"steps": 9, "length": 12, "batch": 6}, {"steps": 11, "length": 24}]
COMPARED = STILL | {"training__micro": 2, "training__steps": 10}
SHARED = COMPARED | {"model__layers": 4}
"""By LAMB: a weight that several layers use has one gradient, one size and one ratio, wherever its parts are."""
GENERATED = COMPARED | {"objectives__replaced_token__weight": 1.0}
REMEMBERED = {"model__memory": 30, "training__length": 16, "training__micro": 3, "training__batch": 6}
CASES = {
    "plain": ("bert", STILL, False),
    "uneven": ("roberta", STILL | {"training__batch": 7, "training__micro": 2}, False),
    "phases": ("bert", STILL | {"training__phases": PHASES}, False),
    "sparse": ("bert", STILL | {"training__batch": 2}, False),
    "shards": ("bert", STILL | {"training__micro": 2}, True),
    "shared": ("albert", SHARED, False),
    "shared shards": ("albert", SHARED | {"model__share": "attention", "model__groups": 2}, True),
    "generator": ("electra", GENERATED, False),
    "generator shards": ("electra", GENERATED | {"training__optimizer": "lamb"}, True),
    "memory": ("transformer-xl", STILL | REMEMBERED, False),
    "memory shards": ("transformer-xl", COMPARED | REMEMBERED, True),
    "compared": ("infoword", COMPARED, False),
    "compared shards": ("infoword", COMPARED | {"training__optimizer": "lamb"}, True),
}
WHOLE = {"training__steps": 30, "training__save_every": 5}
"""With dropout, to be repeated, killed and resumed."""
STOPPED = 4


def say(text):
    pass


@contextmanager
def asking(case):
    """In the sparse case nothing is asked of rows with an odd number."""
    if case != "sparse":
        yield
        return

    def sparse(ask):
        def asked(self, rows, slots):
            targets = ask(self, rows, slots)
            row = targets.index if isinstance(self, NextSentence) else targets.index // slots
            even = torch.from_numpy(rows.number)[row] % 2 == 0
            return Targets(index=targets.index[even], label=targets.label[even])

        return asked

    with pytest.MonkeyPatch.context() as patch:
        for kind in (MaskedToken, NextSentence):
            patch.setattr(kind, "ask", sparse(kind.ask))
        yield


def rows_and_counts(recipe, corpus, ranks, steps=4):
    trainer = build_trainer(recipe, corpus, 0, say, ranks)
    made = list(batches_from(trainer.feed, 0, steps, trainer.micro, 0, ranks.rank, ranks.world))
    rows = ranks.gather([rows_in(*batches) for batches in made])
    counts = [[sum(trainer.system.counts(batch).values()) for batch in batches] for batches in made]
    return [[row for each in rows for row in each[step]] for step in range(steps)], ranks.gather(counts)


def not_a_number(recipe, corpus, ranks):
    """After two updates the second rank's loss is no number: nobody's weights move, and its rows are named."""
    trainer = build_trainer(recipe, corpus, 0, say, ranks)
    updates = trainer.updates()
    next(updates), next(updates)
    before = [value.clone() for value in [*trainer.system.parameters(), *trainer.optimizer.state().values()]]
    forward = System.forward
    if ranks.rank == 1:
        System.forward = lambda self, batch: {name: total * torch.nan for name, total in forward(self, batch).items()}
    error = None
    try:
        next(updates)
    except NonFiniteError as caught:
        error = caught
    System.forward = forward
    after = [*trainer.system.parameters(), *trainer.optimizer.state().values()]
    same = all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    rows = trainer.feed.batch(2, 1, 2).rows.tolist()
    return {"error": ranks.gather(error and error.text()), "same": ranks.gather((same, trainer.step)), "rows": rows}


def too_large(recipe, corpus, ranks):
    """Forward passes of more than two rows do not fit into the second rank's memory."""
    trainer = build_trainer(recipe, corpus, 0, say, ranks)
    forward = System.forward

    def limited(self, batch):
        if ranks.rank == 1 and batch.size > 2:
            raise MemoryError
        return forward(self, batch)

    System.forward = limited
    update = next(trainer.updates())
    System.forward = forward
    return {"micro": ranks.gather(trainer.micro), "note": update.note, "step": trainer.step}


def stopped(recipe, corpus, folder, ranks):
    """The second rank gets a signal in the middle of an update."""
    forward = System.forward

    def signalled(self, batch):
        if batch.step == STOPPED - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return forward(self, batch)

    if ranks.rank == 1:
        System.forward = signalled
    error = None
    try:
        pretrain(recipe, corpus, folder / "stopped", say=say)
    except Stopped as caught:
        error = caught.cause, caught.exit_code
    System.forward = forward
    return ranks.gather(error)


def resumed(corpus, folder, killed, ranks):
    """Shards go on as shards, even to the final model alone; a run of one rank, stopped after step 8, goes on with two;
    one whose rank was killed goes on."""
    if ranks.first:
        cut_back(folder / "shards", 8, folder / "shards-resumed")
        cut_back(folder / "shards", 20, folder / "shards-unfinished")
        shutil.copytree(killed, folder / "killed")
    ranks.wait()
    for name, case in (("shards-resumed", "shards"), ("shards-unfinished", "shards"), ("grown", "plain")):
        recipe, changes, fsdp = CASES[case]
        pretrain(tiny_recipe(recipe, **changes), corpus, folder / name, True, fsdp=fsdp, say=say)
    talk = Talk()
    pretrain(tiny_recipe(**WHOLE), corpus, folder / "killed", True, say=talk)
    return talk.text


def main(corpus, folder, killed):
    corpus, folder = Corpus.open(corpus), Path(folder)
    with joined(threads=1) as ranks:
        found = {"rows": {}, "counts": {}}
        for name, (recipe, changes, fsdp) in CASES.items():
            made = tiny_recipe(recipe, **changes)
            with asking(name):
                found["rows"][name], found["counts"][name] = rows_and_counts(made, corpus, ranks)
                pretrain(made, corpus, folder / name, fsdp=fsdp, say=say)
        for name in ("whole", "again"):
            pretrain(tiny_recipe(**WHOLE), corpus, folder / name, say=say)
        found["talk"] = resumed(corpus, folder, killed, ranks)
        found["stopped"] = stopped(tiny_recipe(), corpus, folder, ranks)
        found["nan"] = not_a_number(tiny_recipe(), corpus, ranks)
        found["memory"] = too_large(tiny_recipe(), corpus, ranks)
        if ranks.first:
            (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
