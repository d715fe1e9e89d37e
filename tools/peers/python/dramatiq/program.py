"""dramatiq. Ways: threads, one process with threads; processes, with a thread each."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ["PEERS_PORT"] = sys.argv[2]

import gauge  # noqa: E402
import redis  # noqa: E402
from handlers import work  # noqa: E402


class Dramatiq(gauge.Peer):
    def push(self, payloads):
        for data in payloads:
            work.send(data)

    def push_one(self, data):
        work.send(data)

    def command(self, concurrency):
        processes, threads = (1, concurrency) if self.way == "threads" else (concurrency, 1)
        return [sys.executable, "-m", "dramatiq", "handlers", "--processes", str(processes),
                "--threads", str(threads)]  # fmt: skip

    def environment(self):
        # Twice the threads by default; more ahead is faster for jobs that do next to nothing.
        return {"dramatiq_queue_prefetch": "128"}

    def left(self):
        store = redis.Redis(port=self.port)
        # The messages of a queue are in a hash until they are acknowledged.
        return store.hlen("dramatiq:bench.msgs")


gauge.main(Dramatiq)
