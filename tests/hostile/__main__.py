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
COUNTS = RESULTS.with_suffix(".json")


def main() -> int:
    wanted = argparse.ArgumentParser(prog="python -m tests.hostile")
    wanted.add_argument("--every", type=int, default=1, help="run only every n-th attack")
    wanted.add_argument("--only", help="run only attacks of these kinds, as models,runs")
    wanted.add_argument("--write", action="store_true", help=f"keep the counts in {RESULTS.name}")
    wanted.add_argument("--json", action="store_true", help="print troubles as JSON, and nothing else")
    asked = wanted.parse_args()
    everything = running.all_attacks()
    attacks = [each for each in everything if asked.only is None or each.kind in asked.only.split(",")][:: asked.every]
    order = list(dict.fromkeys(each.kind for each in everything))
    began, ended, keep = time.monotonic(), [], asked.write and asked.every == 1
    running.load_libraries()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        base = Path(folder) / "base"
        base.mkdir()
        running.prepare(base, with_models=any(each.command[0] != "import" for each in attacks))
        for each in running.run(attacks, base, Path(folder) / "homes"):
            if keep and ended and each.attack.kind != ended[-1].attack.kind:
                write(ended, order)  # a run that is cut off keeps the kinds that are done
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
    if keep:
        write(ended, order)
    return 1 if bad else 0


def write(ended: list[running.Ended], order: list[str]) -> None:
    """Keep the counts by what was attacked; those of kinds that were not attacked now stay as they were measured."""
    kept = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    for kind in dict.fromkeys(each.attack.kind for each in ended):
        mine = [each for each in ended if each.attack.kind == kind]
        slowest = max(mine, key=lambda each: each.seconds)
        codes = Counter(each.code for each in mine)
        verbs = Counter("--resume" if "--resume" in each.attack.command else each.attack.command[0] for each in mine)
        kept[kind] = {
            "distinct": len({each.attack.name for each in mine}), "runs": len(mine), "refused": codes[2],
            "partly": codes[1], "harmless": codes[0], "well": sum(not each.trouble for each in mine),
            "verbs": dict(verbs), "slowest": slowest.attack.name, "slowest seconds": round(slowest.seconds, 1),
            "measured": f"Python {platform.python_version()}, {platform.system()}, {time.strftime('%Y-%m-%d')}",
            "troubles": [f"{each.trouble}: {kind}, {each.attack.name}" for each in mine if each.trouble],
        }  # fmt: skip
    kept = {kind: kept[kind] for kind in order if kind in kept}
    COUNTS.write_text(json.dumps(kept, indent=1) + "\n")
    lines = [
        "# Hostile input",
        "",
        "Bad files, folders and words, each given to one verb in a process of its own. To end well is to end in time "
        f"({running.SECONDS} s) and memory ({running.MEMORY // 2**30} GB beyond the loaded libraries), without a "
        "traceback, with a message and exit code 2 (or 1, the rest being finished), having changed nothing, left "
        "nothing and executed nothing of what the input held. Some changes to models, runs, plans and exports turn out "
        "to be harmless, and names of exports are made safe ones; these may also end with 0. An input is distinct if "
        "what is wrong with it is.",
        "",
        "| attacked | distinct inputs | runs | refused (2) | partly done (1) | harmless (0) | ended well |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    columns = ("distinct", "runs", "refused", "partly", "harmless", "well")
    total = {name: sum(row[name] for row in kept.values()) for name in columns}
    for kind, row in [*kept.items(), ("**all**", total)]:
        cells = " | ".join(str(row[name]) for name in columns[:-1])
        lines.append(f"| {kind} | {cells} | {row['well']} of {row['runs']} |")
    verbs = sum((Counter(row["verbs"]) for row in kept.values()), Counter())
    kind, slow = max(kept.items(), key=lambda pair: pair[1].get("slowest seconds", 0))
    lines += [
        "",
        f"By verb: {', '.join(f'{verb} {count}' for verb, count in verbs.most_common())}.",
        "",
        f"The slowest took {slow['slowest seconds']} s ({kind}: {slow['slowest']}). Measured with "
        f"{'; '.join(dict.fromkeys(row['measured'] for row in kept.values()))}. Made anew by `make hostile`.",
    ]
    troubles = [trouble for row in kept.values() for trouble in row["troubles"]]
    lines += ["", *(f"- {trouble}" for trouble in troubles)] if troubles else []
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
