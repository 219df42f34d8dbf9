"""Models of answers: how right they are on answer tables, how fast beside crowd-kit, and whether intervals hold.

    python -m benchmarks.models accuracy --data FOLDER
    python -m benchmarks.models speed [--answers 1000000] [--peer-share 20]
    python -m benchmarks.models coverage [--repeats 400]

Each prints its table and writes it to docs/results/models-<name>.md and .json.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import crowdkit.aggregation as crowd_kit
import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, balanced_accuracy_score

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion import raters
from annotruth.fusion.auto import LABEL_CANDIDATES, Choice, choose
from annotruth.fusion.registry import make_estimator
from benchmarks import data
from benchmarks.measure import ROOT, seconds
from benchmarks.results import write_table

Table = list[dict[str, Any]]
ORDERED = ("adult_content",)
"""Sets whose classes are grades, by their own description: G, P, R, X, for all ages to for nobody under age."""
WORDS = {
    "accuracy": (
        "Of the items whose truth is known; below, the mean of the classes' own accuracies, in which a rare class "
        "counts as much as a common one. All models have their default settings; auto averages them, with weights by "
        "how well each foretells held-out raters. Of adult_content's 11,040 pages 333 have a known truth, and a point "
        "is three pages. There MACE and clustered-dawid-skene, of which the second foretells raters far better, are "
        "right where the other is wrong on 32 and on 27 pages: chance explains such a difference. MACE finds more of "
        "the first class and of the last, and fewer of the two between, hence its place below. Classes of that set are "
        "grades, which auto is told. Raters of CIFAR-10N are three slots that many people filled."
    ),
    "speed": (
        "Seconds are of fitting and of everybody's posteriors, on two cores; crowd-kit's, on so many answers as are "
        "said, and multiplied to the same number. Its time grows with the answers, or faster."
    ),
    "coverage": "",
}


def accuracy(folder: Path) -> Table:
    """Two rows for each table in the folder and each made-up crowd, a column for each model."""
    rows = []
    for name, crowd in [*_real(folder), *_made_up()]:
        ordered = name in ORDERED
        choice, known = choose(crowd, ordered=ordered), crowd.truth >= 0
        found = {
            method + "".join(f" {option}" for option in options): _found(method, options, crowd)
            for method, options in (*LABEL_CANDIDATES, ("zero-based-skill", {}), ("m-msr", {}), ("kos", {}))
        }
        found["ordinal-dawid-skene"] = _found("ordinal-dawid-skene", {"ordered": True}, crowd) if ordered else None
        found["auto"] = _found(choice.method, choice.options, crowd)
        chose = {"auto chose": _members(choice)}
        for title, score in ((name, accuracy_score), (f"{name}, mean over classes", balanced_accuracy_score)):
            scores = {model: "–" if each is None else round(100 * float(score(crowd.truth[known], each[known])), 1)
                      for model, each in found.items()}  # fmt: skip
            rows.append({"answers of": title} | scores | chose)
    return rows


def _members(choice: Choice) -> str:
    """The methods that have a tenth of the weight or more."""
    weights = sorted(((weight, method) for method, _, weight in choice.options.get("members", ())), reverse=True)
    return ", ".join(f"{method} {weight:.0%}" for weight, method in weights if weight >= 0.1) or choice.method


def _found(method: str, options: Any, annotations: at.Annotations) -> np.ndarray | None:
    try:
        return make_estimator(method, options=options).fit(annotations).predict()
    except InputError:
        return None


def _real(folder: Path) -> Iterator[tuple[str, at.Annotations]]:
    """Tables NAME_answers.csv with NAME_truth.csv, LabelMe's and CIFAR-10N's, at any depth."""
    for answers in sorted(folder.rglob("*_answers.csv")):
        name = answers.name.removesuffix("_answers.csv")
        truth = pd.read_csv(answers.with_name(f"{name}_truth.csv")).set_index("item")["truth"]
        frame = pd.read_csv(answers)
        yield name, at.Annotations.from_table(frame, truth=truth[truth.isin(frame["label"])], duplicates="keep-last")
    for path, name, said, truth in (
        ("labelme_crowd.npz", "LabelMe", "answers", "z_train"), ("cifar10n_train.npz", "CIFAR-10N", "annot", "labels"),
    ):  # fmt: skip
        for found in folder.rglob(path):
            with np.load(found, allow_pickle=False) as held:
                yield name, at.Annotations.from_answers(held[said].astype(np.int64), truth=held[truth].astype(np.int64))


def _made_up() -> Iterator[tuple[str, at.Annotations]]:
    """Few answers a rater; spammers; items that differ in difficulty."""
    rng = np.random.default_rng(data.SEED)
    truth = rng.integers(0, 3, 2000)
    for name, chance, n_given in (
        ("few answers, made up", np.broadcast_to(rng.uniform(0.4, 0.95, 600), (2000, 600)), 3),
        ("spammers, made up", np.broadcast_to(np.repeat([0.85, 1 / 3], 10), (2000, 20)), 5),
        ("difficulty, made up", 1 / (1 + np.exp(-rng.uniform(0.3, 2, 20) * rng.lognormal(0, 1, (2000, 1)))), 5),
    ):
        wrong = (truth[:, None] + rng.integers(1, 3, chance.shape)) % 3
        answers = np.where(rng.random(chance.shape) < chance, truth[:, None], wrong)
        given = np.argsort(rng.random(chance.shape), axis=1)[:, :n_given]
        mask = np.zeros(chance.shape, dtype=bool)
        np.put_along_axis(mask, given, True, axis=1)
        yield name, at.Annotations.from_answers(np.where(mask, answers, -1), truth=truth, classes=3)


def speed(n_answers: int, peer_share: int) -> Table:
    """Beside crowd-kit, which gets one answer in ``peer_share`` (Wawa: all); its time is multiplied by that."""
    rows = []
    peers: dict[str, tuple[Callable[[], Any], int]] = {
        "wawa": (crowd_kit.Wawa, 5), "zero-based-skill": (crowd_kit.ZeroBasedSkill, 5), "kos": (crowd_kit.KOS, 2),
        "mace": (lambda: crowd_kit.MACE(n_restarts=1), 5), "m-msr": (crowd_kit.MMSR, 5),
        "glad": (lambda: crowd_kit.GLAD(silent=True), 5),
    }  # fmt: skip
    for method, (peer, n_classes) in peers.items():
        found, truth = _mixed_answers(n_answers, 50, n_classes)
        annotations = data.table(found, len(truth), 50, n_classes)
        ours = seconds(lambda: make_estimator(method).fit(annotations).predict_proba(), repeats=2)  # noqa: B023
        share = 1 if method == "wawa" else peer_share
        few, _ = _mixed_answers(n_answers // share, 50, n_classes)
        frame = pd.DataFrame({"task": few.item, "worker": few.rater, "label": few.label})
        theirs = share * seconds(lambda: peer().fit(frame))  # noqa: B023
        rows.append({
            "model": method, "answers": n_answers, "seconds": round(ours, 3), "crowd-kit seconds": round(theirs, 1),
            "measured on": len(few.item), "× faster": round(theirs / ours, 1), "target": 20,
        })  # fmt: skip
    return rows


def _mixed_answers(n_answers: int, n_workers: int, n_classes: int) -> tuple[Any, np.ndarray]:
    """Like ``data.answers``, of workers who meet all others: M-MSR compares pairs."""
    found, truth = data.answers(n_answers, n_workers, n_classes, per_item=5)
    workers = np.sort(np.argsort(np.random.default_rng(1).random((len(truth), n_workers)), axis=1)[:, :5], axis=1)
    return type(found)(found.item, workers.reshape(-1).astype(np.int32), found.label), truth


def coverage(repeats: int) -> Table:
    """How often 95 % intervals of the skill hold the true one; with labels taken as independent, for comparison."""
    rows = []
    for name, draw, estimator in (
        ("masks, 30 images, raters vary from image to image", _varied_masks, at.STAPLE()),
        ("label table, 200 items, 5 raters", lambda seed: _table(seed, 200), at.DawidSkene()),
        ("label table, 3,000 items, 5 raters", lambda seed: _table(seed, 3000), at.DawidSkene()),
    ):
        inside, apart = [], []
        for seed in range(repeats):
            annotations, skill = draw(seed)
            fused = estimator.fit(annotations)
            independent = raters.skill_interval(fused.expected_counts_)
            for found, (low, high) in ((inside, fused.skill_interval()), (apart, independent)):
                found.append(np.mean((low <= skill) & (skill <= high)))
        rows.append({
            "data": name, "repeats": repeats, "covered, %": round(100 * float(np.mean(inside)), 1),
            "target": "93–97", "with labels taken as independent, %": round(100 * float(np.mean(apart)), 1),
        })  # fmt: skip
    return rows


def _varied_masks(seed: int) -> tuple[at.Annotations, np.ndarray]:
    mean = np.array([0.95, 0.9, 0.85, 0.8])

    def skills(rng: np.random.Generator, n_images: int) -> np.ndarray:
        return 1 / (1 + np.exp(-(np.log(mean / (1 - mean)) + rng.normal(0, 0.6, (n_images, 4)))))

    rng = np.random.default_rng(seed)
    truth = (rng.random((30, 1, 24, 24)) < 0.4).astype(np.uint8)
    right = rng.random((30, 4, 24, 24)) < skills(rng, 30)[:, :, None, None]
    expected = skills(np.random.default_rng(1), 100_000).mean(axis=0)
    return at.Annotations.from_masks(np.where(right, truth, 1 - truth)), expected


def _table(seed: int, n_items: int) -> tuple[at.Annotations, np.ndarray]:
    rng, skill = np.random.default_rng(seed), np.array([0.9, 0.85, 0.8, 0.75, 0.7])
    truth = rng.integers(0, 2, n_items)[:, None]
    return at.Annotations.from_answers(np.where(rng.random((n_items, 5)) < skill, truth, 1 - truth)), skill


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("what", choices=("accuracy", "speed", "coverage"))
    parser.add_argument("--data", type=Path, help="folder with answer tables at any depth, for accuracy")
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--peer-share", type=int, default=20, help="crowd-kit gets one answer in so many")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    if options.what == "accuracy":
        rows = accuracy(options.data or Path())
    else:
        rows = speed(options.answers, options.peer_share) if options.what == "speed" else coverage(options.repeats)
    titles = {"accuracy": "Accuracy, in %, of models of answers", "speed": "Speed of models of answers",
              "coverage": "Coverage of the intervals of skills"}  # fmt: skip
    command = f"python -m benchmarks.models {options.what}"
    write_table(options.output, f"models-{options.what}", titles[options.what], command, rows, WORDS[options.what])
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
