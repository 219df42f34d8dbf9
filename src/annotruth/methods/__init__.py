"""Every method by its name, each a short file naming its parts. Importing this folder makes them known."""

from importlib import import_module
from pkgutil import walk_packages

from annotruth.methods.base import METHODS, Batch, DataSpec, Method, MethodModel, Task, make_method, methods_for

__all__ = ["METHODS", "Batch", "DataSpec", "Method", "MethodModel", "Task", "make_method", "methods_for"]

for module in sorted(found.name for found in walk_packages(__path__, f"{__name__}.") if not found.ispkg):
    import_module(module)
