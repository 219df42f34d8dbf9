"""The truth without images: label fusion for masks and for answers."""

from __future__ import annotations

from annotruth.fusion.dawid_skene import DawidSkene
from annotruth.fusion.majority import MajorityVote, MeanLabel
from annotruth.fusion.spatial import SpatialSTAPLE
from annotruth.fusion.staple import STAPLE
from annotruth.fusion.stores import count_case
from annotruth.fusion.warn import UnlabelledWarning

__all__ = ["STAPLE", "DawidSkene", "MajorityVote", "MeanLabel", "SpatialSTAPLE", "UnlabelledWarning", "count_case"]
