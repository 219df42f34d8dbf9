"""What a method may do beyond its core. A method derives from the protocols that it needs, and from no others.

==================  ==============================================================================
Prepares            its model must see the training items before the training
Stages              the training changes on its way: a warm-up, two kinds of steps in turns
Samples             it can draw what several people might draw
PredictsRaters      it tells what each rater would draw, other than by matrices
FusesLabels         it weighs labels at hand in a way of its own
AnswersQuestions    a prediction can be asked for more: a recurrence, whom to trust
LearnsFromTruth     it learns from the true labels of some items, too
KnowsConfusion      something is known beforehand of the raters' errors on single items
TakesRaterFeatures  what is known of raters (years, site …) foretells their errors
DoubtsTruth         it can say why what it took for the truth may be wrong
ShowsPanels         the report shows something of this method alone
==================  ==============================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Generator, Tensor

from annotruth.data.annotations import Annotations

if TYPE_CHECKING:
    from annotruth.methods.base import Batch, DataSpec


class Prepares(ABC):
    """The model is told something of the training items before training begins."""

    @abstractmethod
    def prepare(self, model: Any, annotations: Annotations) -> None:
        """Give the model what it is to know."""


class Stages:
    """A schedule of the training. Every hook may be left as it is: then nothing happens there."""

    def objective_is_final(self, model: Any, progress: float) -> bool:
        """Whether the loss has taken its final form; before that, training is not stopped early."""
        return True

    def annotator_pace(self, model: Any, progress: float) -> float:
        """By how much the method's ``annotator_rate`` is multiplied at this point of the training."""
        return 1.0

    def begin_epoch(self, model: Any, batches: Iterable[Batch], progress: float) -> None:
        """Look at all training items before an epoch, for methods that alternate two kinds of steps.

        The model is in evaluation mode, and no gradients are taken.
        """

    def after_epoch(self, model: Any, likelihood: float, progress: float) -> None:
        """Look at the negative log-likelihood of held-out labels (of the training ones, where none are held out)."""

    def finish(self, model: Any, batches: Iterable[Batch]) -> None:
        """Look at all items once more when the network is trained, as :meth:`begin_epoch` does."""


ONE_STAGE = Stages()
"""The schedule of a method that does the same from the first step to the last."""


class Samples(ABC):
    """The method has a way of its own to draw what n people might draw."""

    @abstractmethod
    def sample(self, model: Any, images: Tensor, n: int, generator: Generator, spec: DataSpec) -> Tensor:
        """Probabilities (n, batch, classes, *spatial), whose likeliest labels are a drawing each."""


class DoubtsTruth(ABC):
    """The method can say why what it took for the truth may be wrong."""

    @abstractmethod
    def doubts(self, model: Any, raters: Sequence[str]) -> list[str]:
        """Say so in words, of a trained model; nothing, if there is no doubt."""


class PredictsRaters(ABC):
    """The method tells what each rater would draw in a way of its own, not by the truth and the rater's matrices."""

    @abstractmethod
    def rater_probabilities(self, model: Any, images: Tensor) -> Tensor:
        """Probabilities (batch, raters, classes, *spatial) of every rater's labels."""


class FusesLabels(ABC):
    """The method has a way of its own to weigh labels that are at hand."""

    @abstractmethod
    def rater_confidences(self, model: Any, images: Tensor, raters: int, **options: Any) -> Tensor:
        """How probable each rater is to be right at every pixel: (batch, raters, *spatial)."""

    @abstractmethod
    def fuse_labels(self, model: Any, images: Tensor, labels: Tensor, **options: Any) -> Tensor:
        """Probabilities (batch, classes, *spatial) of the truth, given images and labels (batch, raters, *spatial)."""


class AnswersQuestions(ABC):
    """A prediction can be asked for something, by name."""

    questions: ClassVar[tuple[str, ...]]
    """What can be asked: of ``recurrence`` and ``confidences``, those that the method knows."""

    @abstractmethod
    def predict_options(self, raters: Sequence[str], asked: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked, checked, as arguments of the model's ``log_truth``; ``raters`` are those of the training."""


class LearnsFromTruth:
    """True labels of some items are learnt from beside the raters': they come as ``batch.truth``."""


class KnowsConfusion(ABC):
    """The raters' errors on single items are known beforehand: they come as ``batch.confusion``."""

    @abstractmethod
    def known_confusion(self, annotations: Annotations, index: int) -> Tensor | None:
        """Matrices (raters, classes, classes) of one item, nan where nothing is known; None if nothing is of any."""


class TakesRaterFeatures:
    """Names of rater features are among the options; with none, raters are told apart by their labels alone."""

    rater_features: tuple[str, ...]


class ShowsPanels:
    """The report has panels that this method fills (``annotruth.reporting.panels``)."""

    report_panels: ClassVar[tuple[str, ...]]
