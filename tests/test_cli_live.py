"""What the live line says of a model that is trained beside a generator."""

import pytest

from maskery.cli.live import Meter
from maskery.train.loop import Update


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"eval/accuracy": 0.25}, ", accuracy 25.0 %"),
        ({}, ""),
        (
            {
                "eval/accuracy": 0.9,
                "eval/masked_token/accuracy": 0.25,
                "eval/replaced_token/auc": 0.71234,
                "eval/replaced_token/loss": 0.3,
            },
            ", generator's accuracy 25.0 %, replaced-token AUC 0.712",
        ),
        (
            {"eval/accuracy": 0.9, "eval/masked_token/accuracy": 0.25, "eval/replaced_token/loss": 0.3},
            ", generator's accuracy 25.0 %",
        ),
        ({"eval/replaced_token/auc": 0.71234}, ", replaced-token AUC 0.712"),
    ],
    ids=str,
)
def test_whose_accuracy_it_is(line, told):
    meter = Meter(steps=10, flops_per_token=5.0, peak=2000.0)
    update = Update(step=1, loss=1.0, losses={}, lr=1e-3, gradient_norm=1.0, tokens=100, seconds=0.5)
    meter.add(update, {"eval/loss": 2.5, **line})
    assert meter.text().endswith(f"held out: loss 2.500{told}")
