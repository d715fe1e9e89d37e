"""RQ. Ways: fork, its default, a process for each job; simple, in the worker's own process."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import gauge  # noqa: E402
import redis  # noqa: E402
from rq import Queue  # noqa: E402

_WORKERS = {"fork": "rq.Worker", "simple": "rq.SimpleWorker"}


class Rq(gauge.Peer):
    def open(self, role):
        self.store = redis.Redis(port=self.port)
        self.queue = Queue("bench", connection=self.store)

    def push(self, payloads):
        for start in range(0, len(payloads), 500):
            with self.store.pipeline() as pipe:
                self.queue.enqueue_many(
                    [
                        Queue.prepare_data("handlers.work", args=(data,), result_ttl=0)
                        for data in payloads[start : start + 500]
                    ],
                    pipeline=pipe,
                )
                pipe.execute()

    def push_one(self, data):
        self.queue.enqueue("handlers.work", data, result_ttl=0)

    def command(self, concurrency):
        program = os.path.join(os.path.dirname(sys.executable), "rq")
        return [program, "worker-pool", "bench", "-n", str(concurrency), "-w", _WORKERS[self.way],
                "-u", f"redis://127.0.0.1:{self.port}", "-l", "ERROR"]  # fmt: skip

    def left(self):
        return self.store.llen("rq:queue:bench") + self.store.zcard("rq:wip:bench")


gauge.main(Rq)
