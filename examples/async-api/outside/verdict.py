"""The verdict: what must be true, as the customers, the registry and the database saw it."""

from __future__ import annotations

from typing import Any, Optional

from stage import Scene

Rows = dict[str, tuple[dict[str, Any], int, int]]

#: As api.py sets it.
MAX_ATTEMPTS = 8
#: The reason of a failed job, by the first characters of the company.
REASONS = {"C-7": "the registry answered 500", "C-8": "the registry knows no company"}
#: Answers of the registry that fail a run.
FAILURES = ("404", "500", "cut")
#: What errors say that come from a kill of our own service and not from the registry: before, in or
#: after the header of its answer.
SERVICE_KILLED = ("could not connect", "the connection was cut", "its answer breaks off")


class Verdict:
    """All that was seen, and one method for each thing that must be true."""

    def __init__(
        self, seen: dict[str, Any], registry: dict[str, Any], jobs: list[dict[str, Any]], rows: Rows
    ):
        self.seen, self.registry, self.listed, self.rows = seen, registry, jobs, rows
        self.jobs = {job["payload"]["company"]: job for job in jobs}
        self.ends = {number: each["ends"] for number, each in seen["companies"].items()}
        self.answers = [each for of_one in registry["answers"].values() for each in of_one]

    def give(self, scene: Scene) -> None:
        """Check everything."""
        for check in (self.ended, self.once, self.rate, self.at_once, self.attempts, self.failed):
            wrong, what, figures = check()
            scene.check(not wrong, what, f"{figures}; wrong: {wrong}" if wrong else figures)
        wrong, what, figures = self.stored()
        scene.check(not wrong, what, f"{figures}; wrong: {wrong}" if wrong else figures)

    def ended(self) -> tuple[Any, str, str]:
        """Nothing is lost, and nobody is told two things."""
        wrong: list[str] = list(self.seen["wrong"])
        for number, both in self.ends.items():
            told = {end.get("rating") or end.get("state") for end in both}
            if len(both) != 2 or len(told) != 1 or any("no end" in each for each in told):
                wrong.append(f"{number} {both}")
        reports = sum(any("rating" in end for end in both) for both in self.ends.values())
        first, worst = self.seen["first_ms"]
        figures = (
            f"{len(self.ends)} companies, {reports} reports; first answer after {first} ms "
            f"(worst {worst} ms); {self.seen['known_again']} asked for again, and known"
        )
        return wrong, "every question had its end, the same for both customers who asked", figures

    def once(self) -> tuple[Any, str, str]:
        """The key makes one job of all that ask."""
        wrong = [n for n, each in self.seen["companies"].items() if len(each["jobs"]) > 1]
        wrong += [n for n, orders in self.registry["orders"].items() if orders > 1]
        if len(self.listed) != len(self.jobs):
            wrong.append("two jobs for one company")
        again = sum(of_one.count("200") > 1 for of_one in self.registry["answers"].values())
        figures = f"{len(self.jobs)} jobs; the registry sent {again} reports more than once"
        return wrong, "one job for each company, one order at the registry", figures

    def rate(self) -> tuple[Any, str, str]:
        """The published rate is kept."""
        allowed, span = self.registry["allowed"], f"{self.registry['span']:g} s"
        figures = f"{len(self.answers)} calls, at most {self.registry['most']} in any {span}"
        over = self.registry["over_rate"]
        return over, f"never more than {allowed} calls in any {span}", figures

    def at_once(self) -> tuple[Any, str, str]:
        """No two workers ask the same."""
        what = "never two calls for one company at the same time"
        return self.registry["at_once"], what, f"{len(self.registry['answers'])} companies"

    def attempts(self) -> tuple[Any, str, str]:
        """Only failures are counted as attempts."""
        wrong = [
            f"{number}: {[each['error'] for each in job['errors']]}"
            for number, job in self.jobs.items()
            if self._burnt(number, job)
        ]
        count = {each: self.answers.count(each) for each in ("202", "429", "500", "cut")}
        figures = (
            f"{count['202']} answers of 'still processing' and {count['429']} of 429 cost none; "
            f"{count['500']} of 500 and {count['cut']} cut connections did"
        )
        return wrong, "only failures cost attempts", figures

    def _burnt(self, number: str, job: dict[str, Any]) -> bool:
        spent = job["attempt"] - (job["state"] == "succeeded")
        failures = [a for a in self.registry["answers"].get(number, []) if a in FAILURES]
        return spent > len(failures) + service_kills(job)

    def failed(self) -> tuple[Any, str, str]:
        """What cannot be had is given up, with the reason that the customers are told."""
        failed = {n: job for n, job in self.jobs.items() if job["state"] != "succeeded"}
        wrong = {number for number in self.jobs if number[:3] in REASONS} ^ set(failed)
        for number, job in failed.items():
            errors = [each["error"] for each in job["errors"]]
            told = any(REASONS.get(number[:3], "?") in each for each in errors)
            tried = 1 + service_kills(job) if number[:3] == "C-8" else MAX_ATTEMPTS
            if not told or job["attempt"] != tried:
                wrong.add(f"{number}: attempt {job['attempt']}, {errors}")
        unknown = sum(number[:3] == "C-8" for number in failed)
        figures = (
            f"{unknown} unknown companies at their first answer, and {len(failed) - unknown} "
            f"after {MAX_ATTEMPTS} attempts"
        )
        return sorted(wrong), "what cannot be had is failed, with its reason", figures

    def stored(self) -> tuple[Any, str, str]:
        """Each row is that of the last holder, whose result is the job's."""
        done = {n: job["result"] for n, job in self.jobs.items() if job["state"] == "succeeded"}
        wrong = [n for n, result in done.items() if not same(result, self.rows.get(n))]
        what = "the database has each report as the last holder of its job stored it"
        return wrong, what, f"{len(self.rows)} rows"


def service_kills(job: dict[str, Any]) -> int:
    """How many of its runs failed because our own service was killed."""
    return sum(any(says in each["error"] for says in SERVICE_KILLED) for each in job["errors"])


def same(result: dict[str, Any], row: Optional[tuple[dict[str, Any], int, int]]) -> bool:
    """Compare a job's result with the row, and the row's fence with the highest that was tried."""
    return row is not None and row[0] == result and row[1] == row[2]
