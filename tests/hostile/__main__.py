"""Run all attacks, or every n-th: ``python -m tests.hostile [--every 8] [--only models] [--write]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
from tests.hostile import running

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "hostile.md"


def main() -> int:
    wanted = argparse.ArgumentParser(prog="python -m tests.hostile")
    wanted.add_argument("--every", type=int, default=1, help="run only every n-th attack")
    wanted.add_argument("--only", help="run only attacks of these kinds, as models,runs")
    wanted.add_argument("--write", action="store_true", help=f"keep the counts in {RESULTS.name}")
    wanted.add_argument("--json", action="store_true", help="print troubles as JSON, and nothing else")
    asked = wanted.parse_args()
    attacks = [each for each in running.all_attacks() if asked.only is None or each.kind in asked.only.split(",")][
        :: asked.every
    ]
    began, ended = time.monotonic(), []
    running.load_libraries()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        base = Path(folder) / "base"
        base.mkdir()
        running.prepare(base)
        for each in running.run(attacks, base, Path(folder) / "homes"):
            ended.append(each)
            if each.trouble and not asked.json:
                print(f"{each.trouble}: {each.attack.kind}, {each.attack.name}: {' '.join(each.attack.command)[:200]}")
                print("    " + each.said.strip()[-1500:].replace("\n", "\n    "), flush=True)
    bad = [each for each in ended if each.trouble]
    if asked.json:
        told = [[each.trouble, each.attack.kind, each.attack.name, " ".join(each.attack.command)] for each in bad]
        print(json.dumps({"attacks": len(ended), "troubles": told}))
    else:
        print(f"{len(ended) - len(bad)} of {len(ended)} ended well, in {time.monotonic() - began:.0f} s.")
    if asked.write:
        write(ended, time.monotonic() - began)
    return 1 if bad else 0


def write(ended: list[running.Ended], seconds: float) -> None:
    """Keep the counts by what was attacked."""
    kinds = dict.fromkeys(each.attack.kind for each in ended)
    lines = [
        "# Hostile input",
        "",
        "Bad files, folders and words, each given to one verb in a process of its own. To end well is to end in time "
        f"({running.SECONDS} s) and memory ({running.MEMORY // 2**30} GB beyond the loaded libraries), without a "
        "traceback, with a message and exit code 2 (or 1, the rest being finished), having changed nothing, left "
        "nothing and executed nothing of what the input held. Some changes to models, runs and plans turn out to be "
        "harmless; these may also end with 0. An input is distinct if what is wrong with it is.",
        "",
        "| attacked | distinct inputs | runs | refused (2) | partly done (1) | harmless (0) | ended well |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in [*kinds, None]:
        mine = [each for each in ended if kind in (None, each.attack.kind)]
        codes = Counter(each.code for each in mine)
        distinct = len({(each.attack.kind, each.attack.name) for each in mine})
        well = sum(not each.trouble for each in mine)
        lines.append(
            f"| {kind or '**all**'} | {distinct} | {len(mine)} | {codes[2]} | {codes[1]} | {codes[0]} "
            f"| {well} of {len(mine)} |"
        )
    verbs = Counter("--resume" if "--resume" in each.attack.command else each.attack.command[0] for each in ended)
    slowest = max(ended, key=lambda each: each.seconds)
    lines += [
        "",
        f"By verb: {', '.join(f'{verb} {count}' for verb, count in verbs.most_common())}.",
        "",
        f"The slowest took {slowest.seconds:.1f} s ({slowest.attack.kind}: {slowest.attack.name}); all of them "
        f"{seconds:.0f} s. Python {platform.python_version()}, {platform.system()}; {time.strftime('%Y-%m-%d')}. "
        "Made anew by `make hostile`.",
    ]
    troubles = [each for each in ended if each.trouble]
    lines += (
        ["", *(f"- {each.trouble}: {each.attack.kind}, {each.attack.name}" for each in troubles)] if troubles else []
    )
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
