"""The Python worker: python -m tenure worker worker:app"""

import logging
from typing import Any

import tenure

import registry
import reports

app = tenure.App()


@app.job("reports")
def fetch(company: str, ctx: tenure.Context) -> dict[str, Any]:
    """Ask for a report and store it. One run is one call, for which the grant took a token."""
    answer = registry.ask(company, order=ctx.job.id)
    if answer.status == 202:
        raise tenure.Snooze(answer.retry_after)
    if answer.status == 429:
        raise tenure.PauseLimit("registry", answer.retry_after)
    if answer.status == 404:
        raise tenure.Final(f"the registry knows no company {company}")
    if answer.status != 200:
        raise RuntimeError(f"the registry answered {answer.status}")
    if not reports.store(company, answer.body, ctx.fence):
        logging.warning("%s: refused, a newer holder has stored its report", company)
    return answer.body
