"""All masks of a folder read, and as much written as a fusion writes, but nothing fused. ``io_script.py CASES OUT``."""

import sys
from pathlib import Path

import numpy as np

import annotruth as at
from annotruth.io.writing import write_mask, write_probabilities
from annotruth.parallel.threads import map_in_threads, thread_count

cases, out = at.load(sys.argv[1]), Path(sys.argv[2])


def copy(index: int) -> None:
    masks = cases.item_masks(index)
    share = masks.mean(axis=0, dtype=np.float32)
    write_mask(out / "labels", cases, index, masks[0])
    write_probabilities(out / "probabilities", cases, index, np.stack([1 - share, share]))


list(map_in_threads(copy, range(len(cases)), thread_count()))
