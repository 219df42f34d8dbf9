"""XML of others, read element by element: whatever declares entities or a document type is refused unread.

The standard library's expat does the reading. No file is held in memory as a whole, and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from annotruth.errors import InputError

MAX_DEPTH = 200
"""Elements within each other; no annotation file comes near."""
Start = Callable[[str, dict[str, str]], None]
End = Callable[[str, str], None]


def read_xml(file: Path, start: Start, end: End) -> None:
    """Go through an XML file, telling of each element's begin (name, attributes) and end (name, its text).

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.xml"
    ...     _ = file.write_text('<a b="1">text</a>')
    ...     read_xml(file, print, print)
    a {'b': '1'}
    a text
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    texts: list[list[str]] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        if len(texts) >= MAX_DEPTH:
            raise InputError(f"{file}: elements lie more than {MAX_DEPTH} deep in each other. Export the file anew.")
        texts.append([])
        start(name, attributes)

    def finish(name: str) -> None:
        end(name, "".join(texts.pop()).strip())

    def declared(*_: object) -> NoReturn:
        raise InputError(f"{file}: the file declares a document type or entities, which no labelling tool does.")

    parser.StartElementHandler, parser.EndElementHandler = begin, finish
    parser.CharacterDataHandler = lambda text: texts[-1].append(text) if texts else None
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ExternalEntityRefHandler = declared
    try:
        with file.open("rb") as opened:
            # Large parts: of a name or value that is longer than a part, all is looked at again with each.
            while part := opened.read(1 << 20):
                parser.Parse(part, False)
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, str(error)) if hasattr(expat.errors, "messages") else str(error)
        raise InputError(
            f"{file}: line {error.lineno}, column {error.offset + 1} is not XML: {reason}. Export the file anew."
        ) from None
    except (ValueError, LookupError) as error:
        if isinstance(error, (InputError, KeyError, IndexError)):  # of whoever is told of the elements
            raise
        raise InputError(f"{file}: cannot be read: {error}. Save it as UTF-8.") from None  # an unknown encoding
    except OSError as error:
        raise InputError(f"{file}: cannot be opened: {error.strerror or error}.") from error
