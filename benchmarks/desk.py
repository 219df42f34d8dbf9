"""The desk, measured in a browser: a case opens, a stroke is drawn, a decision is saved, fusion and queue follow.

    python -m benchmarks.desk [--cases 50]

At full size there are 1,000 cases of 512² by four raters, as PNG files. Needs Chromium with chromedriver. Writes
docs/results/desk-speed.md and .json at full size.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import annotruth as at
from annotruth.io import write_case_folder
from benchmarks.data import SEED
from benchmarks.measure import Row
from benchmarks.results import line, report

CASES, SIDE, RATERS, PORT = 1000, 512, 4, 8764
OPENED, STROKES, SAVED = 25, 12, 25
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--window-size=1440,960")  # fmt: skip


WATCH = """
window.followed = [];
let saved = 0;
new MutationObserver((changes) => {
  for (const { attributeName } of changes) {
    if (attributeName === "data-saved") saved = performance.now();
    else if (saved) { followed.push(performance.now() - saved); saved = 0; }
  }
}).observe(document.body, { attributeFilter: ["data-saved", "data-version"] });
const canvas = document.querySelector("#canvas"), context = canvas.getContext("2d");
window.rastered = [];
canvas.addEventListener("pointermove", (event) => event.buttons && requestAnimationFrame(() => {
  const start = performance.now();
  context.getImageData(0, 0, 1, 1);
  rastered.push(performance.now() - start);
}));
"""
"""Takes the time from each save to the next version of the fusion that the page hears of, and of the pixels that the
browser still has to make of what the page has drawn: asking for one of them makes it do so."""


def draw_cases(folder: Path, count: int) -> None:
    """Discs with wavy borders, which raters draw a little differently; of a third of the cases, one drew nothing."""
    rng = np.random.default_rng(SEED)
    y, x = np.mgrid[:SIDE, :SIDE]
    waves = 6 * np.sin(x / 17) * np.cos(y / 13)
    noise = rng.integers(0, 40, (SIDE, SIDE))
    masks, images = [], []
    for number in range(count):
        centre, radius = rng.uniform(150, 360, 2), rng.uniform(60, 140)
        distance = np.hypot(y - centre[0], x - centre[1]) + waves
        drawn = np.stack([distance < radius + shift for shift in rng.normal(0, 4, RATERS)]).astype(np.uint8)
        if number % 3 == 0:
            drawn[number % RATERS] = 255
        masks.append(drawn)
        images.append((np.where(distance < radius, 150, 60) + noise).astype(np.float32)[None])
    annotations = at.Annotations.from_masks(masks, images=images, classes=["background", "lesion"])
    write_case_folder(folder, annotations, suffix=".png", overwrite=True)


@contextmanager
def serving(cases: Path, folder: Path) -> Iterator[str]:
    """The desk in a process of its own; its address, when all cases have been looked at."""
    command = [sys.executable, "-m", "annotruth", "serve", str(cases), "--port", str(PORT), "-o", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        while state(url)["busy"]:
            time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait()


def state(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}api/state") as answer:
        return dict(json.load(answer))


class Browser:
    """Chromium at the desk, and the times that the page takes of its own doing."""

    def __init__(self, url: str, profile: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.common.action_chains import ActionChains

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = shutil.which("chromedriver") or ""
        self.chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
        self._chains = ActionChains
        self.chrome.get(url)
        self.wait("document.querySelector('#name').open")
        self.chrome.find_element("id", "name-told").send_keys("Ada\n")
        self.wait("document.body.dataset.ready && document.body.dataset.open")

    def ask(self, code: str) -> Any:
        return self.chrome.execute_script(f"return {code}")

    def wait(self, code: str, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while not self.ask(code):
            if time.monotonic() > until:
                raise TimeoutError(code)
            time.sleep(0.02)

    def keys(self, *keys: str) -> None:
        self._chains(self.chrome, duration=0).send_keys(*keys).perform()

    def next_case(self, key: str) -> None:
        before = self.ask("document.body.dataset.open")
        self.keys(key)
        self.wait(f"document.body.dataset.open && document.body.dataset.open !== '{before}'")

    def stroke(self, number: int) -> None:
        canvas = self.chrome.find_element("id", "canvas")
        chain = self._chains(self.chrome, duration=120)
        chain.move_to_element_with_offset(canvas, -250, -200 + 20 * number).click_and_hold()
        for step in range(4):
            chain.move_to_element_with_offset(canvas, -125 + 125 * step, -200 + 20 * number + 60 * (step % 2))
        chain.release().perform()

    def times(self, name: str) -> np.ndarray:
        """Milliseconds of each time the page did something."""
        code = f"performance.getEntriesByName('desk:{name}', 'measure').map((each) => each.duration)"
        return np.array(self.ask(code), dtype=float)


def run(count: int) -> Iterator[Row]:
    """Open, draw, save."""
    with tempfile.TemporaryDirectory(prefix="desk-") as name:
        home = Path(name)
        draw_cases(home / "cases", count)
        with serving(home / "cases", home / "desk") as url:
            browser = Browser(url, home / "profile")
            try:
                yield from _measured(browser, url, count)
            finally:
                browser.chrome.quit()


def _measured(browser: Browser, url: str, count: int) -> Iterator[Row]:
    for _ in range(min(OPENED, count - 2)):
        browser.next_case("j")
    opened = browser.times("open")[1:]  # the first shows the page itself, too
    yield _row(f"A case of {SIDE}² by {RATERS} raters opens, of {count:,}", np.median(opened), 300, opened)
    browser.chrome.execute_script(WATCH)
    browser.keys("b")
    for number in range(STROKES):
        browser.stroke(number)
    stamped, drawn = browser.times("stamp"), browser.times("draw")
    rastered = np.array(browser.ask("rastered"), dtype=float)
    steps = {"pixels of the stroke, ms": stamped, "drawing, ms": drawn, "browser's pixels, ms": rastered}
    work = sum(np.median(each) for each in steps.values())
    details = {"frames": len(drawn), **{name: np.median(each).round(1) for name, each in steps.items()}}
    yield Row("A stroke of the brush is drawn, each frame", "–", float(work), "ms", 16, at_most=True, details=details)
    for _ in range(min(SAVED, count // 3)):
        known = browser.ask("followed.length")
        browser.next_case("\ue007")
        browser.wait(f"followed.length > {known}")
    saved, followed = browser.times("save"), np.array(browser.ask("followed"), dtype=float)
    yield _row(f"A save returns, with {count:,} cases", np.median(saved), 200, saved)
    work = "The page shows the queue that follows from the decision, after the save"
    yield _row(work, np.median(followed), 1000, followed)


def _row(work: str, value: float, target: float, every: np.ndarray) -> Row:
    details = {"times": len(every), "quickest, ms": every.min().round(1), "slowest, ms": every.max().round(1)}
    return Row(work, "–", float(value), "ms", target, at_most=True, details=details)


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.desk", description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES, help="how many; fewer than all are only printed")
    options = parser.parse_args()
    if options.cases < CASES:
        rows = list(run(options.cases))
        print("\n".join(" | ".join(line(row)) for row in rows))
        return 1 if any(row.passed is False for row in rows) else 0
    return report(
        "desk-speed",
        "Speed of the desk",
        "Made by `python -m benchmarks.desk`. Chromium without a screen, and without a graphics card, has the desk "
        f"open; the page takes the times. {CASES:,} cases of {SIDE}² lie on disk as PNG files. Opening is from the key "
        "that asks for the next case to the image with everybody's labels; a save is from the key to the answer that "
        "the decision is on the disk. Figures are medians; a frame's is the sum of finding the pixels of the stroke, "
        "drawing image, labels and outlines, and the browser's making pixels of that.",
        "",
        run(CASES),
        SEED,
    )


if __name__ == "__main__":
    sys.exit(main())
