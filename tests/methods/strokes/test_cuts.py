"""Cuts between object and ground: what they find, and that none is cheaper."""

from __future__ import annotations

import numpy as np

from annotruth.methods.strokes.cuts import EDGES, grab_cut, graph_cut


def test_a_graph_cut_finds_the_object_from_two_points(scene):
    image, inside = scene
    ahead, behind = np.zeros((2, 24, 24), dtype=bool)
    ahead[10, 10:14], behind[2, 3:20] = True, True
    found = graph_cut(image, ahead, behind)
    assert (found == inside).mean() > 0.99
    volume = graph_cut(np.stack([image] * 3, axis=1), np.stack([ahead] * 3), np.stack([behind] * 3))
    assert (volume == inside).mean() > 0.99


def test_a_graph_cut_is_the_cheapest_of_all():
    """On a tiny image, against the energy of every possible cut."""
    rng = np.random.default_rng(3)
    image = rng.random((1, 2, 4))
    ahead, behind = np.zeros((2, 2, 4), dtype=bool)
    ahead[0, 0], behind[1, 3] = True, True
    squares = [(np.diff(image[0], axis=axis)) ** 2 for axis in (0, 1)]
    usual = np.mean(np.concatenate([s.ravel() for s in squares]))
    to_object, to_rest = abs(image[0] - image[0, 0, 0]), abs(image[0] - image[0, 1, 3])
    share = to_object / (to_object + to_rest)

    def energy(cut):
        if not cut[0, 0] or cut[1, 3]:
            return np.inf
        one = np.where(cut, share, 1 - share)
        one[0, 0] = one[1, 3] = 0
        edges = [(np.diff(cut.astype(int), axis=a) != 0) * np.exp(-squares[a] / (2 * usual)) for a in (0, 1)]
        return one.sum() + EDGES * sum(e.sum() for e in edges)

    cuts = [np.array(list(f"{n:08b}"), dtype=int).reshape(2, 4).astype(bool) for n in range(256)]
    best = min(cuts, key=energy)
    np.testing.assert_allclose(energy(graph_cut(image, ahead, behind)), energy(best))


def test_grab_cut_finds_the_object_in_a_box(scene):
    image, inside = scene
    box = np.zeros_like(inside)
    box[4:18, 6:21] = True
    found = grab_cut(image, np.zeros_like(box), ~box, box)
    assert (found == inside).mean() > 0.97
    nowhere = np.zeros_like(box)
    assert not grab_cut(image, nowhere, ~nowhere, nowhere).any()
