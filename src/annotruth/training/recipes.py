"""How long and how fast a classifier's network learns, unless the user says otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from annotruth.nn.monai_networks import is_monai

FEWEST_IN_BATCH = 16
"""A batch is not made smaller than this so that there are more of them."""


@dataclass(frozen=True)
class Recipe:
    """Learning rate, items in a batch, and passes over the items, by how many there are.

    Attributes
    ----------
    learning_rate : its peak
    batch_size : items in a batch at most
    batches : that an epoch has at least, where there are enough items
    epochs : at least, and at most
    items_seen : in all epochs, within these bounds
    steps : in all epochs at least, whatever the bounds: few items need more epochs

    Examples
    --------
    >>> pictures = Recipe(0.01, batch_size=128, batches=32, epochs=(16, 30), items_seen=200_000)
    >>> [pictures.batch_for(items) for items in (100, 2000, 45_000)]
    [16, 62, 128]
    >>> [pictures.epochs_for(items, pictures.batch_for(items)) for items in (100, 2000, 12_500, 45_000)]
    [86, 30, 16, 16]
    """

    learning_rate: float
    batch_size: int = 50  # as in Tanno et al. 2019
    batches: int = 1
    epochs: tuple[int, int] = (30, 30)
    items_seen: int = 0
    steps: int = 600

    def batch_for(self, items: int) -> int:
        """Items in a batch."""
        return min(self.batch_size, max(FEWEST_IN_BATCH, items // self.batches))

    def epochs_for(self, items: int, batch_size: int) -> int:
        """Passes over so many items."""
        least, most = self.epochs
        epochs = min(max(-(-self.items_seen // items), least), most)
        return max(epochs, -(-self.steps // -(-items // batch_size)))


RECIPES = {
    "resnet": Recipe(0.01, batch_size=128, batches=32, epochs=(16, 30), items_seen=200_000),
    "monai": Recipe(0.001, batch_size=128, batches=32, epochs=(16, 30), items_seen=200_000),
    "cnn": Recipe(0.003),
    "resnet of 0.1": Recipe(0.003),
    "mlp": Recipe(0.001),
    "linear": Recipe(0.02),
    "own": Recipe(0.001),
}
"""By the network's name; "monai" = any of MONAI's, "own" = the user's."""


def recipe_of(network: str) -> Recipe:
    """The recipe for a network by its name.

    Examples
    --------
    >>> recipe_of("monai:DenseNet121").learning_rate
    0.001
    """
    return RECIPES["monai" if is_monai(network) else network]
