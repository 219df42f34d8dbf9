"""The Lightning glue all methods share: one training step, one validation step, one learning-rate rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning as L
import pandas as pd
import torch
from torch import Tensor

from annotruth.errors import AnnotruthError
from annotruth.methods import Batch, Method, MethodModel
from annotruth.training.datasets import Items, loader
from annotruth.training.optimiser import RowAdamW, touched_rows
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

NOT_YET = 1e6
"""Added to a likelihood by which no weights are to be chosen."""


class Training(L.LightningModule):
    """Trains a method's parts on batches of images, labels and item positions."""

    def __init__(
        self,
        method: Method,
        parts: MethodModel,
        items: Sequence[str],
        learning_rate: float,
        seed: int,
        names: Mapping[str, Sequence[str]],
    ) -> None:
        super().__init__()
        self.method, self.parts, self.items = method, parts, items
        self.learning_rate, self.seed = learning_rate, seed
        self.names = names  # of classes and raters: a checkpoint belongs to them

    @property
    def progress(self) -> float:
        """How much of the training is done, 0 to 1."""
        return min(self.global_step / max(float(self.trainer.estimated_stepping_batches), 1.0), 1.0)

    def on_train_epoch_start(self) -> None:
        # Whatever a method draws at random depends on the seed and the epoch alone, resumed or not.
        torch.manual_seed(hash((self.seed, self.current_epoch, self.global_rank)) % 2**63)
        self.parts.eval()
        with torch.no_grad():
            self.method.begin_epoch(self.parts, self._batches(), self.progress)
        self.parts.train()

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        self._positions, self._names_raters = batch.positions, batch.raters is not None
        loss, likelihood = self.method.loss(self.parts, batch, self.progress)
        given = _given(batch.labels)
        weight = self._weight(given, loss)
        self.log(
            "train_loss", likelihood, on_step=False, on_epoch=True, prog_bar=True, batch_size=given, sync_dist=True
        )
        return loss * weight

    def _weight(self, given: int, loss: Tensor) -> float:
        """How much this process's loss counts, so that the mean over processes is the mean over all their labels."""
        ours = torch.tensor([given, not torch.isfinite(loss)], dtype=torch.float32, device=loss.device)
        everybody = self.trainer.strategy.reduce(ours.clone(), reduce_op="sum")
        if everybody[1] > 0:  # then all processes stop, or the others would wait for this one
            raise self._failure("loss", loss)
        return float(self.trainer.world_size * ours[0] / everybody[0])

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.trainer.world_size > 1 and self._names_raters:
            self._forget_other_raters()
        # A finite loss can have gradients that are not; caught here, they never reach the weights or a checkpoint.
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        gradients = [grad.coalesce().values() if grad.is_sparse else grad for grad in gradients]
        norm = torch.nn.utils.get_total_norm(gradients)
        if not torch.isfinite(norm):
            raise self._failure("gradient", norm)
        for group in optimizer.param_groups[1:]:  # of the annotator model; the schedule sets the rate anew every step
            group["lr"] *= self.method.annotator_pace(self.parts, self.progress)

    def _forget_other_raters(self) -> None:
        """Leave raters of whom no process saw a label as they are, as one process would."""
        raters = len(self.names["list of raters"])
        for table in self.parts.annotators.parameters():
            if table.grad is not None and len(table) == raters:
                table.grad = touched_rows(table.grad)

    def validation_step(self, batch: Batch, batch_index: int) -> None:
        _, likelihood = self.method.loss(self.parts, batch, self.progress)
        self._log_held_out(likelihood, _given(batch.labels))

    def _log_held_out(self, likelihood: Tensor, given: int) -> None:
        self.log("val_loss", likelihood, prog_bar=True, batch_size=given, sync_dist=True)
        # While the loss has not taken its final form, the likelihood measures something else: any later one is better.
        early = 0.0 if self.method.settled(self.parts, self.progress) else NOT_YET
        self.log("judged", likelihood + early, batch_size=given, sync_dist=True)

    def _batches(self) -> Iterator[Batch]:
        """All training items, in order."""
        training = self.trainer.train_dataloader
        assert training is not None
        assert isinstance(training.dataset, Items)
        for batch in loader(training.dataset, training.batch_sampler.batch_size):
            yield self.transfer_batch_to_device(batch, self.device, 0)

    def on_train_epoch_end(self) -> None:
        # Checkpoints are written after this, so that a resumed training goes on with what a method has found.
        metrics = self.trainer.callback_metrics
        self.method.after_epoch(self.parts, float(metrics.get("val_loss", metrics["train_loss"])), self.progress)

    def _failure(self, what: str, value: Tensor) -> AnnotruthError:
        """Say on which cases a value is not finite; every process takes part, and says the same."""
        assert self._positions is not None
        shares = [(value.item(), self._positions.tolist())]
        if self.trainer.world_size > 1:
            shares = shares * self.trainer.world_size
            torch.distributed.all_gather_object(shares, shares[0])
        bad = [(number, positions) for number, positions in shares if not math.isfinite(number)]
        names = ", ".join(self.items[position] for _, positions in bad for position in positions)
        return AnnotruthError(
            f"The {what} became {bad[0][0]} in epoch {self.current_epoch} on the cases {names}. "
            "Look at these cases, or try a smaller learning rate."
        )

    def configure_optimizers(self) -> Any:
        annotators = list(self.parts.annotators.parameters())
        groups: list[dict[str, Any]] = [{"params": list(self.parts.truth.parameters()), "lr": self.learning_rate}]
        if annotators:
            groups.append({"params": annotators, "lr": self.learning_rate * self.method.annotator_rate})
        optimiser = RowAdamW(groups, fused=True)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, [group["lr"] for group in groups], total_steps=steps)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def _given(labels: Tensor) -> int:
    """How many labels a batch holds: its weight in an average per label."""
    missing = MISSING_PIXEL if labels.dtype == torch.uint8 else MISSING_LABEL
    return max(int((labels != missing).sum()), 1)


class History(L.Callback):
    """Keeps the losses of every epoch, in a CSV file too; a resumed training goes on with both."""

    def __init__(self, csv: Path | None = None) -> None:
        self.csv = csv
        self.rows: list[dict[str, float]] = []

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        metrics = trainer.callback_metrics
        self.rows.append(
            {"epoch": trainer.current_epoch}
            | {name: float(metrics.get(name, float("nan"))) for name in ("train_loss", "val_loss")}
        )
        if self.csv is not None and trainer.is_global_zero:
            self.csv.parent.mkdir(parents=True, exist_ok=True)
            self.frame().to_csv(self.csv, index=False)

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rows = state_dict["rows"]

    def frame(self) -> pd.DataFrame:
        """One row per epoch: epoch, train_loss, val_loss (negative log-likelihoods per label)."""
        return pd.DataFrame(self.rows, columns=["epoch", "train_loss", "val_loss"])
