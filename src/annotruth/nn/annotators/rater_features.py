"""Annotator models that take what is known of each rater: years of experience, site …

Whatever makes up a rater's matrices is a row of a table, and a row is what all raters have in common, plus what each
known feature does, plus what is the rater's own. Of a rater who has labelled nothing, the first two are known.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn.annotators.base import AnnotatorModel
from annotruth.nn.backbones import unet
from annotruth.nn.confusion import Confusion, GlobalConfusion, PixelConfusion, identity_scores, one_pixel_axis
from annotruth.nn.confusion.pixel import log_row_probabilities
from annotruth.nn.plan import NetworkPlan

RIDGE_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1e4)
"""How strongly effects of features may be drawn towards nothing."""


class FeatureTable(nn.Module):
    """A row of numbers per rater: common + features · effects + own.

    Parameters
    ----------
    start : (numbers,) every rater's row at first
    raters, features : how many of them

    Examples
    --------
    >>> table = FeatureTable(torch.zeros(4), raters=3, features=2)
    >>> table.know(torch.tensor([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), weights=torch.ones(3))
    >>> table().shape, table.expected(torch.tensor([0.5, 0.0])).shape
    (torch.Size([3, 4]), torch.Size([4]))
    """

    known: Tensor
    weights: Tensor

    def __init__(self, start: Tensor, raters: int, features: int) -> None:
        super().__init__()
        self.common = nn.Parameter(start.clone())
        self.effects = nn.Parameter(start.new_zeros(features, len(start)))
        self.own = nn.Parameter(start.new_zeros(raters, len(start)))
        self.register_buffer("known", torch.zeros(raters, features))
        self.register_buffer("weights", torch.ones(raters))

    def know(self, features: Tensor, weights: Tensor) -> None:
        """Take in the raters' features (raters, features), and how much each rater tells of them (raters,)."""
        self.known.copy_(features)
        self.weights.copy_(weights)

    def forward(self, raters: Tensor | None = None) -> Tensor:
        """Rows (raters, numbers) of all raters, or of some (their positions)."""
        who = slice(None) if raters is None else raters
        return self.expected(self.known[who]) + self.own[who]

    def expected(self, features: Tensor) -> Tensor:
        """The row of a rater of whom only the features (…, features) are known: (…, numbers)."""
        return self.common + features @ self.effects

    @torch.no_grad()
    def settle(self) -> None:
        """Share the rows out anew, as ridge regression does: as much as features explain is theirs, the rest one's own.

        No row changes. While learning, nothing decides between effects and what is a rater's own. How strongly effects
        are drawn towards nothing is decided by how well they foretell each rater from the others: features that tell
        nothing get no effect.
        """
        rows, weights = self().double(), self.weights.double()
        known = self.known.double()
        if (weights > 0).sum() < 3:
            return
        share = weights / weights.sum()
        middle, mean = share @ known, share @ rows
        x, y = known - middle, rows - mean
        best, effects = torch.inf, torch.zeros_like(self.effects).double()
        for penalty in RIDGE_PENALTIES:
            # x · solve = what the regression says of each rater; the diagonal of it, how much of that is their own word
            solve = torch.linalg.solve((x.T * share) @ x + penalty / len(x) * torch.eye(x.shape[1]).to(x), x.T * share)
            own_word = (x * solve.T).sum(dim=1) + share
            missed = (y - x @ (solve @ y)) / (1 - own_word).clamp_min(1e-6)[:, None]
            error = float((share[:, None] * missed**2).sum())
            if error < best:
                best, effects = error, solve @ y
        self.effects.copy_(effects)
        self.common.copy_(mean - middle @ effects)
        self.own.copy_(rows - self.common.double() - known @ effects)


class FeatureAnnotators(AnnotatorModel):
    """One learnt matrix per rater, partly by the rater's features.

    Examples
    --------
    >>> annotators = FeatureAnnotators(raters=3, classes=2, features=1)
    >>> annotators(torch.zeros(1, 1, 8, 8)).dense().shape
    torch.Size([1, 3, 2, 2])
    >>> annotators.expected(torch.zeros(1, 1, 8, 8), torch.zeros(1)).dense()[0, 0].detach()
    tensor([[0.9949, 0.0051],
            [0.0051, 0.9949]])
    """

    def __init__(self, raters: int, classes: int, features: int) -> None:
        super().__init__()
        self.classes = classes
        self.table = FeatureTable(identity_scores(classes).flatten(), raters, features)

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        return self._confusion(self.table(raters))

    def expected(self, images: Tensor, features: Tensor) -> Confusion:
        """Matrices of one rater with these features (features,)."""
        return self._confusion(self.table.expected(features[None]))

    def _confusion(self, rows: Tensor) -> Confusion:
        log_matrices = log_row_probabilities(rows.view(-1, self.classes, self.classes), dim=2)
        return GlobalConfusion(log_matrices.exp(), log_matrices)


class FeaturePixelAnnotators(AnnotatorModel):
    """One matrix per rater and pixel, from the image by a network of its own, and partly by the rater's features.

    Examples
    --------
    >>> annotators = FeaturePixelAnnotators(in_channels=1, raters=3, classes=2, features=1)
    >>> annotators(torch.zeros(2, 1, 9, 10)).dense().shape
    torch.Size([2, 3, 2, 2, 9, 10])
    """

    def __init__(
        self,
        in_channels: int,
        raters: int,
        classes: int,
        features: int,
        dims: int = 2,
        width: int = 8,
        plan: NetworkPlan | None = None,
    ) -> None:
        super().__init__()
        self.classes = classes
        channels = max(2 * width, raters * classes)
        self.features = nn.Sequential(unet(in_channels, channels, dims, plan, width), nn.PReLU())
        # A rater's row: how to read the matrix's scores from each channel, and where they start.
        start = torch.cat([0.01 * torch.randn(classes**2, channels), identity_scores(classes).view(-1, 1)], dim=1)
        self.table = FeatureTable(start.flatten(), raters, features)

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        return self._confusion(images, self.table(raters))

    def expected(self, images: Tensor, features: Tensor) -> Confusion:
        """Matrices of one rater with these features (features,)."""
        return self._confusion(images, self.table.expected(features[None]))

    def _confusion(self, images: Tensor, rows: Tensor) -> Confusion:
        maps = one_pixel_axis(self.features(images), 2)
        heads = rows.view(len(rows) * self.classes**2, -1)
        scores = F.conv1d(maps, heads[:, :-1, None], heads[:, -1])
        return PixelConfusion(scores.view(len(images), len(rows), self.classes, self.classes, *images.shape[2:]))
