"""Every method by its name, each a short file naming its parts. Importing this folder makes them known."""

from annotruth.methods import baselines, global_cm, pixel_cm
from annotruth.methods.base import METHODS, Method, Parts, Shape, make_method

__all__ = ["METHODS", "Method", "Parts", "Shape", "baselines", "global_cm", "make_method", "pixel_cm"]
