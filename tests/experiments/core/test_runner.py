"""The runner of experiments: seeds, settings, resuming, processes."""

import json
from dataclasses import replace

import pytest

from annotruth.errors import InputError
from annotruth.experiments import run_experiment
from annotruth.experiments.core import runner
from annotruth.experiments.core.columns import CM_RMSE, DICE, Column
from annotruth.experiments.core.experiment import Row
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data import digits
from annotruth.training import Segmenter


def test_a_table_names_rows_seeds_settings_and_where_it_was_made(tiny, tmp_path):
    made = run_experiment(tiny, tmp_path)
    stored = json.loads((tmp_path / "tiny.json").read_text())
    assert stored == json.loads(json.dumps(made))
    assert [(row["setting"], row["method"]) for row in stored["rows"]] == [
        ("dense", "clean"), ("dense", "without trace"), ("one-label", "clean"), ("one-label", "without trace"),
    ]  # fmt: skip
    first, second = stored["rows"][:2]
    assert first["seeds"] == [0, 1]
    assert first["paper"] == {"dice": 0.9}
    assert first["dice"]["mean"] == pytest.approx(sum(first["dice"]["each"]) / 2, abs=1e-4)
    low, high = sorted(first["dice"]["each"])
    assert first["dice"]["sd"] == pytest.approx((high - low) / 2**0.5, abs=1e-4)
    assert {"mean", "sd", "each"} == set(first["cm_rmse"])
    assert first["warned"] == 2
    assert first["wall_time"]["mean"] > 0
    assert first["swapped"] in (0, 1, 2)
    assert second["settings"]["method"] == "pixel-cm"
    assert second["settings"]["trace_weight"] == 0
    assert second["settings"]["trace"] == "posterior"  # not asked for, but it determines the result
    assert stored["training"] == {"max_epochs": 1}
    assert stored["sizes"] == {"train": 16, "test": 6}
    assert stored["environment"]["date"]
    text = (tmp_path / "tiny.md").read_text()
    assert "annotruth reproduce tiny" in text
    assert "Digits are few." in text
    assert "| clean | " in text
    assert "| 0.9000 |" in text
    assert stored["findings"][0] in text
    assert (tmp_path / "tiny.png").stat().st_size > 1000


def test_a_run_that_was_cut_off_goes_on_without_training_anew(tiny, tmp_path, trained):
    run_experiment(tiny, tmp_path, seeds=[0])
    assert len(trained) == 4
    told = []
    run_experiment(tiny, tmp_path, tell=told.append)
    assert [seed for _, seed in trained[4:]] == [1] * 4
    assert told[4] == f"4 of 8 trainings were done before; to train anew, delete {tmp_path / '.tiny'}"
    run_experiment(tiny, tmp_path)
    assert len(trained) == 8


def test_what_was_changed_is_trained_anew(tiny, tmp_path, trained):
    run_experiment(tiny, tmp_path, seeds=[0])
    changed = replace(tiny, rows=(tiny.rows[0], Row("pixel-cm", name="without trace")))
    run_experiment(changed, tmp_path, seeds=[0])
    assert trained[4:] == [("without trace", 0)] * 2


def test_a_row_may_have_arguments_of_its_own_for_the_learner(tiny, tmp_path, trained):
    epochs = Column("epochs", "epochs", lambda trained: trained.model.options["max_epochs"])
    rows = (Row("clean"), Row("clean", name="longer", training={"max_epochs": 3}))
    experiment = replace(tiny, rows=rows, metrics=(DICE, epochs), findings=())
    table = run_experiment(experiment, tmp_path, seeds=[0])
    assert [row["epochs"]["mean"] for row in table["rows"]] == [1, 3] * 2
    assert [row["settings"]["max_epochs"] for row in table["rows"]] == [1, 3] * 2
    assert [row["options"] for row in table["rows"]] == [{}, {"max_epochs": 3}] * 2
    longer = replace(rows[1], training={"max_epochs": 4})
    run_experiment(replace(experiment, rows=(rows[0], longer)), tmp_path, seeds=[0])
    assert trained[4:] == [("longer", 0)] * 2  # another argument is another training


def with_diagnosis(**arguments):
    task = digits.digits_task(**arguments)
    return replace(task, options={"diag": {"diagnosis": dict.fromkeys(task.train.items, "ill")}})


def test_options_that_follow_from_the_data_reach_their_method_alone(tiny, tmp_path):
    told = Column("told", "told", lambda trained: len(trained.model.options.get("diagnosis", {})))
    experiment = replace(tiny, task=with_diagnosis, rows=(Row("clean"), Row("diag")), metrics=(told,), findings=())
    table = run_experiment(experiment, tmp_path, seeds=[0])
    assert [row["told"]["mean"] for row in table["rows"]] == [0, 16] * 2


def test_what_another_version_trained_is_trained_anew(tiny, tmp_path, trained, monkeypatch):
    run_experiment(tiny, tmp_path, seeds=[0])
    monkeypatch.setattr(runner, "__version__", "0.0.1")
    run_experiment(tiny, tmp_path, seeds=[0])
    assert len(trained) == 8


def test_other_processes_find_the_same(tiny, tmp_path):
    real = replace(
        tiny, learner=Segmenter, settings={"dense": digits.SETTINGS["dense"]}, rows=tiny.rows[1:], findings=()
    )
    here = run_experiment(real, tmp_path / "here", seeds=[0])
    there = run_experiment(real, tmp_path / "there", seeds=[0], jobs=2)
    for one, other in zip(here["rows"], there["rows"]):
        assert one["dice"] == other["dice"]
        assert one["cm_rmse"] == other["cm_rmse"]


def test_quick_takes_one_seed_and_a_name_of_its_own(tiny, tmp_path):
    made = run_experiment(tiny, tmp_path, quick=True)
    assert made["experiment"] == "tiny-quick"
    assert made["rows"][0]["seeds"] == [0]
    assert made["training"] == {"max_epochs": 1, "batch_size": 8}
    assert "annotruth reproduce tiny --quick" in (tmp_path / "tiny-quick.md").read_text()


def test_stand_in_data_are_named_as_such(tiny, tmp_path):
    stand_in = replace(tiny, stand_in="Digits stand in for livers.")
    made = run_experiment(stand_in, tmp_path, quick=True)
    assert made["experiment"] == "tiny-stand-in-quick"
    assert "Digits stand in for livers." in made["notes"]


def test_a_metric_without_a_number_leaves_its_cell_empty(tiny, tmp_path):
    none = Column("none", "nothing", lambda trained: None)
    odd = Column("odd", "of clean only", lambda trained: 1.0 if trained.model.method == "clean" else float("nan"))
    made = run_experiment(replace(tiny, metrics=(DICE, none, odd)), tmp_path, quick=True)
    clean, other = made["rows"][:2]
    assert "none" not in clean
    assert clean["odd"]["mean"] == 1
    assert "odd" not in other
    text = (tmp_path / "tiny-quick.md").read_text()
    assert "nothing" not in text
    assert "of clean only" in text


def test_a_metric_is_a_column_by_its_name(tiny, tmp_path):
    by_name = run_experiment(replace(tiny, metrics=("dice", "iou", CM_RMSE)), tmp_path, quick=True)
    assert by_name["rows"][0]["dice"] == run_experiment(tiny, tmp_path / "other", quick=True)["rows"][0]["dice"]
    assert by_name["rows"][0]["iou"]["mean"] < by_name["rows"][0]["dice"]["mean"]
    assert [each["title"] for each in by_name["metrics"]] == ["foreground Dice", "foreground IoU", "CM RMSE"]
    assert "| foreground IoU |" in (tmp_path / "tiny-quick.md").read_text()


def test_bad_use_is_refused_before_any_training(tiny, tmp_path, trained):
    with pytest.raises(InputError, match="no such folder"):
        run_experiment(tiny, tmp_path, data=tmp_path / "nowhere")
    with pytest.raises(InputError, match="at least 1"):
        run_experiment(tiny, tmp_path, jobs=0)
    wrong = replace(tiny, rows=(*tiny.rows, Row("pixel-cm", {"trace_wait": 1})))
    with pytest.raises(InputError, match="no option"):
        run_experiment(wrong, tmp_path)
    with pytest.raises(InputError, match=r"mnist\.npz"):
        run_experiment(tiny, tmp_path, data=tmp_path)
    with pytest.raises(InputError, match=r"metric.*dyce.*dice"):
        run_experiment(replace(tiny, metrics=("dyce",)), tmp_path)
    assert trained in ([], [("clean", 0)])  # the folder is read with the first training


def test_a_failure_says_which_training_it_was(tiny, tmp_path, monkeypatch):
    def fail(self, annotations):
        raise InputError("no labels")

    monkeypatch.setattr(tiny.learner, "fit", fail)
    with pytest.raises(InputError, match="dense, seed 0, clean: no labels"):
        run_experiment(tiny, tmp_path)


def test_a_method_that_refuses_the_data_stops_the_run_or_is_left_out_with_its_reason(tiny, tmp_path):
    class Refuses(tiny.learner):
        def fit(self, annotations):
            if self.method == "majority":
                raise InputError("Votes are not counted today.")
            return super().fit(annotations)

    both = replace(tiny, learner=Refuses, rows=(Row("majority"), Row("clean")), findings=(), paper={})
    with pytest.raises(InputError, match="dense, seed 0, majority: Votes are not counted today"):
        run_experiment(both, tmp_path, seeds=[0])
    table = run_experiment(replace(both, name="kept", skips=True, ranked=("dice",)), tmp_path, seeds=[0])
    page = (tmp_path / "kept.md").read_text()
    assert "Left out: majority. Votes are not counted today." in page
    assert [each["method"] for each in table["ranks"]] == ["clean"]
    assert [(row["method"], row["seeds"]) for row in table["rows"][:2]] == [("clean", [0]), ("majority", [])]


def test_settings_of_a_table_may_have_sizes_of_their_own_and_the_page_tells_them(tiny, tmp_path):
    scale = Scale({"train": 16, "test": 6}, {"max_epochs": 1}, {"one-label": Scale({"train": 20}, {"batch_size": 4})})
    table = run_experiment(replace(tiny, full=scale, findings=()), tmp_path, seeds=[0])
    sizes = {row["setting"]: (row["settings"]["train"], row["settings"].get("batch_size")) for row in table["rows"]}
    assert sizes == {"dense": (16, None), "one-label": (20, 4)}
    assert "one-label: train 20, batch_size 4." in (tmp_path / "tiny.md").read_text()
