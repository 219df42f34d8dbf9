"""What people run today: STAPLE of every case of a folder, by SimpleITK. ``python itk_script.py CASES OUT``."""

import sys
from pathlib import Path

import SimpleITK as sitk

cases, out = Path(sys.argv[1]), Path(sys.argv[2])
for name in ("labels", "probabilities"):
    (out / name).mkdir(parents=True)
for first in sorted(next((cases / "raters").iterdir()).iterdir()):
    masks = [sitk.ReadImage(str(rater / first.name), sitk.sitkUInt8) for rater in sorted((cases / "raters").iterdir())]
    probability = sitk.Cast(sitk.STAPLE(masks, 1.0), sitk.sitkFloat32)
    soft = first.name if first.name.endswith(".nii.gz") else f"{first.stem}.tiff"
    sitk.WriteImage(probability, str(out / "probabilities" / soft), useCompression=True)
    sitk.WriteImage(sitk.Cast(probability > 0.5, sitk.sitkUInt8), str(out / "labels" / first.name), useCompression=True)
