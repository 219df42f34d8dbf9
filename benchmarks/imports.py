"""Importing what labelling tools export, beside datumaro: ``python -m benchmarks.imports [--datumaro PYTHON]``."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from annotruth.io.runs import label_studio_code
from benchmarks.measure import Row, in_fresh_process
from benchmarks.results import report

SEED, IMAGES, SIZE, OBJECTS, POINTS = 0, 1000, 512, 10, 40
RATERS = ("ann", "bob", "cy")
MOST_SECONDS = 60
READ = """
import sys, time
import datumaro
start = time.perf_counter()
for path in sys.argv[1:]:
    for item in datumaro.Dataset.import_from(path, "cvat"):
        len(item.annotations)
print(time.perf_counter() - start)
"""
"""What datumaro is asked to do: read every annotation of each rater's file."""


def write_cvat(folder: Path, images: int) -> None:
    """Files of three raters' polygons, each in a folder with the images, as datumaro wants it."""
    rng = np.random.default_rng(SEED)
    (folder / "images").mkdir(parents=True)
    for number in range(images):
        picture = np.full((SIZE, SIZE), number % 250, dtype=np.uint8)
        Image.fromarray(picture).save(folder / "images" / f"image_{number:05d}.png")
    turn = np.linspace(0, 2 * np.pi, POINTS, endpoint=False)
    centres, radii = rng.uniform(60, SIZE - 60, (images, OBJECTS, 2, 1)), rng.uniform(15, 50, (images, OBJECTS, 1))
    for rater in RATERS:
        (folder / rater).mkdir()
        (folder / rater / "images").symlink_to(folder / "images")
        with (folder / rater / "annotations.xml").open("w") as file:
            file.write(
                "<annotations><version>1.1</version><meta><task><labels><label><name>cell</name></label></labels>"
                f"<assignee><username>{rater}</username></assignee></task></meta>\n"
            )
            for number in range(images):
                away = radii[number] * (1 + 0.1 * rng.normal(size=(OBJECTS, POINTS)))
                x, y = centres[number, :, 0] + away * np.cos(turn), centres[number, :, 1] + away * np.sin(turn)
                file.write(f'<image id="{number}" name="image_{number:05d}.png" width="{SIZE}" height="{SIZE}">')
                for xs, ys in zip(x, y):
                    points = ";".join(f"{one:.2f},{other:.2f}" for one, other in zip(xs, ys))
                    file.write(f'<polygon label="cell" occluded="0" points="{points}" z_order="0"></polygon>')
                file.write("</image>\n")
            file.write("</annotations>\n")


def write_label_studio(path: Path, images: int) -> None:
    """Three raters' brushes of one blob each."""
    rng = np.random.default_rng(SEED)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    tasks = []
    for number in range(images):
        centre, radius, works = rng.uniform(100, SIZE - 100, 2), rng.uniform(40, 120), []
        for person in range(len(RATERS)):
            away = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2
            value = {"format": "rle", "rle": label_studio_code(away < (radius + 5 * rng.normal()) ** 2)}
            region = {
                "id": "a", "type": "brushlabels", "original_width": SIZE, "original_height": SIZE,
                "value": value | {"brushlabels": ["cell"]},
            }  # fmt: skip
            works.append({"id": person, "completed_by": person, "result": [region]})
        tasks.append({"id": number, "data": {"image": f"image_{number:05d}.png"}, "annotations": works})
    path.write_text(json.dumps(tasks))


def write_many(path: Path, boxes: int) -> None:
    """A CVAT file with very many boxes on one image."""
    side = math.isqrt(boxes - 1) + 1
    with path.open("w") as file:
        file.write(
            "<annotations><version>1.1</version><meta><task><labels><label><name>cell</name></label></labels></task>"
            f'</meta><image id="0" name="many.png" width="{2 * side}" height="{2 * side}">'
        )
        for number in range(boxes):
            x, y = 2 * (number % side), 2 * (number // side)
            file.write(f'<box label="cell" xtl="{x}" ytl="{y}" xbr="{x + 1}" ybr="{y + 1}"/>')
        file.write("</image></annotations>")


def run(images: int, datumaro: str | None) -> Iterator[Row]:
    """Seconds and memory of imports, and reading beside datumaro's."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        write_cvat(home / "cvat", images)
        write_label_studio(home / "brushes.json", images)
        for number, (what, source) in enumerate((("CVAT polygons", "cvat"), ("Label Studio brushes", "brushes.json"))):
            done = in_fresh_process(
                "import_all", str(home / source), str(home / f"out_{number}"), str(home / "cvat/images")
            )
            work = f"Import of {what}, {images:,} images of {SIZE}×{SIZE}, {len(RATERS)} raters"
            details = {"MB beyond the start": round(done["extra"] / 1e6), "items": done["items"]}
            yield Row(work, "", done["seconds"], "s", MOST_SECONDS, at_most=True, details=details)
        boxes = 1000 * images
        write_many(home / "many.xml", boxes)
        done = in_fresh_process("import_all", str(home / "many.xml"), str(home / "out_many"))
        details = {"MB beyond the start": round(done["extra"] / 1e6), "items": done["items"]}
        work = f"Import of {boxes:,} boxes on one image, in CVAT's XML"
        yield Row(work, "", done["seconds"], "s", MOST_SECONDS, at_most=True, details=details)
        paths = [str(home / "cvat" / rater) for rater in RATERS]
        reads = [in_fresh_process("load_all", str(home / "cvat")) for _ in range(3)]
        ours, loaded = (min(each[name] for each in reads) for name in ("seconds", "loaded"))
        if datumaro is None:
            yield Row("Reading CVAT polygons", "", ours, "s", None, details={"datumaro": "not given"})
            return
        command = [datumaro, "-c", READ, *paths]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]
        theirs = min(float(each.stdout.splitlines()[-1]) for each in runs)
        details = {"s": round(ours, 2), "s of datumaro": round(theirs, 2), "s of load alone": round(loaded, 2)}
        yield Row("Reading CVAT polygons", "datumaro", ours / theirs, "× the time", 1, at_most=True, details=details)


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument("--datumaro", metavar="PYTHON", help="an interpreter that has datumaro")
    parser.add_argument("--images", type=int, default=IMAGES, help="how many images")
    options = parser.parse_args()
    return report(
        "import-speed",
        "Speed of imports",
        f"Made by `python -m benchmarks.imports --datumaro PYTHON`. In CVAT's files each rater drew {OBJECTS} polygons "
        f"of {POINTS} points on each image; in Label Studio's, a blob with the brush. An import paints the masks, "
        "writes them as PNG and copies the images, on one core. Reading means every polygon as numbers, without "
        "painting: ours of all raters at once, and datumaro's reader of CVAT on each rater's folder, the shortest of "
        "three. `annotruth.load` alone leaves points as text until a mask is needed.",
        "",
        run(options.images, options.datumaro),
        SEED,
    )


if __name__ == "__main__":
    sys.exit(main())
