"""The desk in a real browser: draw, undo, save, load anew; two curators; a server that is killed while it saves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.data.annotations import Annotations
from annotruth.desk.access import make_access
from annotruth.desk.app import make_app
from annotruth.desk.fusing import MaskFusion, TableFusion
from annotruth.desk.journal import read_journal
from annotruth.desk.live import Desk
from annotruth.desk.serving import links, most_bytes
from annotruth.desk.study import Study
from annotruth.io import write_case_folder
from annotruth.io.files import read_mask

from .conftest import draw_cases, draw_table

uvicorn = pytest.importorskip("uvicorn", reason="the extra desk is not installed")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
ActionChains = pytest.importorskip("selenium.webdriver.common.action_chains").ActionChains
exceptions = pytest.importorskip("selenium.common.exceptions")
JavascriptException, StaleElementReferenceException = (
    exceptions.JavascriptException,
    exceptions.StaleElementReferenceException,
)
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait


@contextmanager
def served(annotations: Annotations, folder: Path, raters: tuple[str, ...] = ()) -> Iterator[tuple[Desk, list[str]]]:
    """A desk that is served from a thread; its links."""
    listening = socket.create_server(("127.0.0.1", 0))
    access = make_access("127.0.0.1", listening.getsockname()[1], raters, most_bytes(annotations))
    desk = Desk(Study(annotations, folder, raters), "try").start()
    server = uvicorn.Server(uvicorn.Config(make_app(desk, access), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield desk, [words.rpartition(" ")[2] for words in links(access, "127.0.0.1")]
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
        desk.stop()


class Seat:
    """Somebody at the desk."""

    def __init__(self, browser: webdriver.Chrome, url: str, who: str = "Ada") -> None:
        self.browser = browser
        browser.get(url)
        browser.get_log("browser")  # what the page before said when its server ended
        self.wait("document.querySelector('#name')?.open || document.body.dataset.ready")
        if self.ask("document.querySelector('#name').open"):
            self.type("name-told", f"{who}\n")
        ready, nothing = "document.body.dataset.ready", "!document.querySelector('#empty').hidden"
        self.wait(f"{ready} && (document.body.dataset.open || {nothing})")

    def ask(self, code: str) -> Any:
        return self.browser.execute_script(f"return {code}")

    def wait(self, code: str) -> None:
        """Until it is true; what is asked for may not be on the page yet."""
        patience = WebDriverWait(self.browser, 20, poll_frequency=0.03, ignored_exceptions=(JavascriptException,))
        patience.until(lambda _: self.ask(code), f"never: {code}")

    def type(self, place: str, text: str) -> None:
        self.browser.find_element("id", place).send_keys(text)

    def keys(self, *keys: str) -> None:
        ActionChains(self.browser, duration=0).send_keys(*keys).perform()

    def text(self, place: str) -> str:
        return str(self.browser.find_element("id", place).text)

    @property
    def item(self) -> str:
        return str(self.ask("document.body.dataset.open || ''"))

    def click(self, place: str) -> None:
        """Click on what a selector finds, also if the page is drawn anew at that moment."""
        patience = WebDriverWait(self.browser, 20, 0.03, ignored_exceptions=(StaleElementReferenceException,))
        patience.until(lambda page: page.find_element("css selector", place).click() or True)

    def go_to(self, item: str) -> None:
        self.click(f"#cases [title='{item}']")
        self.wait(f"document.body.dataset.open === '{item}'")

    def drag(self, *points: tuple[int, int]) -> None:
        """Draw through points, in pixels of the screen from the middle of the image area."""
        canvas = self.browser.find_element("id", "canvas")
        chain = ActionChains(self.browser, duration=10).move_to_element_with_offset(canvas, *points[0]).click_and_hold()
        for point in points[1:]:
            chain.move_to_element_with_offset(canvas, *point)
        chain.release().perform()

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"]


def differs(mask: np.ndarray, base: np.ndarray) -> int:
    return int((mask != base).sum())


def test_draw_undo_save_and_load_anew(browser: webdriver.Chrome, tmp_path: Path) -> None:
    annotations = draw_cases(sloppy=True)
    with served(annotations, tmp_path) as (desk, [url]):
        assert desk.wait()
        seat = Seat(browser, url)
        item = seat.item
        number = annotations.items.index(item)
        fused = desk.fusion.fused(number)[0]
        assert seat.text("save-told") == "Accept the fused truth"

        seat.keys("b", "]", "]")
        seat.drag((-250, -200), (0, -200), (250, -200))
        assert seat.text("save-told") == "Save drawing"
        seat.keys("z")
        assert seat.text("save-told") == "Accept the fused truth"
        seat.keys("y", "e")
        seat.drag((0, 0), (60, 60))
        seat.keys("z", "p")
        for point in ((-200, 150), (-100, 150), (-100, 220), (-200, 220)):
            seat.drag(point)
        seat.keys("\ue007")  # Enter closes the polygon
        assert seat.text("save-told") == "Save drawing"

        browser.refresh()  # before it was saved
        seat.wait("document.body.dataset.ready && document.body.dataset.open")
        assert seat.item == item
        assert "is here again" in seat.text("toasts")
        assert seat.text("save-told") == "Save drawing"
        seat.keys("n", "as drawn")
        seat.keys("\ue007")
        seat.wait("document.body.dataset.saved === '1'")
        seat.wait(f"document.body.dataset.open && document.body.dataset.open !== '{item}'")
        entry = desk.study.journal.entries[0]
        assert (entry.case, entry.action, entry.who, entry.why) == (item, "edit", "Ada", "as drawn")
        gold = np.load(tmp_path / "truth" / f"{item}.npy")
        assert differs(gold, fused) > 10
        assert set(gold[gold != fused].tolist()) == {1}, "what was erased came back"
        assert desk.wait()
        seat.wait("document.querySelector('#tally').innerText.startsWith('1 of 6')")

        browser.find_element("css selector", "[data-status=decided]").click()
        seat.wait(f"document.querySelector('#cases li.decided .name')?.title === '{item}'")
        seat.go_to(item)
        assert seat.text("save-told") == "Accept the earlier decision"
        assert "as drawn" in seat.text("history")
        seat.keys("?")
        assert "Undo" in seat.text("keys-told")
        seat.keys("?")
        seat.keys("r")
        seat.wait("document.body.dataset.saved === '2'")
        assert desk.study.record(number).status == "open"
        assert seat.errors() == []


def test_two_curators_and_a_rater_at_once(browser: webdriver.Chrome, tmp_path: Path) -> None:
    with served(draw_cases(sloppy=True), tmp_path, raters=("dora",)) as (desk, [curators, dora]):
        assert desk.wait()
        ada = Seat(browser, curators)
        held, first = ada.item, browser.current_window_handle
        assert "token" not in browser.current_url
        browser.switch_to.new_window("tab")
        bob = Seat(browser, curators)
        browser.execute_script(
            "document.querySelector('#who').click(); document.querySelector('#name-told').value = ''"
        )
        bob.type("name-told", "Bob\n")
        assert bob.item != held, "a case that is held is passed over"
        bob.wait(f"document.querySelector(\"#cases [title='{held}']\").nextSibling.innerText === 'Ada is at it'")
        bob.go_to(held)
        assert "Ada has this case open" in bob.text("notice")
        assert bob.ask("document.querySelector('#save').disabled")
        browser.switch_to.window(first)
        ada.keys("x")
        ada.wait("document.body.dataset.saved === '1'")
        second = next(handle for handle in browser.window_handles if handle != first)
        browser.close()
        browser.switch_to.window(second)
        bob.wait("document.querySelector('#notice').hidden")
        bob.wait(
            "!document.querySelector('#reopen').hidden && document.querySelector('#history').innerText.includes('Ada')"
        )
        bob.click("#rater option[value=dora]")
        browser.switch_to.active_element.send_keys("\ue00c")  # Escape leaves the field
        bob.keys("s")
        bob.wait("document.body.dataset.saved === '2'")
        assert desk.study.record(desk.study.base.items.index(held)).sent == ("dora",)

        rater = Seat(browser, dora)
        assert rater.item == held, "what was asked comes first"
        assert rater.ask(
            "document.querySelector('#layers-part').hidden && document.querySelector('#methods-part').hidden"
        )
        rater.keys("b")
        rater.drag((-100, 0), (100, 0))
        rater.keys("\ue007")
        rater.wait("document.body.dataset.saved === '3'")
        drawn = np.load(tmp_path / "raters" / "dora" / f"{held}.npy")
        assert set(np.unique(drawn).tolist()) == {0, 1}
        assert rater.errors() == []


def test_no_class_is_proposed_before_the_fusion_has_learnt(
    browser: webdriver.Chrome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, prepare = threading.Event(), TableFusion.prepare
    monkeypatch.setattr(TableFusion, "prepare", lambda self, tell: go_on.wait(60) and prepare(self, tell))
    with served(draw_table(), tmp_path) as (desk, [url]):
        seat = Seat(browser, url)
        seat.go_to("=p3")  # of which everybody says dog
        assert seat.ask("document.querySelector('#save').disabled")
        assert seat.ask("document.querySelectorAll('#answers [aria-checked=true]').length") == 0
        go_on.set()
        assert desk.wait()
        seat.wait("document.querySelector('#answers [aria-checked=true] .name')?.innerText === 'dog'")
        assert not seat.ask("document.querySelector('#save').disabled")


def test_the_image_stays_where_it_is_while_one_works(browser: webdriver.Chrome, tmp_path: Path) -> None:
    with served(draw_cases(sloppy=True), tmp_path) as (desk, [url]):
        assert desk.wait()
        seat = Seat(browser, url)
        place = "JSON.stringify(document.querySelector('#canvas').getBoundingClientRect())"
        browser.set_window_size(1024, 700)
        before = seat.ask(place)
        seat.keys("b")
        seat.drag((-60, 0), (60, 0))
        assert "ann" in seat.text("readout")
        assert seat.ask(place) == before, "what is told of a pixel takes no room from the image"
        assert seat.ask("document.querySelector('#tabs').scrollWidth <= document.querySelector('#tabs').clientWidth")
        many = """const done = arguments[0];
            import("/page/state.js").then(({ editor, viewer }) => {
              for (let step = 0; step < 250; step++) {
                editor.begin();
                editor.stamp({ x: 9, y: 9 }, { x: 9, y: 9 }, 1, step % 2);
                editor.end();
              }
              while (editor.undo() !== undefined);
              done(editor.isChanged);
            });"""
        assert browser.execute_async_script(many), "what can no longer be undone is a change all the same"
        browser.set_window_size(1280, 900)


def test_a_rater_with_nothing_to_label_sees_nothing_of_a_curators(browser: webdriver.Chrome, tmp_path: Path) -> None:
    with served(draw_cases(), tmp_path, raters=("ann",)) as (desk, [_, ann]):
        assert desk.wait()
        seat = Seat(browser, ann)
        assert seat.item == ""
        assert seat.text("blank") == "Nothing is left to label."
        for part in ("methods-part", "send-part", "ambiguous", "reopen", "layers-part"):
            assert not browser.find_element("id", part).is_displayed()


def test_a_server_that_is_killed_while_it_saves_loses_nothing(browser: webdriver.Chrome, tmp_path: Path) -> None:
    cases = write_case_folder(tmp_path / "cases", draw_cases(sloppy=True), suffix=".png")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = _starting(cases, port)
    server = start()
    try:
        seat = Seat(browser, f"http://127.0.0.1:{port}/")
        item = seat.item
        seat.keys("b", "]", "]", "]", "]")
        seat.drag((-250, -200), (250, -200), (250, 200))
        seat.keys("\ue007")
        os.kill(server.pid, signal.SIGKILL)  # while it saves, or a moment before or after
        server.wait()
        seat.wait("document.querySelector('#fusion').innerText === 'not reached'")
        server = start()
        seat.wait("document.querySelector('#fusion').innerText === 'fusion up to date'")
        log = tmp_path / "cases-desk" / "decisions.jsonl"
        if read_journal(log)[0]:
            if seat.item == item:  # the answer got lost: what is saved is not offered to be saved again
                seat.wait("document.querySelector('#save-told').innerText === 'Accept the earlier decision'")
        else:  # it was killed before: the page still has the drawing
            assert seat.item == item
            seat.keys("\ue007")
            seat.wait("document.body.dataset.saved === '1'")
        os.kill(server.pid, signal.SIGKILL)
        server.wait()
        again = Study(at.load(cases), tmp_path / "cases-desk")
        assert [(entry.case, entry.action) for entry in again.journal.entries] == [(item, "edit")]
        number = again.base.items.index(item)
        before = MaskFusion(Study(at.load(cases), tmp_path / "nothing decided"))
        before.prepare(lambda *_: None)
        gold, fused = np.asarray(again.gold(number)), before.fused(number)[0]
        assert (read_mask(tmp_path / "cases-desk" / "truth" / f"{item}.png", "") == gold).all()
        assert differs(gold, fused) > 10
        assert set(gold[gold != fused].tolist()) == {1}, "all of the drawing, and nothing else"
    finally:
        server.kill()
        server.wait()


def _starting(cases: Path, port: int) -> Callable[[], subprocess.Popen[str]]:
    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "annotruth", "serve", str(cases), "--port", str(port)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        assert any("The desk is at" in line for line in server.stdout), "after what it may say of masks made anew"
        return server

    return start
