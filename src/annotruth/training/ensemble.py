"""Several models as one, the mean of their probabilities; models read from files and from folders of folds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from annotruth.errors import InputError, shorten
from annotruth.training.classifier import Classifier
from annotruth.training.dense_crf import CRF, refine_all
from annotruth.training.folds import fold_folders
from annotruth.training.inputs import images_and_spacing
from annotruth.training.segmenter import Segmenter
from annotruth.training.storage import MODEL_FILE, RUN_FILE, read_facts


class Ensemble:
    """Several trained models, such as those of all folds, that predict together: the mean of their probabilities.

    How raters err, each of the models tells for itself: ``models[0].annotators_``.

    Parameters
    ----------
    models : trained ``Segmenter`` or ``Classifier``, with the same classes and raters; methods and networks may differ
    names : of the models, for messages; None = "model 0", "model 1" …

    Attributes
    ----------
    classes_, raters_ : as of each of the models

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.simulate import noisy_digits, simulate_masks
    >>> images, truth, _ = noisy_digits(20)
    >>> ann = simulate_masks(truth).annotations(images=images)
    >>> models = [at.Segmenter("mean", max_epochs=1, fold=i, folds=2, progress=False).fit(ann) for i in range(2)]
    >>> together = at.Ensemble(models)
    >>> together.predict(images[:3]).shape
    (3, 28, 28)
    >>> apart = [model.predict_proba(images[:3]) for model in models]
    >>> bool(np.allclose(together.predict_proba(images[:3]), np.mean(apart, axis=0)))
    True
    """

    def __init__(self, models: Sequence[Segmenter | Classifier], names: Sequence[str] | None = None) -> None:
        if not models:
            raise InputError("An ensemble needs models; none is given.")
        self.models = tuple(models)
        names = names or [f"model {position}" for position in range(len(models))]
        first, *others = (_needs(model) for model in models)
        for name, other in zip(names[1:], others):
            for what, value in first.items():
                if other[what] != value:
                    raise InputError(
                        f"{names[0]} and {name} cannot predict together, as they differ in their {what}: "
                        f"{_words(value)}, and {_words(other[what])}."
                    )
        self.classes_: Any = self.models[0].classes_
        self.raters_ = self.models[0].raters_

    def __repr__(self) -> str:
        kind = type(self.models[0]).__name__
        return f"Ensemble({len(self.models)} × {kind}: {shorten(sorted({model.method for model in self.models}), 5)})"

    def predict_proba(self, X: Any, *, crf: CRF = False, **options: Any) -> Any:
        """Probabilities of the true class, in the form that each of the models gives, of what each of them takes.

        A dense CRF (``crf``, as of ``Segmenter.predict_proba``) looks at the mean of all models.
        """
        if crf and isinstance(self.models[0], Classifier):
            raise InputError("A dense CRF goes with models of masks, and these label whole items.")
        total = self.models[0].predict_proba(X, **options)
        for model in self.models[1:]:
            more = model.predict_proba(X, **options)
            total = [a + b for a, b in zip(total, more)] if isinstance(total, list) else total + more
        count = len(self.models)
        mean = [one / count for one in total] if isinstance(total, list) else total / count
        if not crf:
            return mean
        refined = refine_all(crf, mean, *images_and_spacing(X, options.get("spacing")))
        return np.stack(refined) if isinstance(mean, np.ndarray) else refined

    def predict(self, X: Any, **options: Any) -> Any:
        """The most likely class: at every pixel, uint8, or of each item, as its label was given."""
        probabilities = self.predict_proba(X, **options)
        if isinstance(self.models[0], Classifier):
            return self.classes_[probabilities.argmax(axis=1)]
        if isinstance(probabilities, list):
            return [one.argmax(axis=0).astype(np.uint8) for one in probabilities]
        return probabilities.argmax(axis=1).astype(np.uint8)


def _needs(model: Segmenter | Classifier) -> dict[str, Any]:
    """What models that predict together must have in common, by its name."""
    return {
        "kind": type(model).__name__, "classes": list(model.classes_), "raters": list(model.raters_),
        "number of channels or features": model._spec.channels, "number of spatial axes": model._spec.dims,
    }  # fmt: skip


def _words(value: Any) -> str:
    return shorten([str(one) for one in value], 5) if isinstance(value, list) else str(value)


def model_files(path: str | Path) -> list[Path]:
    """The model files that a path stands for: itself; a run's model; where runs of folds lie in it, the model of each.

    Examples
    --------
    >>> [file.as_posix() for file in model_files("m.annotruth")]
    ['m.annotruth']
    """
    path = Path(path)
    if not path.is_dir():
        return [path]
    is_run = any((path / name).exists() for name in (RUN_FILE, MODEL_FILE))
    return [folder / MODEL_FILE for folder in ([] if is_run else fold_folders(path)) or [path]]


def load_file(path: str | Path, network: nn.Module | None = None) -> Segmenter | Classifier:
    """Load the model in a file. One trained around your own network needs that network again."""
    kind = Classifier if read_facts(Path(path))["kind"] == "Classifier" else Segmenter
    return kind.load(path, network)


def load_files(paths: Sequence[str | Path], network: nn.Module | None = None) -> Ensemble:
    """Load the models in some files, or in one, to predict together."""
    return Ensemble([load_file(path, network) for path in paths], [str(path) for path in paths])
