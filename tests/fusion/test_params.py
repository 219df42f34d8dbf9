"""Parameters as scikit-learn has them, by its own checks as far as they apply to estimators that take annotations."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn.base
from sklearn.utils import estimator_checks

from annotruth.fusion.params import clone
from annotruth.fusion.registry import make_estimator, method_names

CHECKS: list[Callable[[str, Any], None]] = [
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_valid_tag_types,
]


@pytest.mark.parametrize("method", method_names())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_checks_of_scikit_learn(check: Callable[[str, Any], None], method: str) -> None:
    check(method, make_estimator(method))


def test_a_clone_has_parameters_of_its_own_and_has_learnt_nothing() -> None:
    prior = np.array([0.5, 0.5])
    estimator = make_estimator("dawid-skene").set_params(prior=prior, max_iter=3)
    estimator.state_ = None
    for twin in (clone(estimator), sklearn.base.clone(estimator)):
        assert (twin.prior == prior).all()
        assert twin.prior is not prior
        assert twin.max_iter == 3
        assert not hasattr(twin, "state_")


def test_an_unknown_parameter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"Invalid parameter 'speed' .* Valid parameters are: .*'max_iter'"):
        make_estimator("staple").set_params(speed=1)


def test_a_small_folder_is_fused_without_heavy_libraries(tmp_path: Any) -> None:
    program = (
        "import sys, numpy as np, annotruth as at\n"
        "from annotruth.io import write_case_folder\n"
        "from annotruth.fusion.folder import fuse\n"
        f"home = {str(tmp_path)!r}\n"
        "masks = np.random.default_rng(0).integers(0, 2, (4, 3, 8, 8)).astype('uint8')\n"
        "write_case_folder(home + '/cases', at.Annotations.from_masks(masks), suffix='.png')\n"
        "fuse(home + '/cases', home + '/out', 'majority')\n"
        "unsettled = fuse(home + '/cases', home + '/other', 'staple', options={'max_iter': 1})\n"
        "assert 'did not settle' in str(unsettled.warnings[0])\n"
        "print({'sklearn', 'pandas', 'numba', 'torch', 'nibabel', 'scipy.stats', 'pyarrow'} & sys.modules.keys())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"
