"""Dawid and Skene's model for items with several findings, some of which come together.

Each rater has a sensitivity and a specificity for each finding. What is true of an item is not decided finding by
finding: the findings' prior is a tree (Chow and Liu), in which each finding but the first depends on one other, so that
a finding which is sure makes those more probable that come with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotruth.data.findings import SEPARATOR, Findings
from annotruth.errors import InputError
from annotruth.fusion.base import check_iterations
from annotruth.fusion.other_answers import register
from annotruth.fusion.other_answers.base import AnswerModel

_TABLE_PRIOR = 0.5  # items of every combination of two findings that are taken to have been seen before


@dataclass(frozen=True)
class FindingTree:
    """A prior of which findings come together.

    Attributes
    ----------
    order : (findings,) int, every finding after the one that it depends on
    parent : (findings,) int, the finding that each depends on; -1 for none
    table : (findings, 2, 2) [parent there, finding there] probabilities; both rows are the same without a parent
    """

    order: np.ndarray
    parent: np.ndarray
    table: np.ndarray

    def beliefs(self, told: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is true, given the log-likelihoods of findings' answers (items, findings, 2); exact.

        Returns
        -------
        posterior (items, findings, 2), pairs (items, findings, 2, 2) [parent there, finding there], log evidence
        (items,)
        """
        n_items, n_findings = told.shape[:2]
        gathered, logs = told.copy(), np.log(self.table)
        evidence = np.zeros(n_items)
        given = np.empty((n_items, n_findings, 2, 2))
        for finding in self.order[::-1]:
            joint = logs[finding] + gathered[:, finding, None, :]
            upward = np.logaddexp(joint[..., 0], joint[..., 1])
            given[:, finding] = np.exp(joint - upward[..., None])
            if self.parent[finding] >= 0:
                gathered[:, self.parent[finding]] += upward
            else:
                evidence += upward[:, 0]
        posterior, pairs = np.empty((n_items, n_findings, 2)), np.empty((n_items, n_findings, 2, 2))
        for finding in self.order:
            above = self.parent[finding]
            known = posterior[:, above] if above >= 0 else np.full((n_items, 2), 0.5)
            pairs[:, finding] = known[..., None] * given[:, finding]
            posterior[:, finding] = pairs[:, finding].sum(axis=1)
        return posterior, pairs, evidence

    def learn(self, counts: np.ndarray) -> FindingTree:
        """The same tree with the tables that make expected counts (findings, 2, 2) most probable."""
        alone = self.parent < 0
        counts = np.where(alone[:, None, None], counts.sum(axis=1, keepdims=True), counts) + _TABLE_PRIOR
        return FindingTree(self.order, self.parent, counts / counts.sum(axis=2, keepdims=True))

    def log_density(self) -> float:
        """Of the tables, before anything is seen."""
        logs = np.log(self.table).sum(axis=2)
        return _TABLE_PRIOR * float(np.where(self.parent < 0, logs[:, 0], logs.sum(axis=1)).sum())


@register("multi-label")
class MultiLabelDawidSkene(AnswerModel[Findings]):
    """Which of several findings each item has, and how often each rater sees, and imagines, each of them.

    Parameters
    ----------
    dependence : learn which findings come together; without, every finding is estimated on its own
    right, wrong : answers about each finding, where it is and where it is not, that every rater is taken to have got
        right, and wrong, before
    max_iter : most iterations, without and then with dependence
    tol : stop when an iteration gains less log-likelihood than this per answer

    Attributes
    ----------
    findings_ : names, in the order of the arrays below
    sensitivity_, specificity_ : (raters, findings)
    prevalence_ : (findings,) how common each is
    links_ : pairs of findings that depend on each other in the tree
    log_likelihood_ : (iterations,) with the log density of the priors; never falling

    References
    ----------
    Dawid and Skene, 1979; for the prior, Chow and Liu, Approximating discrete probability distributions with dependence
    trees, 1968.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame([("a", "ann", "cyst|scar"), ("a", "bob", "cyst"), ("a", "cy", "cyst|scar"),
    ...                       ("b", "ann", ""), ("b", "bob", ""), ("b", "cy", "scar")],
    ...                      columns=["item", "rater", "findings"])
    >>> fused = MultiLabelDawidSkene().fit(Findings.from_table(frame))
    >>> fused.truth_["findings"].tolist()
    ['cyst|scar', '']
    """

    takes = Findings

    def __init__(
        self, dependence: bool = True, right: float = 2.0, wrong: float = 1.0, max_iter: int = 200, tol: float = 1e-6
    ) -> None:
        self.dependence = dependence
        self.right = right
        self.wrong = wrong
        self.max_iter = max_iter
        self.tol = tol

    def learn(self, answers: Findings) -> None:
        check_iterations(self.max_iter, self.tol)
        if not (self.right > 0 and self.wrong > 0):
            raise InputError(f"right and wrong must be positive counts, found {self.right} and {self.wrong}.")
        n_items, n_findings = len(answers.items), len(answers.findings)
        self.findings_ = answers.findings
        cell = answers.item * n_findings + answers.finding
        yes = np.bincount(cell, answers.present, n_items * n_findings)
        total = np.bincount(cell, minlength=n_items * n_findings)
        share = ((yes + 0.5) / (total + 1)).reshape(n_items, n_findings)  # of those who saw it
        posterior = np.stack([1 - share, share], axis=2)
        self.log_likelihood_ = np.empty(0)
        tree = FindingTree(np.arange(n_findings), np.full(n_findings, -1), np.full((n_findings, 2, 2), 0.5))
        tree, posterior = self._maximise(answers, cell, tree, posterior, posterior[:, :, None] / 2)
        if self.dependence and n_findings > 1:
            tree = _chow_liu(posterior)
            parent = posterior[:, np.maximum(tree.parent, 0)]
            tree, posterior = self._maximise(
                answers, cell, tree, posterior, parent[..., None] * posterior[:, :, None, :]
            )  # fmt: skip
        self._posterior = posterior
        self.prevalence_ = posterior[..., 1].mean(axis=0)
        self.links_ = [
            (answers.findings[tree.parent[number]], answers.findings[number])
            for number in tree.order if tree.parent[number] >= 0
        ]  # fmt: skip
        self.counts_ = np.bincount(answers.rater, minlength=len(answers.raters))
        self._asked = np.bincount(
            answers.rater * n_findings + answers.finding, minlength=len(answers.raters) * n_findings
        ).reshape(-1, n_findings)  # fmt: skip

    def _maximise(
        self, answers: Findings, cell: np.ndarray, tree: FindingTree, posterior: np.ndarray, pairs: np.ndarray
    ) -> tuple[FindingTree, np.ndarray]:
        """Go on from a posterior (items, findings, 2) with a prior of this form; give its tables and the posterior."""
        n_raters, n_findings, n_items = len(answers.raters), len(answers.findings), len(answers.items)
        place = (answers.rater * n_findings + answers.finding) * 2 + answers.present
        prior = np.array([[self.right, self.wrong], [self.wrong, self.right]])
        path: list[float] = []
        while True:
            counts = np.stack(
                [
                    np.bincount(place, posterior.reshape(-1, 2)[cell, true], n_raters * n_findings * 2)
                    for true in (0, 1)
                ],
                axis=1,
            ).reshape(n_raters, n_findings, 2, 2)  # [rater, finding, said, true]
            counts = counts.transpose(0, 1, 3, 2) + prior
            chance = counts / counts.sum(axis=3, keepdims=True)  # [rater, finding, true, said]
            tree = tree.learn(pairs.sum(axis=0))
            logs = np.log(chance).transpose(0, 1, 3, 2).reshape(-1, 2)[place]
            told = np.stack([np.bincount(cell, logs[:, true], n_items * n_findings) for true in (0, 1)], axis=1)
            posterior, pairs, evidence = tree.beliefs(told.reshape(n_items, n_findings, 2))
            path.append(float(evidence.sum() + (prior * np.log(chance)).sum()) + tree.log_density())
            self.converged_ = len(path) > 1 and path[-1] - path[-2] < self.tol * len(answers)
            if self.converged_ or len(path) == self.max_iter:
                break
        self.sensitivity_, self.specificity_ = chance[:, :, 1, 1], chance[:, :, 0, 0]
        self.log_likelihood_, self.n_iter_ = np.array(path), len(path)
        return tree, posterior

    def predict(self) -> np.ndarray:
        """Whether each item has each finding, (items, findings) bool: those that are more probable than not."""
        return self.predict_proba() > 0.5

    def predict_proba(self) -> np.ndarray:
        """How probable each finding is in each item, (items, findings)."""
        self._check_fitted()
        return np.asarray(self._posterior[..., 1])

    @property
    def skill_(self) -> np.ndarray:
        """Mean of sensitivity and specificity (raters,), over the findings that the rater was asked for."""
        self._check_fitted()
        each = (self.sensitivity_ + self.specificity_) / 2
        asked = self._asked > 0
        return np.where(asked, each, 0.0).sum(axis=1) / np.maximum(asked.sum(axis=1), 1)

    def truth_columns(self) -> dict[str, np.ndarray]:
        there = self.predict()
        names = [SEPARATOR.join(np.array(self.findings_, dtype=object)[row]) for row in there]
        probabilities = {f"probability of {name}": self.predict_proba()[:, n] for n, name in enumerate(self.findings_)}
        return {"findings": np.array(names, dtype=object), **probabilities}

    def rater_columns(self) -> dict[str, np.ndarray]:
        columns = {"skill": self.skill_, "answers": self.counts_}
        for number, name in enumerate(self.findings_):
            columns[f"sensitivity to {name}"] = self.sensitivity_[:, number]
            columns[f"specificity to {name}"] = self.specificity_[:, number]
        return columns


def _chow_liu(posterior: np.ndarray) -> FindingTree:
    """The tree of findings that tell most of each other, by their probabilities (items, findings, 2)."""
    n_findings = posterior.shape[1]
    joint = np.einsum("ifa,igb->fgab", posterior, posterior, optimize=True) + _TABLE_PRIOR
    joint /= joint.sum(axis=(2, 3), keepdims=True)
    apart = joint.sum(axis=3, keepdims=True) * joint.sum(axis=2, keepdims=True)
    told = (joint * np.log(joint / apart)).sum(axis=(2, 3))
    parent, order = np.full(n_findings, -1), [int(posterior[..., 1].sum(axis=0).argmax())]
    best, nearest = told[order[0]].copy(), np.full(n_findings, order[0])
    best[order[0]] = -np.inf
    for _ in range(n_findings - 1):  # Prim's algorithm
        new = int(best.argmax())
        parent[new] = nearest[new]
        order.append(new)
        closer = told[new] > best
        closer[order] = False
        best, nearest = np.where(closer, told[new], best), np.where(closer, new, nearest)
        best[new] = -np.inf
    return FindingTree(np.array(order), parent, np.full((n_findings, 2, 2), 0.5))
