"""Words of the command line that mean nothing, or nothing good."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.attacks import Attack, Attacks

PLANES, TABLE = "BASE/planes", "BASE/answers.csv"
TRAIN = ("train", PLANES, "-o", "out", "--quiet", "--accelerator", "cpu")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("check", "nowhere"), ("check", "/dev/zero"), ("check", "/dev/null"), ("check", "a\nb"), ("check", "x" * 5000),
    ("load", "nowhere"), ("load", "/dev/zero"), ("load_model", "nowhere"), ("load_model", "/dev/zero"),
    ("fuse", PLANES, "-o", "out", "--method", "nonsense"), ("fuse", PLANES, "-o", "out", "--scope", "nonsense"),
    ("fuse", PLANES, "-o", "out", "--option", "max_iter=-1"), ("fuse", PLANES, "-o", "out", "--option", "max_iter"),
    ("fuse", PLANES, "-o", "out", "--option", "max_iter=[[1]]"), ("fuse", PLANES, "-o", "out", "--option", "tol=NaN"),
    ("fuse", PLANES, "-o", "out", "--option", "nonsense=1"), ("fuse", PLANES, "-o", "out", "--jobs", "0"),
    ("fuse", PLANES, "-o", "out", "--jobs", "-3"), ("fuse", PLANES, "-o", "out", "--dask", "nonsense"),
    ("fuse", PLANES, "-o", "/dev/null"), ("fuse", PLANES, "-o", "/dev/null/out"), ("fuse", PLANES, "-o", "/proc/out"),
    ("fuse", PLANES, "-o", "out", "--option", "prior=" + "[" * 100_000),
    ("fuse", PLANES, "-o", "out", "--option", "max_iter=" + "9" * 5000),
    ("fuse", TABLE, "-o", "out", "--scope", "case"), ("fuse", TABLE, "-o", "out", "--duplicates", "nonsense"),
    (*TRAIN, "--method", "nonsense"), (*TRAIN, "--epochs", "0"), (*TRAIN, "--epochs", "-5"),
    (*TRAIN, "--batch-size", "0"),
    (*TRAIN, "--learning-rate", "nan"), (*TRAIN, "--learning-rate", "-1"), (*TRAIN, "--validation", "2"),
    (*TRAIN, "--validation", "nan"), (*TRAIN, "--fold", "9"), (*TRAIN, "--fold", "x"), (*TRAIN, "--folds", "3"),
    (*TRAIN, "--fold", "all", "--folds", "99"), (*TRAIN, "--patch-size", "a,b"), (*TRAIN, "--patch-size", "-4,4"),
    (*TRAIN, "--patch-size", "4"), (*TRAIN, "--network", "nonsense"), (*TRAIN, "--network", "monai:os.system"),
    (*TRAIN, "--network", "monai:Nonsense"), (*TRAIN, "--option", "nonsense=1"), (*TRAIN, "--option", "trace_weight=x"),
    (*TRAIN, "--devices", "0"), (*TRAIN, "--strategy", "nonsense"), (*TRAIN, "--plan", "nowhere"), (*TRAIN, "--resume"),
    (*TRAIN, "--images", PLANES), (*TRAIN[:-1], "nonsense"), (*TRAIN, "--plan", "/dev/zero"),
    ("train", TABLE, "-o", "out", "--quiet"), ("train", TABLE, "--images", PLANES, "-o", "out", "--quiet"),
    ("train", TABLE, "--features", "/dev/zero", "-o", "out", "--quiet"),
    ("predict", "BASE/run", "nowhere", "-o", "out"), ("predict", "BASE/run", "/dev/zero", "-o", "out"),
    ("predict", "nowhere", PLANES, "-o", "out"), ("predict", "BASE/run", TABLE, "-o", "out"),
    ("predict", "BASE/run", PLANES, "-o", "out", "--confidence", "ann=x"),
    ("predict", "BASE/run", PLANES, "-o", "out", "--recurrence", "3"),
    ("predict", "BASE/run", "BASE/table", PLANES, "-o", "out"), ("predict", "BASE/table", PLANES, "-o", "out"),
    ("report", "nowhere"), ("report", "BASE/planes"), ("report", "BASE/run", "--cases", "nowhere"),
    ("report", "BASE/run", "-o", "/proc/report.html"), ("plan", "nowhere", "-o", "plan.json"),
    ("plan", PLANES, "-o", "/proc/plan.json"), ("simulate", "nowhere", "-o", "out"),
    ("simulate", PLANES, "-o", "out", "--raters", "nonsense"), ("simulate", PLANES, "-o", "out", "--keep", "x"),
    ("reproduce", "nonsense"), ("reproduce", "zhang2020-mnist", "--data", "nowhere"), ("nonsense",), ("train",),
)  # fmt: skip


def _nothing(base: Path, home: Path) -> None:
    """Leave the folder empty."""


def all_attacks() -> Attacks:
    for command in COMMANDS:
        yield Attack("words", " ".join(word[:40] for word in command), _nothing, command)
