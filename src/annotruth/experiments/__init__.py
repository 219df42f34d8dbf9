"""Experiments: the demo, and tables that one command makes anew."""

from annotruth.experiments import zhang2020
from annotruth.experiments.experiment import Experiment
from annotruth.experiments.runner import run_experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (zhang2020.MNIST, zhang2020.ONE_LABEL, zhang2020.SEEDS, zhang2020.LAMBDA, zhang2020.NOISE)
}

__all__ = ["EXPERIMENTS", "Experiment", "run_experiment"]
