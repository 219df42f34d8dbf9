"""An old name of ``annotruth.reporting``, which goes with the next version; ``annotruth.report`` itself stays.

``annotruth.report`` is the public function. Importing this module hides it behind the module of the same name, and so
the module can be called.
"""

import sys
from types import ModuleType
from typing import Any

from annotruth.renamed import old_names

__getattr__ = old_names(__name__, {name: f"annotruth.reporting.{name}" for name in ("report", "suspects")})


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **more: Any) -> Any:
        from annotruth.reporting import report

        return report(*arguments, **more)


sys.modules[__name__].__class__ = _Callable
