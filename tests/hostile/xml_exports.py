"""XML of labelling tools with something bad in it, which ``import`` reads: CVAT's and LIDC's."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.hostile.attacks import Attack, Attacks
from tests.hostile.exports import command, write_files


def all_attacks() -> Attacks:
    yield from bad_xml()
    yield from bad_cvat()
    yield from bad_lidc()


SOUND = '<polygon label="cell" points="2,2;6,2;6,5"/>'


def cvat(
    shapes: str = SOUND, head: str = "", name: str = '"a.png"', who: str = "ann", more: str = "", **size: Any
) -> bytes:
    """A job's export with one image."""
    sides = {"width": "9", "height": "8"} | size
    image = f'<image id="0" name={name} width="{sides["width"]}" height="{sides["height"]}">{shapes}</image>'
    return (
        f'<?xml version="1.0" encoding="utf-8"?>{head}<annotations><version>1.1</version><meta><job><id>3</id>'
        f"<assignee><username>{who}</username></assignee><labels><label><name>cell</name></label></labels></job></meta>"
        f"{image}{more}</annotations>"
    ).encode("utf-8", "surrogatepass")


def bad_xml() -> Attacks:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    entities = {
        "a billion laughs": f'<!DOCTYPE a [<!ENTITY l0 "ha">{laughs}]>',
        "quadratic": f'<!DOCTYPE a [<!ENTITY l9 "{"x" * 100_000}">]>',
        "a file's content": '<!DOCTYPE a [<!ENTITY l9 SYSTEM "file:///etc/passwd">]>',
        "a device's content": '<!DOCTYPE a [<!ENTITY l9 SYSTEM "file:///dev/zero">]>',
        "an address's content": '<!DOCTYPE a [<!ENTITY l9 SYSTEM "http://127.0.0.1:9/">]>',
        "entities of parameters": '<!DOCTYPE a [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p; <!ENTITY l9 "x">]>',
        "another file's document type": '<!DOCTYPE a SYSTEM "file:///dev/zero">',
        "an entity of itself": '<!DOCTYPE a [<!ENTITY l9 "&l9;">]>',
        "default attributes": '<!DOCTYPE a [<!ATTLIST image name CDATA "../x"><!ENTITY l9 "x">]>',
    }
    for name, head in entities.items():
        for place, content in {
            "text": cvat(head=head, who="&l9;" * 1000),
            "attribute": cvat('<box label="&l9;"/>', head),
        }.items():
            lay_out = partial(write_files, {"ann.xml": content})
            yield Attack("XML", f"{name}, in {place}", lay_out, command("ann.xml"))
        lidc = LIDC.replace("<LidcReadMessage", f"{head}<LidcReadMessage").replace("anon", "&l9;")
        yield Attack("XML", f"LIDC: {name}", partial(write_files, {"157/158.xml": lidc.encode()}), command(""))
    sound = cvat()
    texts = {
        "100,000 elements deep": cvat("<g>" * 100_000 + "</g>" * 100_000),
        "not closed": sound[:-20],
        "closed wrongly": cvat("<box></image>"),
        "an unknown entity": cvat(who="&nothing;"),
        "NUL": cvat(who="\0"),
        "an impossible character": cvat(who="&#0;"),
        "half a character": cvat(who="&#xD800;"),
        "another encoding": sound.replace(b"utf-8", b"utf-77"),
        "bytes that are no text": cvat(who="caf").replace(b"caf", b"\xff\xfe"),
        "a bomb of UTF-16": sound.replace(b"utf-8", b"utf-16"),
        "two roots": sound + b"<annotations/>",
        "an attribute twice": cvat('<box label="a" label="b"/>'),
        "text behind": sound + b"text",
        "a name of 5 MB": cvat(f"<{'x' * 5_000_000}/>"),
        "no image": sound.replace(b"<image", b"<other").replace(b"image>", b"other>"),
    }
    for name, content in texts.items():
        yield Attack(
            "XML", name, partial(write_files, {"ann.xml": content}), command("ann.xml"), harmless="5 MB" in name
        )


HARMLESS = ("width of '1e3'", "a track behind the film", "a track of nothing")
"""Runs may leave out what is outside at the end, and tracks may lie outside of what a job shows."""


def bad_cvat() -> Attacks:
    def polygon(points: str) -> str:
        return f'<polygon label="cell" points="{points}"/>'

    def mask(rle: str, left: str = "0", top: str = "0", width: str = "3", height: str = "2") -> str:
        return f'<mask label="cell" rle="{rle}" left="{left}" top="{top}" width="{width}" height="{height}"/>'

    def box(*corners: str) -> str:
        return '<box label="cell" xtl="{}" ytl="{}" xbr="{}" ybr="{}"/>'.format(*corners)

    shapes = {
        "polygon of NaN": polygon("nan,nan;nan,nan;nan,nan"),
        "polygon of infinity": polygon("0,0;inf,0;inf,inf"),
        "polygon outside": polygon("100,100;120,100;120,120"),
        "polygon of two points": polygon("1,1;2,2"),
        "polygon before the image": polygon("-9,-9;-5,-9;-5,-5"),
        "polygon of words": polygon("a,b;c,d;e,f"),
        "polygon of no point": polygon(""),
        "polygon of half a point": polygon("1,1;2,2;3"),
        "polygon without points": '<polygon label="cell"/>',
        "run longer than the mask": mask("0, 99"),
        "run of 10^18": mask("0, 1000000000000000000"),
        "run of 5,000 digits": mask("9" * 5000),
        "negative run": mask("2, -5, 9"),
        "runs of words": mask("a, b"),
        "runs too short": mask("1, 1"),
        "runs of fractions": mask("1.5, 4.5"),
        "mask outside": mask("0, 6", left="100"),
        "mask before the image": mask("0, 6", left="-1"),
        "mask of no size": mask("", width="0"),
        "mask of 10^9 by 10^9": mask("0, 6", width="1000000000", height="1000000000"),
        "mask of words": mask("0, 6", width="wide"),
        "mask of 10^400": mask("0, 6", width="1" + "0" * 400),
        "box of NaN": box("nan", "0", "1", "1"),
        "box of words": box("a", "b", "c", "d"),
        "box outside": box("50", "50", "60", "60"),
        "box without corners": '<box label="cell"/>',
        "box without a label": '<box xtl="1" ytl="1" xbr="2" ybr="2"/>',
        "ellipse of NaN": '<ellipse label="cell" cx="nan" cy="1" rx="1" ry="1"/>',
        "ellipse inside out": '<ellipse label="cell" cx="4" cy="4" rx="-1" ry="1"/>',
        "polyline": '<polyline label="cell" points="1,1;2,2"/>',
        "skeleton": '<skeleton label="cell"/>',
    }
    contents = {name: cvat(shape) for name, shape in shapes.items()}
    for side in ("0", "-5", "nine", "", "1000000000", "9" * 5000, "1e3", "nan"):
        contents[f"width of {side[:12]!r}"] = cvat(width=side)
    track = '<track id="0" label="cell">{}</track>'
    meta = "<task><size>{}</size><start_frame>0</start_frame><stop_frame>{}</stop_frame></task>"
    one = '<box frame="{}" keyframe="1" outside="0" xtl="1" ytl="1" xbr="2" ybr="2"/>'
    for name, (frames, shape) in {
        "a track of 10^12 frames": ("1000000000000", one.format(0)),
        "a track before the film": ("5", one.format(-7)),
        "a track of words": ("5", one.format("first")),
        "a track behind the film": ("5", one.format(10**9)),
        "a track of nothing": ("5", ""),
        "a film of words": ("many", one.format(0)),
    }.items():
        size = "<original_size><width>9</width><height>8</height></original_size>"
        content = cvat(more=track.format(shape)).replace(
            b"<job>", (meta.format(frames, frames) + size + "<job>").encode()
        )
        contents[name] = content[: content.find(b"<image")] + content[content.find(b"<track") :]
    contents["an image twice"] = cvat(more='<image id="1" name="a.png" width="9" height="8"/>')
    contents["an image of two sizes"] = cvat(more='<image id="1" name="a.png" width="5" height="8"/>')
    contents["300 classes"] = cvat("".join(f'<box label="c{n}" xtl="1" ytl="1" xbr="2" ybr="2"/>' for n in range(300)))
    boxes = b'<box label="cell" xtl="1" ytl="1" xbr="2" ybr="2"/>' * 150_000
    contents["150,000 boxes and one outside"] = cvat(SOUND + "BOXES" + box("50", "50", "60", "60")).replace(
        b"BOXES", boxes
    )
    for name, content in contents.items():
        lay_out, fine = partial(write_files, {"ann.xml": content}), name in HARMLESS
        yield Attack("CVAT", name, lay_out, command("ann.xml"), harmless=fine)


LIDC = (
    '<?xml version="1.0" encoding="UTF-8"?><LidcReadMessage uid="1.3" xmlns="http://www.nih.gov"><ResponseHeader>'
    "<SeriesInstanceUid>1.2.158</SeriesInstanceUid></ResponseHeader><readingSession><servicingRadiologistID>anon"
    "</servicingRadiologistID><unblindedReadNodule><noduleID>1</noduleID><roi><imageZposition>-20.0</imageZposition>"
    "<imageSOP_UID>9.1</imageSOP_UID><inclusion>TRUE</inclusion>EDGES</roi></unblindedReadNodule></readingSession>"
    "</LidcReadMessage>"
)


def bad_lidc() -> Attacks:
    def edges(*points: tuple[Any, Any]) -> str:
        return "".join(f"<edgeMap><xCoord>{x}</xCoord><yCoord>{y}</yCoord></edgeMap>" for x, y in points)

    far = 10**9
    for name, drawn in {
        "words": edges(("a", "b"), ("c", "d"), ("e", "f")),
        "NaN": edges(("nan", 1), (2, 2), (3, 1)),
        "far outside": edges((far, far), (far + 2, far), (far, far + 2), (far, far)),
        "before the image": edges((-9, -9), (-5, -9), (-5, -5), (-9, -9)),
        "no point": "",
        "to and fro": edges(*[(0, 0), (999_999, 999_999)] * 1000),
        "no y": "<edgeMap><xCoord>3</xCoord></edgeMap>" * 4,
        "5,000 digits": edges(*[("9" * 5000, 1)] * 4),
    }.items():
        content = LIDC.replace("EDGES", drawn).encode()
        yield Attack("LIDC", name, partial(write_files, {"157/158.xml": content}), command(""))
