"""The experiments of the papers as they are declared."""

import json
import pickle
from pathlib import Path

from annotruth.experiments import EXPERIMENTS
from annotruth.methods import make_method

RESULTS = Path(__file__).parents[3] / "docs" / "results"


def test_every_experiment_is_known_by_its_name_and_repeats_over_seeds():
    assert {"zhang2020-mnist", "zhang2020-mnist-one-label", "zhang2020-mnist-seeds"} <= set(EXPERIMENTS)
    assert {"tanno2019-mnist-flippers", "tanno2019-cifar10", "labelme", "cifar10n"} <= set(EXPERIMENTS)
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert len(experiment.seeds) >= 3


def test_tables_are_listed_by_name_and_none_is_lost():
    assert list(EXPERIMENTS) == sorted(EXPERIMENTS)
    written = {path.stem for path in RESULTS.glob("*.json")}
    assert {"zhang2020-3d", "coarse-vessels", "mrprism-ablation", "tanno2019-mnist-em-steps"} <= written & set(
        EXPERIMENTS
    )
    assert len(EXPERIMENTS) == 47


def test_tables_that_were_written_before_begin_with_the_columns_of_today():
    """Columns may have been added since: they come last, and with the next run."""
    for name, experiment in EXPERIMENTS.items():
        path = RESULTS / f"{name}.json"
        if path.is_file():
            before = json.loads(path.read_text())["metrics"]
            now = [{k: v for k, v in vars(column).items() if k != "score"} for column in experiment.columns]
            assert [{"counted": False, "series": "", **each} for each in before] == now[: len(before)]


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
        sent = (experiment.task, experiment.rows, experiment.learner, [column.name for column in experiment.columns])
        task, rows, learner, columns = pickle.loads(
            pickle.dumps((experiment.task, experiment.rows, experiment.learner, experiment.columns))
        )
        assert (task, rows, learner, [column.name for column in columns]) == sent
