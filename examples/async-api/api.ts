// The API for our customers: node api.js PORT

import Fastify from "fastify";
import { type Duration, JobCancelled, JobFailed, NotFinished, TenureError } from "tenure";
import * as reports from "./reports.ts";
import { fetchReport, t } from "./tasks.ts";

// The registry forbids more than 80 calls in any 5 s. At most 61 are granted in any 5 s; the rest is
// for calls that reach it later than they were granted. The same settings again change nothing, so
// each start may set them.
await t.limits.set("registry", { rate: { count: 58, per: "5s", burst: 4 } });

const text = (pattern: string, more = {}) => ({ type: "string", pattern, ...more });
const schema = {
  params: { type: "object", properties: { company: text("^C-\\d{4}$") } },
  querystring: { type: "object", properties: { wait: text("^(1?\\d|2[0-5])s$", { default: "0s" }) } },
};

const api = Fastify({ logger: { level: "error" } });

/** Answers with the report if it is known, and otherwise with what becomes of it. */
api.get<{ Params: { company: string }; Querystring: { wait: Duration } }>(
  "/reports/:company",
  { schema },
  async ({ params: { company }, query: { wait } }, reply) => {
    const known = reports.find(company);
    if (known) return known;
    const job = await fetchReport.push({ company });
    try {
      return await job.result({ wait });
    } catch (error) {
      if (error instanceof JobFailed || error instanceof JobCancelled)
        // The lines behind the first are the stack.
        return reply.code(502).send({ state: "failed", reason: error.detail.split("\n")[0] });
      if (!(error instanceof NotFinished)) throw error;
      return reply.code(202).header("Retry-After", "1").send({ job: job.id });
    }
  },
);

// Tells the customer to come again, while Tenure is away.
api.setErrorHandler((error, _request, reply) => {
  if (!(error instanceof TenureError)) return reply.send(error);
  return reply.code(503).header("Retry-After", "1").send({ detail: "try again" });
});

console.log(`listening on ${await api.listen({ host: "127.0.0.1", port: Number(process.argv[2] ?? 8000) })}`);
