"""The desk at work: queues, and a thread that must not take pages down with it."""

from __future__ import annotations

import pytest

from annotruth.desk.fusing import MaskFusion

from .conftest import draw_cases, draw_table


def test_the_queue_is_by_doubt_and_found_by_name_and_status(serve_desk):
    desk = serve_desk(draw_cases(sloppy=True)).desk
    total, rows = desk.queue("open", "", 0, 100)
    assert total == 6
    assert [row["doubt"] for row in rows] == sorted((row["doubt"] for row in rows), reverse=True)
    assert rows[0]["doubt"] == 1
    assert [row["item"] for row in desk.queue("all", "SE 4", 0, 100)[1]] == ["case 4"]
    assert [row["index"] for row in desk.queue("open", "", 2, 2)[1]] == [row["index"] for row in rows[2:4]]
    desk.decide(rows[0]["index"], "ambiguous", who="Ada")
    assert desk.queue("open", "", 0, 100)[0] == 5
    assert desk.queue("ambiguous", "", 0, 100)[1][0]["last"] == "Ada"


def test_a_raters_queue_begins_with_what_they_are_asked(serve_desk):
    desk = serve_desk(draw_table(), raters=("dora",)).desk
    wanted = [row["index"] for row in desk.rater_queue("dora", "open", "", 0, 9)[1]]
    assert sorted(wanted) == list(range(8)), "she has labelled nothing"
    desk.decide(6, "send", who="Ada", rater="dora")
    rows = desk.rater_queue("dora", "open", "", 0, 9)[1]
    assert rows[0] == {"index": 6, "item": "=p6", "asked": True, "status": "open"}
    desk.decide(6, "label", who="dora", role="rater", rater="dora", labels=0)
    assert 6 not in [row["index"] for row in desk.rater_queue("dora", "open", "", 0, 9)[1]]
    assert [row["index"] for row in desk.rater_queue("cy", "open", "", 0, 9)[1]] in ([2, 5], [5, 2])


def test_what_is_ambiguous_is_asked_of_nobody(serve_desk):
    desk = serve_desk(draw_table(), raters=("dora",)).desk
    desk.decide(2, "ambiguous", who="Ada")
    assert 2 not in [row["index"] for row in desk.rater_queue("dora", "open", "", 0, 9)[1]]
    desk.decide(2, "send", who="Ada", rater="dora")
    assert desk.rater_queue("dora", "open", "", 0, 9)[1][0]["index"] == 2, "unless somebody wants to know"


def test_what_others_label_would_tell(serve_desk):
    desk = serve_desk(draw_table()).desk
    (name, gain), *more = desk.gains(2)
    assert name == "cy"
    assert gain > 0
    assert not more
    assert desk.gains(0) == [], "all have labelled it"


def test_decisions_are_saved_also_when_the_fusion_fails(serve_desk, monkeypatch, capsys):
    served = serve_desk()

    def fail(self, changed):
        raise RuntimeError("the disk is gone.")

    monkeypatch.setattr(MaskFusion, "follow", fail)
    page = served.page()
    assert page.decide(0, "ambiguous").status_code == 200
    assert not served.desk.wait(5)
    assert page.decide(1, "ambiguous").status_code == 200
    told = page.get("/api/state").json()
    assert "the disk is gone. Decisions are saved all the same." in told["fault"]
    assert not told["busy"]
    assert told["counts"]["ambiguous"] == 2
    capsys.readouterr()


def test_a_later_session_takes_up_where_the_last_one_ended(serve_desk):
    first = serve_desk()
    first.page().decide(0, "ambiguous")
    first.desk.stop()
    again = serve_desk()
    assert again.desk.counts() == {"open": 5, "decided": 0, "ambiguous": 1, "sent": 0}


@pytest.mark.parametrize("clock", [29.0, 31.0])
def test_a_case_is_free_when_its_holder_is_not_heard_of(clock):
    from annotruth.desk.leases import Leases

    now = [0.0]
    leases = Leases(30, lambda: now[0])
    leases.take(1, "a", "Ada")
    now[0] = clock
    assert leases.take(1, "b", "Bob") == ("Ada" if clock < 30 else None)


def test_a_page_holds_one_case_at_a_time():
    from annotruth.desk.leases import Leases

    leases = Leases()
    leases.take(1, "a", "Ada")
    leases.take(2, "a", "Ada")
    assert leases.holders() == {2: "Ada"}
