"""Published data sets that ``annotruth fetch`` knows: where they are, or whom to ask and what to put where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from annotruth.errors import AnnotruthError
from annotruth.io.fetching import Archive, Tell, fetch_archive
from annotruth.validation import one_of

_STARE = "https://cecas.clemson.edu/~ahoover/stare/probing"
_MSD = "https://msd-for-monai.s3-us-west-2.amazonaws.com"
_MSD_TASKS = {
    "Task01_BrainTumour": "240a19d752f0d9e9101544901065d872",
    "Task02_Heart": "06ee59366e1e5124267b774dbd654057",
    "Task03_Liver": "a90ec6c4aa7f6a3d087205e23d4e6397",
    "Task04_Hippocampus": "9d24dba78a72977dbd1d2e110310f31b",
    "Task05_Prostate": "35138f08b1efaef89d7424d2bcc928db",
    "Task06_Lung": "8afd997733c7fc0432f71255ba4e52dc",
    "Task07_Pancreas": "4f7080cfca169fa8066d17ce6eb061e4",
    "Task08_HepaticVessel": "641d79e80ec66453921d997fbf12a29c",
    "Task09_Spleen": "410d4a301da4e5b2f6f86ec3ddba524e",
    "Task10_Colon": "bad7a188931dc2f6acf72b08eb6202d0",
}
"""MD5 of the Decathlon's archives, as MONAI compares them."""


@dataclass(frozen=True)
class Published:
    """A published data set.

    Attributes
    ----------
    title : what it is, in a line
    source : key of the source that reads it
    page : where its owners describe it
    archives : what can be fetched; none where the owners want to know who asks, or to show terms
    by_hand : what to do where nothing can be fetched
    terms : what its owners ask for
    """

    title: str
    source: str
    page: str
    archives: tuple[Archive, ...] = ()
    by_hand: str = ""
    terms: str = "See the page for terms of use, and cite its paper."


PUBLISHED: dict[str, Published] = {
    "stare": Published(
        "STARE: 20 photographs of the retina, vessels by two observers", "stare", f"{_STARE}/index.html",
        (
            Archive(
                f"{_STARE}/stare-images.tar",
                "sha256:5f7b509b6067cad4f1be84933145d783de9ec087b3eaaf4db0103dd0144dd433", "stare-images",
            ),
            Archive(
                f"{_STARE}/labels-ah.tar",
                "sha256:ebf2f1e17ca955f24579d9edd990e2dae79a5c82def69f0985d8e24f826ddd2f", "labels-ah",
            ),
            Archive(
                f"{_STARE}/labels-vk.tar",
                "sha256:47474a701536b0cfdb369fdce012be36141e9f44d80387f0179446b5cb0f5576", "labels-vk",
            ),
        ),
    ),
    "chase": Published(
        "CHASE_DB1: 28 photographs of the retina, vessels by two observers", "chase",
        "https://researchdata.kingston.ac.uk/96/", (Archive("https://researchdata.kingston.ac.uk/96/1/CHASEDB1.zip"),),
        terms="CC BY 4.0; cite Fraz et al., 2012.",
    ),
    "les-av": Published(
        "LES-AV: 22 photographs of the retina, arteries and veins", "les-av",
        "https://figshare.com/articles/dataset/LES-AV_dataset/11857698",
        (Archive("https://ndownloader.figshare.com/files/21732282"),),
        terms="Non-commercial research; cite Orlando 2018.",
    ),
    "lidc": Published(
        "LIDC-IDRI: outlines of lung nodules by four radiologists (XML, without the scans)", "lidc",
        "https://www.cancerimagingarchive.net/collection/lidc-idri/",
        (
            Archive(
                "https://www.cancerimagingarchive.net/wp-content/uploads/LIDC-XML-only.zip",
                "sha256:644557a3aa305602609c718b0cae33a93be762e8901a80bcd9df735b0ec6ab90",
            ),
        ),
        terms="CC BY 3.0; cite Armato et al., 2011.",
    ),
    **{
        f"msd-{task.partition('_')[2].lower()}": Published(
            f"Medical Segmentation Decathlon, {task.replace('_', ': ')}", "msd", "http://medicaldecathlon.com/",
            (Archive(f"{_MSD}/{task}.tar", f"md5:{digest}"),), terms="CC BY-SA 4.0; cite Antonelli et al., 2022.",
        )
        for task, digest in _MSD_TASKS.items()
    },
    "qubiq": Published(
        "QUBIQ: kidney, prostate, brain and pancreas, three to seven raters", "qubiq",
        "https://qubiq21.grand-challenge.org/",
        by_hand="Join the challenge there, download the training data, and unpack them as <data set>/Training/caseNN/.",
    ),
    "refuge": Published(
        "REFUGE: optic disc and cup by seven raters", "refuge", "https://refuge.grand-challenge.org/",
        by_hand="Register there. The seven raters' masks go to Training-400/<name>/ with <name>.jpg and "
        "<name>_seg_disc_R.png; the challenge's merged ones stay as they are unpacked, Training400/ beside "
        "Annotation-Training400/Disc_Cup_Masks/.",
    ),
    "riga": Published(
        "RIGA: optic disc and cup by six ophthalmologists", "riga",
        "https://deepblue.lib.umich.edu/data/concern/data_sets/3b591905z",
        by_hand="Download the archives there with a browser, and unpack them side by side.",
    ),
    "isbi-ms": Published(
        "ISBI 2015: lesions of multiple sclerosis by two raters", "isbi-ms",
        "https://smart-stats-tools.org/lesion-challenge",
        by_hand="Register there, and unpack the training data as trainingPP/preprocessed and trainingPP/masks.",
    ),
    "brats": Published(
        "BraTS: brain tumours in MR images", "brats", "https://www.synapse.org/brats",
        by_hand="Register there, and unpack the training data as <case>/<case>_t1.nii.gz and so on.",
    ),
    "cityscapes": Published(
        "Cityscapes: street scenes, fine and coarse", "cityscapes", "https://www.cityscapes-dataset.com/login/",
        by_hand="Register there, and unpack leftImg8bit, gtFine and gtCoarse side by side.",
    ),
    "drive": Published(
        "DRIVE: 40 photographs of the retina, vessels by two observers", "drive",
        "https://drive.grand-challenge.org/",
        by_hand="Sign in there, and unpack training and test side by side.",
    ),
    "acdc": Published(
        "ACDC: cardiac MR of 150 patients", "acdc", "https://humanheart-project.creatis.insa-lyon.fr/database/",
        by_hand="Download the training data there, and unpack as patientNNN/; scribbles of Valvano et al. (2021) go "
        "beside them as patientNNN_frameFF_scribble.nii.gz.",
    ),
    "gleason-2019": Published(
        "Gleason 2019: prostate tissue graded by six pathologists", "gleason-2019",
        "https://gleason2019.grand-challenge.org/",
        by_hand="Register there, and unpack Train Imgs and Maps1_T to Maps6_T side by side.",
    ),
}  # fmt: skip
"""By the name that ``annotruth fetch`` takes."""


def fetch(name: str, folder: str | Path, tell: Tell | None = None) -> list[str]:
    """Fetch a published data set into a folder; where that cannot be, say where to ask and what to put where.

    Parameters
    ----------
    name : one of ``PUBLISHED``
    folder : is made if it is not there; what was fetched before is not fetched again
    tell : told the file at hand, and how many bytes of how many are there

    Returns
    -------
    A sentence on each archive.

    Examples
    --------
    >>> fetch("drive", "data/drive")
    Traceback (most recent call last):
    annotruth.errors.AnnotruthError: DRIVE: 40 photographs of the retina, vessels by two observers: its owners give it \
out themselves. Sign in there, and unpack training and test side by side. Page: \
https://drive.grand-challenge.org/. Then: annotruth import data/drive -o cases/.
    """
    known = PUBLISHED[one_of(name, sorted(PUBLISHED), "data set")]
    folder = Path(folder)
    if not known.archives:
        raise AnnotruthError(
            f"{known.title}: its owners give it out themselves. {known.by_hand} Page: {known.page}. Then: annotruth "
            f"import {folder} -o cases/."
        )
    said = []
    for archive in known.archives:
        digest = fetch_archive(archive, folder, tell)
        if archive.checksum:
            said.append(f"{archive.name}, which has the checksum that is known.")
        else:
            said.append(
                f"{archive.name}, compared with nothing, as its owners tell no checksum. Its SHA-256 is {digest}."
            )
    return said
