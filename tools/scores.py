"""Scores that a pure refactoring must not change: `python -m tools.scores before.json`, and again after it.

Fusion on the bundled digits, and the quick form of one table of each family of methods; about ten minutes. With
``--against before.json`` it says what differs, and ends with 1 if anything does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import annotruth as at
from annotruth.experiments import EXPERIMENTS, run_experiment
from annotruth.simulate import label_group, noisy_digits, simulate_labels, simulate_masks

TABLES = ("zhang2020-mnist", "tanno2019-mnist-flippers", "coarse-mnist", "mrprism-mnist")
TIMES = ("wall_time", "megabytes")
"""What is never the same twice."""


def fusion_scores() -> dict[str, Any]:
    """Hashes of what each estimator makes of simulated masks and answers."""
    _, truth, digits = noisy_digits(100)
    found = {}
    for keep in ("all", 3, 1):
        annotations = simulate_masks(truth, keep=keep).annotations()
        masks = (at.MajorityVote(), at.MeanLabel(), at.DawidSkene(), at.STAPLE(), at.STAPLE(smoothing=0.5))
        for estimator in (*masks, at.STAPLE(scope="case"), at.SpatialSTAPLE(window=7)):
            found[f"masks, keep={keep}, {estimator!r}"] = _hashes(estimator.fit(annotations))
        answers = simulate_labels(digits, label_group("pairwise-flipper", 5, 10, skill=0.7), keep=keep).annotations()
        for estimator in (at.MajorityVote(), at.DawidSkene(), at.DawidSkene(one_coin=True)):
            found[f"answers, keep={keep}, {estimator!r}"] = _hashes(estimator.fit(answers))
    return found


def _hashes(fused: Any) -> list[str]:
    arrays = (fused.predict(), fused.predict_proba(), fused.confusion_, np.stack(fused.skill_interval()))
    return [hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16] for array in arrays]


def table_scores(name: str, folder: Path) -> list[dict[str, Any]]:
    """The rows of a table's quick form, without times."""
    table = run_experiment(EXPERIMENTS[name], folder, quick=True, tell=lambda line: sys.stdout.write(f"  {line}\n"))
    rows = [{key: value for key, value in row.items() if key not in TIMES} for row in table["rows"]]
    return json.loads(json.dumps(rows, default=str))


def main() -> int:
    """Write the scores; compare them with earlier ones if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tools.scores", description=__doc__)
    parser.add_argument("output", type=Path, help="JSON file to write")
    parser.add_argument("--against", type=Path, help="JSON file written before")
    options = parser.parse_args()
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        scores: dict[str, Any] = {"fusion": fusion_scores()}
        scores |= {name: table_scores(name, Path(folder)) for name in TABLES}
    options.output.write_text(json.dumps(scores, indent=1) + "\n")
    if options.against is None:
        return 0
    before = json.loads(options.against.read_text())
    differ = [name for name in scores if scores[name] != before.get(name)]
    sys.stdout.write(f"differ: {', '.join(differ)}\n" if differ else "the same, to the bit\n")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
