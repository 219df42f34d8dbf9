"""People who draw masks, each with one way of erring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from annotruth.errors import InputError
from annotruth.simulate.morphology import cut, grow, shrink, smooth_field
from annotruth.validation import MISSING_PIXEL, one_of, unique_names

MASK_RATERS = ("good", "over", "under", "wrong", "blank")
"""The five of Zhang et al. 2020."""
KINDS = (*MASK_RATERS, "careless", "mixer", "easy")

# Pixels at strength 1, chosen so that on MNIST digits (truth = grey > 0) the mean Dice with the truth is
# 0.65 for "over", 0.33 for "under" and 0.66 for "wrong", as on the masks published with Zhang et al. 2020.
OVER_RADIUS = 2.07
UNDER_RADIUS = 1.73
WRONG_RADIUS = 0.45
CUT_WIDTH = 3.0
N_CUTS = 7
CARELESS, MIXED = 0.2, 0.5
"""At strength 1: chance of a slip on an item, and of an object to be taken for another."""


@dataclass(frozen=True)
class MaskRater:
    """Someone who draws masks.

    Attributes
    ----------
    kind : how they err

        - "good": not at all
        - "over": draws objects too large
        - "under": draws objects too small
        - "wrong": draws objects too large and in pieces, and with several foreground classes takes one for another
        - "blank": never sees anything but background (class 0)
        - "careless": on one item of five errs like "over", "under" or "wrong", on the others not at all
        - "mixer": takes every other object for one of the next foreground class; of a single one, misses it
        - "easy": errs like "wrong" on an item as likely as its objects are thin, measured by the share of their pixels
          that lie at a border, and not at all on the others
    strength : how strongly; 0 = faithful, 1 = as in Zhang et al. 2020 on objects the size of MNIST digits. Radii
        grow in proportion, so give larger objects a larger strength. What cannot be done by halves (leaving a mask
        blank, taking one class for another, slipping) happens to an item or object with a probability that is
        proportional to it.
    target : the class they err on; None = every foreground class
    name : by default the kind

    Examples
    --------
    >>> truth = np.zeros((9, 9), dtype=np.uint8)
    >>> truth[3:6, 3:6] = 1
    >>> mask = MaskRater("over").draw(truth, n_classes=2, rng=np.random.default_rng(0))
    >>> bool(mask.sum() > truth.sum())
    True
    """

    kind: str
    strength: float = 1.0
    target: int | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        one_of(self.kind, KINDS, "kind of mask rater")
        if not 0 <= self.strength < np.inf:
            raise InputError(f"The strength of a rater must be 0 or more, found {self.strength}.")
        if self.target is not None and self.target < 1:
            raise InputError(f"The target of a rater must be a foreground class (1 or more), found {self.target}.")

    def draw(self, truth: np.ndarray, n_classes: int, rng: np.random.Generator) -> np.ndarray:
        """Draw one mask (*spatial) uint8 after the truth (*spatial); where that is 255 (unknown), so is the mask.

        With generators in the same state, a stronger rater errs at least wherever a weaker one does ("over",
        "under", "blank").
        """
        if self.target is not None and self.target >= n_classes:
            raise InputError(
                f"Rater {self.name or self.kind} errs on class {self.target}, but classes end at {n_classes - 1}."
            )
        targets = [self.target] if self.target is not None else list(range(1, n_classes))
        mask = truth.copy()
        match self.kind:
            case "over":
                _thicken(mask, targets, OVER_RADIUS * self.strength, rng)
            case "under":
                _thin(mask, targets, UNDER_RADIUS * self.strength, rng)
            case "wrong":
                _thicken(mask, targets, WRONG_RADIUS * self.strength, rng)
                _break_up(mask, truth, targets, self.strength, rng)
                if rng.random() < self.strength:
                    mask = _swap_table(targets, n_classes)[mask]
            case "blank" if rng.random() < self.strength:
                mask[_is_among(mask, targets)] = 0
            case "careless" if rng.random() < CARELESS * self.strength:
                return replace(self, kind=str(rng.choice(["over", "under", "wrong"])), strength=1.0).draw(
                    truth, n_classes, rng
                )
            case "mixer":
                _mix_up(mask, targets, n_classes, MIXED * self.strength, rng)
            case "easy" if rng.random() < self.strength * _thinness(_is_among(mask, targets)):
                return replace(self, kind="wrong", strength=1.0).draw(truth, n_classes, rng)
        mask[truth == MISSING_PIXEL] = MISSING_PIXEL
        return mask


def make_raters(
    raters: Sequence[str | MaskRater] | Mapping[str, str], strength: float | Sequence[float] = 1.0
) -> tuple[MaskRater, ...]:
    """Read raters from kinds, from kinds by name, or as they are; give each a name, and multiply their strengths.

    Examples
    --------
    >>> [rater.name for rater in make_raters(["good", "over", "over"])]
    ['good', 'over', 'over_2']
    >>> make_raters({"ann": "good", "bob": "under"}, strength=[1.0, 0.5])[1]
    MaskRater(kind='under', strength=0.5, target=None, name='bob')
    """
    if isinstance(raters, str) or not len(raters):
        raise InputError(f"Give raters as a list of kinds ({', '.join(KINDS)}) or MaskRaters, found {raters!r}.")
    if isinstance(raters, Mapping):
        raters = [MaskRater(kind, name=name) for name, kind in raters.items()]
    strengths: list[float] = np.ravel(strength).tolist() * (len(raters) if np.ndim(strength) == 0 else 1)
    if len(strengths) != len(raters):
        raise InputError(f"{len(raters)} raters but {len(strengths)} strengths: give one number, or one per rater.")
    made = [MaskRater(rater) if isinstance(rater, str) else rater for rater in raters]
    names: list[str] = []
    for rater in made:
        again = sum(other.name is None and other.kind == rater.kind for other in made[: len(names)])
        names.append(rater.name or (f"{rater.kind}_{again + 1}" if again else rater.kind))
    unique_names(names, "rater")
    return tuple(replace(rater, name=n, strength=rater.strength * s) for rater, n, s in zip(made, names, strengths))


def _is_among(mask: np.ndarray, targets: list[int]) -> np.ndarray:
    """Tell which pixels (*spatial) are of a target class, by a table: np.isin dawdles on small masks."""
    table = np.zeros(256, dtype=bool)
    table[targets] = True
    return table[mask]


def _thicken(mask: np.ndarray, targets: list[int], radius: float, rng: np.random.Generator) -> None:
    """Let the targets grow over background and other classes; a new pixel takes the class of its nearest target."""
    inside = _is_among(mask, targets)
    new = grow(inside, radius, smooth_field(mask.shape, rng)) & ~inside
    if len(targets) == 1:
        mask[new] = targets[0]
    elif new.any():
        nearest = ndimage.distance_transform_edt(~inside, return_distances=False, return_indices=True)
        mask[new] = mask[tuple(nearest[:, new])]


def _thin(mask: np.ndarray, targets: list[int], radius: float, rng: np.random.Generator) -> None:
    """Let the targets shrink from their borders, leaving background behind; unknown pixels are no border."""
    truth, field = mask.copy(), smooth_field(mask.shape, rng)
    for target in targets:
        inside = truth == target
        outside = ~inside & (truth != MISSING_PIXEL)
        mask[inside & ~shrink(inside, outside, radius, field)] = 0


def _break_up(
    mask: np.ndarray, truth: np.ndarray, targets: list[int], strength: float, rng: np.random.Generator
) -> None:
    """Cut the thickened targets into pieces, leaving background between them."""
    reach = WRONG_RADIUS * strength + 1
    cuts = cut(_is_among(truth, targets), CUT_WIDTH * strength, reach, rng, N_CUTS)
    mask[cuts & _is_among(mask, targets)] = 0


def _swap_table(targets: list[int], n_classes: int) -> np.ndarray:
    """Give the class each value (0 to 255) is taken for: the next foreground class, which for one target swaps."""
    table = np.arange(256, dtype=np.uint8)
    if len(targets) > 1:
        table[targets] = np.roll(targets, -1)
    else:
        neighbour = targets[0] % (n_classes - 1) + 1
        table[[targets[0], neighbour]] = neighbour, targets[0]
    return table


def _mix_up(mask: np.ndarray, targets: list[int], n_classes: int, chance: float, rng: np.random.Generator) -> None:
    """Take objects (connected pixels of one class) for others; of a single foreground class, miss them."""
    table = _swap_table(targets, n_classes) if n_classes > 2 else np.zeros(256, dtype=np.uint8)
    seen = mask.copy()
    for target in targets:
        objects, count = ndimage.label(seen == target)
        mixed = np.flatnonzero(rng.random(count) < chance) + 1
        mask[np.isin(objects, mixed)] = table[target]


def _thinness(inside: np.ndarray) -> float:
    """The share of an object's pixels that lie at its border."""
    if not inside.any():
        return 0.0
    return 1 - ndimage.binary_erosion(inside).sum() / inside.sum()
