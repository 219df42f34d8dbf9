"""Experiments: the demo, and tables that one command makes anew."""

from annotruth.experiments.core.experiment import Experiment
from annotruth.experiments.core.runner import run_experiment
from annotruth.experiments.tables import cifar10, coarse, labelme, mrprism, tanno2019, zhang2020, zhang2020_medical

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        zhang2020.MNIST,
        zhang2020.ONE_LABEL,
        zhang2020.SEEDS,
        zhang2020.LAMBDA,
        zhang2020.NOISE,
        zhang2020_medical.LIDC,
        zhang2020_medical.LIDC_LAMBDA,
        zhang2020_medical.MULTICLASS,
        zhang2020_medical.MULTICLASS_LAMBDA,
        zhang2020_medical.LOW_RANK,
        zhang2020_medical.VOLUMES,
        tanno2019.FLIPPERS,
        tanno2019.SPAMMERS,
        tanno2019.LAMBDA,
        tanno2019.EM_STEPS,
        cifar10.CIFAR10,
        labelme.LABELME,
        cifar10.CIFAR10N,
        coarse.MNIST,
        coarse.RATIO,
        coarse.ACDC,
        coarse.VESSELS,
        mrprism.MNIST,
        mrprism.LIDC,
        mrprism.CFOS,
        mrprism.ABLATION,
    )
}

__all__ = ["EXPERIMENTS", "Experiment", "run_experiment"]
