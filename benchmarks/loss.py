"""The loss of pixel-wise confusion matrices beside one matrix product per pixel: ``python -m benchmarks.loss``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn import LowRankConfusion, PixelConfusion, noisy_label_loss
from benchmarks.measure import ROOT, PeakMemory, Row, in_turns
from benchmarks.results import report

SEED, TRACE_WEIGHT, REPEATS = 0, 0.01, 15
BATCH, RATERS, CLASSES, SIZE = 8, 5, 4, 192
FULL_CLASSES, LOW_RANK_CLASSES, FEATURES = 10, 50, 16

Problem = tuple[Tensor, Tensor, Tensor]
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def problem(channels: int, classes: int, batch: int, size: int) -> Problem:
    """Log-probabilities of the truth, something to learn of so many channels, and labels, a tenth of them missing."""
    generator = torch.Generator().manual_seed(SEED)
    log_truth = torch.randn(batch, classes, size, size, generator=generator).log_softmax(dim=1)
    learnt = torch.randn(batch, channels, size, size, generator=generator)
    labels = torch.randint(classes, (batch, RATERS, size, size), generator=generator, dtype=torch.uint8)
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = 255
    return log_truth.requires_grad_(), learnt.requires_grad_(), labels


def gathered(log_truth: Tensor, scores: Tensor, labels: Tensor) -> Tensor:
    """Our loss, on scores (batch, raters·classes², *spatial)."""
    shape = (len(scores), RATERS, log_truth.shape[1], log_truth.shape[1], *scores.shape[2:])
    return noisy_label_loss(log_truth, PixelConfusion(scores.view(shape)), labels, TRACE_WEIGHT)[0]


def multiplied(log_truth: Tensor, scores: Tensor, labels: Tensor) -> Tensor:
    """The same loss as it is usually written: for each rater, a matrix per pixel and a batched product with them."""
    classes = log_truth.shape[1]
    truth = log_truth.permute(0, 2, 3, 1).reshape(-1, 1, classes).exp()
    likelihood, trace = truth.new_zeros(()), truth.new_zeros(())
    for said, of_rater in zip(labels.unbind(dim=1), scores.chunk(RATERS, dim=1)):
        matrices = F.softplus(of_rater.permute(0, 2, 3, 1).reshape(-1, classes, classes))
        matrices = matrices / matrices.sum(dim=2, keepdim=True)
        observed, said = torch.bmm(truth, matrices).squeeze(1), said.flatten().long()
        likelihood = likelihood + F.nll_loss(observed.log(), said, ignore_index=255, reduction="sum")
        right = (matrices.diagonal(dim1=1, dim2=2) * truth.detach().squeeze(1)).sum(dim=1)
        trace = trace + (right * (said != 255)).sum()
    return (likelihood + TRACE_WEIGHT * trace) / (labels != 255).sum()


def from_features(kind: str) -> tuple[int, Loss]:
    """Number of classes, and the loss from an annotator network's last features, its last layer included."""
    torch.manual_seed(SEED)
    if kind == "low rank":
        thin = nn.Conv1d(FEATURES, RATERS * 2 * LOW_RANK_CLASSES, kernel_size=1)

        def low_rank(log_truth: Tensor, features: Tensor, labels: Tensor) -> Tensor:
            confusion = LowRankConfusion(features, thin, RATERS, LOW_RANK_CLASSES)
            return noisy_label_loss(log_truth, confusion, labels, TRACE_WEIGHT)[0]

        return LOW_RANK_CLASSES, low_rank
    full = nn.Conv2d(FEATURES, RATERS * FULL_CLASSES**2, kernel_size=1)
    return FULL_CLASSES, lambda log_truth, features, labels: gathered(log_truth, full(features), labels)


def task(name: str, batch: int = BATCH, size: int = SIZE) -> tuple[Problem, Callable[[], None]]:
    """Inputs, and one step on them: forward and backward."""
    loss: Loss = gathered if name == "gathered" else multiplied
    channels, classes = RATERS * CLASSES**2, CLASSES
    if name in ("full", "low rank"):
        channels, (classes, loss) = FEATURES, from_features(name)
    inputs = problem(channels, classes, batch, size)

    def step() -> None:
        for tensor in inputs[:2]:
            tensor.grad = None
        loss(*inputs).backward()

    return inputs, step


def peak_memory(name: str) -> int:
    """Bytes that a first step needs at its worst moment, its inputs included, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.loss", "memory", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return int(done.stdout.splitlines()[-1])


def run() -> Iterator[Row]:
    """Time and memory of the loss beside matrix products, and memory of low rank beside full matrices."""
    work = f"Loss step, batch {BATCH}, {RATERS} raters, {CLASSES} classes, {SIZE}² pixels"
    (inputs, ours), (theirs_inputs, theirs) = task("gathered"), task("multiplied")
    fast, slow = in_turns(ours, theirs, REPEATS)
    same = all(
        torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-5 * other.grad.abs().max().item())
        for one, other in zip(inputs[:2], theirs_inputs[:2])
        if one.grad is not None and other.grad is not None
    )
    details = {"seconds": fast, "seconds of the peer": slow, "same gradients": "yes" if same else "no"}
    yield Row(work, "a matrix product per pixel", slow / fast, "× faster", 3, same=same, details=details)

    small, large = peak_memory("gathered"), peak_memory("multiplied")
    details = {"MB": round(small / 1e6), "MB of the peer": round(large / 1e6)}
    yield Row(work, "a matrix product per pixel", small / large, "× the memory", 0.5, at_most=True, details=details)

    work = f"Loss step from features, rank 1 at {LOW_RANK_CLASSES} classes"
    peer = f"full matrices at {FULL_CLASSES} classes"
    low_rank, full = peak_memory("low rank"), peak_memory("full")
    ours_seconds, full_seconds = in_turns(task("low rank")[1], task("full")[1], 3)
    details = {"MB": round(low_rank / 1e6), "MB of the peer": round(full / 1e6)}
    details |= {"seconds": ours_seconds, "seconds of the peer": full_seconds}
    yield Row(work, peer, low_rank / full, "× the memory", 1, at_most=True, details=details)


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    if sys.argv[1:2] == ["memory"]:
        task(sys.argv[2], batch=1, size=16)[1]()  # so that what is loaded at the first call does not count
        with PeakMemory() as peak:
            _, step = task(sys.argv[2])
            step()
        print(peak.extra)
        return 0
    return report(
        "loss-speed",
        "Speed and memory of the loss",
        "Made by `python -m benchmarks.loss`. A step is forward and backward, in single precision, with the trace term "
        "and a tenth of the labels missing. The first two lines: the same loss of the same inputs. "
        f"Times are the shortest of {REPEATS} steps each (3 in the last line), taken in turns. Memory is the highest "
        "that a process of its own reached during its first step, inputs included, libraries not.",
        "Full matrices are scored for all pixels at once, 100 numbers each for 10 classes. Those of low rank have as "
        "many numbers for 50 classes, but are computed block by block from the features and never kept.",
        run(),
        SEED,
    )


if __name__ == "__main__":
    sys.exit(main())
