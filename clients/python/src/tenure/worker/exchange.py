"""The calls of a worker: asking for jobs and settling them.

One thread asks, and takes along the settles that have come up: one call for both. While it waits
for new jobs, another thread sends settles at once. Where runs are short, jobs are leased ahead, and
settles wait for each other for a moment. A settle is repeated until it is answered, and
what becomes of it is always logged.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Optional

from .._http import Transport
from .._keeper import Keeper
from .._leasing import slice_of, worker_fields
from .._lost import ConnectionLost
from .._repeats import Backoff, leaves_doubt
from .._text import logger
from .._wire import Request, Response, now, request
from ..errors import TenureError, from_problem
from ..payloads import encode
from ..records import LeaseRecord
from .ahead import Ahead
from .ask import Ask
from .settles import Settle, Settles, repair, tell_refused
from .written import RELEASED, Written

if TYPE_CHECKING:
    import logging

log: logging.Logger = logger("tenure.worker")

#: Calls that do not wait are answered within this, or sent again.
_PATIENCE_S = 10.0
#: Seconds for which the server remembers a request id at least.
_SAME_ID_S = 60.0
_BRIEF_S = 0.2
#: Where runs are short, a settle waits this long for others that are about to come.
_GATHER_S = 0.001
#: A grant that took a larger part of the ttl than this does not wait for a slot.
_FRESH = 0.1
#: For how long a worker that ends asks what its last call was granted. A server that is away must
#: not keep it from ending.
_WITHDRAW_FOR_S = 5.0
#: A waiting call that is not answered this long after its withdrawal is withdrawn again.
_WITHDRAW_AGAIN_S = 0.1


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
        self._lock = threading.Lock()
        #: Two conditions, so that the end of a run wakes one thread at most.
        self._asker = threading.Condition(self._lock)
        self._settler = threading.Condition(self._lock)
        self._ahead = Ahead(concurrency)
        self._settles = Settles(ttl)
        #: The leases of what runs: each has a slot until it is through.
        self._slots: set[str] = set()
        #: For those who wait until the waiting call is answered.
        self._answer = threading.Condition(self._lock)
        #: The lease call that waits at the server now.
        self._waiting: Optional[Ask] = None
        #: Jobs may come in still, by an answer or by a call whose answer is lost: the worker must
        #: not end before they have a slot or are given back. A call that only waits does not count.
        self._taking = False
        #: The settler must not leave settles to the asker: it waits, or it stopped.
        self._asker_is_away = False
        self._draining = False
        self._closed = False
        self._answered = False
        #: The last answer to an ask without settles had nothing.
        self.found_nothing: bool = False
        #: Why the worker ends by itself.
        self.fault: Optional[Exception] = None

    def start(self) -> None:
        """Begin to ask."""
        for name, work in (("ask", self._ask_all), ("settle", self._settle_all)):
            threading.Thread(target=work, name=f"tenure-{name}", daemon=True).start()

    def finish(
        self, lease: str, job: str, written: Optional[Written], took: Optional[float] = None
    ) -> None:
        """Free the slot of a run, and settle it unless its lease is lost.

        A second time it changes nothing that the first time did.
        """
        with self._lock:
            self._slots.discard(lease)
            if written is not None:
                self._settles.add(lease, job, written, now())
            if took is not None:
                self._ahead.ran(took)
            self.found_nothing = False
            self._wake()
        self._begin_waiting()

    def slots(self) -> set[str]:
        """Return the leases that have a slot."""
        with self._lock:
            return set(self._slots)

    def settles(self, lease: str) -> bool:
        """Say whether the outcome of a lease waits to be sent, or to be answered."""
        with self._lock:
            return self._settles.has(lease)

    def give_back(self, lease: str, job: str) -> None:
        """Release a lease whose run was given up, or never began."""
        with self._lock:
            self._settles.add(lease, job, RELEASED, now())
            self._wake()

    def _wake(self) -> None:
        """Wake the thread that sends what was added, if it is not to wait for more."""
        if self._settler_sends():
            self._settler.notify()
        if self._draining or len(self._settles) == 1 or not self._gathers():
            self._asker.notify()

    def _settler_sends(self) -> bool:
        """Say whether the settler must not leave settles to the asker, which cannot call now."""
        full = len(self._slots) >= self._concurrency and not self._ahead.short
        return self._asker_is_away or self._draining or full

    def idle(self) -> bool:
        """Say whether nothing runs and nothing is to be settled."""
        with self._lock:
            nothing_left = not self._slots and not self._ahead and not self._taking
            return nothing_left and self._settles.all_answered()

    def settled(self) -> bool:
        """Say whether nothing is to be settled."""
        with self._lock:
            return self._settles.all_answered()

    def drain(self) -> None:
        """Ask for nothing more. A call that waits is ended at the server, without a grant lost."""
        with self._lock:
            if self._draining:
                return
            self._draining = True
            ahead = self._ahead.take_all()
            self._wake()
        self._refuse(ahead)
        self._withdraw()

    def _withdraw(self) -> None:
        """End the call that waits at the server, and return when it is answered.

        Its withdrawal may come to the server before it, and would then leave it waiting there for a
        worker that has ended. So it is withdrawn until it is answered.
        """
        until = now() + _WITHDRAW_FOR_S
        while True:
            with self._lock:
                ask = self._waiting
            left = until - now()
            if ask is None or left <= 0:
                return
            # A grant is answered to both calls, and given back once.
            self._give_back_granted(ask, left)
            with self._lock:
                if self._waiting is not None:
                    self._answer.wait(_WITHDRAW_AGAIN_S)

    def _take_back(self, ask: Ask) -> None:
        """Give back what was granted to a call whose answer is lost."""
        until = now() + _WITHDRAW_FOR_S
        backoff = Backoff()
        while ask.in_doubt and now() < until:
            response = self._give_back_granted(ask, until - now())
            if response is not None:
                if response.status < 400:
                    return
                if not leaves_doubt(from_problem(response.status, response.data)):
                    # A server that ends, say: it will not tell any more.
                    break
            time.sleep(backoff.pause())
        if ask.in_doubt:
            log.warning(
                "the server did not answer the last call for jobs; what it granted runs elsewhere "
                "after its ttl"
            )

    def _give_back_granted(self, ask: Ask, timeout: float) -> Optional[Response]:
        """Withdraw a call, and give back what it was granted; None if no server answered."""
        response = self._once(ask.withdrawal(), timeout)
        if response is not None and response.status < 400:
            self._refuse([LeaseRecord.read(raw) for raw in response.data["leases"]])
        return response

    def close(self) -> None:
        """End all threads."""
        with self._lock:
            self._closed = True
            self._draining = True
            self._wake()
        self.keeper.close()

    def _ask_all(self) -> None:
        try:
            self._ask_forever()
        except BaseException as error:
            log.exception("the worker cannot ask for jobs any more")
            self.fault = self.fault or TenureError(f"the worker failed: {type(error).__name__}")
        finally:
            with self._lock:
                self._asker_is_away = True
                self._taking = False
                self._settler.notify()

    def _ask_forever(self) -> None:
        backoff = Backoff()
        ask = Ask()
        while True:
            with self._lock:
                while not self._draining and self._gathers():
                    self._asker.wait(_soon(self._gather_for()))
                if self._draining:
                    break
                settles = self._settles.take(now())
                free = self._concurrency - len(self._slots)
                # A call that may wait comes back when it is too late to lease ahead.
                free = min(free + (self._ahead.room() if settles else 0), 1000)
                # With settles, an answer now: they must not wait for the next job.
                wait = 0.0 if settles else self._slice
                # As many as may wait here do so already: then the settles go alone.
                if asks := free > 0:
                    ask.write(self._queues, free, wait, self.ttl, self._worker)
                # Each queue is the first in its turn.
                self._queues = self._queues[1:] + self._queues[:1]
                self._waiting = None if settles else ask
                self._taking = bool(settles) or ask.in_doubt
                self._asker_is_away = not settles
                if self._asker_is_away and self._settles:
                    self._settler.notify()
            fault = self._ask_once(settles, ask if asks else None, wait)
            if fault is None:
                backoff = Backoff()
            if (asks and fault is None) or now() - ask.first_sent > _SAME_ID_S:
                ask = Ask()
            with self._lock:
                self._taking = ask.in_doubt
                self._asker_is_away = fault is not None
                if fault is None:
                    continue
                self._settler.notify()
                end = now() + min(max(backoff.pause(), fault), 5.0)
                while not self._draining and now() < end:
                    self._asker.wait(end - now())
        self._take_back(ask)

    def _gathers(self) -> bool:
        """Say whether the asker has nothing to call for, or not yet."""
        if not self._ahead.short:
            return len(self._slots) >= self._concurrency
        if not self._slots:
            return False
        since = self._settles.first_since()
        if since is None:
            return bool(self._ahead) or len(self._slots) >= self._concurrency
        if not self._ahead and len(self._settles) >= self._concurrency:
            return False
        return now() < self._gathered_at(since)

    def _gathered_at(self, since: float) -> float:
        # While jobs wait for slots here, nothing stands still if the next ones are asked for later.
        return since + _GATHER_S * (2 if self._ahead else 1)

    def _gather_for(self) -> Optional[float]:
        """Return for how long to wait before looking again; None: until it is woken."""
        since = self._settles.first_since()
        if not self._ahead.short or since is None:
            return None
        return max(0.0, self._gathered_at(since) - now())

    def _ask_once(self, settles: list[Settle], ask: Optional[Ask], wait: float) -> Optional[float]:
        """Ask, and begin what was granted; otherwise return how long to wait at least."""
        if settles:
            response = self._send(settles, ask, _PATIENCE_S)
        else:
            assert ask is not None
            made = request("POST", "leases", body=ask.body, wait=wait)
            response = self._once(made, wait + _PATIENCE_S, ask)
        with self._lock:
            # From now on a drain leaves what was granted to this thread: by a withdrawal it would
            # get, and give back, what runs here already.
            self._waiting = None
            self._taking = True
            self._answer.notify_all()
        if response is None:
            return 0.0
        if response.status >= 400:
            return self._ask_refused(response, ask)
        self._answered = True
        if ask is None:
            return None
        answer = response.data
        refused = answer.get("refused")
        if refused:
            return 1.0
        ask.in_doubt = False
        granted = [LeaseRecord.read(raw) for raw in answer["leases"]]
        refused_now: list[LeaseRecord] = []
        with self._lock:
            moment = now()
            if self._draining:
                granted, refused_now = [], granted
            elif moment - ask.first_sent > _FRESH * self.ttl:
                free = self._concurrency - len(self._slots)
                granted, refused_now = granted[:free], granted[free:]
            self._ahead.add(granted, ask.first_sent, moment)
            self.found_nothing = not granted and not refused_now and not settles
        self._refuse(refused_now)
        self._begin_waiting()
        with self._lock:
            if self._ahead:
                self._ahead.keeps_scarce()
                self._settler.notify()
        return None

    def _begin_waiting(self) -> None:
        """Begin the jobs that wait for a slot, as far as slots are free."""
        while True:
            with self._lock:
                if self._draining or len(self._slots) >= self._concurrency:
                    return
                found = self._ahead.next()
                if found is None:
                    return
                lease, sent = found
                self._slots.add(str(lease.lease))
            try:
                self._begin(lease, sent)
            except Exception:
                log.exception("a job could not be begun and is given back")
                self.finish(str(lease.lease), _job_of(lease), RELEASED)

    def _ask_refused(self, response: Response, ask: Optional[Ask]) -> float:
        error = from_problem(response.status, response.data, response.retry_after)
        if ask is not None and leaves_doubt(error):
            ask.in_doubt = True
        passing = response.status in (408, 429) or response.status >= 500
        if not passing and not self._answered:
            # A wrong token or a wrong name of a queue does not mend itself.
            with self._lock:
                self.fault = error
                self._draining = True
                self._wake()
            return 0.0
        if response.status < 500:
            # The others are an outage, which is logged as one.
            log.warning("the server gives no jobs: %s", error)
        return response.retry_after or 1.0

    def _refuse(self, leases: list[LeaseRecord]) -> None:
        """Give back what was granted and cannot begin."""
        for lease in leases:
            self.give_back(str(lease.lease), _job_of(lease))

    def _settle_all(self) -> None:
        backoff = Backoff()
        while True:
            with self._lock:
                while not self._closed and not (self._settles and self._settler_sends()):
                    at = [self._ahead.overdue_at(), self._settles.again_at()]
                    soonest = min((each for each in at if each is not None), default=None)
                    self._settler.wait(_soon(None if soonest is None else soonest - now()))
                    if self._settles.again(now()):
                        self._wake()
                    for lease in self._ahead.overdue(now()):
                        self._settles.add(str(lease.lease), _job_of(lease), RELEASED, now())
                        self._wake()
                if self._closed and not self._settles:
                    return
                settles = self._settles.take(now())
            response = self._send(settles, None, _PATIENCE_S)
            if response is not None and response.status < 400:
                backoff = Backoff()
                continue
            with self._lock:
                self._settler.wait(backoff.pause())

    def _put_back(self, settles: list[Settle]) -> None:
        """Keep settles that were not answered, as long as an answer can still be had."""
        with self._lock:
            for each in self._settles.put_back(settles, now()):
                self.keeper.let_go(each.lease)
            self._wake()

    def _once(self, made: Request, timeout: float, ask: Optional[Ask] = None) -> Optional[Response]:
        """Send a call once, with an ask in it; None if no server answered it."""
        try:
            response = self.transport.once(made, timeout)
        except ConnectionLost as fault:
            log.debug("no answer: %s", fault)
            if ask is not None and fault.sent:
                ask.in_doubt = True
            return None
        return response if isinstance(response.data, dict) else None

    def _send(
        self, settles: list[Settle], ask: Optional[Ask], timeout: float
    ) -> Optional[Response]:
        """Send settles, with an ask if there is one, and take in what became of them.

        None if they are to be sent again, with whatever was asked for.
        """
        told: list[Any] = []
        try:
            body = b'{"settle":[%b]' % b",".join(each.written.item(each.lease) for each in settles)
            if ask is not None:
                body += b',"lease":' + encode(ask.body)
            made = request("POST", "leases", "settle", written=body + b"}")
            response = self._once(made, timeout, ask)
            if response is not None and response.status < 400:
                told = [(bool(each["ok"]), each.get("code")) for each in response.data["settled"]]
        except Exception:
            # A settle is never lost by a mistake of this code.
            log.exception("settles could not be sent; they are sent again")
            response = None
            if ask is not None:
                ask.in_doubt = True
        if response is None:
            self._put_back(settles)
            return None
        if response.status >= 400:
            mended = repair(response, settles, now())
            self._put_back(settles)
            return None if mended else response
        with self._lock:
            over = self._settles.answered(settles, told, now())
        for each in over:
            self.keeper.let_go(each.lease)
        tell_refused(settles, told)
        return response


def _soon(seconds: Optional[float]) -> float:
    """Bound a wait, so that a wake-up that did not come delays what waits for it by a second."""
    return 1.0 if seconds is None else min(max(0.0, seconds), 1.0)


def _job_of(lease: LeaseRecord) -> str:
    return lease.job.id if lease.job is not None else ""
