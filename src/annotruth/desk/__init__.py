"""The desk: a web application at which curators decide disputed cases, and raters label what is asked of them.

``annotruth serve`` starts it; it needs the extra ``desk``.
"""

from __future__ import annotations

from annotruth.desk.serving import desk_folder, serve
from annotruth.desk.study import Study

__all__ = ["Study", "desk_folder", "serve"]
