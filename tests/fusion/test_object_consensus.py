"""Objects by consensus: known things, and raters with known rates of finding and erring."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from annotruth.data import Objects
from annotruth.errors import InputError
from annotruth.fusion import ObjectConsensus

RATES = {"ann": (0.95, 0.1, 0.98), "bob": (0.8, 0.2, 0.9), "cy": (0.6, 1.0, 0.7), "di": (0.9, 0.3, 0.95)}
"""Share of things found, false objects per image, and share of things named rightly."""


def simulate(rates: dict[str, tuple[float, float, float]]) -> tuple[Objects, pd.DataFrame]:
    """80 images with 25 places, 6 of which hold a thing of one of two classes."""
    rng = np.random.default_rng(1)
    rows, truth = [], []
    for item in range(80):
        places = rng.permutation(25)
        things = [(place, int(rng.integers(2))) for place in places[:6]]
        truth += [(f"i{item}", place, kind) for place, kind in things]
        for rater, (found, false, named) in rates.items():
            marked = [
                (place, kind if rng.random() < named else 1 - kind) for place, kind in things if rng.random() < found
            ]
            marked += [
                (place, int(rng.integers(2))) for place in rng.choice(places[6:], rng.poisson(false), replace=False)
            ]
            for place, kind in marked:
                low = np.array([50 * (place % 5), 50 * (place // 5)]) + rng.integers(-2, 3, 2)
                rows.append((f"i{item}", rater, "cd"[kind], *low, *(low + 20)))
    frame = pd.DataFrame(rows, columns=["item", "rater", "label", "x1", "y1", "x2", "y2"])
    return Objects.from_table(frame), pd.DataFrame(truth, columns=["item", "place", "kind"])


def places_of(candidates: pd.DataFrame) -> pd.Series:
    return ((candidates["y1"] + 10) // 50 * 5 + (candidates["x1"] + 10) // 50).astype(int)


def test_things_and_raters_are_estimated() -> None:
    objects, truth = simulate(RATES)
    fused = ObjectConsensus().fit(objects)
    place = places_of(fused.truth_)
    found = set(zip(fused.truth_["item"], place))
    known = set(zip(truth["item"], truth["place"]))
    assert len(found & known) / len(known) > 0.97
    assert len(found - known) / len(found) < 0.03
    kinds = dict(zip(zip(truth["item"], truth["place"]), truth["kind"]))
    right = [
        kinds.get(key) == "cd".index(label)
        for key, label in zip(zip(fused.truth_["item"], place), fused.truth_["label"])
    ]
    assert np.mean(right) > 0.95
    for row in fused.raters_.to_dict("records"):
        detection, false, named = RATES[row["rater"]]
        assert row["detection"] == pytest.approx(detection, abs=0.04)
        assert row["false_per_item"] == pytest.approx(false, abs=0.15)
        assert row["class_accuracy"] == pytest.approx(named, abs=0.05)
        assert row["overlap"] > 0.8
    np.testing.assert_allclose(fused.confusion_.sum(axis=-1), 1)
    assert fused.confusion_.shape == (4, 3, 3)


def test_weighing_raters_beats_counting_votes() -> None:
    rates = {"ann": (0.95, 0.05, 1), "bob": (0.9, 0.1, 1), "cy": (0.4, 4, 1), "di": (0.4, 4, 1), "ed": (0.3, 5, 1)}
    objects, truth = simulate(rates)
    fused = ObjectConsensus().fit(objects)
    known = set(zip(truth["item"], truth["place"]))
    real = np.array([key in known for key in zip(fused.candidates_["item"], places_of(fused.candidates_))])
    errors = [((fused.candidates_["votes"] >= least) != real).sum() for least in (1, 2, 3)]
    assert ((fused.candidates_["probability"] >= 0.5) != real).sum() < 0.5 * min(errors)


def test_who_did_not_look_missed_nothing() -> None:
    frame = pd.DataFrame(
        [(f"i{n}", rater, "c", 0, 0, 9, 9) for n in range(10) for rater in ("ann", "bob")]
        + [("i0", "cy", "c", 0, 0, 9, 9)],
        columns=["item", "rater", "label", "x1", "y1", "x2", "y2"],
    )
    seen = ObjectConsensus().fit(Objects.from_table(frame, looked_at=frame[["item", "rater"]]))
    assert seen.raters_.set_index("rater").loc["cy", "detection"] == pytest.approx(1, abs=0.01)
    blamed = ObjectConsensus().fit(Objects.from_table(frame))
    assert blamed.raters_.set_index("rater").loc["cy", "detection"] == pytest.approx(0.1, abs=0.01)


def test_areas_by_majority() -> None:
    frame = pd.DataFrame(
        [("a", rater, "c", *place) for rater, place in (("x", (0, 0, 4, 4)), ("y", (0, 0, 4, 4)), ("z", (1, 1, 5, 5)))],
        columns=["item", "rater", "label", "x1", "y1", "x2", "y2"],
    )
    boxes = Objects.from_table(frame)
    assert ObjectConsensus(min_overlap=0.3).fit(boxes).area(boxes, 0) is None
    full = np.ones((4, 4), dtype=bool)
    objects = Objects(
        boxes.items, boxes.raters, boxes.classes, boxes.item, boxes.rater, boxes.label, boxes.boxes, boxes.labelled,
        (full, full, full),
    )  # fmt: skip
    area, corner = ObjectConsensus(min_overlap=0.3).fit(objects).area(objects, 0)
    assert corner == (0, 0)
    assert area.sum() == 16


def test_without_objects_there_is_nothing_to_fuse() -> None:
    empty = pd.DataFrame(columns=["item", "rater", "label", "x1", "y1", "x2", "y2"])
    with pytest.raises(InputError, match="Nobody marked an object"):
        ObjectConsensus().fit(Objects.from_table(empty))
