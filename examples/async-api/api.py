"""The API for our customers: uvicorn api:api"""

import asyncio
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from tenure import AsyncTenure, errors, limit
from tenure.durations import seconds

import reports

# The registry forbids more than 80 calls in any 5 s. At most 61 are granted in any 5 s; the rest is
# for calls that reach it later than they were granted.
RATE = {"count": 58, "per": "5s", "burst": 4}
BACKOFF = {"kind": "exponential", "base": "250ms", "max": "2s"}
# A job whose worker dies three times in a row is failed as the likely cause, unless max_lost says
# otherwise. In this example workers are killed all the time, and no job is the cause.
RETRY = {"max_attempts": 8, "max_lost": 10, "backoff": BACKOFF}


@asynccontextmanager
async def lifespan(app: FastAPI):
    """Open one client for all requests."""
    async with AsyncTenure(retry_for=5) as tenure:
        # The same settings again change nothing, so each start may set them.
        await tenure.limits.set("registry", rate=RATE)
        await tenure.queues.set("reports", needs=[limit("registry")], retry=RETRY, timeout="1m")
        yield {"tenure": tenure}


async def of_request(request: Request) -> AsyncTenure:
    """Find that client."""
    return request.state.tenure


api = FastAPI(lifespan=lifespan)
Client = Annotated[AsyncTenure, Depends(of_request)]
Company = Annotated[str, Path(pattern=r"^C-\d{4}$")]
Wait = Annotated[str, Query(pattern=r"^(1?\d|2[0-5])s$", description="how long to wait for it")]


@api.get("/reports/{company}")
async def report(
    company: Company, tenure: Client, response: Response, wait: Wait = "0s"
) -> dict[str, Any]:
    """Answer with the report if it is known, and otherwise with what becomes of it."""
    known = await asyncio.to_thread(reports.find, company)
    if known is not None:
        return known
    # One job for all that ask for this company, at the same moment or within an hour.
    unique = {"key": f"report-{company}", "for": "1h"}
    job = await tenure.push("reports", {"company": company}, unique=unique)
    end = await tenure.jobs.wait(job.id, seconds(wait))
    if end.state == "succeeded":
        return end.result
    if end.finished:
        response.status_code = 502
        return {"state": end.state, "reason": end.error}
    response.status_code = 202
    response.headers["Retry-After"] = "1"
    return {"state": end.state, "job": job.id}


@api.exception_handler(errors.TenureError)
async def unavailable(request: Request, error: errors.TenureError) -> JSONResponse:
    """Tell the customer to come again, while Tenure is away."""
    pause = str(round(error.retry_after or 1))
    return JSONResponse({"detail": "try again"}, 503, headers={"Retry-After": pause})
