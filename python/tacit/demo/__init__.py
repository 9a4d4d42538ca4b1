"""Demonstration: handwritten digits are classified by a model that its owner does not show."""

from tacit.demo.digits import DigitNet, for_training, held_out, train
from tacit.demo.report import report
from tacit.demo.run import Outcome, demonstrate

__all__ = ["DigitNet", "Outcome", "demonstrate", "for_training", "held_out", "report", "train"]
