"""Starting the desk: the folder it writes into, the address it listens on, the links that are handed out."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from annotruth.desk.access import Access, is_loopback, kept_key, make_access
from annotruth.desk.live import Desk
from annotruth.desk.study import Study
from annotruth.errors import InputError
from annotruth.io.extras import need
from annotruth.io.locks import only_writer

if TYPE_CHECKING:
    from annotruth.data.annotations import Annotations

PORT = 8765
KEY = "links.key"
"""The file by which links stay the same from one session to the next."""
_LEAST_BYTES = 2**16


def desk_folder(cases: Path) -> Path:
    """Where decisions on some cases, a run or a table are written, unless told otherwise.

    Examples
    --------
    >>> desk_folder(Path("data/cases")).as_posix(), desk_folder(Path("labels.csv")).as_posix()
    ('data/cases-desk', 'labels-desk')
    """
    cases = cases.resolve() if cases.name in ("", "..") else cases
    return cases.with_name(f"{cases.name if cases.is_dir() else cases.stem}-desk")


def serve(
    annotations: Annotations,
    folder: str | Path,
    *,
    title: str = "",
    host: str = "127.0.0.1",
    port: int = PORT,
    raters: Sequence[str] = (),
    model: Any = None,
    told: Callable[[str], None] = print,
) -> None:
    """Serve the desk until somebody ends it.

    Parameters
    ----------
    annotations : masks or a label table, with images if they are to be seen
    folder : for decisions; what an earlier session left there is taken up
    host, port : to listen on; port 0 = any that is free. On other than this machine's own address, links hold a token
    raters : who get a link of their own, to label what is asked of them, unaware of what others said
    model : a trained model, to be asked beside the methods of fusion
    told : takes the links, and what was found at the start
    """
    uvicorn = need("uvicorn", "desk")
    need("starlette", "desk")
    from annotruth.desk.app import make_app

    folder = Path(folder)
    with only_writer(folder), _listening(host, port) as sockets:
        desk = Desk(Study(annotations, folder, raters), title, model)
        key = kept_key(folder / KEY) if raters or not is_loopback(host) else None
        access = make_access(host, sockets.getsockname()[1], raters, most_bytes(annotations), key)
        for words in (*desk.study.told, *links(access, host)):
            told(words)
        config = uvicorn.Config(
            make_app(desk, access), log_level="warning", access_log=False, server_header=False, lifespan="off",
            timeout_graceful_shutdown=3,
        )  # fmt: skip
        desk.start()
        try:
            uvicorn.Server(config).run(sockets=[sockets])
        finally:
            desk.stop()


def most_bytes(annotations: Annotations) -> int:
    """The largest request that any case needs: a mask of which no two neighbours are alike."""
    if annotations.kind != "masks":
        return _LEAST_BYTES
    sizes = (int(np.prod(annotations.shape(index))) for index in range(len(annotations)))
    return _LEAST_BYTES + 5 * max(sizes, default=0)


def links(access: Access, host: str) -> list[str]:
    """The addresses to be opened, each with whom it is for."""
    shown = host if host not in ("0.0.0.0", "::") else socket.gethostname()
    home = f"http://{f'[{shown}]' if ':' in shown else shown}:{access.port}/"
    if not access.tokens:
        return [f"The desk is at {home}"]
    return [
        f"{'For curators' if role.kind == 'curator' else f'For {role.rater}'}: {home}?token={token}"
        for token, role in access.tokens.items()
    ] + ([] if is_loopback(host) else ["Whoever has a link can use it, and others on the network may read along."])


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens, or clear words why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, port))
            made.listen(128)  # whoever comes before the desk is ready waits for it
        except (OSError, OverflowError) as error:
            if getattr(error, "errno", None) == errno.EADDRINUSE:
                raise InputError(
                    f"Port {port} is in use, perhaps by another desk. End that, or name another: --port {port + 1}; "
                    "--port 0 takes any that is free."
                ) from None
            raise InputError(f"{host}, port {port}: cannot be listened on: {error}.") from None
        yield made
