"""Training in several processes, on one machine or on many: who is who, and what is asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from lightning.pytorch.strategies import DDPStrategy

from annotruth.errors import InputError
from annotruth.validation import one_of

STRATEGIES = ("auto", "ddp")


@dataclass(frozen=True)
class Processes:
    """How many processes train together: one per device, on each of the machines (nodes).

    Examples
    --------
    >>> Processes(devices=2, nodes=3).count
    6
    >>> Processes().is_first
    True
    """

    devices: int = 1
    nodes: int = 1
    strategy: str = "auto"

    def __post_init__(self) -> None:
        one_of(self.strategy, STRATEGIES, "strategy")
        for name in ("devices", "nodes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise InputError(f"{name} must be a whole number from 1, not {value!r}.")

    @property
    def count(self) -> int:
        return self.devices * self.nodes

    @property
    def is_first(self) -> bool:
        """Whether this process is the one of all that writes results and speaks to the user.

        Known from the environment in which torchrun, Slurm or Lightning started it, even before the training begins.
        """
        ranks = ("RANK", "NODE_RANK", "LOCAL_RANK", "SLURM_PROCID")
        return self.count == 1 or all(os.environ.get(name, "0") == "0" for name in ranks)

    @property
    def for_trainer(self) -> dict[str, Any]:
        """These processes as Lightning's Trainer wants them."""
        # In a warm-up the annotator model has no gradients: all processes must find that out together.
        strategy = DDPStrategy(find_unused_parameters=True) if self.count > 1 else "auto"
        return {"devices": self.devices, "num_nodes": self.nodes, "strategy": strategy}
