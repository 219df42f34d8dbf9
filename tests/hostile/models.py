"""Models, runs, checkpoints and plans that somebody changed."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.hostile.attacks import Attack, Attacks, Pickled

RUN, MODEL = "run", "run/model.annotruth"
WRONG: list[Any] = [None, "word", -7, 10**12, [], {"a": "b"}, [[1]], float("nan")]
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "eight bytes": lambda content: content[:8],
    "half": lambda content: content[: len(content) // 2],
    "one byte less": lambda content: content[:-1],
    "one byte more": lambda content: content + b"\0",
    "text": lambda content: b"no model\n" * 100,
    "zeros": lambda content: bytes(len(content)),
    "a pickle": lambda content: pickle.dumps(Pickled()),
    "a head without end": lambda content: struct.pack("<Q", 2**62) + content[8:],
    "a head beyond the file": lambda content: struct.pack("<Q", len(content)) + content[8:],
    "random bytes": lambda content: np.random.default_rng(0).bytes(len(content)),
}


def make_sound(base: Path) -> None:
    """A run on the sound planes, trained for two epochs of three, whose files may be changed."""
    from annotruth.cli import app

    options = ["--method", "mean", "--epochs", "2", "--quiet", "--accelerator", "cpu", "--batch-size", "2"]
    app(["train", str(base / "planes"), "-o", str(base / RUN), *options], standalone_mode=False)
    app(["plan", str(base / "planes"), "-o", str(base / "plan.json")], standalone_mode=False)
    answers = "".join(f"{n},{rater},{'ab'[n % 2]}\n" for n in range(12) for rater in ("ann", "bob"))
    (base / "answers.csv").write_text(f"item,rater,label\n{answers}")
    np.save(base / "features.npy", np.random.default_rng(0).normal(size=(12, 3)))
    options[1] = "majority"
    app(
        [
            "train",
            str(base / "answers.csv"),
            "--features",
            str(base / "features.npy"),
            "-o",
            str(base / "table"),
            *options,
        ],
        standalone_mode=False,
    )


def all_attacks() -> Attacks:
    yield from bad_models()
    yield from bad_runs()
    yield from bad_checkpoints()
    yield from bad_plans()


def _run(base: Path, home: Path, name: str = RUN) -> Path:
    """A copy of the run, and of the images that it is to label."""
    shutil.copytree(base / name, home / RUN)
    shutil.copytree(base / "planes" / "images", home / "images")
    shutil.copy(base / "features.npy", home / "features.npy")
    return home / RUN


# -- models -----------------------------------------------------------------------------------------------------


def bad_models() -> Attacks:
    commands = [("load_model", MODEL), ("predict", MODEL, "images", "-o", "out", "--quiet"), ("report", RUN)]
    for number, (name, spoil) in enumerate(DAMAGES.items()):
        for command in (commands[number % 3], commands[(number + 1) % 3]):
            yield Attack("models", name, partial(_damage, MODEL, spoil), command)
    head_places: list[tuple[str, ...]] = [
        ("annotruth",), ("format",), ("kind",), ("params",), ("own_network",), ("classes",), ("raters",), ("shape",),
        ("batch_size",), ("max_epochs",), ("standard",), ("history",), ("warnings",), ("plan",), ("rater_code",),
        ("pixel_values",), ("params", "method"), ("params", "network"), ("shape", "channels"), ("shape", "raters"),
        ("shape", "classes"), ("shape", "dims"), ("shape", "task"), ("shape", "network"), ("standard", "mean"),
        ("standard", "deviation"), ("standard", "clip"), ("plan", "spacing"), ("plan", "mirror"),
        ("plan", "patch_size"),
        ("plan", "network"), ("plan", "network", "widths"), ("plan", "network", "strides"),
        ("shape", "network", "widths"), ("shape", "network", "kernels"), ("shape", "network", "norm"),
    ]  # fmt: skip
    for number, place in enumerate(head_places):
        for offset, value in enumerate(WRONG):
            command = commands[(number + offset) % 2]
            yield Attack(
                "models", f"{'.'.join(place)} = {value!r}", partial(_head, place, value), command, harmless=True
            )
        yield Attack(
            "models", f"no {'.'.join(place)}", partial(_head, place, "absent"), commands[number % 2], harmless=True
        )
    texts = {"deep lists": "[" * 100_000, "a long number": "9" * 5000, "a list": "[]", "nothing": "", "a word": '"x"'}
    for name, text in texts.items():
        yield Attack("models", f"head: {name}", partial(_head_text, text), commands[0])
    for value in (np.nan, np.inf, -np.inf):
        for command in commands[:2]:
            yield Attack("models", f"weights {value}", partial(_weights, value), command)
    for command in commands[:2]:
        yield Attack(
            "models",
            "a network of 40 GB",
            partial(_head, ("shape", "network", "widths"), [10**5, 10**5, 10**5]),
            command,
        )
    for kind in ("pipe", "device", "folder"):
        yield Attack("models", f"a {kind}", partial(_no_file, kind), commands[0])


def _damage(name: str, spoil: Callable[[bytes], bytes], base: Path, home: Path) -> None:
    path = _run(base, home).parent / name
    path.write_bytes(spoil(path.read_bytes()))


def _open(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["annotruth"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _save(path: Path, head: str, weights: dict[str, torch.Tensor]) -> None:
    from safetensors.torch import save_file

    save_file(weights, path, metadata={"annotruth": head})


def _set(content: Any, place: tuple[str, ...], value: Any) -> None:
    for key in place[:-1]:
        content = content[key]
    if value == "absent":
        del content[place[-1]]
    else:
        content[place[-1]] = value


def _head(place: tuple[str, ...], value: Any, base: Path, home: Path) -> None:
    path = _run(base, home) / "model.annotruth"
    head, weights = _open(path)
    _set(head, place, value)
    _save(path, json.dumps(head), weights)


def _head_text(text: str, base: Path, home: Path) -> None:
    path = _run(base, home) / "model.annotruth"
    _save(path, text, _open(path)[1])


def _weights(value: float, base: Path, home: Path) -> None:
    path = _run(base, home) / "model.annotruth"
    head, weights = _open(path)
    name = next(name for name in weights if name.startswith("truth") and name.endswith("weight"))
    weights[name].view(-1)[0] = value
    _save(path, json.dumps(head), weights)


def _no_file(kind: str, base: Path, home: Path) -> None:
    import os

    path = _run(base, home) / "model.annotruth"
    path.unlink()
    {"pipe": os.mkfifo, "folder": os.mkdir, "device": lambda path: os.symlink("/dev/zero", path)}[kind](path)


# -- runs and checkpoints ---------------------------------------------------------------------------------------


def _resume(base_cases: str = "planes") -> tuple[str, ...]:
    return ("train", f"BASE/{base_cases}", "-o", RUN, "--resume", "--quiet", "--accelerator", "cpu")


def bad_runs() -> Attacks:
    texts: dict[str, bytes] = {
        "empty": b"", "a bracket": b"{", "a list": b"[]", "an empty object": b"{}", "deep lists": b"[" * 100_000,
        "a long number": b"9" * 5000, "other encoding": b'{"cases": "\xe9"}', "NUL": bytes(100), "null": b"null",
        "a pickle": pickle.dumps(Pickled()), "70 MB": b" " * 70 * 2**20,
    }  # fmt: skip
    for number, (name, content) in enumerate(texts.items()):
        for command in ((_resume(), ("report", RUN))[number % 2],):
            yield Attack("runs", f"run.json: {name}", partial(_run_text, content), command)
    for number, key in enumerate(("cases", "params", "inputs", "columns", "known_masks")):
        for value in ("absent", *WRONG):
            command = (_resume(), ("report", RUN))[number % 2]
            yield Attack(
                "runs", f"run.json: {key} = {value!r}", partial(_run_key, (key,), value), command, harmless=True
            )
    for key in ("method", "max_epochs", "batch_size", "seed", "network", "plan", "validation", "patience", "nonsense"):
        for value in ("absent-minded", -7, 10**9, [], {"a": "b"}):
            yield Attack(
                "runs", f"run.json: params.{key} = {value!r}", partial(_run_key, ("params", key), value), _resume(),
                harmless=True,
            )  # fmt: skip


def _run_text(content: bytes, base: Path, home: Path) -> None:
    (_run(base, home) / "run.json").write_bytes(content)


def _run_key(place: tuple[str, ...], value: Any, base: Path, home: Path) -> None:
    path = _run(base, home) / "run.json"
    content = json.loads(path.read_text())
    _set(content, place, value)
    path.write_text(json.dumps(content))


CHECKPOINTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no weights": lambda c: c.pop("state_dict"),
    "one weight less": lambda c: c["state_dict"].popitem(),
    "weights of another shape": lambda c: c["state_dict"].update({next(iter(c["state_dict"])): torch.zeros(7)}),
    "weights NaN": lambda c: next(iter(c["state_dict"].values())).fill_(float("nan")),
    "weights infinite": lambda c: list(c["state_dict"].values())[-1].fill_(float("inf")),
    "weights as words": lambda c: c.update(state_dict={"a": "b"}),
    "a petabyte": lambda c: c.update(huge=torch.zeros(1).expand(10**8, 10**7)),
    "no settings": lambda c: c.pop("annotruth"),
    "settings of another": lambda c: c["annotruth"].update(seed=77),
    "settings as a word": lambda c: c.update(annotruth="yes"),
    "another run's": lambda c: c.update(run="another"),
    "epoch as a word": lambda c: c.update(epoch="two"),
    "no step": lambda c: c.pop("global_step"),
    "no loops": lambda c: c.update(loops={}),
    "loops of words": lambda c: c.update(loops={"fit_loop": "x"}),
    "no callbacks": lambda c: c.update(callbacks={}),
    "empty callbacks": lambda c: c.update(callbacks={name: {} for name in c["callbacks"]}),
    "no optimiser": lambda c: c.update(optimizer_states=[]),
    "optimiser of words": lambda c: c.update(optimizer_states=[{"state": "x", "param_groups": "y"}]),
    "optimiser of another": lambda c: c["optimizer_states"][0]["param_groups"].pop(),
    "no schedule": lambda c: c.update(lr_schedulers=[]),
}


def bad_checkpoints() -> Attacks:
    for name, spoil in DAMAGES.items():
        harmless = name in ("one byte more",)
        yield Attack("checkpoints", f"last.ckpt: {name}", partial(_last, spoil), _resume(), harmless)
    for name, change in CHECKPOINTS.items():
        yield Attack("checkpoints", name, partial(_changed, change), _resume())
    yield Attack("checkpoints", "a pickle in an archive", _pickled, _resume())
    yield Attack("checkpoints", "an archive that swells", _swelling, _resume())
    for name, spoil in DAMAGES.items():
        yield Attack("checkpoints", f"best.ckpt: {name}", partial(_best, spoil), _resume(), name == "one byte more")


def _checkpoints(base: Path, home: Path) -> Path:
    run = _run(base, home)
    (run / "model.annotruth").unlink()
    (run / "checkpoints" / "previous.ckpt").unlink()
    return run / "checkpoints"


def _last(spoil: Callable[[bytes], bytes], base: Path, home: Path) -> None:
    path = _checkpoints(base, home) / "last.ckpt"
    path.write_bytes(spoil(path.read_bytes()))


def _best(spoil: Callable[[bytes], bytes], base: Path, home: Path) -> None:
    path = _checkpoints(base, home) / "best.ckpt"
    path.write_bytes(spoil(path.read_bytes()))


def _changed(change: Callable[[dict[str, Any]], object], base: Path, home: Path) -> None:
    path = _checkpoints(base, home) / "last.ckpt"
    content = torch.load(path, weights_only=True)
    change(content)
    torch.save(content, path)


def _pickled(base: Path, home: Path) -> None:
    torch.save({"annotruth": {}, "state_dict": Pickled()}, _checkpoints(base, home) / "last.ckpt")


def _swelling(base: Path, home: Path) -> None:
    with zipfile.ZipFile(_checkpoints(base, home) / "last.ckpt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))
        archive.writestr("archive/data/0", bytes(10**8))


# -- plans ------------------------------------------------------------------------------------------------------


def bad_plans() -> Attacks:
    command = (
        "train",
        "BASE/planes",
        "--plan",
        "plan.json",
        "-o",
        "out",
        "--epochs",
        "1",
        "--quiet",
        "--accelerator",
        "cpu",
    )
    texts: dict[str, bytes] = {
        "empty": b"", "a list": b"[]", "an object": b"{}", "deep lists": b"[" * 100_000, "a long number": b"9" * 5000,
        "other encoding": b"\xff\xfe", "a pickle": pickle.dumps(Pickled()), "null": b"null",
    }  # fmt: skip
    for name, content in texts.items():
        yield Attack("plans", name, partial(_plan_text, content), command)
    places: list[tuple[str, ...]] = [
        ("spacing",), ("clip",), ("mirror",), ("patch_size",), ("foreground",), ("patches",), ("batch_size",),
        ("network",),
        ("network", "name"), ("network", "widths"), ("network", "strides"), ("network", "kernels"), ("network", "norm"),
    ]  # fmt: skip
    for place in places:
        for value in ("absent", "word", -7, [[]], {"a": "b"}, float("nan"), [0, 0]):
            harmless = value == "word" and place == ("mirror",)
            yield Attack("plans", f"{'.'.join(place)} = {value!r}", partial(_plan, place, value), command, harmless)
    yield Attack("plans", "unknown key", partial(_plan, ("nonsense",), 3), command)


def _plan_text(content: bytes, base: Path, home: Path) -> None:
    (home / "plan.json").write_bytes(content)


def _plan(place: tuple[str, ...], value: Any, base: Path, home: Path) -> None:
    content = json.loads((base / "plan.json").read_text())
    _set(content, place, value)
    (home / "plan.json").write_text(json.dumps(content))
