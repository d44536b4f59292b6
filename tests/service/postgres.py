"""A PostgreSQL server of the tests' own: an empty cluster in a temporary folder, on a socket that nobody else sees."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg

ACCOUNT = "postgres"  # the server refuses to run as root


def find_programs() -> Path | None:
    """Folder of the server's programs, if it is installed."""
    found = shutil.which("initdb")
    folders = [
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
        *([Path(found).parent] if found else []),
    ]
    return next((folder for folder in folders if (folder / "pg_ctl").exists()), None)


class Postgres:
    """A running server."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="polyarm-pg-"))
        self.port = 5432
        self.account = ACCOUNT if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(self.folder, ACCOUNT)
        self.folder.chmod(0o755)
        self._run("initdb", "-D", f"{self.folder}/data", "-A", "trust", "-U", "postgres", "--no-sync")
        self.start()

    @property
    def address(self) -> str:
        """URL of the server's first database."""
        return self.url("postgres")

    def url(self, database: str) -> str:
        """URL of a database."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=200 -c fsync=off"
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/log", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is a crash."""
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "stop")

    def create(self, database: str, template: str = "template1") -> str:
        """A new database, empty or a copy of another; its URL."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database} TEMPLATE {template}".encode())
        return self.url(database)

    def close(self) -> None:
        """Stop the server and remove everything."""
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        account = self.account if os.geteuid() == 0 else None
        done = subprocess.run(
            command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, user=account
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr}")
