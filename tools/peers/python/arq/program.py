"""arq, on one event loop."""

import asyncio
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import gauge  # noqa: E402
import redis  # noqa: E402
from arq import create_pool  # noqa: E402
from arq.connections import RedisSettings  # noqa: E402


class Arq(gauge.Peer):
    def open(self, role):
        self._loop = asyncio.new_event_loop()
        self._pool = self._loop.run_until_complete(create_pool(RedisSettings(port=self.port)))

    def push(self, payloads):
        async def all_of_them():
            for start in range(0, len(payloads), 64):
                part = payloads[start : start + 64]
                await asyncio.gather(*(self._pool.enqueue_job("work", data) for data in part))

        self._loop.run_until_complete(all_of_them())

    def push_one(self, data):
        self._loop.run_until_complete(self._pool.enqueue_job("work", data))

    def command(self, concurrency):
        self._concurrency = concurrency
        program = os.path.join(os.path.dirname(sys.executable), "arq")
        return [program, "handlers.WorkerSettings"]

    def environment(self):
        return {"PEERS_CONCURRENCY": "100"}

    def left(self):
        return redis.Redis(port=self.port).zcard("arq:queue")


gauge.main(Arq)
