"""All masks of a folder of NIfTI files read, and as much written as a fusion writes, but nothing fused.

``io_script.py CASES OUT``: by nibabel at its own, quickest level of compression, in as many threads as there are cores.
What is written as probabilities is the share of votes, which packs as they do, made in the way that takes least time.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nibabel
import numpy as np

raters, out = sorted((Path(sys.argv[1]) / "raters").iterdir()), Path(sys.argv[2])


def copy(name: str) -> None:
    files = [nibabel.load(rater / name) for rater in raters]
    masks = [np.asanyarray(file.dataobj) for file in files]
    share = np.empty((*masks[0].shape, 2), dtype=np.float32, order="F")  # as files have it
    np.divide(sum(masks[1:], masks[0]), np.float32(len(masks)), out=share[..., 1])
    np.subtract(1, share[..., 1], out=share[..., 0])
    nibabel.save(nibabel.Nifti1Image(masks[0], files[0].affine), out / "labels" / name)
    nibabel.save(nibabel.Nifti1Image(share, files[0].affine), out / "probabilities" / name)


for folder in ("labels", "probabilities"):
    (out / folder).mkdir(parents=True)
with ThreadPoolExecutor(os.cpu_count()) as pool:
    list(pool.map(copy, sorted(path.name for path in raters[0].iterdir())))
