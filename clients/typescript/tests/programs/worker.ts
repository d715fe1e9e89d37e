// A worker in a process of its own. Its handlers note in JOURNAL when they begin and end.
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Tenure } from "tenure";

const journal = process.env["JOURNAL"] as string;
const note = (...words: unknown[]) => appendFileSync(journal, `${words.join(" ")} ${process.pid} ${Date.now()}\n`);
const t = new Tenure();

/** Blocks the event loop, and takes no processor: no timer, no message and no answer is taken in. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const blocks = t.task("blocks", { retry: { base: "100ms" } }, (ms: number, ctx) => {
  note("begin", ctx.job.id);
  block(ms);
  note("end", ctx.job.id);
  return process.pid;
});

const waits = t.task("waits", {}, async (_: unknown, ctx) => {
  note("begin", ctx.job.id);
  // It does not listen to its signal.
  while (!existsSync(`${journal}.go`)) await sleep(20);
  note("end", ctx.job.id);
  return process.pid;
});

const listens = t.task("listens", {}, async (_: unknown, ctx) => {
  note("begin", ctx.job.id);
  await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
  note("stopped", (ctx.signal.reason as Error).name, ctx.job.id);
  throw ctx.signal.reason;
});

const counts = t.task("counts", {}, async (n: number, ctx) => {
  note("ran", n, ctx.fence);
  return n;
});

const worker = t.work([blocks, waits, listens, counts], {
  concurrency: Number(process.env["CONCURRENCY"] ?? 4),
  ttl: (process.env["TTL"] ?? "5s") as "5s",
  drain: (process.env["DRAIN"] ?? "20s") as "20s",
});
note("ready");
await worker.done;
note("drained");
process.exitCode = 0;
