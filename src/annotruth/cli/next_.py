"""annotruth next: what to label next, and by whom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from annotruth.cli.options import Duplicates, Features, Images, Quiet, Seed, option_value
from annotruth.cli.printing import print_queue, progress_bar, say, screen
from annotruth.errors import InputError
from annotruth.fusion.registry import method_names

if TYPE_CHECKING:
    from annotruth.data.annotations import Annotations

METHODS = method_names()


def next_(
    cases: Annotated[Path, typer.Argument(metavar="CASES|TABLE", help="A case folder, or a label table.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The queue, a CSV file; its curve goes beside it.")],
    budget: Annotated[float, typer.Option(help="What may be spent: labels, or what --costs count in.")],
    run: Annotated[
        Optional[list[Path]],
        typer.Option(
            help="A run's folder, or a model file: what it says of cases that few or none have labelled. Several, by "
            "--run A --run B, speak together."
        ),
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            help="information; to compare with: entropy, disagreement, consensus, bald, random, raters, items."
        ),
    ] = "information",
    costs: Annotated[
        Optional[Path],
        typer.Option(
            metavar="FILE", help="What a label costs: a table rater, cost, perhaps with columns kind and capacity."
        ),
    ] = None,
    durations: Annotated[
        Optional[str],
        typer.Option(
            metavar="COLUMN",
            help="Label table: a column that tells how long labels took, or when they were given, to learn their cost.",
        ),
    ] = None,
    kinds: Annotated[
        Optional[Path],
        typer.Option(metavar="FILE", help="What kind each item is of, for costs by kind: a table item, kind."),
    ] = None,
    capacity: Annotated[Optional[int], typer.Option(help="Labels that any one rater can give at most.")] = None,
    method: Annotated[
        Optional[str],
        typer.Option(help=f"Fusion to begin with, {', '.join(METHODS)}; by default one for few labels, or staple."),
    ] = None,
    option: Annotated[Optional[list[str]], typer.Option(help="An option of the method, as max_iter=50.")] = None,
    gold: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="PATH|SHARE",
            help="Known truth: a folder of masks; for a label table, a table item, truth. A share, as 5%: so many of "
            "the labels are of items whose truth is known, hidden among the others. Both may be given.",
        ),
    ] = None,
    images: Images = None,
    features: Features = None,
    duplicates: Duplicates = "error",
    seed: Seed = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files of an earlier call.")] = False,
    quiet: Quiet = False,
) -> None:
    """Choose what to label next, and by whom: labels in the order of what they are expected to tell, per cost."""
    runs = run or []
    _refuse_early(output, overwrite, budget, runs, method, option, {"images": images, "features": features})
    truth, hidden = _split_gold(gold or [])

    from annotruth.choosing.queue import STRATEGIES, next_labels
    from annotruth.choosing.queue.durations import learn_costs
    from annotruth.choosing.queue.prices import Costs, item_prices, rater_capacity, read_kinds, read_prices
    from annotruth.validation import one_of

    one_of(strategy, tuple(STRATEGIES), "strategy")
    if costs is not None and durations is not None:
        raise InputError("Costs are told by a file, --costs, or by a column of the table, --durations: not by both.")
    told, limits = (None, None) if costs is None else read_prices(costs)
    prices: Costs = told
    kind_of = None if kinds is None else read_kinds(kinds)
    if not runs:
        annotations, problems = _load(cases, truth, duplicates)
        model = None
    else:
        model, annotations, problems = _load_with_model(cases, runs, images, features, duplicates)
    if costs is not None:
        raters = annotations.raters if model is None else model.raters_
        try:
            item_prices(prices, raters, annotations.items, kind_of)
            rater_capacity(limits, raters)
        except InputError as error:
            raise InputError(f"{costs}{'' if kinds is None else f', {kinds}'}: {error}") from None
    if durations is not None:
        if annotations.kind != "labels" or not cases.is_file():
            raise InputError("--durations goes with a label table that is one file.")
        prices = learn_costs(cases, durations, kind_of)
    if capacity is not None:
        limits = {rater: min(capacity, (limits or {}).get(rater, capacity)) for rater in annotations.raters}
    with progress_bar(quiet) as tell:
        known = model or _fuse(annotations, method, dict(option_value(text) for text in option or []), truth, tell)
        queue = next_labels(
            known, annotations, budget, strategy=strategy, costs=prices, kinds=kind_of, capacity=limits, gold=hidden,
            seed=seed, progress=tell,
        )  # fmt: skip
    files = queue.write(output)
    print_queue(queue)
    for problem in problems:
        say("bold red", "set aside", str(problem))
    screen.print(f"Queue: {files[0]}; what it is expected to bring: {files[1].name}, {files[2].name}.")
    if len(files) > 3:
        screen.print(f"Which labels are hidden gold: {files[3].name}. Keep it from the raters.")
    if problems:
        raise typer.Exit(1)


def _refuse_early(
    output: Path,
    overwrite: bool,
    budget: float,
    runs: list[Path],
    method: str | None,
    option: list[str] | None,
    inputs: dict[str, Path | None],
) -> None:
    """Refuse what can be seen to be wrong before anything is read."""
    if not budget > 0:
        raise InputError(f"--budget is what may be spent on labels, more than 0, not {budget:g}.")
    if output.suffix.lower() != ".csv":
        raise InputError(f"{output}: a queue is written as CSV; give it a name that ends in .csv.")
    if output.exists() and not overwrite:
        raise InputError(f"{output}: the file is there already. Name another, or add --overwrite.")
    if runs and (method is not None or option):
        raise InputError("--method and --option are of fusion; with --run the model says what is known.")
    given = [name for name, path in inputs.items() if path is not None]
    if given and not runs:
        raise InputError(f"--{given[0]} goes with --run: fusion looks at labels alone.")
    for run in runs:
        if not run.exists():
            raise InputError(f"{run}: there is no such run or model file.")
    if option and method is None:
        raise InputError("--option goes with --method: name the fusion that it is an option of.")


def _split_gold(given: list[str]) -> tuple[Path | None, float | None]:
    """Where the truth is known, and the share of labels that are to be hidden gold."""
    shares = [text for text in given if re.fullmatch(r"[-+\d.,]+\s*%", text)]
    paths = [Path(text) for text in given if text not in shares]
    if len(shares) > 1 or len(paths) > 1:
        raise InputError("--gold takes one folder or table of known truth, and one share of hidden gold, as 5%.")
    if not shares:
        return paths[0] if paths else None, None
    try:
        share = float(shares[0].rstrip("% ")) / 100
    except ValueError:
        raise InputError(f"--gold {shares[0]}: a share is a number with %, as 5%.") from None
    if not 0 < share <= 0.5:
        raise InputError(f"--gold {shares[0]}: the share of hidden gold is more than 0% and at most 50%.")
    return paths[0] if paths else None, share


def _load(cases: Path, gold: Path | None, duplicates: str) -> tuple[Annotations, list[Any]]:
    """The labels, and problems of cases set aside."""
    from annotruth.io import find_source, load

    source = find_source(cases)
    truth = None if gold is None else source.find_truth(gold)
    if source.kind == "masks" and "truth" not in source.inputs:
        return source.load_sound(cases, truth)
    return load(cases, truth, duplicates=duplicates), []


def _load_with_model(
    cases: Path, runs: list[Path], images: Path | None, features: Path | None, duplicates: str
) -> tuple[Any, Annotations, list[Any]]:
    """A model, the labels with all that it can look at, and problems of cases set aside."""
    from annotruth.choosing.queue.model import add_unlabelled
    from annotruth.io import load_features, load_images
    from annotruth.training import load_model
    from annotruth.training.ensemble import load_files, model_files
    from annotruth.training.runs import open_run

    run = runs[0]
    model: Any = load_model(run) if len(runs) == 1 else load_files([file for one in runs for file in model_files(one)])
    annotations, problems = _load(cases, None, duplicates)
    if annotations.kind == "masks" and (images or features):
        raise InputError("--images and --features go with a label table; a case folder has its own images/.")
    first: Any = getattr(model, "models", (model,))[0]
    if images is not None:
        return model, add_unlabelled(annotations, load_images(images, rank=first.dims_)), problems
    if features is not None:
        folder = model_files(run)[0].parent
        columns = open_run(folder).columns if (folder / "run.json").is_file() else None
        return model, add_unlabelled(annotations, load_features(features, columns=columns)), problems
    return model, annotations, problems


def _fuse(annotations: Annotations, method: str | None, options: dict[str, Any], gold: Path | None, tell: Any) -> Any:
    """The fusion to choose by."""
    from annotruth.choosing.queue.fusing import usual_estimator
    from annotruth.fusion.registry import make_estimator
    from annotruth.fusion.stores import count_case

    estimator = usual_estimator(annotations) if method is None else make_estimator(method, options=options)
    known = None
    if gold is not None:
        known = "truth" if annotations.has_truth else None
    if annotations.kind == "labels":
        return estimator.fit(annotations, known)
    patterns = []
    for index in range(len(annotations)):
        patterns.append(count_case(annotations, index, known))
        tell("Counting votes", index + 1, len(annotations))
    return estimator.fit(annotations, known, patterns)
