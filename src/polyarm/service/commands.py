"""Commands of the service: parse, call one function, print.  Nothing heavy is imported before a command runs."""

import argparse
import sys
from pathlib import Path
from typing import Any

from polyarm.errors import InvalidArgument, require_extra, require_writable_parent

DATABASE = "polyarm.db"


def add_commands(commands: Any) -> None:
    """Add serve, keys, explain, rebuild and export."""
    serve = _command(commands, "serve", "the decision service over HTTP", run_serve)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    serve.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")
    serve.add_argument("--rate-limit", type=float, metavar="N", help="requests a second that a key may make")
    serve.add_argument("--demo", action="store_true", help="add a demonstration experiment under simulated traffic")
    serve.add_argument("--quiet", action="store_true", help="say nothing but warnings")
    keys = _command(commands, "keys", "keys of the HTTP interface", run_keys)
    keys.add_argument("action", choices=["add", "revoke", "list"])
    keys.add_argument("name", nargs="?", help="name of the key")
    keys.add_argument("--scope", action="append", default=[], help="decide, reward, read or admin; repeat")
    explain = _command(commands, "explain", "make a decision again and compare it with the log", run_explain)
    explain.add_argument("decision", help="id of the decision")
    rebuild = _command(commands, "rebuild", "learn the log again and compare every snapshot's hash", run_rebuild)
    rebuild.add_argument("experiment", nargs="*", help="experiments (default: all)")
    export = _command(commands, "export", "the log of an experiment as Parquet, for `polyarm evaluate`", run_export)
    export.add_argument("experiment", help="name of the experiment")
    export.add_argument("out", type=Path, help="file to write")


def _command(commands: Any, name: str, text: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text)
    parser.add_argument(
        "--database", default=DATABASE, metavar="DB", help=f"path or URL of the database (default {DATABASE})"
    )
    parser.set_defaults(command=run)
    return parser


def run_serve(options: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    serving = require_extra("polyarm.service.serve", "service")
    serving.serve(
        options.database,
        options.host,
        options.port,
        rate_limit=options.rate_limit,
        quiet=options.quiet,
        demo=options.demo,
    )
    return 0


def _database(options: argparse.Namespace, *, writing: bool = False) -> Any:
    database = require_extra("polyarm.service.database", "service")
    url = database.parse(options.database)
    if url.get_backend_name() == "sqlite" and not writing and not Path(str(url.database)).exists():
        raise InvalidArgument(f"database must exist, got {options.database!r}")
    return database.open_database(options.database, exclusive=writing)


def run_keys(options: argparse.Namespace) -> int:
    """Add, revoke or list keys."""
    keys = require_extra("polyarm.service.keys", "service")
    database = _database(options, writing=options.action != "list")
    try:
        if options.action == "list":
            with database.reading.connect() as connection:
                for key in keys.list_keys(connection):
                    print(f"{key['name']}  {key['scopes']}{'  revoked' if key['revoked_at'] else ''}")
            return 0
        if not options.name:
            raise InvalidArgument("name must be given, got none")
        with database.writing.connect() as connection, connection.begin():
            if options.action == "add":
                print(keys.add_key(connection, options.name, options.scope))
                print("This is the only time that the key is shown.", file=sys.stderr)
            else:
                keys.revoke_key(connection, options.name)
    finally:
        database.close()
    return 0


def run_explain(options: argparse.Namespace) -> int:
    """Print a decision beside what comes out when it is made again; 1 if they differ."""
    messages = require_extra("polyarm.service.messages", "service")
    explaining = require_extra("polyarm.service.explain", "service")
    database = _database(options)
    with database.reading.connect() as connection:
        found = explaining.explain(connection, options.decision)
    database.close()
    import msgspec

    print(msgspec.json.format(messages.to_json(found), indent=2).decode())
    return 0 if found.arm_agrees and found.probabilities_agree is not False else 1


def run_rebuild(options: argparse.Namespace) -> int:
    """Learn logs again; 1 if a hash differs."""
    rebuilding = require_extra("polyarm.service.rebuild", "service")
    catalog = require_extra("polyarm.service.catalog", "service")
    progress = require_extra("rich.progress", "experiments")
    database = _database(options)
    differing = 0
    with database.reading.connect() as connection, progress.Progress(transient=True) as bar:
        for name in options.experiment or catalog.experiment_names(connection):
            task = bar.add_task(name, total=None)
            verdict = rebuilding.rebuild(
                connection, name, lambda i, n, task=task: bar.update(task, completed=i, total=n)
            )
            differing += len(verdict.differing)
            result = f"{len(verdict.differing)} DIFFER: {verdict.differing}" if verdict.differing else "all equal"
            print(f"{name}: {verdict.steps} steps, {verdict.compared} snapshots compared, {result}")
    database.close()
    return 1 if differing else 0


def run_export(options: argparse.Namespace) -> int:
    """Write a log as Parquet."""
    exporting = require_extra("polyarm.service.export", "service")
    path = require_writable_parent(options.out, "out")
    database = _database(options)
    with database.reading.connect() as connection:
        count = exporting.export_log(connection, options.experiment, path)
    database.close()
    print(f"{count} decisions: {path}")
    return 0
