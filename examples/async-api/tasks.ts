// The kind of job that the API pushes and the worker runs.

import { Final, Released, Snooze, Tenure } from "tenure";
import * as registry from "./registry.ts";
import * as reports from "./reports.ts";

export const t = new Tenure({ retryFor: "5s" });

/** Asks for a report and stores it. One run is one call, for which the grant took a token. */
export const fetchReport = t.task(
  "reports",
  {
    needs: ["limit:registry"],
    timeout: "1m",
    // A job whose worker dies three times in a row is failed as the likely cause, unless maxLost says
    // otherwise. In this example workers are killed all the time, and no job is the cause.
    retry: { maxAttempts: 8, maxLost: 10, base: "250ms", max: "2s" },
    // One job for all that ask for this company, at the same moment or within an hour.
    unique: ({ company }) => ({ key: `report-${company}`, for: "1h" }),
  },
  async ({ company }: { company: string }, ctx) => {
    const answer = await registry.ask(company, ctx.job.id, ctx.signal);
    if (answer.status === 202) throw new Snooze(answer.retryAfter);
    if (answer.status === 429) {
      ctx.pause("registry", answer.retryAfter);
      throw new Released();
    }
    if (answer.status === 404) throw new Final(`the registry knows no company ${company}`);
    if (answer.status !== 200) throw new Error(`the registry answered ${answer.status}`);
    if (!reports.store(company, answer.body, ctx.fence))
      console.warn(`${company}: refused, a newer holder has stored its report`);
    return answer.body;
  },
);
