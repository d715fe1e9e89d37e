"""Tenure's Python worker, over HTTP. Ways: threads, asyncio, processes; with `-folder` the server
keeps its jobs in a folder with `--durability always`, otherwise in the Redis of the run."""

import os
import shutil
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import gauge  # noqa: E402
from tenure import Tenure  # noqa: E402


class TenureWorker(gauge.Peer):
    def open(self, role):
        self.kind, _, store = self.way.partition("-")
        self._process = None
        # Two roles of one measurement run at once and use this folder; the port is theirs alone.
        self._folder = os.path.join(os.environ.get("PEERS_WORK", "/tmp"), f"tenure-{self.port}")
        self._last = role in ("drain", "listen")
        if role == "steady":
            with open(os.path.join(self._folder, "url")) as file:
                self.url = file.read()
        else:
            self._serve(store)
        self.client = Tenure(self.url)

    def _serve(self, store):
        os.makedirs(self._folder, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        where = f"redis://127.0.0.1:{self.port}"
        if store == "folder":
            where = f"file:{os.path.join(self._folder, 'store')}"
        self._process = subprocess.Popen(
            [os.environ["TENURE_BIN"], "serve", "--listen", f"127.0.0.1:{port}", "--store", where],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        with open(os.path.join(self._folder, "url"), "w") as file:
            file.write(self.url)

    def push(self, payloads):
        jobs = ({"queue": "bench", "kind": "work", "payload": data} for data in payloads)
        self.client.push_many(jobs)

    def push_one(self, data):
        self.client.push("bench", data, kind="work")

    def command(self, concurrency):
        app = "coroutines" if self.kind == "asyncio" else "app"
        return [sys.executable, "-m", "tenure", "worker", f"handlers:{app}", "--kind", self.kind,
                "--concurrency", str(concurrency)]  # fmt: skip

    def environment(self):
        return {"TENURE_URL": self.url, "TENURE_LOG": "WARNING"}

    def left(self):
        ended = ("succeeded", "failed", "cancelled")
        return sum(n for state, n in self.client.stats().jobs.items() if state not in ended)

    def close(self):
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            if self._last:
                shutil.rmtree(self._folder, ignore_errors=True)


gauge.main(TenureWorker)
