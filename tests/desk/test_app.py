"""What the desk answers: cases opened, looked at, decided; the queue and the fusion follow."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from annotruth.desk.coding import decode_runs, encode_runs
from annotruth.errors import AnnotruthError

from .conftest import SHAPE, draw_cases, draw_table, unpack

SIZE = SHAPE[0] * SHAPE[1]


def test_a_case_is_opened_with_everybodys_labels(serve_desk):
    page = serve_desk().page()
    told = page.open(4)
    assert told["item"] == "case 4"
    assert told["shape"] == [1, *SHAPE]
    assert told["image"]["bytes"] == 1
    image = np.frombuffer(page.get("/api/cases/4/image").content, np.uint8).reshape(SHAPE)
    assert (image == draw_cases().item_image(4)[0]).all()
    layers = page.layers(4)
    assert list(layers) == ["fused", "probability", "rater 0", "rater 1", "rater 2"]
    for rater, mask in enumerate(draw_cases().item_masks(4)):
        assert (decode_runs(layers[f"rater {rater}"], SIZE) == mask.reshape(-1)).all()
    chances = decode_runs(layers["probability"], SIZE)
    assert 100 <= chances.min() < 200
    assert chances.max() == 200
    assert list(page.layers(1)) == ["fused", "probability", "rater 0", "rater 1"], "who drew nothing has no layer"


@pytest.mark.parametrize("number", range(4))
def test_what_each_method_would_say(serve_desk, number):
    page = serve_desk().page()
    assert page.get("/api/desk").json()["methods"] == ["majority", "staple", "dawid-skene", "spatial-staple"]
    head, (code,) = unpack(page.get(f"/api/cases/0/methods/{number}").content)
    assert head["layers"] == [{"kind": "method", "number": number}]
    assert (decode_runs(code, SIZE) == draw_cases().item_masks(0)[0].reshape(-1)).all(), "here all agree"


def test_the_fusion_and_the_queue_follow_a_decision(serve_desk):
    served = serve_desk()
    page = served.page()
    queue = page.get("/api/queue").json()
    assert queue["total"] == 6
    first = queue["rows"][0]
    assert "in doubt" in first["reason"]
    before, version = served.desk.known.confusion.copy(), served.desk.version
    drawn = draw_cases().item_masks(first["index"])[2]  # the curator sides with the third rater
    answer = page.decide(first["index"], "edit", encode_runs(drawn), source="drawing", why="as cy has it")
    assert answer.json() == {"number": 1, "warning": "", "note": "", "seen": 1}
    assert served.desk.wait()
    assert served.desk.version == version + 1
    after = served.desk.known.confusion
    assert np.diagonal(after[2]).mean() > np.diagonal(before[2]).mean(), "who was right is trusted more"
    assert served.desk.doubt[first["index"]] == 0
    assert first["index"] not in [row["index"] for row in page.get("/api/queue").json()["rows"]]
    decided = page.get("/api/queue?show=decided").json()["rows"]
    assert [(row["item"], row["last"]) for row in decided] == [(first["item"], "Ada")]
    assert page.get("/api/state").json()["counts"] == {"open": 5, "decided": 1, "ambiguous": 0, "sent": 0}
    assert (decode_runs(page.layers(first["index"])["gold"], SIZE) == drawn.reshape(-1)).all()
    assert np.load(served.folder / "truth" / f"{first['item']}.npy").tolist() == drawn.tolist()


def test_a_decision_can_be_taken_back(serve_desk):
    served = serve_desk()
    page = served.page()
    page.decide(0, "accept", page.layers(0)["rater 1"], source="rater bob")
    page.decide(0, "reopen", why="too quick")
    told = page.open(0)
    assert told["status"] == "open"
    assert [(each["action"], each["source"], each["who"]) for each in told["entries"]] == [
        ("accept", "rater bob", "Ada"), ("reopen", "", "Ada"),
    ]  # fmt: skip
    assert not list((served.folder / "truth").iterdir())


def test_whom_to_send_a_case_to(serve_desk):
    served = serve_desk()
    page = served.page()
    assert [each["rater"] for each in page.open(1)["gains"]] == ["cy"], "the others have labelled it"
    assert page.decide(1, "send", rater="nobody").status_code == 400
    assert page.decide(1, "send", rater="cy").status_code == 200
    assert page.get("/api/queue?show=sent").json()["rows"][0]["sent"] == ["cy"]


def test_sending_to_somebody_without_a_link_says_how_to_print_one(serve_desk):
    page = serve_desk(raters=("dora",)).page()
    assert "who has no link yet: start the desk with --rater" in page.decide(1, "send", rater="cy").json()["note"]
    assert page.decide(1, "send", rater="dora").json()["note"] == ""


def test_two_curators_do_not_decide_the_same_case(serve_desk):
    served = serve_desk()
    ada, bob = served.page(), served.page("Bob", "session-2")
    assert ada.open(0)["holder"] is None
    assert bob.open(0)["holder"] == "Ada"
    assert bob.get("/api/state?session=session-2").json()["held"] == {"0": "Ada"}
    assert ada.get("/api/state?session=session-1").json()["held"] == {}
    refused = bob.decide(0, "ambiguous")
    assert refused.status_code == 409
    assert "held by Ada" in refused.json()["error"]
    ada.post("/api/cases/0/close")
    assert bob.post("/api/cases/0/keep").json()["holder"] is None
    assert bob.decide(0, "ambiguous").status_code == 200


def test_what_was_decided_meanwhile_is_not_overwritten(serve_desk):
    served = serve_desk()
    ada, bob = served.page(), served.page("Bob", "session-2")
    seen = ada.open(0)["seen"]
    served.desk.leases.give_back(0, "session-1")  # Ada's browser was asleep
    bob.decide(0, "ambiguous")
    bob.post("/api/cases/0/close")
    late = ada.post("/api/cases/0/decide", action="ambiguous", seen=seen)
    assert late.status_code == 409
    assert "changed by Bob" in late.json()["error"]


def test_a_full_disk_is_told_and_nothing_is_lost(serve_desk, monkeypatch):
    served = serve_desk()
    page = served.page()

    def full(*_, **__):
        raise AnnotruthError("decisions.jsonl: No space left on device.")

    monkeypatch.setattr(served.desk.study.journal, "append", full)
    answer = page.decide(0, "ambiguous")
    assert answer.status_code == 507
    kept = "Your work is kept in this browser: save again."
    assert answer.json()["error"] == f"Not saved. decisions.jsonl: No space left on device. {kept}"
    monkeypatch.undo()
    assert page.open(0)["status"] == "open"
    assert page.decide(0, "ambiguous").status_code == 200


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"action": "delete"}, "nothing that can be decided"), ({"action": "label"}, "nothing that can be decided"),
        ({"action": "accept"}, "cut off"), ({"action": "ambiguous", "who": " \n"}, "Say who you are"),
        ({"action": "ambiguous", "session": "../x"}, "load it anew"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_words(serve_desk, told, words):
    page = serve_desk().page()
    answer = page.post("/api/cases/0/decide", **{"seen": 0} | told)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


@pytest.mark.parametrize("path", ["/api/cases/6/image", "/api/cases/-1/image", "/api/cases/x/image", "/api/nothing"])
def test_there_is_no_such_case(serve_desk, path):
    assert serve_desk().page().get(path).status_code == 404


@pytest.mark.parametrize("query", ["slice=1", "channel=9", "slice=-1", "slice=x", "slice=99999999999"])
def test_there_is_no_such_slice(serve_desk, query):
    assert serve_desk().page().get(f"/api/cases/0/image?{query}").status_code == 400


@pytest.mark.parametrize("body", [b"", b"\xff\xff\xff\xff", b"\x02\x00\x00\x00[]", b"\x05\x00\x00\x00{{{{{"])
def test_what_cannot_be_read_is_refused(serve_desk, body):
    client = serve_desk().page().client
    assert client.post("/api/cases/0/decide", content=body).status_code == 400


def test_words_for_the_log_are_kept_on_one_line(serve_desk):
    served = serve_desk()
    served.page("A\u2028da\x00").decide(0, "ambiguous", why="one\ntwo\x1b[31m" + "x" * 5000)
    entry = served.desk.study.journal.entries[0]
    assert entry.who == "A da"
    assert entry.why.startswith("one two [31mxxx")
    assert len(entry.why) == 2000


def test_a_label_table_is_decided_by_class(serve_desk):
    served = serve_desk(draw_table())
    page = served.page()
    told = page.open(2)
    assert told["answers"] == [[0, 0], [1, 1]]
    assert sum(told["posterior"]) == pytest.approx(1, abs=1e-3)
    assert told["image"] is None
    head, _ = unpack(page.get("/api/cases/2/methods/0").content)
    assert head["label"] in (0, 1)
    assert page.decide(2, "edit", label="7").status_code == 400
    assert page.decide(2, "edit", label="1", source="choice").status_code == 200
    assert served.desk.wait()
    assert served.desk.doubt[2] == 0
    assert (served.folder / "truth.csv").read_text() == "item,truth\n'=p2,dog\n"
    assert page.open(2)["gold"] == 1
    assert page.get("/api/cases/2/layers").status_code == 404


def test_slices_of_a_volume(serve_desk):
    volumes = draw_cases(3, (10, 12, 8))
    served = serve_desk(volumes)
    page = served.page()
    assert page.open(2)["shape"] == [8, 10, 12]
    masks = volumes.item_masks(2)
    layer = decode_runs(page.layers(2)["rater 1"], masks[1].size).reshape(8, 10, 12)
    assert (layer == np.moveaxis(masks[1], 2, 0)).all()
    plane = np.frombuffer(page.get("/api/cases/2/image?slice=5").content, np.uint8).reshape(10, 12)
    assert (plane == volumes.item_image(2)[0, :, :, 5]).all()
    drawn = np.arange(masks[1].size).reshape(8, 10, 12).astype(np.uint8) % 2
    page.decide(2, "edit", encode_runs(drawn))
    assert (np.moveaxis(np.load(served.folder / "truth" / "case 2.npy"), 2, 0) == drawn).all()


class OneModel:
    """Sees the lesion everywhere."""

    def predict_proba(self, images, **told):
        return np.stack([np.stack([0.2 + 0 * image[0], 0.8 + 0 * image[0]]) for image in images])


def test_a_models_word_is_one_more_opinion(serve_desk):
    page = serve_desk(model=OneModel()).page()
    assert page.get("/api/desk").json()["methods"][-1] == "model"
    _, (code,) = unpack(page.get("/api/cases/0/methods/4").content)
    assert (decode_runs(code, SIZE) == 1).all()


def test_the_desk_works_without_pytorch():
    """In a process of its own, because others have loaded it here."""
    import subprocess

    code = "import sys, annotruth.desk, annotruth.desk.app, annotruth.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
