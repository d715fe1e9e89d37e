"""Start a worker again when a file changes. For development only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

_LOOK_EVERY_S = 0.5
#: Names the pipe of the reloader to the worker that it starts.
_PIPE = "TENURE_RELOADER_PIPE"
_SKIPPED = {"node_modules", "__pycache__", "site-packages"}


def watch(arguments: list[str]) -> int:
    """Run the same command without `--reload`, again after each change of a Python file."""
    command = [sys.executable, "-m", "tenure", *(a for a in arguments if a != "--reload")]
    # Closed when this process ends, in whatever way: the worker reads that.
    ours, _kept = os.pipe()
    environment = {**os.environ, _PIPE: str(ours)}

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=environment, pass_fds=[ours])

    ended: list[int] = []

    def end(which: int, _frame: Any) -> None:
        ended.append(which)
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)

    seen = _stamps()
    child = start()
    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, end)
    while True:
        try:
            code = child.wait(_LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            code = None
        if ended and code is not None:
            return code
        stamps = _stamps()
        if stamps == seen or ended:
            # A worker that could not start waits for the change that mends it.
            continue
        changed = sorted(
            name for name in stamps.keys() | seen if stamps.get(name) != seen.get(name)
        )
        print(f"tenure: {changed[0]} changed; the worker starts again", file=sys.stderr)
        seen = stamps
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
            child.wait()
        if not ended:
            child = start()


def end_with_reloader() -> None:
    """Drain, as at SIGTERM, when the process that would start this one again is gone."""
    pipe = os.environ.pop(_PIPE, None)
    if pipe is None:
        return
    os.set_inheritable(int(pipe), False)

    def wait() -> None:
        os.read(int(pipe), 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="tenure-reloader", daemon=True).start()


def _stamps() -> dict[str, int]:
    found: dict[str, int] = {}
    for folder, names, files in os.walk("."):
        names[:] = [
            n
            for n in names
            if n not in _SKIPPED
            and not n.startswith(".")
            and not (Path(folder) / n / "pyvenv.cfg").exists()
        ]
        for name in files:
            if name.endswith(".py"):
                path = Path(folder) / name
                try:
                    found[str(path)] = path.stat().st_mtime_ns
                except OSError:
                    continue
    return found
