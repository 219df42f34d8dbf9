"""The report in a real browser: it loads without an error, asks the network for nothing, and its buttons work."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from annotruth.reporting import report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
SCORES = {"dense": {"majority": {"dice": 0.8}, "pixel-cm": {"dice": 0.9}}}


def requests(browser: webdriver.Chrome) -> set[str]:
    """Addresses that were asked for, without what the page carries itself and the browser's own start page."""
    events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    return {url for url in asked if not url.startswith(("data:", "chrome:"))}


def headings(browser: webdriver.Chrome) -> list[str]:
    return [heading.text for heading in browser.find_elements("css selector", "h1, main section > h2")]


def assert_sound(browser: webdriver.Chrome, path: Path) -> None:
    """No picture is broken, no error was logged, and nothing was asked for but the page."""
    broken = "return [...document.images].filter(i => !i.complete || !i.naturalWidth).length"
    assert browser.execute_script(broken) == 0
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert requests(browser) <= {path.as_uri()}


def test_the_report_in_a_browser(make_study, tmp_path: Path, browser: webdriver.Chrome) -> None:
    study = make_study(n_classes=3, pixel_wise=True)
    study.model.warnings_ = ["Classes may be swapped."]
    path = report(study.model, study.ann, tmp_path / "r.html", scores=SCORES)
    browser.get(path.as_uri())

    assert headings(browser) == [
        "Truth from 3 raters pixel-cm", "Scores", "Against the known truth", "Raters", "Confusion matrices",
        "Where each rater errs", "Cases, most disputed first", "Training", "Settings and versions",
    ]  # fmt: skip
    raters = "return [...document.querySelectorAll('.sortable tbody th')].map(cell => cell.innerText)"
    assert browser.execute_script(raters)[0] == "good"
    browser.find_element("css selector", ".sortable thead button").click()  # by name, from a to z
    assert browser.execute_script(raters) == ["good", "over", "under"]
    browser.find_element("css selector", ".sortable thead button").click()
    assert browser.execute_script(raters) == ["under", "over", "good"]

    tile = browser.find_element("css selector", "#cases .tile")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", tile)
    tile.click()
    caption = browser.find_element("css selector", "dialog p")
    assert caption.text.startswith("Image of ")
    browser.switch_to.active_element.send_keys("\ue014")  # arrow to the right
    assert "drawn by good" in caption.text
    browser.switch_to.active_element.send_keys("\ue00c")  # escape
    assert not caption.is_displayed()

    reading = "return document.querySelector('.toc [aria-current]').innerText"
    browser.execute_script("scrollTo(0, 0)")
    WebDriverWait(browser, 10).until(lambda b: b.execute_script(reading) == "Summary")
    browser.find_element("link text", "Settings").click()
    WebDriverWait(browser, 10).until(lambda b: b.execute_script(reading) == "Settings")

    assert_sound(browser, path)


def test_the_report_on_a_label_table(make_label_study, tmp_path: Path, browser: webdriver.Chrome) -> None:
    model, ann = make_label_study(truth=np.array([0, 1, 2, 2, 1]), raters=["bob", "ann", "cé"])
    model.warnings_ = ["Classes may be swapped."]
    path = report(model, ann, tmp_path / "r.html", scores={"accuracy": 0.9})
    browser.get(path.as_uri())

    assert headings(browser) == [
        "Truth from 3 raters global-cm", "Scores", "Against the known truth", "Raters", "Confusion matrices",
        "Items most likely mislabelled", "Training", "Settings and versions",
    ]  # fmt: skip
    raters = "return [...document.querySelectorAll('.sortable tbody th')].map(cell => cell.innerText)"
    browser.find_element("css selector", ".sortable thead button").click()
    assert browser.execute_script(raters) == ["ann", "bob", "cé"]
    browser.find_element("css selector", ".sortable thead button").click()
    assert browser.execute_script(raters) == ["cé", "bob", "ann"]

    items = "return [...document.querySelectorAll('#items tbody tr')].map(row => row.innerText)"
    listed = browser.execute_script(items)
    assert [row.split()[0] for row in listed] == ["item_3", "item_2", "item_0", "item_1"]
    assert all("<b>" in row for row in listed[:2]), "names are shown as they were given"
    assert len(browser.find_elements("css selector", "#items img.thumb")) == 4

    browser.find_element("link text", "Items").click()
    reading = "return document.querySelector('.toc [aria-current]').innerText"
    WebDriverWait(browser, 10).until(lambda b: b.execute_script(reading) == "Items")
    assert_sound(browser, path)


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_nothing_sticks_out_sideways(make_study, tmp_path: Path, browser: webdriver.Chrome, width: int) -> None:
    study = make_study(n_classes=9, raters=("a" * 60, "b", "c"), items=("i" * 90, "j", "k", "l"))
    study.model.warnings_ = ["w" * 200]
    path = report(study.model, study.ann, tmp_path / "r.html", scores=SCORES)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_nothing_of_a_label_table_sticks_out_sideways(
    make_label_study, tmp_path: Path, browser: webdriver.Chrome
) -> None:
    model, ann = make_label_study(
        classes=["c" * 80, "d", "e f " * 20], raters=["a" * 60, "b", "c"], items=["i" * 90, *"jklm"]
    )
    path = report(model, ann, tmp_path / "r.html")
    for width in (360, 1600):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(path.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
