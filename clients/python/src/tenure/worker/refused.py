"""Places where no worker can run: it would hold jobs that it cannot run, or lose their leases."""

from __future__ import annotations

import multiprocessing
import sys

from ..tasks import Unusable

#: Exit code of a process of a worker that ran the worker's own program again.
NO_GUARD = 76
NO_GUARD_SAYS = (
    "the processes of a worker import the program that starts it, and this program starts a worker "
    'when it is imported; put what it does under `if __name__ == "__main__":`'
)
#: By library: the module and its function that say whether it has replaced the threads.
_PATCHES = {
    "gevent": ("gevent.monkey", "is_module_patched", "threading"),
    "eventlet": ("eventlet.patcher", "is_monkey_patched", "thread"),
}


def refuse_place() -> None:
    """Raise if no worker can run in this process."""
    # A new process imports the program now, at the order of one that runs it already.
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(NO_GUARD)
    for library, (module, asks, what) in _PATCHES.items():
        found = sys.modules.get(module)
        if found is not None and getattr(found, asks)(what):
            raise Unusable(
                f"{library} has replaced the threads of this process, and a worker sends its "
                "heartbeats on a thread: a handler that computes would lose its lease; start the "
                f"worker in a process that {library} does not patch"
            )
