"""Compiled loops that sort answers by item: names are spread over buckets, and a bucket's answers put into order."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
from numba import njit

MAX_INSERTED = 32  # answers of an item; more are sorted by merging


def _crc_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    return table


CRC_TABLE = _crc_table()


@njit(nogil=True, cache=True)
def hash_names(offsets, content):
    """CRC-32 (names,) of the bytes offsets[i] … offsets[i + 1] - 1, as zlib has it: the same on every machine."""
    found = np.empty(len(offsets) - 1, dtype=np.uint32)
    for i in range(len(found)):
        value = np.uint32(0xFFFFFFFF)
        for at in range(offsets[i], offsets[i + 1]):
            value = (value >> np.uint32(8)) ^ CRC_TABLE[(value ^ content[at]) & np.uint32(0xFF)]
        found[i] = value ^ np.uint32(0xFFFFFFFF)
    return found


@njit(nogil=True, cache=True)
def group_answers(item, rater, label, n_items):
    """Sort by item, then rater; answers of one rater on one item stay in their order. Gives all three, sorted."""
    start = np.zeros(n_items + 1, dtype=np.int64)
    for a in range(len(item)):
        start[item[a] + 1] += 1
    for i in range(n_items):
        start[i + 1] += start[i]
    place = start[:-1].copy()
    items, raters, labels = np.empty_like(item), np.empty_like(rater), np.empty_like(label)
    for a in range(len(item)):
        to = place[item[a]]
        items[to], raters[to], labels[to] = item[a], rater[a], label[a]
        place[item[a]] += 1
    for i in range(n_items):
        first, last = start[i], start[i + 1]
        if last - first > MAX_INSERTED:
            order = np.argsort(raters[first:last], kind="mergesort")
            raters[first:last], labels[first:last] = raters[first:last][order], labels[first:last][order]
            continue
        for a in range(first + 1, last):
            who, said, to = raters[a], labels[a], a
            while to > first and raters[to - 1] > who:
                raters[to], labels[to] = raters[to - 1], labels[to - 1]
                to -= 1
            raters[to], labels[to] = who, said
    return items, raters, labels
