"""Every method by its name and task, each a short file in the folder of its kind.

================  =========================================================================
``confusion/``    a network and confusion matrices, learnt together
``em/``           a network and counted matrices, in turns
``two_stage/``    labels are fused, voted or averaged first, then a network learns
``strokes/``      coarse drawings, strokes and boxes
``multi_rater/``  masks of several raters, and how far to trust each; distributions of masks
``bounds/``       what a network gets that knows more than the raters' labels
================  =========================================================================

``anchor/`` is the warm-up that several of them share. Importing this folder makes methods known: a file that is there,
with ``@register`` in it, is one.
"""

from importlib import import_module
from pkgutil import walk_packages
from typing import TYPE_CHECKING

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel, Task
from annotruth.methods.registry import METHODS, make_method, methods_for, register
from annotruth.renamed import old_names

__all__ = ["METHODS", "Batch", "DataSpec", "Method", "MethodModel", "Task", "make_method", "methods_for", "register"]

for module in sorted(found.name for found in walk_packages(__path__, f"{__name__}.") if not found.ispkg):
    import_module(module)

if not TYPE_CHECKING:  # or a type checker would let any name pass
    __getattr__ = old_names(__name__, {"Parts": "annotruth.methods.MethodModel", "Shape": "annotruth.methods.DataSpec"})
