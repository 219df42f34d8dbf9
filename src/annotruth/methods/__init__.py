"""Every method by its name, each a short file naming its parts. Importing this folder makes them known."""

from annotruth.methods import baselines, fused, global_cm, oracle_cm, pixel_cm, prob_unet, separate
from annotruth.methods.base import METHODS, Batch, Method, Parts, Shape, Task, make_method

__all__ = [
    "METHODS",
    "Batch",
    "Method",
    "Parts",
    "Shape",
    "Task",
    "baselines",
    "fused",
    "global_cm",
    "make_method",
    "oracle_cm",
    "pixel_cm",
    "prob_unet",
    "separate",
]
