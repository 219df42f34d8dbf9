"""Networks for pictures on CIFAR-10 with its true classes: the comparison that chose the default, and what it reaches.

What a method makes of raters is another question; here nobody errs.
"""

from __future__ import annotations

from annotruth.experiments.core.columns import ACCURACY, ECE, MEGABYTES
from annotruth.experiments.core.experiment import Experiment, Row
from annotruth.experiments.core.findings import at_least, leads
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data.cifar10 import STAND_IN, cifar10_true_task
from annotruth.training import Classifier

NETWORKS_CIFAR10 = Experiment(
    name="networks-cifar10",
    title="Which network for pictures: CIFAR-10 with its true classes",
    task=cifar10_true_task,
    settings={"2,500 pictures": {"share": 0.05}},
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
    findings=(leads("resnet", "cnn", 0.0, metric="accuracy"),),
    notes=(
        "Every row learns from the true classes (method clean) with all defaults but those that its name tells: resnet "
        "is what `Classifier()` takes for pictures, cnn, not augmented, what it took in version 0.1.",
        "Network, learning rate and epochs were chosen on other seeds, 20 and above. A tenth of the pictures to "
        "learn from is held out of each training, to choose the epoch.",
    ),
    stand_in=STAND_IN,
)

PICTURES = Experiment(
    name="baselines-pictures",
    title="A plain network with all defaults, taught the true classes of CIFAR-10",
    task=cifar10_true_task,
    settings={"12,500 pictures": {"share": 0.25}, "50,000 pictures": {"share": 1.0}},
    rows=(Row("clean"),),
    metrics=(ACCURACY, ECE),
    full=Scale({"train": 50000, "test": 10000}),
    quick=Scale({"train": 1500, "test": 500}, {"max_epochs": 3}),
    seeds=(10, 11, 12),
    learner=Classifier,
    findings=(at_least("clean", "accuracy", {"12,500 pictures": 0.75, "50,000 pictures": 0.85}, every_seed=True),),
    notes=("A tenth of the pictures to learn from is held out of each training, to choose the epoch.",),
    stand_in=STAND_IN,
)
