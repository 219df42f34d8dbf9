"""One file holds the whole model, and nothing in it can run code."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import annotruth
from annotruth import Segmenter, load_model
from annotruth.errors import AnnotruthError, InputError
from annotruth.methods.confusion.pixel_cm import PixelCM
from annotruth.training.storage import read_facts, write_model

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


@pytest.fixture(scope="module")
def model(make_cases, tiny):
    annotations = make_cases(12, (12, 13), classes=3, channels=2, raters=("good", "over", "under"))
    annotations.pixel_values = {0: 0, 1: 100, 2: 200, 255: 7}
    return tiny("pixel-cm", validation=0.25, trace_weight=0.05, seed=np.int64(3)).fit(annotations)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    return model.save(tmp_path_factory.mktemp("model") / "new" / "folder" / "m.annotruth")


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).normal(size=(3, 2, 15, 10)).astype(np.float32)


def test_everything_comes_back(model, path, images, weights, same):
    again = load_model(path)
    assert isinstance(again, Segmenter)
    assert same(weights(model), weights(again))
    np.testing.assert_array_equal(model.predict_proba(images), again.predict_proba(images))
    assert (again.classes_, again.raters_, again.dims_) == (model.classes_, model.raters_, model.dims_)
    assert again.pixel_values_ == model.pixel_values_ == {0: 0, 1: 100, 2: 200, 255: 7}
    pd.testing.assert_frame_equal(model.history_, again.history_)
    assert again.warnings_ == model.warnings_
    assert again.settings_ == model.settings_
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.confusion_, model.confusion_)
    np.testing.assert_array_equal(again.confusion(images), model.confusion(images))
    assert list(again.annotators_) == list(model.annotators_)
    for name, annotator in model.annotators_.items():
        np.testing.assert_array_equal(again.annotators_[name].confusion, annotator.confusion)
        assert again.annotators_[name].interval == annotator.interval
        np.testing.assert_array_equal(again.annotators_[name].predict(images[0]), annotator.predict(images[0]))


def test_saved_again_it_is_the_same_file(path, tmp_path):
    assert load_model(path).save(tmp_path / "again.annotruth").read_bytes() == path.read_bytes()


def test_the_file_is_a_json_head_and_plain_numbers(model, path):
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    head = json.loads(content[8 : 8 + length])
    facts = json.loads(head.pop("__metadata__")["annotruth"])
    assert facts["kind"] == "Segmenter"
    assert facts["annotruth"] == annotruth.__version__
    raters = {f"raters.{name}": value for name, value in vars(model._raters).items()}
    size = sum(value.nbytes for value in (*model.module_.state_dict().values(), *raters.values()))
    assert len(content) == 8 + length + size
    assert set(head) == {*model.module_.state_dict(), *raters}


def test_loading_never_unpickles(path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("unpickled")

    for module, name in ((pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (torch, "load")):
        monkeypatch.setattr(module, name, refuse)
    load_model(path)


def test_what_was_never_a_model(tmp_path):
    with pytest.raises(InputError, match=r"There is no model .*nowhere\.annotruth"):
        load_model(tmp_path / "nowhere.annotruth")
    with pytest.raises(InputError, match="There is no model"):
        load_model(tmp_path)
    other = tmp_path / "other.safetensors"
    save_file({"weight": torch.zeros(2)}, other)
    with pytest.raises(InputError, match="not a model of annotruth"):
        load_model(other)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_file_cut_short(path, tmp_path, share):
    content = path.read_bytes()
    broken = tmp_path / "broken.annotruth"
    broken.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"broken\.annotruth is not a model of annotruth, or it is damaged"):
        load_model(broken)


def test_a_damaged_head(path, tmp_path):
    content = bytearray(path.read_bytes())
    content[8:40] = b"\x00" * 32
    (tmp_path / "broken.annotruth").write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        load_model(tmp_path / "broken.annotruth")


def test_a_model_of_another_kind_or_a_newer_format(tmp_path):
    other = write_model(tmp_path / "other.annotruth", "Classifier", {}, {"weight": torch.zeros(2)})
    with pytest.raises(InputError, match="holds a Classifier, not a Segmenter"):
        Segmenter.load(other)
    head = json.dumps({"annotruth": "99.0", "format": 99, "kind": "Segmenter"})
    save_file({"weight": torch.zeros(2)}, tmp_path / "newer.annotruth", metadata={"annotruth": head})
    with pytest.raises(InputError, match=r"written by annotruth 99\.0, which is newer"):
        load_model(tmp_path / "newer.annotruth")


def test_a_segmenter_of_an_earlier_version_says_what_to_do(path, tmp_path):
    """Its networks are no longer there; of a classifier's, names are kept."""
    with safe_open(path, framework="pt") as file:
        head = json.loads(file.metadata()["annotruth"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    head |= {"format": 1, "annotruth": "0.1.0"}
    save_file(tensors, tmp_path / "old.annotruth", metadata={"annotruth": json.dumps(head)})
    with pytest.raises(
        InputError, match=r"old.annotruth was written by annotruth 0\.1\.0.*annotruth==0\.1\.0.*train anew"
    ):
        load_model(tmp_path / "old.annotruth")


def test_options_that_were_not_given_are_kept_for_when_defaults_change(model, path, monkeypatch):
    monkeypatch.setattr(PixelCM.__init__, "__defaults__", (None, "posterior", "drawings", (), "shared"))
    assert PixelCM().features == "shared"
    assert vars(load_model(path).method_) == vars(model.method_)


def test_weights_of_another_method(model, path, tmp_path):
    facts = read_facts(path)
    facts["params"]["method"], facts["options"] = "mean", {}
    del facts["params"]["trace_weight"]
    wrong = write_model(tmp_path / "wrong.annotruth", "Segmenter", facts, model.module_.state_dict())
    with pytest.raises(InputError, match="does not fit"):
        load_model(wrong)


def test_a_place_that_cannot_be_written(model, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(AnnotruthError, match="could not be written"):
        model.save(tmp_path / "file" / "m.annotruth")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_save_leaves_the_old_model(model, path, tmp_path, monkeypatch):
    old = tmp_path / "m.annotruth"
    old.write_bytes(path.read_bytes())

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("annotruth.training.storage.save_file", full)
    with pytest.raises(AnnotruthError, match="No space left"):
        model.save(old)
    assert old.read_bytes() == path.read_bytes()
    assert list(tmp_path.iterdir()) == [old]


# A head or weights that somebody changed.


def changed(path, tmp_path, change_head=None, change_weights=None):
    """A copy of a model's file with another head, or other weights."""
    with safe_open(path, framework="pt") as file:
        head = json.loads(file.metadata()["annotruth"])
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    text = None
    if change_head is not None:
        text = change_head(head)
    if change_weights is not None:
        change_weights(weights)
    text = text if isinstance(text, str) else json.dumps(head)
    save_file(weights, tmp_path / "changed.annotruth", metadata={"annotruth": text})
    return tmp_path / "changed.annotruth"


WRONG = [None, "word", 10**12, [], {"a": "b"}]


def test_every_part_of_a_head_may_be_missing_or_of_any_type(path, tmp_path):
    with safe_open(path, framework="pt") as file:
        head = json.loads(file.metadata()["annotruth"])
    places = [(name,) for name in head]
    places += [(name, key) for name in ("shape", "standard", "plan", "params", "rater_code") for key in head[name]]
    places += [("plan", "network", key) for key in head["plan"]["network"]]
    places += [("shape", "network", key) for key in head["shape"]["network"]]
    image = np.zeros((1, 2, 12, 12), dtype=np.float32)
    for place in places:
        for value in ("absent", *WRONG):

            def spoil(head, place=place, value=value):
                inner = head
                for key in place[:-1]:
                    inner = inner[key]
                if value == "absent":
                    del inner[place[-1]]
                else:
                    inner[place[-1]] = value

            file = changed(path, tmp_path, spoil)
            said = ""
            try:
                load_model(file).predict(image)
            except AnnotruthError as error:
                said = str(error)
            except Exception as error:
                raise AssertionError(f"{place} = {value!r}: {error!r}") from error
            assert not said or "changed.annotruth" in said, (place, value, said)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda head: "[" * 100_000, "nested too deeply"),
        (lambda head: "9" * 5000, "number that is too long"),
        (lambda head: "[]", "damaged"),
        (lambda head: head["shape"].update(channels=10**9), "mean has 2 entries instead of 1000000000"),
        (lambda head: head["shape"]["network"].update(widths=[10**5, 10**5]), "does not fit|damaged"),
        (lambda head: head["standard"].update(deviation=[float("nan"), 1.0]), "standard.deviation"),
        (lambda head: head["standard"].update(deviation=[0.0, 1.0]), "standard.deviation"),
    ],
)
def test_a_hostile_head_is_one_sentence_that_names_the_file(path, tmp_path, spoil, words):
    with pytest.raises(InputError, match=rf"changed\.annotruth.*({words})"):
        load_model(changed(path, tmp_path, spoil))


@pytest.mark.parametrize(
    ("value", "words"), [(float("nan"), "are NaN or infinite"), (float("inf"), "are NaN or infinite")]
)
def test_weights_that_are_no_numbers_are_refused(path, tmp_path, value, words):
    def spoil(weights):
        name = next(name for name in weights if name.startswith("truth") and name.endswith("weight"))
        weights[name].view(-1)[0] = value

    with pytest.raises(InputError, match=words):
        load_model(changed(path, tmp_path, change_weights=spoil))


@pytest.mark.parametrize("name", ["raters.skill", "raters.confusion", "raters.nonsense"])
def test_what_is_known_of_the_raters_must_be_theirs(path, tmp_path, name):
    with pytest.raises(InputError, match=r"changed\.annotruth"):
        load_model(changed(path, tmp_path, change_weights=lambda weights: weights.update({name: torch.zeros(7)})))
