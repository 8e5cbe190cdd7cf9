"""How good a model is at a task: metrics with intervals, calibration, confusions, errors, and the pages about them."""

from maskery.tasks.judge.measure import HEADLINES, Judgement, judge, measure

__all__ = ["HEADLINES", "Judgement", "judge", "measure"]
