"""Windows, and attention inside them against plain matrix products."""

from __future__ import annotations

import pytest
import torch

from annotruth.nn.prism.attention import LONGEST_WINDOW, CrossAttention, Windows, attend, heads_for


@pytest.mark.parametrize("size", [(8, 8), (7, 7), (14, 9), (1, 33), (5, 4, 9)])
def test_windows_join_what_they_cut_and_hold_every_place_once(size):
    features = torch.randn(2, 3, *size)
    windows = Windows(size)
    places = windows.cut(features)
    assert max(windows.lengths) <= LONGEST_WINDOW[len(size)]
    torch.testing.assert_close(windows.join(places), features)
    seen = windows.seen(features)
    places_seen = places.shape[0] * places.shape[1] if seen is None else int(seen.sum())
    assert places_seen == 2 * features[0, 0].numel()


def test_attention_against_matrix_products():
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 5, 6)
    seen = torch.tensor([True, True, True, False, False]).view(1, 1, 1, 5).expand(2, 1, 1, 5)
    found = attend(query, key, value, 2, seen)
    for head in range(2):
        q, k, v = (x[..., 3 * head : 3 * head + 3] for x in (query, key, value))
        weights = (q @ k.transpose(1, 2) / 3**0.5)[:, :, :3].softmax(dim=2)
        torch.testing.assert_close(found[:, :, head], weights @ v[:, :3])


def test_padding_of_windows_is_never_attended_to():
    """A place at the far end finds the same whatever would stand behind it: 5 places are two windows of 3."""
    torch.manual_seed(0)
    look_up = CrossAttention(16, dims=2).eval()
    features, confidences = torch.randn(2, 1, 16, 4, 5)
    whole = look_up(features, confidences)
    assert torch.isfinite(whole).all()
    features2 = features.clone()
    features2[..., :3] += 1  # another window
    torch.testing.assert_close(look_up(features2, confidences)[..., 3:], whole[..., 3:])


@pytest.mark.parametrize(("channels", "heads"), [(4, 1), (16, 1), (20, 1), (32, 2), (50, 2), (56, 2), (53, 1), (96, 6)])
def test_any_number_of_channels_is_shared_out_evenly_among_heads(channels, heads):
    assert heads_for(channels) == heads
    features = torch.randn(1, channels, 4, 4)
    assert CrossAttention(channels, dims=2)(features, features).shape == features.shape
