"""Names of images, raters and classes in exports that must do no harm, and tables of answers that are none."""

from __future__ import annotations

import json
from functools import partial
from xml.sax.saxutils import quoteattr

from tests.hostile.attacks import Attack, Attacks
from tests.hostile.exports import command, write_files
from tests.hostile.json_exports import LONE, choices, coco
from tests.hostile.xml_exports import cvat

BAD_NAMES = {
    "a newline": "a\nb",
    "half a character": f"a{LONE}",
    "a way out": "../../../executed",
    "an absolute path": "/etc/passwd",
    "dots": "..",
    "an address that is none": "http://[a",
    "nothing": "",
    "5,000 letters": "x" * 5000,
    "NUL": "a\0b",
    "a tag": "<script>alert(1)</script>",
    "a formula": "=cmd|' /C calc'!A0",
    "a device's name": "CON",
    "right to left": "a\u202egnp.exe",
    "a bracket": "[/red]",
}
"""Names of images, raters and classes that must do no harm; names that can be written come out as safe ones."""


def all_attacks() -> Attacks:
    yield from bad_names()
    yield from bad_rows()


def bad_names() -> Attacks:
    """Of images, raters and classes, in XML and JSON; what can be made a safe name of may be."""
    for what, name in BAD_NAMES.items():
        if name.isprintable():
            quoted, escaped = quoteattr(name), name.replace("<", "&lt;")
            for place, content in {
                "an image": cvat(name=quoted),
                "a rater": cvat(who=escaped),
                "a class": cvat(f'<box label={quoted} xtl="1" ytl="1" xbr="3" ybr="3"/>'),
            }.items():
                lay_out = partial(write_files, {"ann.xml": content})
                yield Attack("names", f"CVAT, {place}: {what}", lay_out, command("ann.xml"), harmless=True)
        for place, (file, content) in {
            "an image": ("ann.json", coco(file_name=name)),
            "a rater": ("ann.json", coco(rater=name)),
            "a class": ("ann.json", coco(category=name)),
            "a task": ("export.json", choices(image=name)),
            "an annotator": ("export.json", choices(email=name)),
            "a choice": ("export.json", choices(choice=name)),
        }.items():
            text = json.dumps(content).encode()
            lay_out = partial(write_files, {file: text})
            yield Attack("names", f"JSON, {place}: {what}", lay_out, command(file), harmless=True)
    for what, (first, second) in {
        "alike": ("Ann", "Ann"),
        "alike but for capitals": ("ann", "ANN"),
        "alike when safe": ("a/b", "a:b"),
        "alike when cut off": ("x" * 300, "x" * 299 + "y"),
        "alike when numbered": ("ann", "ann_2"),
        "alike but for how letters are made": ("caf\u00e9", "cafe\u0301"),
    }.items():
        people = [{"id": 7, "email": first}, {"id": 9, "email": second}]
        lay_out = partial(write_files, {"export.json": json.dumps(choices(people=people)).encode()})
        yield Attack("names", f"two raters, {what}", lay_out, command("export.json"), harmless=True)
        jobs = {"1.xml": cvat(who=first), "2.xml": cvat(who=second), "3.xml": cvat(who=first)}
        yield Attack("names", f"two jobs, {what}", partial(write_files, jobs), command(""), harmless=True)


def bad_rows() -> Attacks:
    head = b"HITId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,WorkTimeInSeconds,Input.image_url,"
    head += b"Answer.category\n"
    row = b"H1,A1,W1,Approved,Mon Jan 06 10:00:00 PST 2020,Mon Jan 06 10:00:09 PST 2020,9,http://x/1.jpg,cat\n"
    texts = {
        "only a head": head,
        "a row too long": head + row + row.replace(b"W1", b"W1,X"),
        "NUL": head + row.replace(b"cat", b"c\0t"),
        "other encoding": head + row.replace(b"cat", b"caf\xe9"),
        "a row too short": head + row + b"H1,A2\n",
        "contradiction": head + row + row.replace(b"cat", b"dog"),
        "no answer": head + row.replace(b",cat", b","),
        "a cell of 3 MB": head + row.replace(b"cat", b"x" * 3_000_000),
        "an open quote": head + row + row.replace(b"cat", b'"cat'),
        "no worker": head + row.replace(b"W1", b""),
        "no item": head + row.replace(b"http://x/1.jpg", b"").replace(b"H1", b""),
        "40,000 classes": head
        + b"".join(
            row.replace(b"H1", b"H%d" % n).replace(b"1.jpg", b"%d.jpg" % n).replace(b"cat", b"c%d" % n)
            for n in range(40_000)
        ),
    }
    fine = ("a cell of 3 MB", "40,000 classes", "NUL", "a row too short")
    for name, text in texts.items():
        yield Attack(
            "tables",
            f"MTurk: {name}",
            partial(write_files, {"Batch_1.csv": text}),
            command("Batch_1.csv"),
            harmless=name in fine,
        )
