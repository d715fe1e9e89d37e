"""What every measured Python program shares: the same as the crate `peers-gauge` does for Rust.

A program is called as `python NAME/program.py ROLE PORT [--name value]…`. It starts its workers as
their documentation says, in processes of their own; each handler adds a moment to one file, which
costs the same for all and works for threads, coroutines, forks and processes alike.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

#: The environment variables of the workers.
PORT, TALLY, TIMED = "PEERS_PORT", "PEERS_TALLY", "PEERS_TIMED"
_MOMENT_BYTES = 8
#: Nothing was handled for this long: the rest is given up.
_QUIET_S = 30.0
_IO_S = 0.005


def now_us():
    """Microseconds on a clock that all processes of this machine share and nobody sets."""
    return time.monotonic_ns() // 1000


def payload(n, k):
    """About 100 bytes as JSON."""
    return {"n": n, "t": now_us(), "k": k, "pad": "x" * 48}


_file = os.open(os.environ[TALLY], os.O_WRONLY | os.O_APPEND) if TALLY in os.environ else None
_timed = TIMED in os.environ


def _count(data, begun):
    moment = begun - data["t"] if _timed else now_us()
    os.write(_file, moment.to_bytes(_MOMENT_BYTES, "little"))


def handle(data):
    """Do what a plain handler does: nothing, or as much as a short call to another service."""
    begun = now_us()
    if data["k"] == "io":
        time.sleep(_IO_S)
    _count(data, begun)


async def handle_async(data):
    """Do the same as a coroutine."""
    import asyncio

    begun = now_us()
    if data["k"] == "io":
        await asyncio.sleep(_IO_S)
    _count(data, begun)


class Peer:
    """A system. `--way` says how its workers run handlers."""

    def __init__(self, call):
        self.port = call["port"]
        self.way = call["way"]
        self.home = os.path.dirname(os.path.abspath(sys.argv[0]))

    def open(self, role):
        """Start what it needs beside Redis."""

    def push(self, payloads):
        """Push in bulk, by the fastest call there is."""
        raise NotImplementedError

    def push_one(self, data):
        """Push one job."""
        raise NotImplementedError

    def command(self, concurrency):
        """Return the command that starts its workers, with arguments."""
        raise NotImplementedError

    def environment(self):
        """Return what its workers need beside the port."""
        return {}

    def left(self):
        """Return how many jobs are not acknowledged yet."""
        raise NotImplementedError

    def close(self):
        """End what `open` started."""


class _Tally:
    def __init__(self):
        self._file = tempfile.NamedTemporaryFile(prefix="peers-tally-")
        self.path = self._file.name

    def handled(self):
        return os.stat(self.path).st_size // _MOMENT_BYTES

    def wait(self, wanted):
        """Wait for as many; False if nothing came for long."""
        before, since = -1, time.monotonic()
        while True:
            handled = self.handled()
            if handled >= wanted:
                return True
            if handled != before:
                before, since = handled, time.monotonic()
            elif time.monotonic() - since > _QUIET_S:
                return False
            time.sleep(0.02)

    def moments(self):
        with open(self.path, "rb") as file:
            data = file.read()
        parts = range(0, len(data), _MOMENT_BYTES)
        return sorted(int.from_bytes(data[n : n + _MOMENT_BYTES], "little") for n in parts)


def _work(peer, call, timed):
    tally = _Tally()
    env = {**os.environ, PORT: str(peer.port), TALLY: tally.path, **peer.environment()}
    env["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
    env.update({TIMED: "1"} if timed else {})
    # Its own group: some systems leave children behind when their parent ends.
    workers = subprocess.Popen(
        peer.command(call["concurrency"]),
        cwd=peer.home,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if "PEERS_LOG" not in env else None,
        start_new_session=True,
    )
    try:
        if timed:
            # The first job is not part of the figures: it comes when the workers have started.
            peer.push_one(payload(0, "first"))
            if not tally.wait(1):
                raise SystemExit("the workers do not begin")
            os.truncate(tally.path, 0)
            print("ready", flush=True)
        complete = tally.wait(call["jobs"])
        end = time.monotonic() + 10
        while complete and peer.left() and time.monotonic() < end:
            time.sleep(0.05)
        left = peer.left()
    finally:
        _end(workers)
    moments = tally.moments()
    figures = {"jobs": len(moments), "left": left}
    if not complete:
        figures["gave_up"] = True
    if timed and moments:
        last = len(moments) - 1
        for name, part in (("min", 0), ("p50", 0.5), ("p99", 0.99), ("max", 1)):
            figures[f"{name}_ms"] = moments[round(last * part)] / 1e3
    elif moments:
        figures["seconds"] = (moments[-1] - moments[0]) / 1e6
    return figures


def _end(workers):
    workers.terminate()
    try:
        workers.wait(10)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(workers.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    workers.wait()


def _steady(peer, call):
    begin = now_us()
    for n in range(call["jobs"]):
        wait = begin + n * 1_000_000 // call["rate"] - now_us()
        if wait > 0:
            time.sleep(wait / 1e6)
        peer.push_one(payload(n, "free"))
    return {"jobs": call["jobs"]}


def _push(peer, call, k):
    begin = now_us()
    peer.push([payload(n, k) for n in range(call["jobs"])])
    return {"jobs": call["jobs"], "seconds": (now_us() - begin) / 1e6}


def main(make):
    """Do what the command line says."""
    role, port, *rest = sys.argv[1:]
    call = {"port": int(port), "way": "", "jobs": 1000, "concurrency": 8, "rate": 50}
    for name, value in zip(rest[::2], rest[1::2]):
        call[name[2:]] = value if name == "--way" else int(value)
    peer = make(call)
    peer.open(role)
    try:
        if role in ("push", "push-io"):
            figures = _push(peer, call, "io" if role == "push-io" else "free")
        elif role == "steady":
            figures = _steady(peer, call)
        elif role in ("drain", "listen"):
            figures = _work(peer, call, timed=role == "listen")
        else:
            raise SystemExit(f"no role is called {role}")
    finally:
        peer.close()
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    used = children if role in ("drain", "listen") else own
    figures["cpu_s"] = used.ru_utime + used.ru_stime
    print(json.dumps(figures), flush=True)
