"""The command line: parses, calls one function, prints."""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import polyarm
from polyarm.errors import PolyarmError, require_extra, require_writable_parent
from polyarm.service.commands import add_commands

INTERRUPTED = 130  # the shell's code for Ctrl-C
PIPE_CLOSED = 141  # and for a closed pipe


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it went well, 2 for a mistake in what was asked."""
    options = make_parser().parse_args(arguments)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
    except PolyarmError as error:
        print(f"polyarm: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        advice = "with --out, the same command continues where it stopped"
        print(f"polyarm: {error.strerror or error}{where}; {advice}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"polyarm: not enough memory ({error}); try fewer --workers or a shorter --horizon", file=sys.stderr)
        return 1
    except BrokenExecutor as error:
        print(f"polyarm: a worker died ({error}); with --out, the same command continues", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("polyarm: interrupted; with --out, the same command continues where it stopped", file=sys.stderr)
        return INTERRUPTED
    return code


def make_parser() -> argparse.ArgumentParser:
    """Parser of the whole command line."""
    parser = argparse.ArgumentParser("polyarm", description="Bandits with Bayesian nonparametric rewards.")
    parser.add_argument("--version", action="version", version=polyarm.__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_list(commands)
    _add_compare(commands)
    _add_reproduce(commands)
    _add_evaluate(commands)
    _add_bench(commands)
    _add_warm(commands)
    add_commands(commands)
    return parser


def _add_list(commands: Any) -> None:
    parser = commands.add_parser("list", help="names of the scenarios, policies or reproduction targets")
    parser.add_argument("what", choices=["scenarios", "policies", "targets"])
    parser.set_defaults(command=list_names)


def _add_study_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--realizations", type=int, metavar="R", help="number of paired realisations")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of every random stream (default 0)")
    parser.add_argument("--workers", type=int, metavar="N", help="local processes (default: all cores)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="run on the Dask cluster at this address instead")
    parser.add_argument("--data", metavar="FILE", help="local copy of the oncology data")
    parser.add_argument("--device", choices=["cpu", "gpu"], help="where networks run (default: the best there is)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_compare(commands: Any) -> None:
    parser = commands.add_parser("compare", help="compare policies on a scenario")
    parser.add_argument("scenario", help="a name from `polyarm list scenarios`, or a full-feedback .csv or .parquet")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="P",
        help="policy, as name or name:option=value,...; repeat",
    )
    parser.add_argument("--horizon", type=int, metavar="T", help="steps of a realisation (default: the paper's)")
    parser.add_argument(
        "--objective",
        default="mean",
        metavar="O",
        help="what arms are judged by: mean (default), quantile:P, shortfall:P, above:VALUE or utility:RISK_AVERSION",
    )
    parser.add_argument("--reference", metavar="P", help="policy the others are compared with (default: the first)")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run the one realisation of this number")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for results, tables and figures; resumable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdict as JSON")
    _add_study_options(parser)
    parser.set_defaults(command=run_compare)


def _add_reproduce(commands: Any) -> None:
    parser = commands.add_parser("reproduce", help="reproduce a table or figure of the paper")
    parser.add_argument(
        "target", nargs="+", help="names from `polyarm list targets`, or `all`; NAME:R runs that one R times"
    )
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="folder (default: results)")
    parser.add_argument("--networks", action="store_true", help="also run the networks and the Gaussian process")
    parser.add_argument("--gp-realizations", type=int, metavar="R", help="fewer realisations for the slow multitask-gp")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="write a Markdown summary with small figures")
    _add_study_options(parser)
    parser.set_defaults(command=run_reproduce)


def _add_evaluate(commands: Any) -> None:
    parser = commands.add_parser("evaluate", help="what another policy would have earned, from a log of decisions")
    parser.add_argument("log", help="CSV, Parquet, a folder of Parquet files, or a saved bandit")
    parser.add_argument(
        "--target",
        action="append",
        required=True,
        metavar="T",
        help="uniform, arm:NAME, column:NAME, a policy, replay:POLICY, or a saved bandit; repeat",
    )
    parser.add_argument(
        "--estimator",
        action="append",
        metavar="E",
        help="replay, ips, clipped, snips, direct, dr, switch, quantile:P, shortfall:P; repeat (default: snips and dr)",
    )
    parser.add_argument(
        "--interval",
        default="bootstrap",
        metavar="I",
        help="bootstrap, normal, empirical-bernstein or betting (default: bootstrap)",
    )
    parser.add_argument("--level", type=float, default=0.95, metavar="L", help="of the intervals (default 0.95)")
    for role in ("arm", "reward", "propensity", "probabilities", "id"):
        parser.add_argument(f"--{role}", default=role, metavar="COLUMN", help=f"the log's column (default: {role})")
    parser.add_argument("--context", metavar="COLUMNS", help="comma-separated; empty for none (default: all others)")
    parser.add_argument("--arms", metavar="NAMES", help="comma-separated, where some arms were never played")
    parser.add_argument("--model", default="auto", metavar="M", help="reward model: auto, ridge, robust or none")
    parser.add_argument(
        "--reward-range", type=float, nargs=2, metavar=("LOW", "HIGH"), help="what rewards are known to keep to"
    )
    parser.add_argument("--min-propensity", type=float, metavar="P", help="smallest that the logger allows")
    parser.add_argument("--clip", type=float, metavar="W", help="largest weight of clipped (default: root of the rows)")
    parser.add_argument("--switch", type=float, metavar="W", help="weight from which switch trusts the model alone")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of every random stream (default 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for tables, figures and a page of HTML")
    parser.set_defaults(command=run_evaluate)


def _add_bench(commands: Any) -> None:
    parser = commands.add_parser("bench", help="speed, as ratios measured in one run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the measurements as JSON")
    parser.set_defaults(command=run_bench)


def _add_warm(commands: Any) -> None:
    parser = commands.add_parser("warm", help="compile the kernels ahead, so that the first decision is quick")
    parser.add_argument("--all", action="store_true", help="those of every policy, not of the default alone")
    parser.add_argument("--workers", type=int, metavar="N", help="local processes (default: all cores)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(command=run_warm)


def list_names(options: argparse.Namespace) -> int:
    """Print the names of scenarios, policies or targets."""
    from polyarm.environments.presets import scenario_names
    from polyarm.experiments.running.policy_specs import policy_names

    if options.what == "targets":
        from polyarm.experiments.paper.targets import NAMES

        names: Sequence[str] = NAMES
    else:
        names = scenario_names() if options.what == "scenarios" else policy_names()
    print("\n".join(names))
    return 0


def run_compare(options: argparse.Namespace) -> int:
    """Compare policies on a scenario and print the verdict."""
    from polyarm.environments.presets import make_scenario
    from polyarm.experiments.comparison import compare
    from polyarm.files import write_atomically
    from polyarm.tables import show

    if options.json:
        require_writable_parent(options.json, "json")
    if options.out:
        require_extra("matplotlib", "figures")
    found = compare(
        make_scenario(options.scenario, options.data),
        options.policy,
        100 if options.realizations is None else options.realizations,
        options.horizon,
        options.seed,
        workers=_workers(options),
        cluster=options.cluster,
        out=options.out,
        reference=options.reference,
        only=options.only,
        device=options.device,
        progress=not options.quiet,
        objective=options.objective,
    )
    if options.json:
        write_atomically(options.json, found.to_json().encode())
    for table in found.tables():
        show(table)
    if options.out:
        from polyarm.experiments.outputs import write_outputs

        for path in write_outputs(found, options.out):
            print(path)
    return 0


def run_reproduce(options: argparse.Namespace) -> int:
    """Reproduce a table or figure of the paper, or all of them, and write the report."""
    from polyarm.experiments.paper.reproduction import Settings, reproduce

    settings = Settings(
        out=options.out,
        realizations=options.realizations,
        seed=options.seed,
        workers=_workers(options),
        cluster=options.cluster,
        data=options.data,
        networks=options.networks,
        device=options.device,
        gp_realizations=options.gp_realizations,
        summary=options.summary,
        progress=not options.quiet,
        command=_command(options),
    )
    reproduce(options.target, settings)
    return 0


def _command(options: argparse.Namespace) -> str:
    given = {"--realizations": options.realizations, "--seed": options.seed or None}
    shown = [f"{name} {value}" for name, value in given.items() if value is not None]
    return " ".join(["polyarm reproduce", *options.target, *shown, *["--networks"] * options.networks])


def run_evaluate(options: argparse.Namespace) -> int:
    """Evaluate targets from a log, print the tables and the verdict."""
    from polyarm.evaluation import evaluate
    from polyarm.files import require_folder, write_atomically
    from polyarm.tables import show

    if options.json:
        require_writable_parent(options.json, "json")
    if options.out:
        require_extra("matplotlib", "figures")
        require_folder(options.out)
    roles = ("arm", "reward", "propensity", "probabilities", "id")
    found = evaluate(
        options.log,
        options.target,
        options.estimator or ("snips", "dr"),
        options.interval,
        options.level,
        **{role: getattr(options, role) for role in roles},
        context=_names(options.context),
        arms=_names(options.arms),
        model=options.model,
        reward_range=options.reward_range,
        min_propensity=options.min_propensity,
        clip=options.clip,
        switch=options.switch,
        seed=options.seed,
    )
    if options.json:
        write_atomically(options.json, found.to_json().encode())
    for table in found.tables():
        show(table)
    print("\n".join(found.lines()))
    for path in found.write(options.out) if options.out else ():
        print(path)
    return 0


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def run_bench(options: argparse.Namespace) -> int:
    """Measure speed."""
    from polyarm.experiments import bench

    code: int = bench.run_bench(options.json)
    return code


def run_warm(options: argparse.Namespace) -> int:
    """Compile kernels ahead."""
    from polyarm.experiments.warm import warm

    print(warm(options.all, _workers(options), not options.quiet))
    return 0


def _workers(options: argparse.Namespace) -> int:
    from polyarm.experiments.running.executors import available_cores

    workers: int = available_cores() if options.workers is None else options.workers
    return workers


if __name__ == "__main__":
    sys.exit(main())
