"""Who may ask the desk for what: tokens and roles, and requests that only the desk's own pages can make."""

from __future__ import annotations

import base64
import hmac
import ipaddress
import json
import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from annotruth.errors import InputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = b"x-annotruth-desk"
"""A page of another site cannot send this without the browser asking us first, and we do not answer that."""
_SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
MOST_PATH = 200
"""Characters of an address; a number of thousands of digits is no case."""
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Role:
    """Who asks: a curator, or a rater, who is known by name."""

    kind: Literal["curator", "rater"]
    rater: str = ""


@dataclass(frozen=True)
class Access:
    """What lets requests in.

    Attributes
    ----------
    tokens : roles by the token that proves them; none = whoever comes is a curator
    names : what browsers may call this machine; a foreign name that is made to point here is refused
    any_address : whether any plain address will do, too
    port : that is listened on
    most_bytes : of a request
    """

    tokens: dict[str, Role]
    names: tuple[str, ...]
    any_address: bool
    port: int
    most_bytes: int

    @property
    def cookie(self) -> str:
        """The cookie's name; browsers tell machines apart but not ports."""
        return f"annotruth-desk-{self.port}"

    def role(self, token: str) -> Role | None:
        """The role that a token proves; a curator where none is needed."""
        if not self.tokens:
            return Role("curator")
        found = None
        for known, role in self.tokens.items():  # all of them: how long it takes tells nothing
            if hmac.compare_digest(known.encode(), token.encode(errors="replace")):
                found = role
        return found

    def knows_host(self, host: str) -> bool:
        """Whether a request's Host is one of ours."""
        name, _, port = host.rpartition(":") if host.rpartition(":")[2].isdigit() else (host, "", "80")
        if port != str(self.port):
            return False
        if name.lower() in self.names:
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return self.any_address


def make_access(host: str, port: int, raters: Sequence[str], most_bytes: int, key: bytes | None = None) -> Access:
    """Tokens for a curator and each rater; none on a loopback address with no rater, where a token is not needed.

    The same ``key`` gives the same person the same token; without one, tokens are new each time.

    Examples
    --------
    >>> make_access("127.0.0.1", 8765, [], 1000).tokens
    {}
    >>> [role.kind for role in make_access("127.0.0.1", 8765, ["ann"], 1000).tokens.values()]
    ['curator', 'rater']
    """
    local = is_loopback(host)
    tokens: dict[str, Role] = {}
    if raters or not local:
        key = key or secrets.token_bytes(32)
        roles = [Role("curator"), *(Role("rater", rater) for rater in raters)]
        tokens = {_token(key, role): role for role in roles}
    names = [*_LOOPBACK_NAMES]
    if not local:
        names += [host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()]
    return Access(tokens, tuple(dict.fromkeys(names)), not local, port, most_bytes)


def kept_key(path: Path) -> bytes:
    """The key that an earlier session left in a file, or else a new one, for this user's eyes only.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept_key(Path(folder) / "links.key") == kept_key(Path(folder) / "links.key")
    True
    """
    try:
        return bytes.fromhex(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}). Remove it: links that were given out then end.") from None
    key = secrets.token_bytes(32)
    with open(path, "x", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(key.hex())
    return key


def _token(key: bytes, role: Role) -> str:
    proof = hmac.digest(key, f"{role.kind} {role.rater}".encode(), "sha256")
    return base64.urlsafe_b64encode(proof).rstrip(b"=").decode()


class Gate:
    """Lets in what may come in, and gives every answer the headers that keep a browser strict.

    Parameters
    ----------
    app : asked only with a role, found in ``scope["state"]["role"]``
    access : see there
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # there are no web sockets here
        headers: dict[bytes, bytes] = dict(scope["headers"])
        send = _strict(send)
        refusal = self._refusal(scope["method"], headers)
        if refusal is None and len(scope["path"]) > MOST_PATH:
            refusal = 404, "There is no such page."
        if refusal is not None:
            await _answer(send, *refusal)
            return
        offered = _token_in_query(scope["query_string"]) if scope["path"] == "/" else ""
        token = offered or _cookie(headers.get(b"cookie", b""), self._access.cookie)
        role = self._access.role(token)
        if role is None:
            await _answer(send, 401, "This page needs the link that `annotruth serve` printed: it holds a token.")
            return
        if offered:
            await self._welcome(send, token)
            return
        scope.setdefault("state", {})["role"] = role
        await self._app(scope, _limited(receive, self._access.most_bytes), send)

    def _refusal(self, method: str, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._access.knows_host(host):
            return 421, f"The desk is not called {host[:80]!r}. Use the address that `annotruth serve` printed."
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._access.most_bytes:
            return 413, _too_large(self._access.most_bytes)
        if method in ("GET", "HEAD"):
            return None
        origin = headers.get(b"origin")
        foreign = origin is not None and origin.decode("latin-1").partition("://")[2] != host
        if method != "POST" or foreign or HEADER not in headers:
            return 403, "Only the desk's own pages may change anything."
        if headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none"):
            return 403, "Only the desk's own pages may change anything."
        return None

    async def _welcome(self, send: Send, token: str) -> None:
        """Keep the token in a cookie, and go on without it in the address.

        Not by a redirect: of a link in a mail, browsers would hold back a strict cookie on that way.
        """
        cookie = f"{self._access.cookie}={token}; Path=/; HttpOnly; SameSite=Strict"
        page = b'<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>annotruth</title>'
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"set-cookie", cookie.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": page})


def _too_large(most: int) -> str:
    return f"More than {most:,} bytes were sent: no case is so large."


def _limited(receive: Receive, most: int) -> Receive:
    """Count what comes in: a length that was told need not be true, and need not be told."""
    from starlette.exceptions import HTTPException

    got = 0

    async def counted() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > most:
            raise HTTPException(413, _too_large(most))
        return message

    return counted


def _strict(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            there = {name.lower() for name, _ in given}
            extra = [(k.encode(), v.encode()) for k, v in _SECURITY.items() if k.encode() not in there]
            message = {**message, "headers": [*given, *extra]}
        await send(message)

    return with_headers


async def _answer(send: Send, status: int, words: str) -> None:
    body = json.dumps({"error": words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _token_in_query(query: bytes) -> str:
    for part in query.decode("latin-1").split("&"):
        name, _, value = part.partition("=")
        if name == "token":
            return value
    return ""


def _cookie(header: bytes, wanted: str) -> str:
    for part in header.decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted:
            return value
    return ""
