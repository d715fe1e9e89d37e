import assert from "node:assert/strict";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Job } from "tenure";
import { folder, Program, Server } from "./servers.js";
import { until, within } from "./waiting.js";

const server = await Server.start();
const envOf = (t: { namespace: string }, more: Record<string, string> = {}) => ({
  TENURE_URL: server.url,
  TENURE_NAMESPACE: t.namespace,
  TENURE_LOG: "INFO",
  ...more,
});

/** Sends SIGTERM, and waits until the worker drains: two signals that wait for a busy process are one. */
async function terminate(worker: Program): Promise<void> {
  worker.process.kill("SIGTERM");
  await until(
    () => worker.log.includes("drains: 1 jobs still run"),
    10_000,
    () => worker.log,
  );
}

test("no handler begins before the heartbeat thread can extend its lease", async () => {
  const t = server.client();
  const job = await t.push("blocks", 6000, { kind: "blocks" });
  // A loaded machine may take as long to start a thread as the lease lives.
  const slow = join(folder, "slow-thread.mjs");
  writeFileSync(
    slow,
    `import { isMainThread } from "node:worker_threads";
     if (!isMainThread) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3500);`,
  );
  const worker = new Program("worker", envOf(t, { NODE_OPTIONS: `--import=${slow}`, TTL: "4s" }));
  assert.equal(await within(job.result(), 20_000), worker.process.pid);
  assert.equal(worker.notes("begin").length, 1, worker.log);
  worker.process.kill("SIGTERM");
  assert.equal(await worker.ended(), 0);
});

test("the job of a worker that is killed is given to another", async () => {
  const t = server.client();
  const job = await t.push("waits", null, { kind: "waits" });
  const first = new Program("worker", envOf(t));
  await first.noted("begin");
  first.process.kill("SIGKILL");
  const second = new Program("worker", envOf(t), first.journal);
  await second.noted("begin", 2);
  writeFileSync(`${first.journal}.go`, "");
  assert.equal(await within(job.result()), second.process.pid);
  assert.equal((await job.get()).attempt, 1);
});

test("a worker that is stopped loses its lease, and settles nothing when it goes on", async () => {
  const t = server.client();
  const job = await t.push("waits", null, { kind: "waits" });
  const first = new Program("worker", envOf(t));
  await first.noted("begin");
  first.process.kill("SIGSTOP");
  const second = new Program("worker", envOf(t), first.journal);
  await second.noted("begin", 2);
  writeFileSync(`${first.journal}.go`, "");
  assert.equal(await within(job.result()), second.process.pid);
  first.process.kill("SIGCONT");
  await until(
    () => first.log.includes("lease_lost"),
    5000,
    () => first.log,
  );
  assert.ok(!first.log.includes("no longer counts"), first.log);
  assert.equal(await job.result(), second.process.pid);
});

test("SIGTERM drains: what runs ends, and nothing else begins", async () => {
  const t = server.client();
  const job = await t.push("waits", null, { kind: "waits" });
  const worker = new Program("worker", envOf(t));
  await worker.noted("begin");
  await terminate(worker);
  const later = await t.push("waits", null, { kind: "waits" });
  await sleep(300);
  writeFileSync(`${worker.journal}.go`, "");
  assert.equal(await worker.ended(), 0);
  assert.equal(await job.result(), worker.process.pid);
  assert.equal((await later.get()).state, "ready");
  assert.equal(worker.notes("drained").length, 1);
});

test("a second SIGTERM stops what runs, and gives it back", async () => {
  const t = server.client();
  const job = await t.push("listens", null, { kind: "listens" });
  const worker = new Program("worker", envOf(t));
  await worker.noted("begin");
  await terminate(worker);
  await sleep(300);
  assert.equal(worker.notes("stopped").length, 0);
  worker.process.kill("SIGTERM");
  assert.equal((await worker.noted("stopped"))[0]?.[1], "Draining");
  assert.equal(await worker.ended(5000), 0);
  const { state, attempt } = await job.get();
  assert.deepEqual([state, attempt], ["ready", 0]);
});

test("a handler that ignores its signal is given back at a second SIGTERM, and its process ends", async () => {
  const t = server.client();
  const job = await t.push("waits", null, { kind: "waits" });
  const worker = new Program("worker", envOf(t));
  await worker.noted("begin");
  await terminate(worker);
  worker.process.kill("SIGTERM");
  assert.equal(await worker.ended(10_000), 1);
  assert.match(
    worker.log,
    /1 handler does not stop at ctx.signal \(job_\w+\); what they run is given back, and the process ends at once/,
  );
  assert.equal((await job.get()).state, "ready");
});

test("a handler that ignores its signal costs no other worker of its process a run", async () => {
  const t = server.client();
  const [stuck, other] = [
    await t.push("first", null, { kind: "first" }),
    await t.push("second", null, { kind: "second" }),
  ];
  const workers = new Program("workers", envOf(t));
  await workers.noted("first");
  await workers.noted("second");
  workers.process.kill("SIGTERM");
  // The first one is stuck after the grace of 2 s, and its lease of 5 s is kept beyond that.
  await sleep(7500);
  assert.equal((await stuck.get()).state, "running");
  writeFileSync(`${workers.journal}.second`, "");
  assert.equal(await workers.ended(10_000), 1);
  assert.equal((await other.get()).state, "succeeded");
  assert.equal((await stuck.get()).state, "ready");
});

test("a signal ends a process whose stop waits for a handler that ignores its signal", async () => {
  const t = server.client();
  const job = await t.push("first", null, { kind: "first" });
  const workers = new Program("workers", envOf(t));
  await workers.noted("first");
  workers.process.kill("SIGUSR2");
  await until(
    () => workers.log.includes("the worker keeps their leases"),
    10_000,
    () => workers.log,
  );
  workers.process.kill("SIGTERM");
  assert.equal(await workers.ended(10_000), 1);
  assert.equal((await job.get()).state, "ready");
});

test("a program that calls stop at SIGTERM still lets its runs end", async () => {
  const t = server.client();
  const job = await t.push("first", null, { kind: "first" });
  const workers = new Program("workers", envOf(t, { OWN: "1", DRAIN: "20s" }));
  await workers.noted("first");
  workers.process.kill("SIGTERM");
  await sleep(2500);
  writeFileSync(`${workers.journal}.first`, "");
  assert.equal(await workers.ended(), 0);
  assert.equal(await job.result(), "first");
});

test("a killed and restarted server under load loses nothing that it answered", async () => {
  const own = await Server.start("file:");
  const t = own.client({ retryFor: "60s" });
  const env = { TENURE_URL: own.url, TENURE_NAMESPACE: t.namespace, TTL: "3s", CONCURRENCY: "20" };
  const first = new Program("worker", env);
  const workers = [first, new Program("worker", env, first.journal)];
  await first.noted("ready", 2);
  // The witness: which pushes were answered.
  const answered: Job[] = [];
  let over = false;
  const pushers = Array.from({ length: 8 }, async (_, n) => {
    for (let k = 0; !over; k++) answered.push(await t.push("counts", n * 1_000_000 + k, { kind: "counts" }));
  });
  for (let kill = 0; kill < 3; kill++) {
    const before = answered.length;
    await until(() => answered.length > before + 300, 20_000);
    await own.kill();
    if (kill === 1) workers[1]?.process.kill("SIGKILL");
    await sleep(200);
    await own.start();
  }
  over = true;
  await within(Promise.all(pushers), 60_000);
  await until(
    async () => Number((await t.stats()).jobs["succeeded"] ?? 0) >= answered.length,
    60_000,
    () => first.log,
  );
  const counts = (await t.stats()).jobs;
  assert.equal(counts["succeeded"], answered.length);
  assert.equal(new Set(answered.map((job) => job.id)).size, answered.length);
  // Each ran at least once; twice only what a killed server or worker had under way.
  const ran = new Map<string, number>();
  for (const [, n] of first.notes("ran")) ran.set(n as string, (ran.get(n as string) ?? 0) + 1);
  assert.equal(ran.size, answered.length);
  const twice = [...ran.values()].filter((count) => count > 1).length;
  assert.ok(twice <= 3 * 40, `${twice} of ${ran.size} ran twice`);
  assert.equal((await t.audit()).ok, true);
  appendFileSync(first.journal, "");
  workers[0]?.process.kill("SIGTERM");
  assert.equal(await first.ended(), 0);
});
