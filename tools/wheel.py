"""Build the packages, install each into an empty environment, and use it from another folder.

``python -m tools.wheel [--python python3.12 ...]``: by default every Python from 3.11 to 3.13 that is found. ``pip``
needs a package index, and the build the packages ``build`` and ``hatchling``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
NEEDED = (
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
    "src/annotruth/__init__.py",
    "src/annotruth/py.typed",
)
"""What a source package must hold, among others; every file of the package itself, too."""


def build(folder: Path) -> list[Path]:
    """The source package and the wheel that is built from it."""
    _run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return sorted(folder.iterdir())


def missing_files(package: Path) -> list[str]:
    """Files of the repository's package, and others that are needed, that a built package lacks."""
    ours = [
        path for path in (ROOT / "src" / "annotruth").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    if package.suffix == ".whl":
        held = set(zipfile.ZipFile(package).namelist())
        return [name for path in ours if (name := path.relative_to(ROOT / "src").as_posix()) not in held]
    with tarfile.open(package) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    names = [
        *(path.relative_to(ROOT).as_posix() for path in ours),
        *(name for name in NEEDED if (ROOT / name).exists()),
    ]
    return [name for name in names if name not in held]


def try_out(package: Path, python: str) -> str:
    """Install a package into an empty environment, run it from an empty folder, and say how that went.

    What other packages need may not be there for a Python; that is said, and no fault of this one.
    """
    with tempfile.TemporaryDirectory(prefix="wheel-") as name:
        home = Path(name)
        _run(python, "-m", "venv", home / "venv")
        command = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
        try:
            _run(command / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", package)
        except RuntimeError as error:
            if "No matching distribution" not in str(error):
                raise
            return f"NOT tried with {python}: {str(error).strip().splitlines()[-1]}"
        (home / "work").mkdir()
        (home / "work" / "answers.csv").write_text(
            "item,rater,label\na,ann,cat\na,bob,dog\na,cy,cat\nb,ann,dog\nb,bob,dog\n"
        )
        _run(command / "annotruth", "fuse", "answers.csv", "-o", "fused", cwd=home / "work")
        _run(command / "annotruth", "demo", "--quick", "--quiet", "-o", "demo", cwd=home / "work")
        for made in ("fused/truth.csv", "demo/report.html", "demo/model.annotruth"):
            assert (home / "work" / made).is_file(), made
        return f"installed and used with {python}"


def interpreters() -> list[str]:
    """Every Python of a supported version that is found, on the path or among pyenv's; a shim of none is none."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for version in VERSIONS:
        own = sorted(map(str, kept.glob(f"{version}.*/bin/python{version}")))
        works = (each for each in (shutil.which(f"python{version}"), *own) if each and _works(each))
        found += [each for each in (next(works, None),) if each]
    return found or [sys.executable]


def _works(python: str) -> bool:
    return subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0


def main() -> int:
    wanted = argparse.ArgumentParser(prog="python -m tools.wheel")
    wanted.add_argument("--python", nargs="*", help="interpreters to try")
    wanted.add_argument("--build-only", action="store_true", help="build and look inside, install nothing")
    asked = wanted.parse_args()
    with tempfile.TemporaryDirectory(prefix="packages-") as name:
        for package in build(Path(name)):
            lacking = missing_files(package)
            print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB, lacks {lacking or 'nothing'}", flush=True)
            if lacking:
                return 1
            for python in [] if asked.build_only else asked.python or interpreters():
                began = time.monotonic()
                print(f"    {try_out(package, python)} ({time.monotonic() - began:.0f} s)", flush=True)
    return 0


def _run(*command: object, cwd: Path | None = None) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=clean, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")


if __name__ == "__main__":
    sys.exit(main())
