"""How good a model is at a task: metrics with intervals, calibration, confusions, errors, and the pages about them."""

from maskery.tasks.judge.calibration import Calibrated, calibrated, calibration, cooled, fit_temperature
from maskery.tasks.judge.card import model_card, write_card
from maskery.tasks.judge.confusion import Confusion, confusion
from maskery.tasks.judge.draw_confusion import confusion_picture
from maskery.tasks.judge.draw_plots import learning_picture, reliability_picture
from maskery.tasks.judge.measure import HEADLINES, Judgement, judge, measure
from maskery.tasks.judge.mistakes import Mistake, worst_mistakes
from maskery.tasks.judge.repeats import LearningCurve, LearningPoint, Spread, over_seeds, sizes_of
from maskery.tasks.judge.report import Evidence, report
from maskery.tasks.judge.results import eval_block, eval_results, write_eval_results

__all__ = [
    "HEADLINES",
    "Calibrated",
    "Confusion",
    "Evidence",
    "Judgement",
    "LearningCurve",
    "LearningPoint",
    "Mistake",
    "Spread",
    "calibrated",
    "calibration",
    "confusion",
    "confusion_picture",
    "cooled",
    "eval_block",
    "eval_results",
    "fit_temperature",
    "judge",
    "learning_picture",
    "measure",
    "model_card",
    "over_seeds",
    "reliability_picture",
    "report",
    "sizes_of",
    "worst_mistakes",
    "write_card",
    "write_eval_results",
]
