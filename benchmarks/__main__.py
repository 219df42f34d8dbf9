"""Run the benchmarks, print the table, write it to docs/results."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import answers, results, spatial, staple
from benchmarks.measure import ROOT, Row, in_fresh_process, machine


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--data", type=Path, help="folder of real answer tables: bluebirds and dog_breed, answers and truth"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the benchmarks themselves")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    options = parser.parse_args()
    size, n_answers, picture = (24, 50_000, 64) if options.quick else (256, 1_000_000, 512)
    growth_sizes = [2_000, 4_000] if options.quick else [1_000_000, 5_000_000, 20_000_000]

    about, console = machine(), Console()
    rows: list[Row] = []
    notes = []
    with tempfile.TemporaryDirectory() as cache, console.status("compiling …") as status:
        empty, kept = (in_fresh_process("first_call", "72", cache=Path(cache)) for _ in range(2))
        compiling = {"empty": empty["first"] - empty["second"], "kept": kept["first"] - kept["second"]}
        for name, benchmark in (
            ("Spatial STAPLE", spatial.run(picture)),
            ("Dawid-Skene beside crowd-kit", answers.run(n_answers)),
            ("STAPLE beside SimpleITK", staple.run(size)),
        ):
            status.update(f"{name} …")
            rows += benchmark
        status.update("Dawid-Skene on many answers …")
        large, growth = answers.large(growth_sizes)
        rows += large
        if options.data:
            rows += answers.real(options.data)
        else:
            notes.append("Accuracy on real answers was not measured: no folder was given with `--data`.")
    results.write(options.output, rows, growth, compiling, about, notes)
    shown = Table("work", "beside", "measured", "target", "reached")
    for row in rows:
        shown.add_row(*results.line(row)[:-1], style="red" if row.passed is False else None)
    console.print(shown, *notes, f"Compiling took {compiling['empty']:.1f} s. Written to {options.output}.", sep="\n")
    return 1 if any(row.passed is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
