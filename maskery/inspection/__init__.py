"""Rates measured over the rows that training will read, with intervals, to be laid beside the recipe's."""

from maskery.inspection.measured import Measured
from maskery.inspection.report import Line, Rates, rates
from maskery.inspection.walk import measure, visits
from maskery.inspection.words import word_numbers

__all__ = ["Line", "Measured", "Rates", "measure", "rates", "visits", "word_numbers"]
