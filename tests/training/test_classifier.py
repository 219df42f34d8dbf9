"""Label tables of all sorts through the Python interface: each is learnt from, warned of, or refused in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import annotruth as at
from annotruth.errors import InputError, UnansweredClassWarning
from annotruth.nn.classifiers import small_cnn, small_resnet
from annotruth.training.module import MethodModule
from annotruth.training.storage import read_model, write_model

# Trainings of an epoch or two: a model that knows little is rightly doubted.
pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")

CLASSES = ["größte Null", "a b", "二"]


def classifier(**params: object) -> at.Classifier:
    return at.Classifier(network="linear", learning_rate=0.05, progress=False, **{"max_epochs": 4, **params})  # type: ignore[arg-type]


def study(n_items: int = 120) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, truth, and answers of three good raters, one who answered once, one who always says the same."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, n_items)
    features = np.eye(3)[truth] + rng.normal(0, 0.2, (n_items, 3))
    good = np.where(rng.random((n_items, 3)) < 0.85, truth[:, None], rng.integers(0, 3, (n_items, 3)))
    once = np.where(np.arange(n_items) == 4, truth, -1)
    return features, truth, np.column_stack([good, once, np.ones(n_items, dtype=int)])


def long_table(answers: np.ndarray) -> pd.DataFrame:
    item, rater = np.nonzero(answers >= 0)
    return pd.DataFrame({"item": item, "rater": rater, "label": [CLASSES[label] for label in answers[item, rater]]})


def test_one_answer_and_always_the_same_answer() -> None:
    features, truth, answers = study()
    raters = ["ann", "bob", "cy", "once", "always"]
    ann = at.Annotations.from_answers(answers, features, raters=raters, classes=CLASSES, truth=truth)
    model = classifier(max_epochs=20).fit(ann)
    assert model.score(ann) > 0.95
    assert np.isfinite(model.confusion_).all()
    always, once = model.annotators_["always"], model.annotators_["once"]
    assert (always.confusion.argmax(axis=1) == 1).all()
    assert always.skill < 0.5
    assert once.labelled == 1
    assert once.interval[1] - once.interval[0] > 2 * np.diff(model.annotators_["ann"].interval)[0]
    ranked = model.ranking_.set_index("rater")
    assert ranked.loc["once", "worst_rank"] - ranked.loc["once", "best_rank"] >= 2  # type: ignore[operator]
    assert ranked.index[-1] == "always"


def test_class_names_come_back_as_they_were_written(tmp_path: Path) -> None:
    features, truth, answers = study()
    model = classifier(max_epochs=20).fit(features, long_table(answers))
    assert set(model.classes_) == set(CLASSES)
    model.save(tmp_path / "m.annotruth")
    loaded = at.load_model(tmp_path / "m.annotruth")
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.predict(features), model.predict(features))
    assert np.mean(loaded.predict(features) == np.array(CLASSES)[truth]) > 0.9


def test_a_class_nobody_answered_is_warned_of_and_remembered(tmp_path: Path) -> None:
    features, _, answers = study()
    ann = at.Annotations.from_answers(answers, features, classes=[*CLASSES, "never seen"])
    with pytest.warns(UnansweredClassWarning, match="Nobody ever answered never seen"):
        model = classifier().fit(ann)
    assert "Nobody ever answered never seen" in model.warnings_[0]
    assert "Nobody ever answered never seen" in at.report(model, ann, tmp_path / "r.html").read_text(encoding="utf-8")
    assert (model.predict_proba(ann)[:, 3] < 0.5).all()


def test_features_with_gaps_name_item_and_column() -> None:
    features, _, answers = study()
    features[7, 2] = np.nan
    with pytest.raises(InputError, match=r"Item 7: column 2 of its features \(counted from 0\) is NaN or infinity"):
        classifier().fit(features, answers)
    named = pd.DataFrame(features, index=[f"scan {row}" for row in range(len(features))])
    table = long_table(answers).assign(item=lambda frame: "scan " + frame["item"].astype(str))
    with pytest.raises(InputError, match=r"Item scan 7: column 2"):
        classifier().fit(named, table)
    model = classifier().fit(np.nan_to_num(features), answers)
    with pytest.raises(InputError, match=r"Item 7: column 2"):
        model.predict(features)


def test_answers_on_unknown_items_are_counted_and_named() -> None:
    features, _, answers = study()
    with pytest.raises(
        InputError, match=r"Unknown items in the label table, 2 of 120: 118, 119\. Remove their answers"
    ):
        classifier().fit(features[:118], long_table(answers))


def test_duplicates_are_listed_or_settled_by_the_last() -> None:
    features, _, answers = study()
    table = long_table(answers)
    first = table.iloc[0]
    other = next(name for name in CLASSES if name != first["label"])
    table = pd.concat([table, pd.DataFrame([first, first]).assign(label=[first["label"], other])])
    with pytest.raises(InputError, match=rf"{first['item']} by {first['rater']} \({first['label']} and {other}\)"):
        classifier().fit(features, table)
    items = [str(item) for item in range(len(features))]
    ann = at.Annotations.from_table(table, items=items, images=features, duplicates="keep-last")
    assert ann.classes[ann.answer_matrix()[0, 0]] == other
    classifier().fit(ann)


def test_pictures_of_several_sizes_can_be_classified_one_by_one() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 40)
    images = rng.normal(0, 0.3, (40, 1, 8, 8)) + truth[:, None, None, None]
    model = at.Classifier("majority", max_epochs=1, progress=False).fit(images, np.column_stack([truth] * 3))
    mixed = at.Annotations(
        kind="labels", items=["a", "b"], raters=(), classes=["0", "1"], images=[images[0], np.ones((1, 12, 9))]
    )
    assert model.predict_proba(mixed).shape == (2, 2)
    np.testing.assert_allclose(model.predict_proba(mixed)[0], model.predict_proba(images[:1])[0], atol=1e-6)
    odd = at.Annotations(kind="labels", items=["a"], raters=(), classes=["0", "1"], images=[np.ones((3, 8, 8))])
    with pytest.raises(InputError, match=r"Item a has shape \(3, 8, 8\); the model needs 1 channel"):
        model.predict(odd)


def pictures(n_items: int = 40, size: tuple[int, ...] = (8, 8)) -> tuple[np.ndarray, np.ndarray]:
    """Noise, the brighter the truth is one, and the truth, as one rater's answers."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n_items)
    images = rng.normal(0, 0.3, (n_items, 1, *size)) + truth.reshape(-1, *[1] * (len(size) + 1))
    return images.astype(np.float32), truth


def of_pictures(**params: object) -> at.Classifier:
    return at.Classifier("majority", progress=False, **{"max_epochs": 2, **params})  # type: ignore[arg-type]


def same_weights(one: at.Classifier, other: at.Classifier) -> bool:
    mine, others = one.module_.state_dict(), other.module_.state_dict()
    return mine.keys() == others.keys() and all(torch.equal(mine[name], others[name]) for name in mine)


@pytest.mark.parametrize("size", [(8, 8), (9, 8, 5)])
def test_pictures_are_learnt_by_a_planned_network_and_augmented_unless_told_otherwise(size, tmp_path: Path) -> None:
    images, answers = pictures(60, size)
    model = of_pictures(max_epochs=8).fit(images, answers)
    assert (model.settings_["network"], model.settings_["augment"]) == ("resnet", True)
    assert model.score(images, answers) > 0.9
    again = at.load_model(model.save(tmp_path / "m.annotruth"))
    np.testing.assert_array_equal(again.predict_proba(images), model.predict_proba(images))
    assert again.settings_ == model.settings_
    plain = of_pictures(max_epochs=8, augment=False).fit(images, answers)
    assert plain.settings_["augment"] is False
    assert not same_weights(plain, model)


def test_pictures_cut_off_and_resumed_are_learnt_to_the_same_bits(tmp_path: Path, monkeypatch) -> None:
    images, answers = pictures()
    whole = of_pictures(max_epochs=3).fit(images, answers)
    step = MethodModule.training_step

    def interrupted(self: MethodModule, batch: object, index: int) -> torch.Tensor:
        if (self.current_epoch, index) == (1, 1):
            raise KeyboardInterrupt
        return step(self, batch, index)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(MethodModule, "training_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            of_pictures(max_epochs=3).fit(images, answers, run_folder=tmp_path)
    assert same_weights(of_pictures(max_epochs=3).fit(images, answers, run_folder=tmp_path, resume=True), whole)


def test_features_are_not_augmented() -> None:
    features, _, answers = study()
    assert classifier(max_epochs=1).fit(features, answers).settings_["augment"] is False
    with pytest.raises(InputError, match="augment changes images; feature vectors stay"):
        classifier(augment=True).fit(features, answers)


def test_one_of_monais_networks_is_trained_saved_and_loaded(tmp_path: Path) -> None:
    images, answers = pictures(37, (16, 16))  # 33 to learn from, of which one is left over by batches of 16
    model = of_pictures(network="monai:resnet10", max_epochs=1, batch_size=16).fit(images, answers)
    assert model.settings_["network"] == "monai:resnet10"
    again = at.load_model(model.save(tmp_path / "m.annotruth"))
    np.testing.assert_array_equal(again.predict_proba(images), model.predict_proba(images))
    with pytest.raises(InputError, match=r"MONAI has no network 'resnet1'.*monai:resnet1"):
        of_pictures(network="monai:resnet1").fit(images, answers)


@pytest.mark.parametrize(("asked", "network"), [(None, small_cnn), ("cnn", small_cnn), ("resnet", small_resnet)])
def test_a_model_of_version_0_1_has_the_network_of_then(tmp_path: Path, asked, network) -> None:
    images, answers = pictures()
    model = of_pictures(network=network(1, 2), max_epochs=1).fit(images, answers)
    facts, state = read_model(model.save(tmp_path / "new.annotruth"), "Classifier")
    old = {
        name: value for name, value in facts.items() if name not in ("network", "size", "annotruth", "format", "kind")
    }
    old["params"] = {name: value for name, value in facts["params"].items() if name != "augment"} | {"network": asked}
    path = write_model(
        tmp_path / "old.annotruth", "Classifier", {**old, "own_network": False, "annotruth": "0.1.0"}, state
    )
    loaded = at.load_model(path)
    np.testing.assert_array_equal(loaded.predict_proba(images), model.predict_proba(images))
    assert loaded.settings_["augment"] is False
    np.testing.assert_array_equal(
        at.load_model(loaded.save(tmp_path / "again.annotruth")).predict(images), model.predict(images)
    )


def test_features_of_version_0_1_have_the_network_of_then(tmp_path: Path) -> None:
    features, _, answers = study()
    model = at.Classifier(max_epochs=1, progress=False).fit(features, answers)
    facts, state = read_model(model.save(tmp_path / "new.annotruth"), "Classifier")
    old = {name: value for name, value in facts.items() if name not in ("network", "size")}
    loaded = at.load_model(write_model(tmp_path / "old.annotruth", "Classifier", old, state))
    assert loaded.settings_["network"] == "mlp"
    np.testing.assert_array_equal(loaded.predict_proba(features), model.predict_proba(features))
