"""What the desk answers to which address. Cases are asked for by number; no name is ever looked for on disk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from annotruth.desk.access import Access, Gate, Role
from annotruth.desk.cases import PROBABILITY_STEPS, Cases
from annotruth.desk.live import STATUS, Desk
from annotruth.errors import AnnotruthError, InputError

MOST_ROWS = 500
"""Of the queue, in one answer."""
MOST_WORDS, MOST_NAME = 2000, 60
"""Characters of a reason, and of a name."""
_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
          "svg": "image/svg+xml"}  # fmt: skip


def make_app(desk: Desk, access: Access) -> ASGIApp:
    """The web application of a desk, behind its gate."""
    cases = Cases(desk)
    pages = _pages()
    linked = {role.rater for role in access.tokens.values()}

    def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in pages:
            raise HTTPException(404, "There is no such page.")
        content, kind = pages[name]
        return Response(content, media_type=kind)

    def about(request: Request) -> Response:
        role, study = _role(request), desk.study
        told: dict[str, Any] = {
            "title": desk.title, "kind": "masks" if study.is_masks else "labels", "cases": len(study),
            "role": role.kind, "rater": role.rater, "classes": list(study.base.classes),
            "steps": PROBABILITY_STEPS,
        }  # fmt: skip
        if role.kind == "curator":
            told |= {"raters": list(study.raters), "methods": list(desk.fusion.methods), "told": study.told}
        return JSONResponse(told)

    def state(request: Request) -> Response:
        if _role(request).kind == "rater":
            return JSONResponse({"version": desk.version, "busy": desk.is_busy})
        return JSONResponse({
            "version": desk.version, "busy": desk.is_busy, "fault": desk.fault, "counts": desk.counts(),
            "progress": [desk.progress.done, desk.progress.total],
            "held": desk.leases.holders(request.query_params.get("session", "")),
        })  # fmt: skip

    def queue(request: Request) -> Response:
        asked, role = request.query_params, _role(request)
        start, count = _number(asked.get("start", "0")), min(_number(asked.get("count", "100")), MOST_ROWS)
        show, find = asked.get("show", "open"), asked.get("find", "")[:MOST_NAME]
        if show not in (*STATUS, "all"):
            raise InputError("There is no such list.")
        if role.kind == "rater":
            total, rows = desk.rater_queue(role.rater, show, find, start, count)
        else:
            total, rows = desk.queue(show, find, start, count)
        return JSONResponse({"total": total, "rows": rows, "version": desk.version})

    def image(request: Request) -> Response:
        index = _case(request, desk)
        plane = cases.plane(index, *(_number(request.query_params.get(name, "0")) for name in ("slice", "channel")))
        return Response(plane, media_type="application/octet-stream")

    def layers(request: Request) -> Response:
        return _bytes(cases.layers(_case(request, desk, masks=True), _role(request).rater))

    def method(request: Request) -> Response:
        if _role(request).kind == "rater":
            raise HTTPException(403, "This is for curators.")
        return _bytes(cases.method(_case(request, desk), request.path_params["number"]))

    def open_case(index: int, role: Role, told: dict[str, Any], _: bytes) -> Response:
        holder = _take(index, role, told)
        return JSONResponse(cases.about(index, role.rater) | {"holder": holder})

    def keep(index: int, role: Role, told: dict[str, Any], _: bytes) -> Response:
        return JSONResponse({"holder": _take(index, role, told), "seen": cases.seen(index)})

    def close(index: int, role: Role, told: dict[str, Any], _: bytes) -> Response:
        desk.leases.give_back(index, _session(role, told))
        return JSONResponse({})

    def decide(index: int, role: Role, told: dict[str, Any], code: bytes) -> Response:
        study, item = desk.study, desk.study.base.items[index]
        action = str(told.get("action", ""))
        if action not in (("label",) if role.kind == "rater" else ("accept", "edit", "ambiguous", "send", "reopen")):
            raise InputError(f"{action!r} is nothing that can be decided.")
        holder = _take(index, role, told)
        if holder is not None:
            raise HTTPException(409, f"{item} is held by {holder}. Your work is kept in this browser.")
        if role.kind == "curator" and told.get("seen") != cases.seen(index):
            last = study.record(index).entries[-1]
            raise HTTPException(
                409,
                f"{item} was changed by {last.who} since you opened it. Your work is kept in this browser: look again.",
            )
        rater = role.rater or str(told.get("rater", ""))
        if action == "send" and rater not in study.raters:
            raise InputError(f"There is no rater {rater!r}.")
        labels: Any = None
        if action in ("accept", "edit", "label"):
            labels = cases.drawn(index, code) if study.is_masks else _number(str(told.get("label", "")))
        entry, warning = desk.decide(
            index, action, who=_name(role, told), role=role.kind, labels=labels,
            source=_words(told, "source", MOST_NAME * 2), why=_words(told, "why", MOST_WORDS),
            rater=rater if action in ("send", "label") else "",
        )  # fmt: skip
        note = ""
        if action == "send" and rater not in linked:
            note = f"{item} is sent to {rater}, who has no link yet: start the desk with --rater to print one."
        return JSONResponse({"number": entry.number, "warning": warning, "note": note, "seen": cases.seen(index)})

    def _take(index: int, role: Role, told: dict[str, Any]) -> str | None:
        if role.kind == "rater":  # raters label side by side
            return None
        return desk.leases.take(index, _session(role, told), _name(role, told))

    Acting = Callable[[int, Role, dict[str, Any], bytes], Response]

    def acting(act: Acting) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            told, code = _unpack(await request.body())
            return await run_in_threadpool(act, _case(request, desk), _role(request), told, code)

        return answer

    routes = [
        Route("/", page), Route("/page/{name}", page), Route("/api/desk", about), Route("/api/state", state),
        Route("/api/queue", queue), Route("/api/cases/{index:int}/image", image),
        Route("/api/cases/{index:int}/layers", layers), Route("/api/cases/{index:int}/methods/{number:int}", method),
        *(
            Route(f"/api/cases/{{index:int}}/{name}", acting(act), methods=["POST"])
            for name, act in (("open", open_case), ("keep", keep), ("close", close), ("decide", decide))
        ),
    ]  # fmt: skip
    handlers: dict[Any, Any] = {InputError: _refuse, AnnotruthError: _fail, HTTPException: _http}
    return Gate(Starlette(routes=routes, exception_handlers=handlers), access)


def _pages() -> dict[str, tuple[bytes, str]]:
    """The page's files by name: read once, so that no name from outside is ever looked for."""
    found = {}
    for file in files("annotruth.desk").joinpath("page").iterdir():
        kind = _TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            found[file.name] = (file.read_bytes(), kind)
    return found


def _role(request: Request) -> Role:
    role = request.scope["state"]["role"]
    assert isinstance(role, Role)
    return role


def _case(request: Request, desk: Desk, masks: bool = False) -> int:
    index = int(request.path_params["index"])
    if not 0 <= index < len(desk.study) or (masks and not desk.study.is_masks):
        raise HTTPException(404, "There is no such case.")
    return index


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise InputError("A whole number was expected.")
    return int(text)


def _unpack(body: bytes) -> tuple[dict[str, Any], bytes]:
    """What a page sends: the length of a head, the head (JSON), and a mask's code, perhaps."""
    length = int.from_bytes(body[:4], "little")
    try:
        told = json.loads(body[4 : 4 + length])
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise InputError("What was sent cannot be read.")
    return told, body[4 + length :]


def _session(role: Role, told: dict[str, Any]) -> str:
    session = str(told.get("session", ""))
    if not re.fullmatch(r"[0-9a-zA-Z-]{8,64}", session):
        raise InputError("The page did not say which one it is: load it anew.")
    return session


def _name(role: Role, told: dict[str, Any]) -> str:
    name = role.rater or _words(told, "who", MOST_NAME)
    if not name:
        raise InputError("Say who you are: each decision is noted with a name.")
    return name


def _words(told: dict[str, Any], key: str, most: int) -> str:
    """Words of the user on one line; what a log cannot hold, half characters say, is left out."""
    text = str(told.get(key, "") or "").encode(errors="ignore").decode()
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())[:most]


def _bytes(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


def _refuse(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


def _fail(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": f"Not saved. {error} Your work is kept in this browser: save again."}, 507)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": str(error.detail)}, error.status_code)
