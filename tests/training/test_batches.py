"""The order of items, and their batches: the same on every run, whoever takes part in it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.methods import make_method
from annotruth.training.batches import EpochSampler, SharedBatches
from annotruth.training.datasets import MaskDataset, Standard

AS_IT_IS = Standard([0.0], [1.0])


def test_order_of_an_epoch(make_cases):
    cases = MaskDataset(make_cases(10), make_method("mean", "masks")).standardise(AS_IT_IS)
    sampler = EpochSampler(cases, seed=1)
    orders = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
        assert cases.epoch == epoch
        assert sorted(orders[-1]) == list(range(10))
    assert orders[0] != orders[1] != orders[2]
    sampler.set_epoch(1)
    assert list(sampler) == orders[1]
    assert len(sampler) == 10


def test_what_was_taken_of_an_epoch_is_not_given_again(make_cases):
    cases = MaskDataset(make_cases(10), make_method("mean", "masks")).standardise(AS_IT_IS)
    whole, begun = EpochSampler(cases, seed=1), EpochSampler(cases, seed=1, taken=(2, 4))
    for epoch, left in ((1, 10), (2, 6), (3, 10)):
        whole.set_epoch(epoch)
        begun.set_epoch(epoch)
        assert list(begun) == list(whole)[10 - left :]
        assert len(begun) == 10  # of the epoch, by which steps are counted


@settings(max_examples=30, deadline=None)
@given(items=st.integers(1, 30), batch_size=st.integers(1, 9), processes=st.integers(1, 5))
def test_processes_share_every_batch(items, batch_size, processes):
    shares = [list(SharedBatches(range(items), batch_size, process, processes)) for process in range(processes)]
    whole = [list(range(items))[start : start + batch_size] for start in range(0, items, batch_size)]
    if len(whole) > 1 and len(whole[-1]) == 1 < batch_size:
        last = whole.pop()
        whole[-1] += last
    assert len(SharedBatches(range(items), batch_size)) == len(whole)
    assert all(len(share) == len(whole) for share in shares)
    for step, batch in enumerate(whole):
        taken = [item for share in shares for item in share[step]]
        assert set(taken) == set(batch)
        assert all(share[step] for share in shares)
        if len(batch) >= processes:
            assert sorted(taken) == batch
