import os

import gauge
from arq.connections import RedisSettings


async def work(ctx, data):
    await gauge.handle_async(data)


class WorkerSettings:
    functions = [work]
    redis_settings = RedisSettings(port=int(os.environ.get(gauge.PORT, "0")))
    max_jobs = int(os.environ.get("PEERS_CONCURRENCY", "100"))
    keep_result = 0
    # Half a second by default: the measurement would show nothing else.
    poll_delay = 0.005
