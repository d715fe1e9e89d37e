"""A PostgreSQL of an example's own: in the scratch folder, on a socket, gone when the run ends.

It is installed with apt-get where it is missing and this process may do so. No service of the
system is started.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Optional
from urllib.parse import quote

from .scene import Scene
from .tools import CannotRun

#: Becomes a user, goes to a folder and runs a program: PostgreSQL refuses to run as root.
_AS_USER = """
import os, sys
user, group, folder, *command = sys.argv[1:]
os.setgroups([])
os.setgid(int(group))
os.setuid(int(user))
os.chdir(folder)
os.execv(command[0], command)
"""

_CLUSTERS = Path("/etc/postgresql-common/createcluster.conf")


class Postgres:
    """A server with one database, which is empty at first.

    `url` is its address for whatever speaks libpq.
    """

    def __init__(self, scene: Scene, database: str, otherwise: str = ""):
        """`otherwise` says what else a user can do where PostgreSQL is missing."""
        self._programs = programs(otherwise)
        self._database = database
        self._folder = scene.folder / "postgres"
        self._folder.mkdir(mode=0o700)
        self._prefix: list[str] = []
        if os.geteuid() == 0:
            user = _unprivileged()
            try:
                os.chown(self._folder, user.pw_uid, user.pw_gid)
            except OSError as why:
                # In a user namespace that has no other user than root.
                raise CannotRun(
                    "PostgreSQL does not run as root, and this root cannot become another user:"
                    f" {why}"
                ) from why
            # That user must get through the scratch folder. It can list nothing there.
            scene.folder.chmod(0o711)
            identity = [str(user.pw_uid), str(user.pw_gid), str(self._folder)]
            self._prefix = [sys.executable, "-c", _AS_USER, *identity]
        data = str(self._folder / "data")
        # `trust` is safe: the socket lies in a folder that only this user and root can enter.
        options = ["-U", "tenure", "-A", "trust", "-E", "UTF8", "--no-sync"]
        made = subprocess.run(
            [*self._command("initdb"), "-D", data, *options],
            env={**scene.env, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            raise CannotRun(f"initdb could not make a database:\n{made.stderr.strip()}")
        # Without fsync, since nothing of it outlives the run.
        settings = ["listen_addresses=", f"unix_socket_directories={self._folder}", "fsync=off"]
        options = [word for setting in settings for word in ("-c", setting)]
        command = [*self._command("postgres"), "-D", data, *options]
        # In English, since its log is read here.
        server = scene.start("postgres", command, env={"LC_ALL": "C"}, show=False)
        server.wait_for("ready to accept connections", within=60)
        self._run("postgres", f'CREATE DATABASE "{database}"')
        self.url = f"postgresql://tenure@/{database}?host={quote(str(self._folder), safe='')}"

    def _command(self, program: str) -> list[str]:
        return [*self._prefix, str(self._programs / program)]

    def sql(self, text: str) -> str:
        """Runs statements as one transaction; answers rows, with | between columns."""
        return self._run(self._database, text, "--single-transaction")

    def _run(self, database: str, text: str, *options: str) -> str:
        psql = [
            str(self._programs / "psql"),
            "-h",
            str(self._folder),
            "-U",
            "tenure",
            "-d",
            database,
        ]
        # The text comes by stdin: every user of the machine can read a command line.
        command = [*psql, "-XqAt", "-v", "ON_ERROR_STOP=1", *options, "-f", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise AssertionError(f"psql failed: {done.stderr.strip()}")
        return done.stdout.strip()


def programs(otherwise: str = "") -> Path:
    """The folder of the server's programs, which are installed if they are missing.

    `otherwise` says what else a user can do where they cannot be.
    """
    return _found() or _install(otherwise)


def _found() -> Optional[Path]:
    # Debian keeps them out of the PATH.
    debian = Path("/usr/lib/postgresql").glob("*/bin")
    places = sorted(
        debian, key=lambda place: [int(part) for part in place.parent.name.split(".")], reverse=True
    )
    found = shutil.which("postgres")
    if found:
        places.insert(0, Path(found).resolve().parent)
    wanted = ("initdb", "postgres", "psql")
    whole = (place for place in places if all(os.access(place / each, os.X_OK) for each in wanted))
    return next(whole, None)


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise CannotRun(
        "PostgreSQL does not run as root, and there is no user 'nobody'; run this as another user"
    )


def _install(otherwise: str) -> Path:
    advice = "PostgreSQL is missing; install it: apt-get install postgresql"
    if otherwise:
        advice += f" ({otherwise})"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise CannotRun(advice)
    print(
        "installing PostgreSQL with apt-get; none of the system's services is started", flush=True
    )
    # The package would make a cluster and start it. Its settings can forbid that, and are restored.
    _apt_get(advice, "update")
    _apt_get(advice, "install", "postgresql-common")
    settings = _CLUSTERS.read_text()
    try:
        _CLUSTERS.write_text(f"{settings}\ncreate_main_cluster = false\n")
        _apt_get(advice, "install", "postgresql")
    finally:
        _CLUSTERS.write_text(settings)
    found = _found()
    if found is None:
        raise CannotRun(advice)
    return found


def _apt_get(advice: str, *words: str) -> None:
    done = subprocess.run(
        ["apt-get", "--yes", "--quiet", "--no-install-recommends", *words],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise CannotRun(f"{advice}\napt-get failed: {done.stderr.strip()[-500:]}")
