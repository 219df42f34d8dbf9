"""Raters who give the same answers, wrong ones too: copies of one another, who must not outvote the rest."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array, triu
from scipy.sparse.csgraph import connected_components

from annotruth.data.annotations import Annotations

MIN_COMMON = 30
"""Items that two raters must both have answered before they can be taken for copies."""
MIN_KAPPA = 0.97
"""Cohen's kappa from which they are. Two people who are right in 98 of 100 answers, each by themselves, stay below."""


def find_copies(annotations: Annotations) -> np.ndarray:
    """Which raters of a label table give the same answers: a number for each, (raters,), the same for copies.

    Two raters who both answered 30 items or more, and agree on them nearly without exception (Cohen's kappa of 0.97),
    are copies; so are copies of copies. Two people who hardly ever err look the same: they lose little by counting as
    one, because one of them tells the class.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> one, other = rng.integers(0, 3, (2, 40))
    >>> find_copies(Annotations.from_answers(np.stack([one, other, one], axis=1)))
    array([0, 1, 0])
    """
    raters, answers = len(annotations.raters), annotations.answers
    size = (len(annotations), raters)

    def together(chosen: np.ndarray) -> csr_array:
        """On how many items two raters both gave one of the chosen answers."""
        ones = np.ones(int(chosen.sum()), dtype=np.int32)
        table = coo_array((ones, (answers.item[chosen], answers.rater[chosen])), shape=size).tocsr()
        return csr_array(table.T @ table)

    common = triu(together(np.ones(len(answers), dtype=bool)), k=1).tocoo()
    first, second = (places[common.data >= MIN_COMMON] for places in common.coords)
    if not len(first):
        return np.arange(raters)
    met = common.data[common.data >= MIN_COMMON]
    same, by_chance = np.zeros(len(first)), np.zeros(len(first))
    given = np.maximum(np.bincount(answers.rater, minlength=raters), 1)
    for label in np.unique(answers.label):
        chosen = answers.label == label
        share = np.bincount(answers.rater[chosen], minlength=raters) / given
        same += np.asarray(together(chosen)[first, second]).ravel()
        by_chance += share[first] * share[second]
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = (same / met - by_chance) / (1 - by_chance)  # nan where both always say the same one thing
    alike = kappa >= MIN_KAPPA
    links = coo_array((np.ones(int(alike.sum())), (first[alike], second[alike])), shape=(raters, raters))
    return connected_components(links, directed=False)[1].astype(np.int64)
