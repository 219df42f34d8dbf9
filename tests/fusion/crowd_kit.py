"""Made-up answers as annotations and as crowd-kit's table, for the models that both have."""

from __future__ import annotations

import numpy as np
import pandas as pd
from crowdkit.aggregation import MajorityVote

from annotruth import Annotations


def crowd(
    n_items: int, skills: list[float], n_classes: int = 2, keep: float = 1.0, seed: int = 0
) -> tuple[Annotations, pd.DataFrame, np.ndarray]:
    """Answers of raters who are right with these chances, crowd-kit's columns of them, and the truth (items,)."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    others = (truth[:, None] + rng.integers(1, n_classes, (n_items, len(skills)))) % n_classes
    answers = np.where(rng.random(others.shape) < skills, truth[:, None], others)
    given = rng.random(answers.shape) < keep
    given[:, :2] = given[0] = True
    number = {label: place for place, label in enumerate(dict.fromkeys(answers[given].tolist()))}
    # crowd-kit's MACE mixes classes up that do not appear in their own order
    rename = np.array([number[label] for label in range(n_classes)])
    answers, truth = rename[answers], rename[truth]
    item, rater = np.nonzero(given)
    frame = pd.DataFrame({"task": item, "worker": rater, "label": answers[item, rater]})
    return Annotations.from_answers(np.where(given, answers, -1), classes=n_classes), frame, truth


def as_array(probabilities: pd.DataFrame) -> np.ndarray:
    """Crowd-kit's probabilities (items, classes), in our order."""
    return probabilities.sort_index().sort_index(axis=1).to_numpy()


def weighted_vote(frame: pd.DataFrame, skills: pd.Series) -> np.ndarray:
    """Crowd-kit's vote weighted by skills: what its Wawa, ZeroBasedSkill and MMSR predict.

    Their own methods ask scikit-learn whether they are fitted, which newer versions of it refuse to answer.
    """
    return as_array(MajorityVote().fit(frame, skills=skills).probas_)
