"""Every method by its name, each a short file naming its parts. Importing this folder makes them known."""

from annotruth.methods import (
    baselines,
    counted_cm,
    crowd_layer,
    doctor_net,
    em,
    fused,
    fused_labels,
    global_cm,
    lowrank_cm,
    max_mig,
    oracle_cm,
    pixel_cm,
    prob_unet,
    separate,
)
from annotruth.methods.base import METHODS, Batch, Method, Parts, Shape, Task, make_method, methods_for

__all__ = [
    "METHODS",
    "Batch",
    "Method",
    "Parts",
    "Shape",
    "Task",
    "baselines",
    "counted_cm",
    "crowd_layer",
    "doctor_net",
    "em",
    "fused",
    "fused_labels",
    "global_cm",
    "lowrank_cm",
    "make_method",
    "max_mig",
    "methods_for",
    "oracle_cm",
    "pixel_cm",
    "prob_unet",
    "separate",
]
