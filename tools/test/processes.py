"""Starts programs as a shell in a terminal would, and ends them with all that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Optional, Union

#: A variable that has another value in each run: all programs that a run started are found by it.
#: Tests and examples start some without the variables whose names begin with TENURE_.
TAG, RUN = "TEST_RUN_ID", str(uuid.uuid4())
#: How long a program may take to end after SIGTERM, in seconds.
GRACE = 5.0

#: Set when a signal or a broken build ends the run.
stopping = threading.Event()
#: That signal.
stopped_by: Optional[int] = None
_running: set[subprocess.Popen[str]] = set()
_lock = threading.Lock()


class _Spent(threading.local):
    seconds = 0.0


_spent = _Spent()


def take_signals() -> None:
    """Have the run end by SIGINT, SIGTERM and SIGHUP, and its programs start with all defaults.

    A job in the background inherits an ignored SIGINT, and one under `nohup` an ignored SIGHUP.
    Programs that the run starts would inherit both, and tests send these signals. What is ignored
    stays so at exec, and what is handled goes back to the default: so each ignored signal gets a
    handler that does nothing.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            ignored = signal.getsignal(number) == signal.SIG_IGN
            if ignored and number == signal.SIGCHLD:
                # Nobody could wait for a child.
                signal.signal(number, signal.SIG_DFL)
            elif ignored:
                signal.signal(number, _do_nothing)
            elif number in ends:
                signal.signal(number, _stop)


def _do_nothing(number: int, _: object) -> None:
    pass


def _stop(number: int, _: object) -> None:
    global stopped_by
    stopped_by = number
    stopping.set()


def start(
    words: Sequence[str],
    cwd: Path,
    *,
    stdout: Union[int, IO[str]],
    stderr: Union[int, IO[str]],
    env: Optional[Mapping[str, str]] = None,
    nice: int = 0,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[str]:
    """Start a program in a session of its own, with an empty stdin."""
    if nice:
        words = ["nice", "-n", str(nice), *words]
    with _lock:
        child = subprocess.Popen(
            words,
            cwd=cwd,
            env={**os.environ, **(env or {}), TAG: RUN},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=pass_fds,
        )
        _running.add(child)
    if nice:
        # Linux may share processors evenly between sessions, whatever the programs in them are.
        with contextlib.suppress(OSError):
            Path(f"/proc/{child.pid}/autogroup").write_text(str(nice))
    if stopping.is_set():
        kill(child)
    return child


def wait(child: subprocess.Popen[str]) -> int:
    """Wait for the program's end, and answer its exit code."""
    with contextlib.suppress(AttributeError, OSError):
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        _spent.seconds += _computed(child.pid)
    code = child.wait()
    with _lock:
        _running.discard(child)
    return code


def spent() -> float:
    """Answer for how long the programs computed that this thread has waited for, in seconds.

    Their children count if they were waited for, too. A system without /proc shows nothing.
    """
    return _spent.seconds


def _computed(pid: int) -> float:
    # Behind the name, which may have spaces, the 12th to 15th: its own time and that of children.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def read(said: IO[str]) -> str:
    """Read all that programs have written to a temporary file."""
    said.seek(0)
    return said.read()


def output(
    words: Sequence[str], cwd: Path, env: Optional[Mapping[str, str]] = None, nice: int = 0
) -> tuple[int, str]:
    """Run a program to its end, and answer its exit code and its output.

    One that is not there ends as a shell says it: with 127.
    """
    pipe = subprocess.PIPE
    try:
        child = start(words, cwd, env=env, stdout=pipe, stderr=subprocess.STDOUT, nice=nice)
    except FileNotFoundError as why:
        return 127, str(why)
    assert child.stdout is not None
    with child.stdout:
        said = child.stdout.read()
    return wait(child), said


def kill(child: subprocess.Popen[str]) -> None:
    """End a program and its process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
        os.killpg(child.pid, signal.SIGKILL)


def kill_all() -> None:
    """End all that this run started."""
    with _lock:
        enders = [threading.Thread(target=kill, args=(child,)) for child in _running]
    for ender in enders:
        ender.start()
    for ender in enders:
        ender.join()
    end = time.monotonic() + GRACE
    while (left := _left()) and time.monotonic() < end:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _left() -> list[int]:
    """Find the processes of this run that live. A system without /proc shows none."""
    tag, found = f"{TAG}={RUN}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if tag in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found
