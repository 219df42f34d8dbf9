"""Run lengths, as labelling tools write masks, read and written: CVAT's, COCO's and Label Studio's.

Lengths come from files of others: a code that tells of more pixels than its image has is refused before it is unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.errors import InputError

_LENGTH_BITS = (3, 4, 8, 16)
"""Of the four kinds of runs in the codes of Label Studio that we write; codes that we read tell them in their head."""


def unroll_counts(counts: Sequence[int] | np.ndarray, size: tuple[int, int], order: str = "C") -> np.ndarray:
    """Turn lengths of runs, the first outside, into a mask: bool (height, width).

    Parameters
    ----------
    order : "C" where the runs go along rows (CVAT), "F" where they go along columns (COCO)

    Examples
    --------
    >>> unroll_counts([1, 2, 3], (2, 3)).astype(int)
    array([[0, 1, 1],
           [0, 0, 0]])
    """
    lengths = np.asarray(counts)
    if lengths.ndim != 1 or not np.issubdtype(lengths.dtype, np.integer) or (lengths < 0).any():
        raise InputError("a mask's run lengths are not whole numbers from 0 up. Export it anew.")
    pixels, told = size[0] * size[1], int(lengths.sum(dtype=object)) if len(lengths) else 0
    if told != pixels:
        raise InputError(
            f"a mask's run lengths tell of {told} pixels, its part of the image has {pixels}. Export it anew."
        )
    flat = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
    return flat.reshape(size, order=order)  # type: ignore[call-overload]


def roll_counts(mask: np.ndarray, order: str = "C") -> list[int]:
    """Give the lengths of a mask's runs, the first outside: the inverse of :func:`unroll_counts`.

    Examples
    --------
    >>> roll_counts(np.array([[False, True, True], [False, False, False]]))
    [1, 2, 3]
    """
    flat = np.asarray(mask, dtype=bool).ravel(order=order)  # type: ignore[arg-type]
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    lengths = np.diff(np.concatenate([[0], changes, [flat.size]])).tolist()
    return [0, *lengths] if flat.size and flat[0] else lengths


def coco_counts(code: str) -> np.ndarray:
    """Read COCO's text: five bits a character, differences to the length before the last from the fourth on.

    Examples
    --------
    >>> coco_counts("123")
    array([1, 2, 3])
    """
    if not code.isascii():
        raise InputError("a mask's run lengths are not in COCO's code. Export it anew.")
    counts: list[int] = []
    value = shift = 0
    for character in code.encode("ascii"):
        bits = character - 48
        if not 0 <= bits < 64 or shift > 60:
            raise InputError("a mask's run lengths are not in COCO's code. Export it anew.")
        value |= (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        counts.append(value + counts[-2] if len(counts) > 2 else value)
        value = shift = 0
    if shift:
        raise InputError("a mask's run lengths are cut off. Export it anew.")
    return np.array(counts, dtype=np.int64)


def coco_code(counts: Sequence[int]) -> str:
    """Write lengths in COCO's text: the inverse of :func:`coco_counts`.

    Examples
    --------
    >>> coco_code([1, 2, 3])
    '123'
    """
    code = bytearray()
    for number, count in enumerate(counts):
        value = count - counts[number - 2] if number > 2 else count
        more = True
        while more:
            bits, value = value & 31, value >> 5
            more = value != (-1 if bits & 16 else 0)
            code.append(bits + 32 * more + 48)
    return code.decode("ascii")


def label_studio_mask(code: Sequence[int] | bytes, size: tuple[int, int]) -> np.ndarray:
    """Read Label Studio's brush: packed bits of red, green, blue and alpha; a pixel is marked where alpha is not 0.

    A head tells how many values there are, the bits of a value, and the bits of lengths of four kinds of runs. Then
    come runs of one value, and stretches of single values.

    Parameters
    ----------
    code : bytes, mostly as a list of whole numbers

    Returns
    -------
    bool (height, width)

    Examples
    --------
    >>> label_studio_mask(label_studio_code(np.eye(2, dtype=bool)), (2, 2)).astype(int)
    array([[1, 0],
           [0, 1]])
    """
    try:
        data = bytes(code)
    except (TypeError, ValueError):
        raise InputError("a brush mask's code is not a list of bytes. Export it anew.") from None
    if len(data) < 8:
        raise InputError("a brush mask's code is cut off. Export it anew.")
    total = int.from_bytes(data[:4], "big")
    head = int.from_bytes(data[4:8], "big")
    word, lengths = (head >> 27) + 1, [((head >> shift) & 15) + 1 for shift in (23, 19, 15, 11)]
    pixels = size[0] * size[1]
    if total != 4 * pixels:
        raise InputError(
            f"a brush mask tells of {total} values, not {4 * pixels}, four for each pixel. Export it anew."
        )
    if word > 8:
        raise InputError(f"a brush mask has values of {word} bits, not 8. Export it anew.")
    values = _unpack(data, 32 + 5 + 16, total, word, lengths)
    return (values[3::4] > 0).reshape(size)


def _unpack(data: bytes, position: int, total: int, word: int, lengths: list[int]) -> np.ndarray:
    """Follow the runs in packed bits from a position on, up to ``total`` values."""
    out = np.zeros(total, dtype=np.uint8)
    end, done, word_mask = 8 * len(data), 0, (1 << word) - 1
    bits: np.ndarray | None = None
    while done < total:
        window = int.from_bytes(data[position >> 3 : (position >> 3) + 8].ljust(8, b"\0"), "big")
        left = 64 - (position & 7)  # bits of the window from here on
        is_run, kind = (window >> (left - 1)) & 1, (window >> (left - 3)) & 3
        size = lengths[kind]
        count = ((window >> (left - 3 - size)) & ((1 << size) - 1)) + 1
        position += 3 + size
        if position + (word if is_run else word * count) > end or done + count > total:
            raise InputError("a brush mask's code is cut off, or tells of more pixels than there are. Export it anew.")
        if is_run:
            out[done : done + count] = (window >> (left - 3 - size - word)) & word_mask
            position += word
        else:
            bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8)) if bits is None else bits
            single = bits[position : position + word * count].reshape(count, word)
            out[done : done + count] = single @ (1 << np.arange(word - 1, -1, -1))
            position += word * count
        done += count
    return out


def label_studio_code(mask: np.ndarray) -> list[int]:
    """Write a mask (height, width) as Label Studio's brush: the inverse of :func:`label_studio_mask`."""
    flat = np.asarray(mask, dtype=bool).ravel()
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    starts = np.concatenate([[0], changes])
    lengths = 4 * np.diff(np.concatenate([starts, [flat.size]]))  # all four values of a pixel are the same
    parts = [f"{4 * flat.size:032b}", f"{7:05b}", *(f"{size - 1:04b}" for size in _LENGTH_BITS)]
    longest = 1 << _LENGTH_BITS[-1]
    for start, length in zip(starts.tolist(), lengths.tolist()):
        value = "11111111" if flat[start] else "00000000"
        while length > 0:
            count = min(length, longest)
            kind = next(kind for kind, size in enumerate(_LENGTH_BITS) if count <= 1 << size)
            parts.append(f"1{kind:02b}{count - 1:0{_LENGTH_BITS[kind]}b}{value}")
            length -= count
    text = "".join(parts)
    text += "0" * (-len(text) % 8)
    return list(int(text, 2).to_bytes(len(text) // 8, "big"))
