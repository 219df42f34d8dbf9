"""Experiments: the demo, and tables that one command makes anew."""

from annotruth.experiments.core.experiment import Experiment
from annotruth.experiments.core.runner import run_experiment
from annotruth.experiments.tables import EXPERIMENTS

__all__ = ["EXPERIMENTS", "Experiment", "run_experiment"]
