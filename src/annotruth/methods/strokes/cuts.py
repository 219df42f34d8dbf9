"""Masks from an image and a few marked pixels, without learning: GrabCut and a graph cut."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from sklearn.cluster import KMeans

from annotruth.errors import InputError
from annotruth.fusion._em.cuts import max_flow

CLUSTERS = 4
"""Kinds of pixels among the marked ones of either side."""
EDGES = 2.0
"""How much neighbours that are cut apart cost, compared with a pixel on the wrong side."""


def opencv() -> ModuleType:
    """OpenCV, or a word on how to get it."""
    try:
        import cv2
    except ImportError as error:
        raise InputError("GrabCut needs OpenCV: install annotruth[cuts], or opencv-python-headless.") from error
    return cv2


def grab_cut(image: np.ndarray, inside: np.ndarray, outside: np.ndarray, maybe: np.ndarray) -> np.ndarray:
    """GrabCut by OpenCV, slice by slice in 3D: bool (*spatial), the object.

    Parameters
    ----------
    image : (channels, *spatial); of more than three channels the first three count
    inside, outside : bool (*spatial), where the object surely is and is not
    maybe : bool (*spatial), where it is rather than not, of the other pixels
    """
    if image.ndim == 4:
        slices = (grab_cut(image[:, z], inside[z], outside[z], maybe[z]) for z in range(image.shape[1]))
        return np.stack(list(slices))
    cv2 = opencv()
    mask = np.where(maybe, cv2.GC_PR_FGD, cv2.GC_PR_BGD).astype(np.uint8)
    mask[outside], mask[inside] = cv2.GC_BGD, cv2.GC_FGD
    ahead, behind = np.isin(mask, (cv2.GC_FGD, cv2.GC_PR_FGD)), np.isin(mask, (cv2.GC_BGD, cv2.GC_PR_BGD))
    if ahead.sum() < 2 or behind.sum() < 2:  # there is nothing to model
        return ahead
    colours = np.ascontiguousarray(np.stack([_bytes(image[min(c, len(image) - 1)]) for c in range(3)], axis=-1))
    cv2.setRNGSeed(0)
    cv2.grabCut(colours, mask, None, np.zeros((1, 65)), np.zeros((1, 65)), 3, cv2.GC_INIT_WITH_MASK)
    return np.isin(mask, (cv2.GC_FGD, cv2.GC_PR_FGD))


def graph_cut(image: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """The cheapest cut between pixels of the object and others, in 2D or 3D: bool (*spatial), the object.

    An unmarked pixel costs as much on either side as its colour is far from that side's marked ones, by the nearest of
    a few clusters; neighbours cut apart cost the more, the more they look alike.

    Parameters
    ----------
    image : (channels, *spatial);  inside, outside : bool (*spatial), where the object surely is and is not

    Examples
    --------
    >>> image = np.zeros((1, 6, 6))
    >>> image[0, :, 3:] = 1.0
    >>> inside, outside = np.zeros((2, 6, 6), dtype=bool)
    >>> inside[2, 5] = outside[2, 0] = True
    >>> graph_cut(image, inside, outside)[0]
    array([False, False, False,  True,  True,  True])
    """
    if not inside.any() or not outside.any():
        return inside.copy()
    ahead, behind = (_distance(image, marked) for marked in (inside, outside))
    share = ahead / np.maximum(ahead + behind, 1e-9)
    graph = max_flow().Graph[float]()
    nodes = graph.add_grid_nodes(inside.shape)
    squares = [(np.diff(image, axis=axis + 1) ** 2).sum(axis=0) for axis in range(inside.ndim)]
    usual = max(float(np.mean(np.concatenate([part.ravel() for part in squares]))), 1e-12)
    for axis, square in enumerate(squares):
        weights = np.zeros(inside.shape)
        weights[tuple(slice(-1) if a == axis else slice(None) for a in range(inside.ndim))] = np.exp(
            -square / (2 * usual)
        )
        structure = np.zeros([3] * inside.ndim)
        structure[tuple(2 if a == axis else 1 for a in range(inside.ndim))] = 1
        graph.add_grid_edges(nodes, EDGES * weights, structure=structure, symmetric=True)
    never = 1e6
    as_background = np.where(inside, never, np.where(outside, 0.0, 1 - share))
    as_object = np.where(outside, never, np.where(inside, 0.0, share))
    graph.add_grid_tedges(nodes, as_object, as_background)
    graph.maxflow()
    return graph.get_grid_segments(nodes)


def alike(image: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Which pixels look more like the marked ones inside than like those outside: bool (*spatial)."""
    return _distance(image, inside) < _distance(image, outside)


def _distance(image: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """How far each pixel's colour is from the nearest cluster of the marked pixels' colours."""
    colours = image[:, marked].T.astype(np.float64)
    centres = (
        KMeans(min(CLUSTERS, len(np.unique(colours, axis=0))), n_init=1, random_state=0).fit(colours).cluster_centers_
    )
    return np.min([np.sqrt(((image - c.reshape(-1, *[1] * marked.ndim)) ** 2).sum(axis=0)) for c in centres], axis=0)


def _bytes(channel: np.ndarray) -> np.ndarray:
    """Intensities from 0 to 255, outliers cut off."""
    low, high = np.percentile(channel, (0.5, 99.5))
    return (255 * np.clip((channel - low) / max(high - low, 1e-9), 0, 1)).astype(np.uint8)
