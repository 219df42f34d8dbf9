"""Compiled passes over the pixels of masks (columns, pixels), with the gold labels as one more column if given.

Pixels are taken in blocks small enough to stay in the first-level cache between the steps of a pass.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 4096
MISSING = np.uint8(255)


@njit(nogil=True, cache=True)
def _encode(masks, gold, first, size, n_classes, code):
    """Number the tuples of a block: code = Σ digit · (classes + 1)^…, the digit of a missing vote being n_classes.

    Gives whether a label outside the classes was met (it is coded like a missing one).
    """
    base, top = np.uint16(n_classes + 1), np.uint8(n_classes)
    strange = False
    for r in range(len(masks) + (len(gold) > 0)):
        column = masks[r, first : first + size] if r < len(masks) else gold[first : first + size]
        if r == 0:
            for v in range(size):
                code[v] = np.uint16(0)
        for v in range(size):
            label = column[v]
            strange |= (label >= top) & (label != MISSING)
            code[v] = np.uint16(code[v] * base + min(label, top))
    return strange


@njit(nogil=True, cache=True)
def count_dense(masks, gold, first, last, n_classes, table_size):
    """Count the tuples of pixels first … last - 1 by their number; give (table (table_size,), label outside?)."""
    # Neighbouring pixels mostly vote alike. Several tables taken in turn spare waiting for the count just written.
    copies = 4 if table_size <= 4096 else 1
    table = np.zeros((copies, table_size), dtype=np.int64)
    code = np.empty(BLOCK, dtype=np.uint16)
    strange = False
    for block in range(first, last, BLOCK):
        size = min(BLOCK, last - block)
        strange |= _encode(masks, gold, block, size, n_classes, code)
        for v in range(size):
            table[v & (copies - 1), code[v]] += 1
    for copy in range(1, copies):
        for entry in range(table_size):
            table[0, entry] += table[copy, entry]
    return table[0], strange


@njit(nogil=True, cache=True)
def write_dense(masks, gold, first, last, n_classes, table, unknown, out):
    """Write table[:, code] to out[:, pixel]; give whether every pixel had an entry other than ``unknown``."""
    code = np.empty(BLOCK, dtype=np.uint16)
    missed = False
    for block in range(first, last, BLOCK):
        size = min(BLOCK, last - block)
        _encode(masks, gold, block, size, n_classes, code)
        for row in range(len(table)):
            values, target = table[row], out[row, block : block + size]
            for v in range(size):
                target[v] = values[code[v]]
        target = out[0, block : block + size]
        for v in range(size):
            missed |= target[v] == unknown
    return not missed


# -- tuples too many to number: two 64-bit hashes, taken together as the tuple's identity -----------------------
# Among ten million tuples, two of them share both hashes with a chance below 10^-24.


@njit(nogil=True, cache=True)
def _hash(masks, gold, first, size, key):
    """Fill key (2, block) with two hashes of each tuple."""
    for half in range(2):
        for v in range(size):
            key[half, v] = np.uint64(0x9E3779B97F4A7C15)
    for r in range(len(masks) + (len(gold) > 0)):
        column = masks[r, first : first + size] if r < len(masks) else gold[first : first + size]
        for v in range(size):
            mixed = (key[0, v] ^ np.uint64(column[v])) * np.uint64(0xD6E8FEB86659FD93)
            key[0, v] = mixed ^ (mixed >> np.uint64(32))
        for v in range(size):
            mixed = (key[1, v] ^ np.uint64(column[v])) * np.uint64(0xC2B2AE3D27D4EB4F)
            key[1, v] = mixed ^ (mixed >> np.uint64(29))


@njit(nogil=True, cache=True)
def _find(key_0, key_1, slots, keys):
    """Give the slot where a key is, or the free one where it belongs (open addressing, linear probing)."""
    mask = np.uint64(len(slots) - 1)
    at = key_0 & mask
    while slots[at] >= 0:
        entry = slots[at]
        if keys[entry, 0] == key_0 and keys[entry, 1] == key_1:
            break
        at = (at + np.uint64(1)) & mask
    return at


@njit(nogil=True, cache=True)
def _rebuilt(n_slots, keys, n_entries):
    slots = np.full(n_slots, -1, dtype=np.int64)
    for entry in range(n_entries):
        slots[_find(keys[entry, 0], keys[entry, 1], slots, keys)] = entry
    return slots


@njit(nogil=True, cache=True)
def _longer(array):
    grown = np.empty((2 * len(array), array.shape[1]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown


@njit(nogil=True, cache=True)
def _count_block(key, block, done, size, weight, slots, keys, found, n_found):
    """Count a block's pixels from ``done`` on; give how far it came before the table was full, and the tuples found."""
    entry = np.int64(-1)
    for v in range(done, size):
        if entry < 0 or key[0, v] != key[0, v - 1] or key[1, v] != key[1, v - 1]:
            at = _find(key[0, v], key[1, v], slots, keys)
            entry = slots[at]
            if entry < 0:
                if n_found == len(keys):
                    return v, n_found
                entry = n_found
                n_found += 1
                slots[at] = entry
                keys[entry, 0], keys[entry, 1] = key[0, v], key[1, v]
                found[entry, 0], found[entry, 1] = block + v, 0
        found[entry, 1] += weight[block + v] if len(weight) else 1
    return size, n_found


@njit(nogil=True, cache=True)
def count_hashed(masks, gold, first, last, n_classes, weight):
    """Count tuples in order of appearance; give (a pixel showing each (tuples,), counts (tuples,), label outside?)."""
    keys, found = np.empty((512, 2), dtype=np.uint64), np.empty((512, 2), dtype=np.int64)
    slots = np.full(1024, -1, dtype=np.int64)
    n_found, strange = 0, False
    top = np.uint8(n_classes)
    key = np.empty((2, BLOCK), dtype=np.uint64)
    for block in range(first, last, BLOCK):
        size = min(BLOCK, last - block)
        for r in range(len(masks)):
            column = masks[r, block : block + size]
            for v in range(size):
                strange |= (column[v] >= top) & (column[v] != MISSING)
        _hash(masks, gold, block, size, key)
        done = 0
        while done < size:
            done, n_found = _count_block(key, block, done, size, weight, slots, keys, found, n_found)
            if done < size:
                keys, found = _longer(keys), _longer(found)
                slots = _rebuilt(2 * len(slots), keys, n_found)
    return found[:n_found, 0].copy(), found[:n_found, 1].copy(), strange


@njit(nogil=True, cache=True)
def hash_index(votes, gold):
    """Index tuples (columns, tuples) for write_hashed."""
    n = votes.shape[1]
    keys = np.empty((n, 2), dtype=np.uint64)
    key = np.empty((2, BLOCK), dtype=np.uint64)
    for block in range(0, n, BLOCK):
        size = min(BLOCK, n - block)
        _hash(votes, gold, block, size, key)
        for v in range(size):
            keys[block + v, 0], keys[block + v, 1] = key[0, v], key[1, v]
    n_slots = 1024
    while n_slots < 2 * n:
        n_slots *= 2
    return _rebuilt(n_slots, keys, n), keys


@njit(nogil=True, cache=True)
def write_hashed(masks, gold, first, last, slots, keys, table, out):
    """Write table[:, tuple] to out[:, pixel]; give whether every pixel's tuple is in the table."""
    key = np.empty((2, BLOCK), dtype=np.uint64)
    entry = np.empty(BLOCK, dtype=np.int64)
    for block in range(first, last, BLOCK):
        size = min(BLOCK, last - block)
        _hash(masks, gold, block, size, key)
        for v in range(size):
            if v > 0 and key[0, v] == key[0, v - 1] and key[1, v] == key[1, v - 1]:
                entry[v] = entry[v - 1]
            else:
                entry[v] = slots[_find(key[0, v], key[1, v], slots, keys)]
            if entry[v] < 0:
                return False
        for row in range(len(out)):
            values, target = table[row], out[row, block : block + size]
            for v in range(size):
                target[v] = values[entry[v]]
    return True
