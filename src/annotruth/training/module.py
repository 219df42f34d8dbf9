"""One training step, one validation step and one learning-rate rule for all methods, as Lightning wants them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lightning as L
import pandas as pd
import torch
from torch import Tensor

from annotruth.errors import AnnotruthError
from annotruth.methods import Batch, Method, MethodModel
from annotruth.training.batches import loader
from annotruth.training.datasets import Items
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

BEFORE_FINAL = 1e6
"""Added to a likelihood by which no weights are to be chosen."""


class MethodModule(L.LightningModule):
    """Trains a method's model on batches of images, labels and item positions."""

    def __init__(
        self,
        method: Method[Any],
        model: MethodModel,
        items: Sequence[str],
        learning_rate: float,
        seed: int,
        names: Mapping[str, Sequence[str]],
    ) -> None:
        super().__init__()
        self.method, self.model, self.items = method, model, items
        self.stages = method.stages
        self.learning_rate, self.seed = learning_rate, seed
        self.names = names  # of classes and raters: a checkpoint belongs to them
        self._steps = 0  # of the whole training, known when it begins
        self._begun: dict[str, Any] = {}  # of the epoch that a resumed training is in the middle of

    @property
    def progress(self) -> float:
        """How much of the training is done, 0 to 1."""
        return min(self.global_step / max(self._steps, 1), 1.0)

    def on_train_epoch_start(self) -> None:
        # Whatever a method draws at random depends on the seed and the epoch alone, resumed or not.
        torch.manual_seed(hash((self.seed, self.current_epoch, self.global_rank)) % 2**63)
        self._explained, self._n_labels = torch.zeros((), device=self.device), 0
        self.model.eval()
        with torch.no_grad():
            self.stages.begin_epoch(self.model, self._batches(), self.progress)
        self.model.train()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if not self.trainer.is_last_batch:
            state = {"random": torch.get_rng_state(), "explained": self._explained.cpu(), "labels": self._n_labels}
            checkpoint["epoch begun"] = state

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self._begun = checkpoint.get("epoch begun", {})

    def on_train_start(self) -> None:
        if self._begun:  # its start, below, is not seen again
            torch.set_rng_state(self._begun["random"])
            self._explained, self._n_labels = self._begun["explained"].to(self.device), self._begun["labels"]
            self.model.train()

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        self._positions, self._names_raters = batch.positions, batch.raters is not None
        loss, likelihood = self.method.training_loss(self.model, batch, self.progress)
        n_labels = _count_labels(batch.labels)
        weight = self._weight(n_labels, loss)
        self._explained, self._n_labels = self._explained + likelihood * n_labels, self._n_labels + n_labels
        if self.trainer.is_last_batch:  # and not at every step, where it would cost as much as a small network
            self.log(
                "train_loss", self._explained / self._n_labels, on_step=False, on_epoch=True, prog_bar=True,
                batch_size=self._n_labels, sync_dist=True,
            )  # fmt: skip
        return loss * weight

    def _weight(self, n_labels: int, loss: Tensor) -> float:
        """How much this process's loss counts, so that the mean over processes is the mean over all their labels."""
        is_bad = not torch.isfinite(loss)
        if self.trainer.world_size == 1:
            if is_bad:
                raise self._failure("loss", loss)
            return 1.0
        ours = torch.tensor([n_labels, is_bad], dtype=torch.float32, device=loss.device)
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
            group["lr"] *= self.stages.annotator_pace(self.model, self.progress)

    def _forget_other_raters(self) -> None:
        """Leave raters of whom no process saw a label as they are, as one process would."""
        raters = len(self.names["list of raters"])
        for table in self.model.annotators.parameters():
            if table.grad is not None and len(table) == raters:
                table.grad = touched_rows(table.grad)

    def validation_step(self, batch: Batch, batch_index: int) -> None:
        _, likelihood = self.method.loss(self.model, batch, self.progress)
        self._log_held_out(
            likelihood, _count_labels(batch.labels), self.method.keeps_last_weights and batch.labels.ndim > 2
        )

    def _log_held_out(self, likelihood: Tensor, n_labels: int, later_is_better: bool = False) -> None:
        self.log("val_loss", likelihood, prog_bar=True, batch_size=n_labels, sync_dist=True)
        if later_is_better:
            self.log("judged", 1 - self.progress, batch_size=n_labels, sync_dist=True)
            return
        # While the loss has not taken its final form, the likelihood measures something else: any later one is better.
        early = 0.0 if self.stages.objective_is_final(self.model, self.progress) else BEFORE_FINAL
        self.log("judged", likelihood + early, batch_size=n_labels, sync_dist=True)

    def _batches(self) -> Iterator[Batch]:
        """All training items, in order."""
        training = self.trainer.train_dataloader
        assert training is not None
        assert isinstance(training.dataset, Items)
        for batch in loader(training.dataset.as_they_are(), training.batch_sampler.batch_size):
            yield self.transfer_batch_to_device(batch, self.device, 0)

    def on_train_epoch_end(self) -> None:
        # Checkpoints are written after this, so that a resumed training goes on with what a method has found.
        metrics = self.trainer.callback_metrics
        self.stages.after_epoch(self.model, float(metrics.get("val_loss", metrics["train_loss"])), self.progress)

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
        annotators = list(self.model.annotators.parameters())
        groups: list[dict[str, Any]] = [{"params": list(self.model.truth.parameters()), "lr": self.learning_rate}]
        if annotators:
            groups.append({"params": annotators, "lr": self.learning_rate * self.method.annotator_rate})
        optimiser = RowAdamW(groups, fused=True)
        self._steps = int(self.trainer.estimated_stepping_batches)
        rates = [group["lr"] for group in groups]
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rates, total_steps=self._steps)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def _count_labels(labels: Tensor) -> int:
    """How many labels a batch holds: its weight in an average per label."""
    missing = MISSING_PIXEL if labels.dtype == torch.uint8 else MISSING_LABEL
    return max(int(torch.count_nonzero(labels != missing)), 1)


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


def touched_rows(gradient: Tensor) -> Tensor:
    """A gradient as a sparse one of the rows that are not all zero.

    Processes exchange gradients in full; this finds again whose rows a step is about.

    Examples
    --------
    >>> touched_rows(torch.tensor([[0.0, 0.0], [0.0, 2.0]])).indices()
    tensor([[1]])
    """
    rows = gradient.flatten(1).any(dim=1).nonzero()[:, 0]
    return torch.sparse_coo_tensor(
        rows[None], gradient[rows], gradient.shape, is_coalesced=True, check_invariants=False
    )  # fmt: skip


class RowAdamW(torch.optim.AdamW):
    """AdamW whose sparse gradients move, and cost, their own rows only.

    Each row counts its own steps: a rater who answers once in a hundred batches learns as fast per answer as one who
    always does. Dense gradients are treated as ever.

    Examples
    --------
    >>> table = torch.zeros(4, 2, requires_grad=True)
    >>> optimiser = RowAdamW([table], lr=0.1)
    >>> table.grad = torch.sparse_coo_tensor([[2]], torch.ones(1, 2), (4, 2))
    >>> _ = optimiser.step()
    >>> table.detach()
    tensor([[ 0.0000,  0.0000],
            [ 0.0000,  0.0000],
            [-0.1000, -0.1000],
            [ 0.0000,  0.0000]])
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        gradients = []
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None and table.grad.is_sparse:
                    gradients.append((table, table.grad))
                    self._step_rows(table, table.grad.coalesce(), group)
                    table.grad = None  # not for the dense step below
        super().step()
        for table, gradient in gradients:
            table.grad = gradient
        return loss

    def _step_rows(self, table: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[table]
        if not state:
            state["step"] = torch.zeros(len(table), *[1] * (table.ndim - 1), device=table.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(table), torch.zeros_like(table)
        rows, slope = gradient.indices()[0], gradient.values()
        (first, second), rate = group["betas"], group["lr"]
        step = state["step"][rows] + 1
        mean = state["exp_avg"][rows].lerp_(slope, 1 - first)
        square = state["exp_avg_sq"][rows].mul_(second).addcmul_(slope, slope, value=1 - second)
        state["step"][rows], state["exp_avg"][rows], state["exp_avg_sq"][rows] = step, mean, square
        spread = (square / (1 - second**step)).sqrt_().add_(group["eps"])
        moved = table[rows].mul_(1 - rate * group["weight_decay"])
        table[rows] = moved - rate * (mean / (1 - first**step)) / spread
