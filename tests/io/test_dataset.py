"""dataset.json: what may stand in it, and what is said when something else does."""

from __future__ import annotations

import pytest

from annotruth.errors import InputError
from annotruth.io import load
from annotruth.io.dataset import Dataset, read_dataset


def test_a_folder_without_one_says_nothing(tmp_path):
    assert read_dataset(tmp_path) == Dataset()
    assert Dataset().missing == 255
    assert not Dataset().explains_pixels


def test_a_class_of_255_leaves_no_value_for_missing():
    assert Dataset(classes={"background": 0, "lesion": 255}).missing is None
    assert Dataset(classes={"background": 0, "lesion": 200}).missing == 255


def test_a_byte_order_mark_and_other_alphabets_are_fine(tmp_path):
    (tmp_path / "dataset.json").write_text('{"classes": ["背景", "病変"]}', encoding="utf-8-sig")
    assert read_dataset(tmp_path).class_names == ("背景", "病変")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"classes": ["a", "b"],\n "channels" 3}', r"line 2, column 13 is not JSON"),
        ("", r"line 1, column 1 is not JSON"),
        ("[1]", r"must hold one JSON object"),
        ('{"clases": []}', r"unknown key 'clases'; the known ones are classes, channels, raters, groups, missing"),
        ('{"classes": 3}', r'classes must be a list of names.*\{"background": 0, "lesion": 255\}'),
        ('{"classes": {"a": 0, "b": 1.5}}', r"classes must be a list"),
        ('{"classes": {"a": 0, "b": 99999}}', r"classes must be a list"),
        ('{"classes": ["a"]}', r"classes: name 2 to 254 classes.*1 found"),
        ('{"classes": ["a", "a"]}', r"classes: each class needs a name of its own"),
        ('{"classes": {"a": 1, "b": 1}}', r"classes: each class needs a pixel value of its own"),
        ('{"classes": {"a": 0, "b": 255}, "missing": 255}', r"255 cannot mean both a class and 'not labelled'"),
        ('{"missing": "none"}', r"missing must be a whole number"),
        ('{"groups": ["a"]}', r"groups must be an object from case to patient"),
        ('{"raters": {"ann": 3}}', r"raters must be an object"),
        ('{"channels": "CT"}', r"channels must be a list of names"),
        ('{"raters": {"zoe": {}}}', r"raters names raters the folder does not hold: zoe.*holds ann, bob"),
        ('{"groups": {"a": 1, "zz": 2}}', r"groups names cases the folder does not hold: zz"),
        ('{"groups": {"a": 1}}', r"groups leaves out b, c"),
    ],
)
def test_mistakes_are_named_with_the_file(cases, text, message):
    (cases / "dataset.json").write_text(text)
    with pytest.raises(InputError, match=r"dataset\.json: .*" + message):
        load(cases)


def test_text_in_another_encoding_is_named(cases):
    (cases / "dataset.json").write_bytes('{"classes": ["Läsion", "b"]}'.encode("latin-1"))
    with pytest.raises(InputError, match=r"dataset\.json: cannot be read.*UTF-8"):
        load(cases)


def test_channels_are_counted(cases, describe):
    describe(cases, channels=["red", "green", "blue"])
    with pytest.raises(InputError, match=r"a\.png \(case a\): the image has 1 channels, dataset\.json names 3"):
        load(cases)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"classes": ' + "[" * 100_000, "nested too deeply"),
        ('{"missing": ' + "9" * 5000 + "}", "number that is too long"),
        (r'{"classes": ["background", "\ud800"]}', "is not written in UTF-8"),
        (r'{"groups": {"\udc80": "a"}}', "is not written in UTF-8"),
    ],
)
def test_hostile_content_is_one_sentence(tmp_path, content, words):
    (tmp_path / "dataset.json").write_text(content)
    with pytest.raises(InputError, match=rf"dataset\.json: .*{words}"):
        read_dataset(tmp_path)


def test_a_link_to_a_device_without_end_is_not_followed(tmp_path):
    (tmp_path / "dataset.json").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="this is a device"):
        read_dataset(tmp_path)
