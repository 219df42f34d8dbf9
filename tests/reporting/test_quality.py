"""The queue, its curve and raters over time, in the report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import annotruth as at
from annotruth.choosing.queue.fusing import SparseDawidSkene
from annotruth.io.timing import AnswerTimes

Make = Callable[..., Any]


def test_the_report_shows_the_queue_and_raters_over_time_only_where_they_are(
    fake_classifier: Make, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    answers = np.where(rng.random((60, 4)) < 0.85, truth[:, None], (truth[:, None] + 1) % 3)
    answers[30:, 3] = (truth[30:] + 1) % 3
    answers[:10, 2] = -1
    features = truth[:, None].astype(np.float32)
    ann = at.Annotations.from_answers(answers, features, raters=["ann", "bob", "cy", "<di>"], classes=3)
    model = fake_classifier(ann)
    queue = at.next_labels(SparseDawidSkene().fit(ann), ann, 5)
    times = AnswerTimes(60.0 * ann.answers.item, np.full(len(ann.answers), 4.0))
    page = at.report(model, ann, tmp_path / "with.html", queue=queue, times=times).read_text(encoding="utf-8")
    assert "What to label next" in page
    assert queue.summary[0].split(".")[0] in page
    assert 'href="#queue"' in page
    assert 'href="#over-time"' in page
    assert "Raters over time" in page
    assert "worse from 1970-01-01" in page
    assert "<di>" not in page
    nothing = AnswerTimes(np.full(len(ann.answers), np.nan), np.full(len(ann.answers), np.nan))
    for times_given in (None, nothing):
        page = at.report(model, ann, tmp_path / "without.html", times=times_given).read_text(encoding="utf-8")
        assert "What to label next" not in page
        assert "Raters over time" not in page
