"""Annotator models that also foretell what each rater draws, whatever the truth may be."""

from __future__ import annotations

from torch import Tensor, nn

from annotruth.nn.annotators.base import AnnotatorModel
from annotruth.nn.annotators.per_rater import GlobalAnnotators
from annotruth.nn.annotators.pixel import LowRankHeads, PixelHeads
from annotruth.nn.annotators.surroundings import WIDTH, Surrounded
from annotruth.nn.backbones import unet
from annotruth.nn.confusion import Confusion, one_pixel_axis
from annotruth.nn.plan import NetworkPlan


class DrawingAnnotators(AnnotatorModel):
    """Every rater's labels, foretold from the image by a network, and their matrices, one per pixel or one for all.

    Parameters
    ----------
    per_pixel : whether matrices are read from the network's features around every pixel; if not, each rater has one
    rank : of matrices per pixel, for many classes; None = they are full

    Examples
    --------
    >>> import torch
    >>> annotators = DrawingAnnotators(in_channels=1, raters=3, classes=2)
    >>> drawings, features = annotators.foretell(torch.zeros(4, 1, 9, 10))
    >>> drawings.shape, annotators.errors(features).dense().shape
    (torch.Size([4, 3, 2, 9, 10]), torch.Size([4, 3, 2, 2, 9, 10]))
    """

    def __init__(
        self, in_channels: int, raters: int, classes: int, dims: int = 2, width: int = 8,
        plan: NetworkPlan | None = None, per_pixel: bool = True, rank: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.raters, self.classes = raters, classes
        features = max(2 * width, raters * (classes if rank is None else rank))
        self.features = nn.Sequential(unet(in_channels, features, dims, plan, width), nn.PReLU())
        self.errors: AnnotatorModel
        if not per_pixel:
            self.errors = GlobalAnnotators(raters, classes)
        elif rank is None:
            self.errors = Surrounded(features, PixelHeads(features + WIDTH, raters, classes), dims)
        else:
            self.errors = Surrounded(features, LowRankHeads(features + WIDTH, raters, classes, rank), dims)
        # What all draw alike, and what each draws otherwise, nothing at first: who labelled little is foretold to draw
        # as the others do.
        self.common = nn.Conv1d(features, classes, kernel_size=1)
        self.drawings = nn.Conv1d(features, raters * classes, kernel_size=1)
        for weights in self.drawings.parameters():
            nn.init.zeros_(weights)

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        needs_features = not isinstance(self.errors, GlobalAnnotators)
        return self.errors(self.features(images) if needs_features else images, raters)

    def foretell(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities (batch, raters, classes, *spatial) of all raters' labels, and the features behind them."""
        features = self.features(images)
        pixels = one_pixel_axis(features, 2)
        scores = self.common(pixels).unsqueeze(1) + self.drawings(pixels).unflatten(1, (self.raters, self.classes))
        return scores.unflatten(3, images.shape[2:]).log_softmax(dim=2), features
