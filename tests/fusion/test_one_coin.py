"""One number per rater, without matrices: the same as with them, where these fit into memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.fusion import base
from annotruth.fusion.one_coin import CoinState, coin_matrices
from annotruth.fusion.raters import skill_interval


def answers(n_items: int = 60, n_raters: int = 9, n_classes: int = 5, seed: int = 0) -> at.Annotations:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    skill = rng.uniform(0.3, 0.95, n_raters)
    right = rng.random((n_items, n_raters)) < skill
    said = np.where(right, truth[:, None], rng.integers(0, n_classes, (n_items, n_raters)))
    said[rng.random((n_items, n_raters)) < 0.5] = -1
    said[3], said[:, 4] = -1, -1  # an item nobody looked at, a rater who looked at none
    return at.Annotations.from_answers(said, classes=[str(k) for k in range(n_classes)])


@pytest.mark.parametrize("gold", [None, {"item_0": "1", "item_7": "2", "item_3": "0"}])
@pytest.mark.parametrize("prior", ["estimated", "votes", np.array([0.1, 0.2, 0.3, 0.2, 0.2])])
@pytest.mark.filterwarnings("ignore")
def test_it_learns_what_whole_matrices_of_one_number_learn(gold, prior, monkeypatch):
    given, model = answers(), at.DawidSkene(one_coin=True, prior=prior, max_iter=12, tol=0)
    dense = model.fit(given, gold)
    monkeypatch.setattr(base, "_FREE_BYTES", 0)
    compact = at.DawidSkene(one_coin=True, prior=prior, max_iter=12, tol=0).fit(given, gold)
    assert isinstance(compact.state_, CoinState)
    assert not isinstance(dense.state_, CoinState)
    np.testing.assert_allclose(
        compact.log_likelihood_, dense.log_likelihood_[: len(compact.log_likelihood_)], rtol=1e-9
    )
    np.testing.assert_allclose(compact.confusion_, dense.confusion_, atol=1e-7)
    np.testing.assert_allclose(compact.prior_, dense.prior_, atol=1e-7)
    np.testing.assert_allclose(compact.predict_proba(), dense.predict_proba(), atol=1e-6)
    np.testing.assert_array_equal(compact.predict(), dense.predict())
    expected = skill_interval(dense.expected_counts_, one_coin=True)
    np.testing.assert_allclose(compact.skill_interval(), expected, atol=1e-6)
    assert compact.ranking_.rater.tolist() == dense.ranking_.rater.tolist()


def test_matrices_are_a_view_of_few_numbers():
    made = coin_matrices(np.full(5000, 0.9), np.full(5000, 0.1 / 999), 1000)
    assert made.shape == (5000, 1000, 1000)
    assert (made[7, 3, 3], made[4999, 0, 999]) == (0.9, 0.1 / 999)
    assert made[17].sum(axis=1) == pytest.approx(1)
    with pytest.raises(ValueError, match="read-only"):
        made[0, 0, 0] = 1


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="measures memory as Linux tells it")
def test_five_thousand_raters_and_a_thousand_classes_fit_into_two_gigabytes(tmp_path):
    rng = np.random.default_rng(0)
    item, rater = np.repeat(np.arange(4000), 5), rng.integers(0, 5000, 20_000)
    label = np.where(rng.random(20_000) < 0.8, item % 1000, rng.integers(0, 1000, 20_000))
    rows = dict.fromkeys(zip(item.tolist(), rater.tolist()))
    lines = [f"i{i},r{r},c{k}" for (i, r), k in zip(rows, label.tolist())]
    (tmp_path / "a.csv").write_text("\n".join(["item,rater,label", *lines]))
    program = f"""
import resource, sys
sys.argv = ["annotruth", "fuse", {str(tmp_path / "a.csv")!r}, "-o", {str(tmp_path / "out")!r}, "--method",
            "dawid-skene", "--option", "one_coin=true"]
from annotruth.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 2 * 2**30
    assert len(json.loads((tmp_path / "out" / "fusion.json").read_text())["skill"]) > 4000
