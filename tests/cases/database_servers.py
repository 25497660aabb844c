"""Database servers that tests start on a local socket in a temporary folder."""

import csv
import io
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

INSTALL = "on Debian: apt-get install postgresql mariadb-server"


def find_program(name, *folders):
    """Return the path of a program, or skip the test."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", *map(str, folders)])
    if (found := shutil.which(name, path=path)) is None:
        pytest.skip(f"{name} is not installed; {INSTALL}")
    return found


def run(command, given="", **environment):
    """Return what a program prints; its own words are in the error."""
    done = subprocess.run(
        list(map(str, command)),
        input=given.encode(),
        capture_output=True,
        env={**os.environ, **environment},
        cwd="/",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout.decode()


def as_csv(rows):
    """Return rows as CSV text; None is an empty field, and text is always quoted."""
    lines = []
    for row in rows:
        quoted = ['"' + v.replace('"', '""') + '"' if isinstance(v, str) else v for v in row]
        lines.append(
            ",".join("" if v is None else v if isinstance(v, str) else repr(v) for v in quoted)
        )
    return "\n".join(lines) + "\n"


@contextmanager
def postgresql():
    """Start PostgreSQL; yield a function from a database, statements and an encoding to rows."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb, pg_ctl = find_program("initdb", *programs), find_program("pg_ctl", *programs)
    psql = find_program("psql", *programs)
    user = []
    folder = Path(tempfile.mkdtemp(prefix="kw-pg-"))
    if os.geteuid() == 0:  # the server refuses to run as root
        user = [find_program("runuser"), "-u", "postgres", "--"]
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    data = folder / "data"
    try:
        run(
            [*user, initdb, "-D", data, "-A", "trust", "-U", "kw", "-E", "UTF8", "--locale=C", "-N"]
        )
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        run([*user, pg_ctl, "-D", data, "-w", "-l", folder / "log", "-o", options, "start"])

        def query(database, statements, encoding="UTF8", given=""):
            command = [psql, "-X", "-q", "-h", folder, "-U", "kw", "-v", "ON_ERROR_STOP=1"]
            script = folder / "script.sql"
            script.write_text(statements)
            found = run([*command, "-d", database, "-f", script], given, PGCLIENTENCODING=encoding)
            return list(csv.reader(io.StringIO(found)))

        try:
            yield query
        finally:
            run([*user, pg_ctl, "-D", data, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def mariadb():
    """Start MariaDB; yield a function from statements and a character set to rows."""
    install, server = find_program("mariadb-install-db"), find_program("mariadbd")
    client = find_program("mariadb")
    folder = Path(tempfile.mkdtemp(prefix="kw-my-"))
    name = pwd.getpwuid(os.geteuid()).pw_name
    socket, data = folder / "s", folder / "data"
    basic = ["--no-defaults", f"--datadir={data}", f"--user={name}"]
    process = None
    try:
        run([install, *basic, "--auth-root-authentication-method=normal", "--skip-test-db"])
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    server,
                    *basic,
                    f"--socket={socket}",
                    "--skip-networking",
                    "--skip-log-bin",
                    "--innodb-flush-log-at-trx-commit=0",
                    f"--pid-file={folder / 'pid'}",
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 60
        while not socket.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)

        def query(statements, encoding="utf8mb4"):
            command = [client, "--no-defaults", "-u", "root", f"--socket={socket}", "--batch"]
            command += ["--skip-column-names", f"--default-character-set={encoding}"]
            lines = run(command, statements).splitlines()
            return [line.split("\t") for line in lines]

        yield query
    finally:
        if process is not None:
            process.terminate()
            process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)
