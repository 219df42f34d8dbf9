"""ssn: its drawings hang together, where labels drawn pixel by pixel do not; options."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.methods import make_method
from annotruth.metrics import ged

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def test_drawings_are_smoother_and_closer_to_the_raters_than_pixels_drawn_one_by_one(fit_moods, moods, borders):
    model, new = fit_moods("ssn"), moods(12, seed=1)
    drawings = model.sample(new.images, 16).swapaxes(0, 1)
    chance = model.predict_proba(new.images)[:, None, 1]
    alone = (np.random.default_rng(0).random((12, 16, 16, 16)) < chance).astype(np.uint8)
    assert borders(drawings) < borders(alone) / 2
    one_mask = ged(model.predict(new.images)[:, None], new.masks)
    assert ged(drawings, new.masks) < 0.7 * min(ged(alone, new.masks), one_mask)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"rank": 0}, "rank must be at least 1, not 0"), ({"samples": 0}, "samples must be at least 1, not 0")],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_method("ssn", "masks", options)
