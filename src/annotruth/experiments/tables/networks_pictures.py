"""The networks for pictures beside each other, on CIFAR-10 with its true classes: what chose the default.

What a method makes of raters is another question; here nobody errs.
"""

from __future__ import annotations

from annotruth.experiments.core.columns import ACCURACY, MEGABYTES
from annotruth.experiments.core.experiment import Experiment, Row
from annotruth.experiments.core.findings import at_least, leads
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data.cifar10 import STAND_IN, cifar10_true_task
from annotruth.training import Classifier

NETWORKS_CIFAR10 = Experiment(
    name="networks-cifar10",
    title="Networks for pictures: CIFAR-10 at full size, with its true classes",
    task=cifar10_true_task,
    settings={"12,500 pictures": {"share": 0.25}, "50,000 pictures": {"share": 1.0}},
    rows=(
        Row("clean", name="resnet"),
        Row("clean", name="resnet, not augmented", training={"augment": False}),
        Row("clean", name="cnn", training={"network": "cnn"}),
        Row("clean", name="cnn, not augmented", training={"network": "cnn", "augment": False}),
    ),
    metrics=(ACCURACY, MEGABYTES),
    full=Scale({"train": 50000, "test": 10000}),
    quick=Scale({"train": 1500, "test": 500}, {"max_epochs": 3}),
    seeds=(10, 11, 12),
    learner=Classifier,
    findings=(
        at_least("resnet", "accuracy", {"12,500 pictures": 0.75, "50,000 pictures": 0.85}, every_seed=True),
        leads("resnet", "cnn", 0.0, metric="accuracy"),
    ),
    notes=(
        "Every row learns from the true classes (method clean) with all defaults but those that its name tells: resnet "
        "is what `Classifier()` takes for pictures, cnn, not augmented, what it took in version 0.1.",
        "Network, learning rate and epochs were chosen on other seeds, 20 and above. A tenth of the pictures to "
        "learn from is held out of each training, to choose the epoch.",
        "Each training runs on one thread.",
    ),
    stand_in=STAND_IN,
)
