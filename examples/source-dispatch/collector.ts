// A collector: takes due sources of its rules from Tenure, visits them and reports.
//
// node collector.js --tasks 40 news forum
//
// It may be killed at any time: its sources then go to other collectors.

import { parseArgs } from "node:util";
import { RetryIn, Tenure } from "tenure";

interface Source {
  source: string;
  url: string;
  every: number;
}

const { values, positionals: rules } = parseArgs({
  allowPositionals: true,
  options: { tasks: { type: "string", default: "40" }, name: { type: "string", default: `collector-${process.pid}` } },
});
const t = new Tenure();

// A rule is a queue.
const visits = rules.map((rule) =>
  t.task(rule, {}, async ({ url, every }: Source, ctx) => {
    // The signal aborts, and this hangs up, before another collector can get the source.
    const answer = await fetch(url, { headers: { "User-Agent": values.name }, signal: ctx.signal });
    if (answer.status !== 200 && answer.status !== 304) throw new RetryIn("2s", `the site answered ${answer.status}`);
    // Sooner if it has changed, otherwise later.
    const next = answer.status === 200 ? Math.max(1, Math.floor(every / 2)) : Math.floor((every * 3) / 2);
    ctx.nextIn(`${next}s`);
  }),
);

await t.work(visits, { concurrency: Number(values.tasks), ttl: "2s" }).done;
