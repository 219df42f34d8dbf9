"""The experiments of the papers as they are declared."""

import pickle

from annotruth.experiments import EXPERIMENTS
from annotruth.methods import make_method


def test_every_experiment_is_known_by_its_name_and_repeats_over_seeds():
    assert {"zhang2020-mnist", "zhang2020-mnist-one-label", "zhang2020-mnist-seeds"} <= set(EXPERIMENTS)
    assert {"tanno2019-mnist-flippers", "tanno2019-cifar10", "labelme", "cifar10n"} <= set(EXPERIMENTS)
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert len(experiment.seeds) >= 3


def test_rows_exist_have_names_of_their_own_and_the_paper_speaks_of_them():
    for experiment in EXPERIMENTS.values():
        labels = [row.label for row in experiment.rows]
        assert len(set(labels)) == len(labels)
        for row in experiment.rows:
            make_method(row.method, experiment.learner.task, dict(row.options))
        for setting in experiment.settings:
            assert set(experiment.paper.get(setting, {})) <= {*labels, "prob-unet"}


def test_what_another_process_needs_can_be_sent_to_it():
    for experiment in EXPERIMENTS.values():
        sent = (experiment.task, experiment.rows, experiment.learner, [metric.name for metric in experiment.metrics])
        task, rows, learner, metrics = pickle.loads(
            pickle.dumps((experiment.task, experiment.rows, experiment.learner, experiment.metrics))
        )
        assert (task, rows, learner, [metric.name for metric in metrics]) == sent
