"""What tables said before they were made anew: `python -m tools.history` writes docs/results/history.md.

Reads the earlier figures from Git's history, so it needs a clone with its history.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.tables import ROOT, markdown

RESULTS = Path("docs/results")
REASONS = {
    "0.1.0": "0.1.0 had smaller networks, not planned by the data, and in pixel-cm and global-cm took raters "
    "at their consensus for the first part of the training.",
}
"""Why figures of a version are no longer those of today's."""


def versions(path: Path) -> list[dict[str, Any]]:
    """A table's contents by the versions of annotruth that made them, the newest first; of each version the last."""
    revisions = _git("log", "--format=%H", "--", str(path)).split()
    found: dict[str, dict[str, Any]] = {}
    for content in ((ROOT / path).read_text(), *(_git("show", f"{revision}:{path}") for revision in revisions)):
        table = json.loads(content) if content else {}
        if "experiment" in table:
            found.setdefault(_made_by(table), table)
    return list(found.values())


def compared(now: dict[str, Any], before: dict[str, Any]) -> str:
    """The rows that both have, with the first figure of each."""
    metric = now["metrics"][0]
    earlier = {_key(row): row for row in before["rows"]}
    rows = []
    for row in now["rows"]:
        old = earlier.get(_key(row))
        if old is not None and metric["name"] in old and metric["name"] in row:
            means = [format(each[metric["name"]]["mean"], metric["form"]) for each in (old, row)]
            rows.append([row["setting"], ", ".join(row["lines"]), *means])
    dates = [f"{_made_by(each)}, {each['environment']['date']}" for each in (before, now)]
    return markdown(["setting", "method", *(f"{metric['title']}, {date}" for date in dates)], rows) if rows else ""


def page() -> str:
    """The whole page."""
    parts = [
        "# Earlier figures\n",
        "Made by `python -m tools.history`. The first figure of each row that a table had before it was made anew, "
        "beside today's. Sizes, seeds and epochs may differ, too: they stand on the tables' own pages.\n",
        *(f"{reason}\n" for reason in REASONS.values()),
    ]
    for path in sorted((ROOT / RESULTS).glob("*.json")):
        now, *before = versions(path.relative_to(ROOT)) or [{}]
        for each in before:
            table = compared(now, each)
            if table:
                parts.append(f"## [{now['title']}]({path.stem}.md)\n\n{table}")
    return "\n".join(parts)


def _made_by(table: dict[str, Any]) -> str:
    return str(table["environment"]["versions"]["annotruth"])


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["setting"], *row["lines"]


def _git(*arguments: str) -> str:
    """What Git says; nothing where it knows of no such file, which had another name then."""
    answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout if answer.returncode == 0 else ""


if __name__ == "__main__":
    (ROOT / RESULTS / "history.md").write_text(page())
    sys.exit()
