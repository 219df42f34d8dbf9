from __future__ import annotations

import pytest

from annotruth.errors import AnnotruthError, InputError
from annotruth.io.atomic import atomic, fresh_folder


def test_a_failed_write_leaves_the_old_file_and_no_debris(tmp_path):
    target = tmp_path / "result.json"
    target.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic(target) as temporary:
        temporary.write_text("half") / 0
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("name", ["a.nii.gz", "case.1.2.nii.gz", "a.png", "notes", "a.tar.gz"])
def test_temporary_names_keep_the_suffix_and_are_hidden(tmp_path, name):
    with atomic(tmp_path / name) as temporary:
        assert temporary.name.startswith(".")
        assert temporary.parent == tmp_path
        assert "".join(temporary.suffixes) in name
        temporary.touch()
    assert (tmp_path / name).exists()


def test_long_names_and_missing_folders_are_fine(tmp_path):
    target = tmp_path / "new" / "folder" / ("x" * 240 + ".npy")
    with atomic(target) as temporary:
        temporary.write_bytes(b"1")
    assert target.read_bytes() == b"1"


def test_failures_of_the_disk_name_the_file(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(AnnotruthError, match=r"file.inside\.txt: could not be written"),
        atomic(tmp_path / "file/inside.txt"),
    ):
        pass


def test_fresh_folder_refuses_a_folder_with_files(tmp_path):
    (tmp_path / "old.txt").write_text("mine")
    with pytest.raises(InputError, match=r"already holds files \(old.txt\); choose another folder or pass --overwrite"):
        fresh_folder(tmp_path)
    assert fresh_folder(tmp_path, overwrite=True) == tmp_path
    assert (tmp_path / "old.txt").read_text() == "mine"


def test_fresh_folder_takes_new_and_empty_folders(tmp_path):
    made = fresh_folder(tmp_path / "a" / "b")
    assert made.is_dir()
    (made / ".DS_Store").touch()
    assert fresh_folder(made) == made


def test_fresh_folder_refuses_a_file(tmp_path):
    (tmp_path / "x").touch()
    with pytest.raises(InputError, match="is a file"):
        fresh_folder(tmp_path / "x")
