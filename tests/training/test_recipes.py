"""How long a classifier trains by default."""

from __future__ import annotations

import pytest

from annotruth.training.recipes import RECIPES, recipe_of


@pytest.mark.parametrize("name", ["cnn", "mlp", "linear", "own"])
@pytest.mark.parametrize(("items", "epochs"), [(60, 300), (600, 50), (1000, 30), (45_000, 30)])
def test_networks_of_version_0_1_learn_as_they_did(name, items, epochs):
    recipe = recipe_of(name)
    assert recipe.batch_for(items) == 50
    assert recipe.epochs_for(items, 50) == epochs


@pytest.mark.parametrize("name", ["resnet", "monai:DenseNet121"])
@pytest.mark.parametrize(
    ("items", "batch", "epochs"),
    [(1, 16, 600), (40, 16, 200), (900, 28, 30), (1800, 56, 30), (11_250, 128, 18), (45_000, 128, 16)],
)
def test_pictures_are_seen_less_often_the_more_there_are(name, items, batch, epochs):
    recipe = recipe_of(name)
    assert recipe.batch_for(items) == batch
    assert recipe.epochs_for(items, batch) == epochs


def test_a_batch_size_that_was_asked_for_changes_the_number_of_epochs():
    assert RECIPES["resnet"].epochs_for(900, 128) == 75
