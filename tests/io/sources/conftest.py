"""Small exports as tools write them, and a sound data set of each kind: ``example_<key>`` by the source's key."""

from __future__ import annotations

import json
import zipfile
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
    path = tmp_path / "doccano" / "export.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for user, labels in (("ann", "pos neg"), ("bob", "pos pos")):
            lines = [
                {"id": n, "text": f"text {n}", "label": [x], "Comments": []} for n, x in enumerate(labels.split(), 1)
            ]
            archive.writestr(f"{user}.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return path


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
