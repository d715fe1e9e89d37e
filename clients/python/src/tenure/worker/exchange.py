"""The calls of a worker: asking for jobs and settling them.

One thread asks, and takes along the settles that have come up: one call for both. While it waits
for new jobs, another thread sends settles at once. A settle is repeated until it is answered, and
what becomes of it is always logged.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from .._http import Transport
from .._keeper import Keeper
from .._leasing import slice_of, worker_fields
from .._repeats import Backoff, ConnectionLost
from .._wire import Request, Response, new_id, now, request
from ..durations import duration_text
from ..errors import TenureError, from_problem
from ..payloads import encode
from ..records import LeaseRecord
from ..tasks import final

log: logging.Logger = logging.getLogger("tenure.worker")

#: Calls that do not wait are answered within this, or sent again.
_PATIENCE_S = 10.0
#: Seconds for which the server remembers a request id at least.
_SAME_ID_S = 60.0
#: Seconds for which a settle is repeated, or the ttl of its lease if that is longer.
_SETTLE_FOR_S = 60.0
#: The most settles of a call, and about the most bytes of them: the server takes 8 MiB.
_BATCH = 200
_BATCH_BYTES = 4 * 1024 * 1024
_BRIEF_S = 0.2


@dataclass
class _Settle:
    item: dict[str, Any] = field(repr=False)
    lease: str
    job: str
    since: float
    bytes: int
    wrong_form: bool = False


class Exchange:
    """The calls of one worker."""

    def __init__(
        self,
        transport: Transport,
        queues: list[str],
        concurrency: int,
        ttl: float,
        begin: Callable[[LeaseRecord, float], None],
        until_empty: bool,
    ) -> None:
        self.transport = transport
        self.keeper: Keeper = Keeper(transport)
        self.ttl = ttl
        self._worker = worker_fields()
        self._queues = queues
        self._concurrency = concurrency
        self._begin = begin
        #: How long a call waits for jobs. One that is to end when there are none waits briefly.
        self._slice = _BRIEF_S if until_empty else slice_of(ttl)
        self._state = threading.Condition()
        self._settles: deque[_Settle] = deque()
        self._running = 0
        #: Settles that are taken from the queue and not answered.
        self._sending = 0
        #: The lease call that waits at the server now.
        self._waiting: Optional[dict[str, Any]] = None
        #: The settler must not leave settles to the asker: it waits, or it stopped.
        self._asker_is_away = False
        self._draining = False
        self._closed = False
        self._answered = False
        #: The last answer to an ask without settles had nothing.
        self.found_nothing: bool = False
        self.fault: Optional[TenureError] = None

    def start(self) -> None:
        """Begin to ask."""
        for name, work in (("ask", self._ask_all), ("settle", self._settle_all)):
            threading.Thread(target=work, name=f"tenure-{name}", daemon=True).start()

    def finish(self, lease: str, job: str, item: Optional[dict[str, Any]]) -> None:
        """Free the slot of a run, and settle it unless its lease is lost."""
        with self._state:
            self._running -= 1
            if item is not None:
                self._add(lease, job, item)
            self.found_nothing = False
            self._state.notify_all()

    def give_back(self, lease: str, job: str) -> None:
        """Release a lease whose run was given up, or never began."""
        with self._state:
            self._add(lease, job, {"outcome": "released"})
            self._state.notify_all()

    def _add(self, lease: str, job: str, item: dict[str, Any]) -> None:
        whole = {"lease": lease, **item}
        self._settles.append(_Settle(whole, lease, job, now(), len(encode(whole))))

    def idle(self) -> bool:
        """Say whether nothing runs and nothing is to be settled."""
        with self._state:
            return self._running == 0 and not self._settles and self._sending == 0

    def settled(self) -> bool:
        """Say whether nothing is to be settled."""
        with self._state:
            return not self._settles and self._sending == 0

    def drain(self) -> None:
        """Ask for nothing more. A call that waits is ended at the server, without a grant lost."""
        with self._state:
            if self._draining:
                return
            self._draining = True
            waiting = self._waiting
            self._state.notify_all()
        if waiting is None:
            return
        # The same request id again takes the waiting call's place, which is answered at once with
        # nothing; what it was granted meanwhile comes here.
        body = {**waiting, "wait": "0s"}
        try:
            answer = self.transport.once(request("POST", "leases", body=body), _PATIENCE_S)
        except ConnectionLost:
            return
        if answer.status < 400:
            self._refuse(answer.data["leases"])

    def close(self) -> None:
        """End all threads."""
        with self._state:
            self._closed = True
            self._draining = True
            self._state.notify_all()
        self.keeper.close()

    def _ask_all(self) -> None:
        try:
            self._ask_forever()
        except Exception as error:
            log.exception("the worker cannot ask for jobs any more")
            self.fault = self.fault or TenureError(f"the worker failed: {type(error).__name__}")
        finally:
            with self._state:
                self._asker_is_away = True
                self._state.notify_all()

    def _ask_forever(self) -> None:
        backoff = Backoff()
        id, first_sent = new_id("request"), 0.0
        while True:
            with self._state:
                while not self._draining and self._running >= self._concurrency:
                    self._state.wait()
                if self._draining:
                    return
                settles = self._take()
                free = min(self._concurrency - self._running, 1000)
                # With settles, an answer now: they must not wait for the next job.
                wait = 0.0 if settles else self._slice
                ask = {
                    "queues": self._queues,
                    "max": free,
                    "wait": duration_text(wait),
                    "ttl": duration_text(self.ttl),
                    "worker": self._worker,
                    "request_id": id,
                }
                # Each queue is the first in its turn.
                self._queues = self._queues[1:] + self._queues[:1]
                self._waiting = None if settles else ask
                self._asker_is_away = not settles
                self._state.notify_all()
            first_sent = first_sent or now()
            fault = self._ask_once(settles, ask, wait, first_sent)
            with self._state:
                self._waiting = None
                self._asker_is_away = False
            if fault is None:
                backoff = Backoff()
                id, first_sent = new_id("request"), 0.0
                continue
            if now() - first_sent > _SAME_ID_S:
                id, first_sent = new_id("request"), 0.0
            with self._state:
                self._asker_is_away = True
                pause = max(backoff.pause(), fault if fault > 0 else 0.0)
                if not self._draining:
                    self._state.wait(min(pause, 5.0))

    def _ask_once(
        self, settles: list[_Settle], ask: dict[str, Any], wait: float, first_sent: float
    ) -> Optional[float]:
        """Ask, and begin what was granted; otherwise return how long to wait at least."""
        if settles:
            response = self._send(settles, ask, _PATIENCE_S)
        else:
            response = self._once(request("POST", "leases", body=ask), wait + _PATIENCE_S)
        if response is None:
            return 0.0
        if response.status >= 400:
            return self._ask_refused(response)
        self._answered = True
        answer = response.data
        refused = answer.get("refused")
        if refused:
            return 1.0
        granted = [LeaseRecord.read(raw) for raw in answer["leases"]]
        with self._state:
            if not self._draining:
                self._running += len(granted)
                self.found_nothing = not granted and not settles
                granted, refused_now = granted, []
            else:
                granted, refused_now = [], answer["leases"]
            self._state.notify_all()
        self._refuse(refused_now)
        for lease in granted:
            try:
                self._begin(lease, first_sent)
            except Exception:
                log.exception("a job could not be begun and is given back")
                job = lease.job.id if lease.job is not None else ""
                self.finish(str(lease.lease), job, {"outcome": "released"})
        return None

    def _ask_refused(self, response: Response) -> float:
        error = from_problem(response.status, response.data, response.retry_after)
        if (error.pointer or "").startswith("/settle/"):
            # Repaired by now, and sent again at once.
            return 0.0
        passing = response.status in (408, 429) or response.status >= 500
        if not passing and not self._answered:
            # A wrong token or a wrong name of a queue does not mend itself.
            with self._state:
                self.fault = error
                self._draining = True
                self._state.notify_all()
            return 0.0
        log.warning("the server gives no jobs: %s", error)
        return response.retry_after or 1.0

    def _refuse(self, leases: list[dict[str, Any]]) -> None:
        """Give back what was granted while the worker stopped."""
        for raw in leases:
            lease = LeaseRecord.read(raw)
            self.give_back(str(lease.lease), lease.job.id if lease.job is not None else "")

    def _settle_all(self) -> None:
        backoff = Backoff()
        while True:
            with self._state:
                while not self._closed and not (
                    self._settles and (self._asker_is_away or self._draining)
                ):
                    self._state.wait()
                if self._closed and not self._settles:
                    return
                settles = self._take()
            response = self._send(settles, None, _PATIENCE_S)
            if response is not None and response.status < 400:
                backoff = Backoff()
                continue
            with self._state:
                self._state.wait(backoff.pause())

    def _take(self) -> list[_Settle]:
        taken: list[_Settle] = []
        size = 0
        while self._settles and len(taken) < _BATCH:
            size += self._settles[0].bytes
            if taken and size > _BATCH_BYTES:
                break
            taken.append(self._settles.popleft())
        self._sending += len(taken)
        return taken

    def _put_back(self, settles: list[_Settle]) -> None:
        """Keep settles that were not answered, as long as an answer can still be had."""
        moment = now()
        with self._state:
            self._sending -= len(settles)
            for each in reversed(settles):
                if moment - each.since > max(_SETTLE_FOR_S, self.ttl):
                    log.error(
                        "job %s: its outcome %s was not answered for %.0f s; it may be lost, and "
                        "the job may run again",
                        each.job,
                        each.item["outcome"],
                        moment - each.since,
                    )
                    self.keeper.let_go(each.lease)
                else:
                    self._settles.appendleft(each)
            self._state.notify_all()

    def _once(self, made: Request, timeout: float) -> Optional[Response]:
        """Send a call once; None if no server answered it."""
        try:
            response = self.transport.once(made, timeout)
        except ConnectionLost as fault:
            log.debug("no answer: %s", fault)
            return None
        return response if isinstance(response.data, dict) else None

    def _send(
        self, settles: list[_Settle], ask: Optional[dict[str, Any]], timeout: float
    ) -> Optional[Response]:
        """Send settles, with an ask if there is one, and take in what became of them."""
        told: list[Any] = []
        try:
            body: dict[str, Any] = {"settle": [each.item for each in settles]}
            if ask is not None:
                body["lease"] = ask
            response = self._once(request("POST", "leases", "settle", body=body), timeout)
            told = response.data["settled"] if response and response.status < 400 else []
        except Exception:
            # A settle is never lost by a mistake of this code.
            log.exception("settles could not be sent; they are sent again")
            response = None
        if response is None:
            self._put_back(settles)
            return None
        if response.status >= 400:
            self._repair(response, settles)
            return response
        for each, answer in zip(settles, told):
            self.keeper.let_go(each.lease)
            if not answer["ok"]:
                log.warning(
                    "job %s: its outcome %s counts no more: %s",
                    each.job,
                    each.item["outcome"],
                    answer["code"],
                )
        with self._state:
            self._sending -= len(settles)
            self._state.notify_all()
        return response

    def _repair(self, response: Response, settles: list[_Settle]) -> None:
        """Replace a settle that the server cannot read by one that it can."""
        problem = response.data if isinstance(response.data, dict) else {}
        index = problem.get("index")
        pointer = str(problem.get("pointer") or "")
        if response.status == 422 and isinstance(index, int) and pointer.startswith("/settle/"):
            wrong = settles[index]
            log.error("job %s: its outcome is refused: %s", wrong.job, problem.get("detail"))
            item = final(f"its outcome was refused: {problem.get('detail')}")
            if wrong.wrong_form:
                item = {"outcome": "released"}
            wrong.wrong_form = True
            wrong.item = {"lease": wrong.lease, **item}
        self._put_back(settles)
