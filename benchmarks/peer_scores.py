"""What cleanlab and scikit-activeml would have labelled next: run by an interpreter that has them, one request a line.

A request is the path of an .npz file with ``answers`` (items, raters), -1 = none, ``posterior`` (items, classes) and
the name of a ``strategy``. The answer is the path again, once scores of items and raters (higher = sooner) stand in it.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings

import numpy as np

ACTIVE_LAB, UNCERTAINTY, INTERVALS = "cleanlab ActiveLab", "scikit-activeml entropy", "scikit-activeml IEThresh"
STRATEGIES = (ACTIVE_LAB, UNCERTAINTY, INTERVALS)


def active_lab(answers: np.ndarray, posterior: np.ndarray) -> np.ndarray:
    """ActiveLab's scores of items, from the answers and what is known of each item in place of a classifier."""
    from cleanlab.multiannotator import get_active_learning_scores

    labelled = (answers >= 0).any(axis=1)
    table = np.where(answers >= 0, answers, np.nan)[labelled]
    table = table[:, ~np.isnan(table).all(axis=0)]
    scores, _ = get_active_learning_scores(table, pred_probs=posterior[labelled])
    found = np.full(len(answers), np.inf)
    found[labelled] = -scores
    return found


def uncertainty(posterior: np.ndarray, method: str) -> np.ndarray:
    """Uncertainty sampling's scores of items."""
    from skactiveml.pool import uncertainty_scores

    return np.asarray(uncertainty_scores(probas=posterior, method=method))


def rater_intervals(answers: np.ndarray, n_classes: int) -> np.ndarray:
    """Upper ends of interval estimates of the raters' accuracy (raters,), by which IEThresh chooses them."""
    from skactiveml.pool.multiannotator._interval_estimation_threshold import IntervalEstimationAnnotModel

    model = IntervalEstimationAnnotModel(classes=list(range(n_classes)), missing_label=-1, mode="upper", random_state=0)
    model.fit(X=np.zeros((len(answers), 1)), y=answers)
    return np.asarray(model.predict_annotator_perf(np.zeros((1, 1)))[0])


def serve() -> None:
    """Answer requests until there are none."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        path = line.strip()
        with np.load(path, allow_pickle=False) as request:
            answers, posterior, name = request["answers"], request["posterior"], str(request["strategy"])
        raters = np.zeros(answers.shape[1])
        with contextlib.redirect_stdout(io.StringIO()):  # cleanlab prints, too
            if name == ACTIVE_LAB:
                items = active_lab(answers, posterior)
            elif name == UNCERTAINTY:
                items = uncertainty(posterior, "entropy")
            else:
                items, raters = uncertainty(posterior, "least_confident"), rater_intervals(answers, posterior.shape[1])
        np.savez(path, items=items, raters=raters)
        print(path, flush=True)


if __name__ == "__main__":
    serve()
