"""STAPLE with a smoothness prior solved by graph cuts."""

from __future__ import annotations

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion._em.cuts import cut_labels, given_neighbours, max_flow
from annotruth.fusion.dawid_skene import ConfusionPrior
from annotruth.fusion.mask_checks import need_masks
from annotruth.fusion.registry import register
from annotruth.fusion.staple import STAPLE


@register("graph-cut-staple")
class GraphCutSTAPLE(STAPLE):
    """STAPLE whose truth is the single most probable labelling under a Markov random field, found by graph cuts.

    ``STAPLE(smoothing=…)`` has the same random field and smooths probabilities approximately, by the mean field; the
    cut finds the best labelling as a whole, exactly for two classes, and removes specks where the mean field settles
    half-way. It needs PyMaxflow: ``annotruth[cuts]``.

    Parameters
    ----------
    smoothing : how much log odds each neighbour (sharing a face) of a class adds to it
    max_iter, tol, foreground, prior, confusion_prior, exclude_consensus, scope : as for :class:`~annotruth.STAPLE`

    Notes
    -----
    Raters are first estimated without the random field, then again with it. ``predict_proba`` is each pixel's posterior
    given the labels of its neighbours in the best labelling, so that ``predict`` gives that labelling. With more than
    two classes it is found by α-expansion: no better one is reached by letting any class spread.

    References
    ----------
    Greig, Porteous and Seheult, Exact maximum a posteriori estimation for binary images, 1989.
    Boykov, Veksler and Zabih, Fast approximate energy minimization via graph cuts, 2001.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = np.zeros((64, 64), dtype=np.uint8)
    >>> truth[16:48, 16:48] = 1
    >>> masks = np.stack([np.where(rng.random(truth.shape) < 0.75, truth, 1 - truth) for _ in range(3)])
    >>> annotations = Annotations.from_masks(masks[None])
    >>> cut, plain = GraphCutSTAPLE(smoothing=1.0).fit(annotations), STAPLE().fit(annotations)
    >>> bool((cut.predict()[0] == truth).mean() > 0.97 > (plain.predict()[0] == truth).mean())
    True
    """

    def __init__(
        self,
        smoothing: float = 0.5,
        max_iter: int = 1000,
        tol: float = 1e-7,
        foreground: str | int | None = None,
        prior: str | np.ndarray = "votes",
        confusion_prior: ConfusionPrior = None,
        exclude_consensus: bool = False,
        scope: str = "dataset",
    ) -> None:
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.foreground = foreground
        self.prior = prior
        self.confusion_prior = confusion_prior
        self.exclude_consensus = exclude_consensus
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        need_masks(annotations, "GraphCutSTAPLE", "DawidSkene")
        super().check(annotations)
        if not self.smoothing > 0:
            raise InputError(f"smoothing must be above 0, found {self.smoothing}; for none use STAPLE.")
        max_flow()

    def smooth(self, posterior: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, float]:
        labels = cut_labels(posterior, shape, self.smoothing)
        return given_neighbours(posterior, labels, shape, self.smoothing)
