"""Imported where processes are forked from: passes over pixels are loaded once for all of them, by being used."""

from __future__ import annotations

import numpy as np

from annotruth.fusion import _em
from annotruth.fusion.votes import PatternLookup, count_patterns

_em.expect_pixels(_em.MANY_PIXELS)
_MASKS = np.zeros((2, 4), dtype=np.uint8)
_LOOKUP = PatternLookup(count_patterns(_MASKS, n_classes=2), n_classes=2)
for _kind in (np.uint8, np.float32):  # labels, probabilities
    _LOOKUP.write(_MASKS, np.zeros((1, 1), dtype=_kind))
