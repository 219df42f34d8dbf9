"""Pictures of the report, pixel by pixel."""

from __future__ import annotations

import io
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

from annotruth.reporting import tiles


def opened(uri: str) -> np.ndarray:
    head, data = uri.split(",", 1)
    assert head == "data:image/png;base64"
    image = Image.open(io.BytesIO(b64decode(data)))
    return np.asarray(image.convert("RGBA"))


def test_a_flat_picture_has_no_plane() -> None:
    assert tiles.plane_of(np.zeros((1, 4, 4), np.uint8), np.zeros((4, 4), np.uint8)) is None


def test_the_plane_has_most_foreground_and_lies_nearest_to_the_middle() -> None:
    labels = np.zeros((8, 9, 5), dtype=np.uint8)
    masks = np.full((2, 8, 9, 5), 255, dtype=np.uint8)  # missing labels are no foreground
    assert tiles.plane_of(masks, labels) == tiles.Plane(axis=2, index=2, count=5)
    labels[2:4, 2:4, 4] = 1
    labels[2:4, 2:4, 0] = 1
    masks[0] = 0
    masks[0, 2, 2, 0] = 2
    plane = tiles.plane_of(masks, labels)
    assert plane == tiles.Plane(axis=2, index=0, count=5)
    assert np.array_equal(tiles.cut(labels, plane), labels[..., 0])
    assert np.array_equal(tiles.cut(masks, plane), masks[..., 0])


def test_slices_run_along_the_shortest_axis() -> None:
    labels = np.zeros((3, 9, 9), dtype=np.uint8)
    assert tiles.plane_of(labels[None], labels) == tiles.Plane(axis=0, index=1, count=3)
    assert tiles.cut(labels[None], tiles.Plane(0, 1, 3)).shape == (1, 9, 9)


def test_pictures_keep_small_images_and_shrink_large_ones() -> None:
    ramp = np.linspace(-3, 5, 600 * 300, dtype=np.float32).reshape(1, 600, 300)
    assert opened(tiles.picture(ramp)).shape == (tiles.SIDE, tiles.SIDE // 2, 4)
    small = opened(tiles.picture(ramp[:, :20, :10]))
    assert small.shape == (20, 10, 4)
    assert small.min() == 0
    assert small.max() == 255


def test_three_channels_are_colours_and_others_grey() -> None:
    colours = np.zeros((3, 4, 4), dtype=np.float32)
    colours[0] = 1
    assert opened(tiles.picture(colours))[0, 0].tolist() == [255, 0, 0, 255]
    assert opened(tiles.picture(np.ones((2, 4, 4), np.float32)))[0, 0].tolist() == [0, 0, 0, 255]


def test_regions_are_tinted_inside_opaque_on_the_edge_and_clear_elsewhere() -> None:
    labels = np.zeros((16, 16), dtype=np.uint8)
    labels[4:12, 4:12] = 2
    labels[0, 0] = 255
    layer = opened(tiles.regions(labels, ["#ff0000", "#0000ff"]))
    middle, edge = tiles.SIDE // 2, tiles.SIDE // 4
    assert layer.shape == (tiles.SIDE, tiles.SIDE, 4)
    assert layer[8, 8].tolist() == [0, 0, 0, 0]
    assert layer[middle, middle].tolist() == [0, 0, 255, tiles.FILL]
    assert layer[edge, edge].tolist() == [0, 0, 255, tiles.LINE]


def test_heat_runs_from_the_first_to_the_last_colour_with_a_white_outline() -> None:
    values = np.array([[0.0, 1.0], [2.0, -1.0]])
    seen = opened(tiles.heat(values, "magma", labels=np.array([[1, 0], [0, 0]])))
    low, high = tiles.SIDE // 4, 3 * tiles.SIDE // 4
    dark, bright = seen[low, low, :3], seen[low, high, :3]
    assert dark.sum() < 30
    assert bright.sum() > 600
    assert seen[high, low, :3].tolist() == bright.tolist()  # clipped
    assert seen[tiles.SIDE // 2 - 1, low, :3].tolist() == [255, 255, 255]


def test_thin_structures_are_not_hidden_by_their_outline() -> None:
    thin = np.zeros((tiles.SIDE, tiles.SIDE))
    thin[:, 9:12] = 1
    assert tiles.heat(thin, "magma", labels=thin) == tiles.heat(thin, "magma")


@pytest.mark.parametrize("n_classes", [2, 8, 40])
def test_classes_get_colours_of_their_own(n_classes: int) -> None:
    colours = tiles.class_colours(n_classes)
    assert len(set(colours)) == n_classes - 1


def test_errors_ignore_unknown_pixels() -> None:
    labels, reference = np.array([[255, 1, 0, 2]]), np.array([[1, 255, 1, 1]])
    assert tiles.errors(labels, reference).tolist() == [[0, 0, 2, 4]]


def test_a_large_matrix_is_white_where_nothing_happens() -> None:
    seen = opened(tiles.matrix(np.eye(12)))
    assert seen.shape == (12, 12, 4)
    assert seen[0, 1].tolist() == [255, 255, 255, 255]
    assert seen[3, 3].tolist() == [11, 95, 165, 255]


def test_strokes_of_both_kinds_are_told_apart():
    positive, negative = np.full((2, 8, 8), 255, dtype=np.uint8)
    positive[0], positive[2], negative[6] = 1, 0, 1
    layer = opened(tiles.strokes(positive, negative, ["#ff0000"]))
    row = layer.shape[0] // 8
    assert (layer[0, :, :3] == (255, 0, 0)).all()
    assert (layer[2 * row, :, 0] == layer[2 * row, :, 1]).all()  # background strokes are grey
    assert (layer[4 * row, :, 3] == 0).all()
    striped = layer[6 * row, :, 3] > 0
    assert 0.3 < striped.mean() < 0.7
    assert (opened(tiles.strokes(positive, None, ["#ff0000"]))[6 * row, :, 3] == 0).all()
