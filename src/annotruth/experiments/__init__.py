"""Experiments: the demo, and tables that one command makes anew."""

from annotruth.experiments.digits import DEMO_SEEDS
from annotruth.experiments.table import Experiment, run_experiment

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (DEMO_SEEDS,)}

__all__ = ["EXPERIMENTS", "Experiment", "run_experiment"]
