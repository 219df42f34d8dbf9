"""Tanno et al. 2019, classification with a confusion matrix per rater: figures on MNIST, and what they say.

The truth is identified where the raters' true mean matrix is diagonally dominant, so findings tell such runs apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from annotruth.experiments.core.columns import ACCURACY, CM_ERROR, MARGIN, SKILL, WARNED
from annotruth.experiments.core.experiment import Curves, Experiment, Row, Table
from annotruth.experiments.core.findings import Finding, away, by_setting, near_best, points, reached, title_of
from annotruth.experiments.data.label_digits import FULL, QUICK, label_digits_task
from annotruth.training import Classifier

ALL_METHODS = (
    "majority", "soft-bootstrap", "doctor-net", "shared-cm", "crowd-layer", "max-mig", "dawid-skene", "gem", "mbem",
    "aggnet", "global-cm",
)  # fmt: skip
"""Everything that learns from the raters' answers alone."""
OF_FIGURES = ("majority", "soft-bootstrap", "doctor-net", "shared-cm", "gem", "mbem", "global-cm")
"""What the paper's figures show."""
BOUNDS = ("oracle-cm", "clean")
SKILLS = (0.2, 0.4, 0.5, 0.7)
KEPT: Mapping[str, Any] = {"dense": "all", "one-label": 1}
CLEAR_MARGIN = 0.1
"""A margin of dominance from which on the truth must be found."""
WARNING_TARGET = 0.95
"""Share of runs in which a warning must come, or not come."""
NOTES = (
    "Raters are simulated: five, whose skills vary by 0.01 around p. Dominance is the least margin by which a diagonal "
    "entry of their true mean matrix exceeds the others of its column; where it is negative, the truth is not "
    "identified, and plots are shaded. Warned: the share of seeds in which the model says that it may be wrong.",
    "The paper trains on 60,000 digits for 200 epochs, and shows its figures as plots only: compare the order of "
    "methods. Its network is the same but for batch normalisation.",
    "CM error: squared distance of a row of a matrix from the true row, averaged over rows and raters. With one label "
    "a digit, counting against the true classes would itself err by (1 − Σ a²) · 50 / digits: at p = 0.5, 0.004.",
    "global-cm was developed on the digits of seeds 0, 1 and 10 to 15, whose held-out accuracy was seen. That labels "
    "must agree before they are put together early was learnt from a first table of the raters who guess, all seeds.",
)


def close_where_dominant(method: str, bound: str, most: Mapping[str, float], metric: str = "accuracy") -> Finding:
    """Is a method close to another in the runs where dominance is clear? By what precedes the comma of a setting."""

    def find(table: Table) -> list[str]:
        sentences = []
        for panel, limit in most.items():
            gaps: list[float] = []
            worst = ("", -np.inf)
            for setting, rows in by_setting(table).items():
                if setting.split(",")[0] == panel:
                    clear = np.array(rows[method]["margin"]["each"]) >= CLEAR_MARGIN
                    here = (np.array(rows[bound][metric]["each"]) - np.array(rows[method][metric]["each"]))[clear]
                    gaps += here.tolist()
                    if len(here) and here.mean() > worst[1]:
                        worst = (setting, here.mean())
            if gaps:
                sentences.append(
                    f"{panel}: where dominance is at least {CLEAR_MARGIN} ({len(gaps)} runs), {method} is "
                    f"{away(-float(np.mean(gaps)))} {bound} in {metric}; it is worst at {worst[0]}, "
                    f"{away(-worst[1])} (target: at most {points(limit)} below, {reached(worst[1] <= limit)})."
                )
        return sentences

    return find


def at_most_where_dominant(method: str, metric: str, most: float) -> Finding:
    """Is an error within a bound in every setting, over the runs where dominance is clear?"""

    def find(table: Table) -> list[str]:
        errors = {}
        for setting, rows in by_setting(table).items():
            clear = np.array(rows[method]["margin"]["each"]) >= CLEAR_MARGIN
            if clear.any():
                errors[setting] = float(np.array(rows[method][metric]["each"])[clear].mean())
        if not errors:
            return []
        worst = max(errors, key=lambda setting: errors[setting])
        title = title_of(table, metric)
        return [
            f"Where dominance is at least {CLEAR_MARGIN}, {title} of {method} is largest at {worst}, "
            f"{errors[worst]:.4f} "
            f"(target: at most {most}, {reached(errors[worst] <= most)})."
        ]

    return find


def better_below(method: str, besides: Sequence[str], most: float, metric: str = "accuracy") -> Finding:
    """Is a method above all comparisons where raters are this skilful at most, and their mean matrix is dominant?"""

    def find(table: Table) -> list[str]:
        sentences = []
        for setting, rows in by_setting(table).items():
            mine = rows[method]
            if mine["skill"]["mean"] > most + 0.05 or mine["margin"]["mean"] <= 0:
                continue
            others = {name: row[metric]["mean"] for name, row in rows.items() if name not in (method, *besides)}
            best = max(others, key=lambda name: others[name])
            lead = mine[metric]["mean"] - others[best]
            sentences.append(f"{setting}: {method} is {away(lead)} the best comparison, {best}.")
        return sentences

    return find


def warns_when_due(method: str) -> Finding:
    """Does the model warn where the truth is not identified, and is it silent where it clearly is?"""

    def find(table: Table) -> list[str]:
        rows = [rows[method] for rows in by_setting(table).values()]
        margin = np.concatenate([row["margin"]["each"] for row in rows])
        warned = np.concatenate([row["doubted"]["each"] for row in rows]) > 0
        sentences = []
        for runs, right, words in (
            (margin <= 0, warned, "no dominance: warned"),
            (margin >= CLEAR_MARGIN, ~warned, f"dominance of at least {CLEAR_MARGIN}: silent"),
        ):
            if runs.any():
                share = float(right[runs].mean())
                sentences.append(
                    f"{method}, {words} in {int(right[runs].sum())} of {int(runs.sum())} runs "
                    f"(target: {WARNING_TARGET:.0%}, {reached(share >= WARNING_TARGET)})."
                )
        between = (margin > 0) & (margin < CLEAR_MARGIN)
        if between.any():
            sentences.append(
                f"{method}, dominance in between: warned in {warned[between].sum()} of {between.sum()} runs."
            )
        return sentences

    return find


def _sweep(name: str, title: str, kind: str, methods: tuple[str, ...], *targets: Finding) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        task=label_digits_task,
        settings={
            f"{setting}, p {skill:g}": {"kind": kind, "skill": skill, "keep": keep}
            for setting, keep in KEPT.items()
            for skill in SKILLS
        },
        rows=tuple(Row(method) for method in methods),
        metrics=(ACCURACY, CM_ERROR, SKILL, MARGIN, WARNED),
        full=FULL,
        quick=QUICK,
        learner=Classifier,
        findings=(*targets, better_below("global-cm", BOUNDS, 0.5), warns_when_due("global-cm")),
        notes=NOTES,
        curves=Curves("skill", "mean skill p of the raters", ("accuracy", "cm_error"), shaded="margin"),
    )


FLIPPERS = _sweep(
    "tanno2019-mnist-flippers",
    "Tanno et al. 2019, figures 3 and 6: digits by raters who flip classes",
    "pairwise-flipper",
    (*OF_FIGURES, "clean"),
    close_where_dominant("global-cm", "clean", {"dense": 0.01, "one-label": 0.02}),
    at_most_where_dominant("global-cm", "cm_error", 0.005),
)
SPAMMERS = _sweep(
    "tanno2019-mnist-spammers",
    "Tanno et al. 2019, figures 9 and 10: digits by raters who guess",
    "hammer-spammer",
    ("majority", "gem", "mbem", "global-cm", "clean"),
)

FLIPPERS_04 = {
    setting: {"kind": "pairwise-flipper", "skill": 0.4, "keep": keep} for setting, keep in KEPT.items()
}  # fmt: skip

LAMBDA = Experiment(
    name="tanno2019-mnist-lambda",
    title="Tanno et al. 2019, figure 11: the weight of the trace",
    task=label_digits_task,
    settings=FLIPPERS_04,
    rows=(
        Row("global-cm", name="default"),
        *(
            Row("global-cm", {"trace_weight": weight}, name=f"λ {weight:g}", lines=("global-cm",))
            for weight in (0.0, 0.01, 0.05, 0.2, 0.4)
        ),
    ),
    metrics=(ACCURACY, CM_ERROR, MARGIN, WARNED),
    full=FULL,
    quick=QUICK,
    learner=Classifier,
    findings=(near_best("default", 0.005, metric="accuracy"),),
    notes=(
        "Five flippers of skill 0.4, the weakest whose mean matrix is mostly dominant by 0.1.",
        "The weight is per label and diagonal entry: with ten classes and one label a digit, 0.1 is the paper's 0.01.",
    ),
    curves=Curves("trace_weight", "weight λ of the trace", ("accuracy", "cm_error")),
)

EM_STEPS = Experiment(
    name="tanno2019-mnist-em-steps",
    title="Tanno et al. 2019, section 3.2: how often expectation-maximisation takes its steps",
    task=label_digits_task,
    settings=FLIPPERS_04,
    rows=(
        Row("global-cm"),
        *(
            Row(method, {"em_steps": steps}, name=f"{method}, {steps} steps", lines=(method,))
            for method in ("gem", "mbem")
            for steps in (2, 4, 8)
        ),
    ),
    metrics=(ACCURACY, CM_ERROR, MARGIN),
    full=FULL,
    quick=QUICK,
    learner=Classifier,
    findings=(near_best("global-cm", 0.0, metric="accuracy"),),
    notes=("Five flippers of skill 0.4. All trainings take the same epochs, between which the steps are shared out.",),
    curves=Curves("em_steps", "steps of expectation-maximisation", ("accuracy", "cm_error")),
)
