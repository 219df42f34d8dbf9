"""Several models as one: the mean of what each says, and models that do not go together."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.training.ensemble import load_files, model_files

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


@pytest.fixture(scope="module")
def folds(cases, tiny):
    """Models of two folds, and of another method beside them."""
    return [
        *(tiny("mean", max_epochs=1, fold=fold, folds=2).fit(cases) for fold in range(2)),
        tiny("global-cm").fit(cases),
    ]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 30)
    return np.eye(2)[truth] + rng.normal(0, 0.3, (30, 2)), np.array(["cat", "dog"])[truth]


def classifier(table, **params):
    return at.Classifier("mean", network="linear", max_epochs=2, progress=False, **params).fit(*table)


def test_probabilities_are_the_mean_of_all_models(cases, folds):
    together = at.Ensemble(folds)
    apart = [model.predict_proba(cases.images) for model in folds]
    found = together.predict_proba(cases.images)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.mean(apart, axis=0), atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    labels = together.predict(cases.images)
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(labels, found.argmax(axis=1))
    assert together.classes_ == cases.classes
    assert together.raters_ == cases.raters
    assert repr(together) == "Ensemble(3 × Segmenter: global-cm, mean)"


def test_one_model_alone_says_what_it_says(cases, folds):
    found = at.Ensemble(folds[:1]).predict_proba(cases.images)
    np.testing.assert_array_equal(found, folds[0].predict_proba(cases.images))


def test_images_of_different_sizes_give_lists(cases, folds):
    images = [cases.images[0], cases.images[1][:, :8]]
    together = at.Ensemble(folds)
    found = together.predict_proba(images)
    assert [one.shape for one in found] == [(2, 12, 12), (2, 8, 12)]
    for position, one in enumerate(found):
        apart = [model.predict_proba(images)[position] for model in folds]
        np.testing.assert_allclose(one, np.mean(apart, axis=0), atol=1e-6)
    assert [label.shape for label in together.predict(images)] == [(12, 12), (8, 12)]


def test_classifiers_give_labels_as_they_were_given(table):
    models = [classifier(table, fold=fold, folds=3) for fold in range(3)]
    together = at.Ensemble(models)
    found = together.predict_proba(table[0])
    np.testing.assert_allclose(found, np.mean([model.predict_proba(table[0]) for model in models], axis=0))
    np.testing.assert_array_equal(together.predict(table[0]), np.array(["cat", "dog"])[found.argmax(axis=1)])


def test_a_folder_of_folds_is_loaded_as_an_ensemble(cases, folds, tmp_path):
    for number, model in enumerate(folds):
        model.save(tmp_path / f"fold_{number}" / "model.annotruth")
    files = [tmp_path / f"fold_{number}" / "model.annotruth" for number in range(3)]
    assert model_files(tmp_path) == files
    loaded = at.load_model(tmp_path)
    np.testing.assert_array_equal(
        loaded.predict_proba(cases.images), at.Ensemble(folds).predict_proba(cases.images)
    )  # fmt: skip
    assert isinstance(at.load_model(tmp_path / "fold_1"), at.Segmenter), "a run's folder stands for its model"
    files[1].unlink()
    (tmp_path / "fold_1" / "run.json").touch()
    with pytest.raises(InputError, match=r"There is no model .*fold_1.* --resume"):
        at.load_model(tmp_path)
    folds[0].save(tmp_path / "model.annotruth")
    assert model_files(tmp_path) == [tmp_path / "model.annotruth"], "a model of the folder's own comes first"


def test_models_that_do_not_go_together_are_named(make_cases, cases, tiny, folds, table, tmp_path):
    others = {
        "classes: 0, 1, and 0, 1, 2": tiny(max_epochs=1).fit(make_cases(4, classes=3)),
        "raters: good, over, blank, and good, over": tiny(max_epochs=1).fit(make_cases(4, raters=("good", "over"))),
        "number of channels or features: 1, and 2": tiny(max_epochs=1).fit(make_cases(4, channels=2)),
        "number of spatial axes: 2, and 3": tiny(max_epochs=1).fit(make_cases(4, (8, 8, 8))),
        "kind: Segmenter, and Classifier": classifier(table),
    }
    one = folds[0].save(tmp_path / "one.annotruth")
    for message, model in others.items():
        other = model.save(tmp_path / "other.annotruth")
        expected = f"{one} and {other} cannot predict together, as they differ in their {message}."
        with pytest.raises(InputError) as raised:
            load_files([one, other])
        assert str(raised.value) == expected
    with pytest.raises(InputError, match="model 0 and model 2 cannot predict together"):
        at.Ensemble([folds[0], folds[1], others["kind: Segmenter, and Classifier"]])
    with pytest.raises(InputError, match="none is given"):
        at.Ensemble([])


def test_a_report_of_an_ensemble_is_refused(cases, folds, tmp_path):
    with pytest.raises(InputError, match=r"about one trained model, not about Ensemble.*give one of its models"):
        at.report(at.Ensemble(folds), cases, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
