"""Client and worker for Tenure: job queues, leases, limits, pools, schedules, flows, events."""

from __future__ import annotations

from . import errors
from ._version import VERSION as __version__
from .app import App
from .client import AsyncTenure, Tenure
from .context import Context
from .errors import TenureError
from .fields import JobDefaults, JobOptions
from .guards import AsyncLease, Lease
from .jobs import AsyncJob, Job
from .logs import JobFilter
from .middleware import Middleware, current
from .needs import Need, limit, pool
from .outcomes import Ban, Cool, Final, Outcome, PauseLimit, RetryIn, Snooze, Stop
from .pushable import Pushable
from .records import Resource, Result
from .sealing import Codec, ValuePlace
from .tasks import Task

__all__ = [
    "App",
    "AsyncJob",
    "AsyncLease",
    "AsyncTenure",
    "Ban",
    "Codec",
    "Context",
    "Cool",
    "Final",
    "Job",
    "JobDefaults",
    "JobFilter",
    "JobOptions",
    "Lease",
    "Middleware",
    "Need",
    "Outcome",
    "PauseLimit",
    "Pushable",
    "Resource",
    "Result",
    "RetryIn",
    "Snooze",
    "Stop",
    "Task",
    "Tenure",
    "TenureError",
    "ValuePlace",
    "__version__",
    "current",
    "errors",
    "limit",
    "pool",
]
