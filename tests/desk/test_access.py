"""The gate: tokens, roles, and requests that only the desk's own pages can make."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.desk.access import Access, Role, is_loopback, kept_key, make_access
from annotruth.desk.coding import encode_runs
from annotruth.errors import InputError

from .conftest import pack


@pytest.fixture
def client(serve_desk):
    return serve_desk().page().client


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "10.0.0.7:8765", ""]
)
def test_a_foreign_name_that_points_here_is_refused(client, host):
    answer = client.get("/api/desk", headers={"host": host})
    assert answer.status_code == 421
    assert "annotruth serve" in answer.json()["error"]


@pytest.mark.parametrize("host", ["localhost:8765", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST:8765"])
def test_own_names_are_let_in(client, host):
    assert client.get("/api/desk", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
    ],
)  # fmt: skip
def test_pages_of_other_sites_change_nothing(serve_desk, headers):
    page = serve_desk().page()
    told = pack({"session": "session-1", "who": "Ada", "action": "ambiguous", "seen": 0})
    answer = page.client.post("/api/cases/0/decide", content=told, headers=headers)
    assert answer.status_code == 403
    assert page.open(0)["status"] == "open"


def test_a_form_of_another_site_cannot_send_what_is_asked_for(client):
    del client.headers["x-annotruth-desk"]
    assert client.post("/api/cases/0/decide", content=pack({"action": "ambiguous"})).status_code == 403
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert client.request(method, "/api/desk").status_code == 403


def test_every_answer_keeps_the_browser_strict(client):
    for path in ("/", "/page/main.js", "/api/desk", "/no/such", "/api/cases/99/image"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


def test_the_page_holds_no_script_of_its_own(client):
    page = client.get("/").text
    assert '<script type="module" src=' in page
    assert page.count("<script") == 1
    assert " style=" not in page
    assert " onclick" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize("path", ["/page/..%2f..%2fapp.py", "/page/../app.py", "/page/%2e%2e", "/page/", "/etc/passwd",
                                  f"/api/cases/{'9' * 5000}/image"])  # fmt: skip
def test_no_name_in_an_address_is_looked_for_on_disk(client, path):
    assert client.get(path).status_code == 404


def test_too_large_requests_are_refused_also_without_a_told_length(serve_desk):
    client = serve_desk().page().client
    large = 10 * 2**20
    assert client.post("/api/cases/0/decide", content=b"x" * large).status_code == 413
    assert client.post("/api/cases/0/decide", content=(b"x" * 2**16 for _ in range(large // 2**16))).status_code == 413


def test_a_link_lets_in_by_a_strict_cookie(serve_desk):
    served = serve_desk(raters=("dora",))
    page = served.page()
    page.client.cookies.clear()
    assert page.get("/").status_code == 401
    assert page.get("/api/desk").status_code == 401
    assert page.get("/?token=wrong").status_code == 401
    assert page.get(f"/api/desk?token={served.tokens['curator']}").status_code == 401, "only the page itself takes one"
    welcome = page.get(f"/?token={served.tokens['curator']}")
    cookie = welcome.headers["set-cookie"]
    assert all(words in cookie for words in ("HttpOnly", "SameSite=Strict", "annotruth-desk-8765="))
    assert served.tokens["curator"] not in welcome.text
    assert page.get("/api/desk").json()["role"] == "curator"


def test_a_rater_sees_nothing_of_others(serve_desk):
    served = serve_desk(raters=("cy", "dora"))
    curator, cy, dora = served.page(), *(served.page(role=name) for name in ("cy", "dora"))
    layers = curator.layers(0)
    curator.decide(1, "send", rater="dora")
    curator.decide(3, "accept", layers["fused"], source="fused", why="secret")
    assert cy.layers(0) == {"own": layers["rater 2"]}
    assert cy.layers(1) == {}
    assert dora.layers(0) == {}
    assert dora.get("/api/cases/0/methods/0").status_code == 403
    assert dora.decide(0, "accept", layers["fused"]).status_code == 400
    told = [dora.get(path).text for path in ("/api/desk", "/api/state", "/api/queue", "/api/queue?show=decided")]
    told.append(str(dora.open(3)))
    for word in ("ann'", 'ann"', "bob", "secret", "staple", "doubt", "fused", "Ada"):
        assert not [each for each in told if word in each], word
    rows = dora.get("/api/queue").json()["rows"]
    assert rows[0] == {"index": 1, "item": "case 1", "asked": True, "status": "open"}
    assert dora.decide(1, "label", encode_runs(draw(1))).status_code == 200
    assert [row["index"] for row in dora.get("/api/queue?show=decided").json()["rows"]] == [1]
    assert served.desk.wait()
    assert curator.layers(1)["rater 3"] == encode_runs(draw(1))
    assert curator.open(1)["status"] == "open"


def draw(value):
    return np.full((20, 24), value, dtype=np.uint8)


def test_off_this_machine_a_token_is_always_needed():
    access = make_access("0.0.0.0", 8765, [], 1000)
    assert [role.kind for role in access.tokens.values()] == ["curator"]
    assert access.knows_host("192.168.1.7:8765")
    assert not access.knows_host("evil.example:8765")
    assert access.role("") is None
    assert access.role(next(iter(access.tokens))) == Role("curator")
    assert is_loopback("::1")
    assert not is_loopback("192.168.1.7")


def test_links_hold_from_one_session_to_the_next_until_the_key_is_removed(tmp_path):
    def tokens(*raters):
        return {role: token for token, role in make_access("::1", 1, raters, 1, kept_key(path)).tokens.items()}

    path = tmp_path / "links.key"
    first = tokens("ann")
    assert path.stat().st_mode & 0o077 == 0
    assert tokens("bob", "ann").items() >= first.items()
    path.unlink()
    assert not set(tokens("ann").values()) & set(first.values())
    path.write_text("no key")
    with pytest.raises(InputError, match=r"links.key: cannot be read .* Remove it"):
        kept_key(path)


def test_tokens_are_long_and_not_alike():
    tokens = [*make_access("0.0.0.0", 1, ["a", "b"], 1).tokens]
    assert len(set(tokens)) == 3
    assert min(map(len, tokens)) >= 43
    assert Access({}, (), False, 1, 1).role("anything") == Role("curator")
