"""A queue comes back from its files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue.fusing import SparseDawidSkene
from annotruth.choosing.queue.stored import read_queue
from annotruth.errors import InputError


def test_what_was_written_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    answers = np.where(rng.random((60, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    answers[rng.random(answers.shape) < 0.4] = -1
    known = np.where(np.arange(60) < 20, truth, -1)
    labels = at.Annotations.from_answers(answers, raters=["=ann", "bob", "cy", "7"], truth=known)
    queue = at.next_labels(SparseDawidSkene().fit(labels, "truth"), labels, 20, gold=0.1)
    queue.write(tmp_path / "queue.csv")
    found = read_queue(tmp_path / "queue.csv")
    for column in ("rank", "action", "item", "rater", "reason"):
        assert found.table[column].tolist() == queue.table[column].tolist()
    np.testing.assert_allclose(found.table["gain"], queue.table["gain"], rtol=1e-4)
    np.testing.assert_allclose(found.curve["accuracy"], queue.curve["accuracy"], rtol=1e-4)
    assert len(found) == len(queue)
    assert found.gold["item"].tolist() == queue.gold["item"].tolist()
    assert f"{len(queue)} labels at a cost of" in found.summary[0]


@pytest.mark.parametrize(
    ("queue", "curve", "words"),
    [
        (None, None, "there is no such file"),
        ("item,rater\na,ann\n", None, "the columns rank, action"),
        ("rank,action,item,rater,gain,cost,gain per cost,reason\n1,label,a,ann,1,1,1,x\n", None, "no such file"),
        (
            "rank,action,item,rater,gain,cost,gain per cost,reason\n1,label,a,ann,1,1,1,x\n",
            "labels,cost,accuracy,low,high\n0,0,much,0,1\n",
            "'accuracy' holds more than numbers",
        ),
    ],
)
def test_what_is_no_queue_is_refused(tmp_path: Path, queue: str | None, curve: str | None, words: str) -> None:
    if queue is not None:
        (tmp_path / "queue.csv").write_text(queue)
    if curve is not None:
        (tmp_path / "queue.curve.csv").write_text(curve)
    with pytest.raises(InputError, match=words):
        read_queue(tmp_path / "queue.csv")
