import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Cancelled, Draining, LeaseLost, Stopped, TimedOut } from "tenure";
import { Program, Server } from "./servers.js";
import { gate, Lines, until, within } from "./waiting.js";

const server = await Server.start();

/** A task that waits for its signal, and tells its reason. */
function listening(t: ReturnType<typeof server.client>, options: object = {}) {
  const begun = gate();
  const reason = gate<unknown>();
  const task = t.task("t", options, async (_: null, ctx) => {
    begun.open();
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    reason.open(ctx.signal.reason);
    throw ctx.signal.reason;
  });
  return { task, begun: begun.promise, reason: reason.promise };
}

test("a cancel aborts the signal with Cancelled, and ends the job", async () => {
  const t = server.client();
  const { task, begun, reason } = listening(t);
  const job = await task.push(null);
  await using _worker = t.work([task], { signals: false, ttl: "5s" });
  await within(begun);
  await job.cancel();
  const why = await within(reason);
  assert.ok(why instanceof Cancelled && why instanceof Stopped);
  assert.equal(why.message, `job ${job.id} is cancelled`);
  await until(async () => (await job.get()).state === "cancelled");
});

test("a run that returns a value after a cancel has succeeded", async () => {
  const t = server.client();
  const begun = gate();
  const task = t.task("t", {}, async (_: null, ctx) => {
    begun.open();
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    return "done";
  });
  const job = await task.push(null);
  await using _worker = t.work([task], { signals: false, ttl: "5s" });
  await within(begun.promise);
  await job.cancel();
  assert.equal(await within(job.result()), "done");
});

test("a timeout aborts the signal with TimedOut, and the run has failed", async () => {
  const t = server.client();
  const { task, begun, reason } = listening(t, { timeout: "500ms", retry: 1 });
  const job = await task.push(null);
  await using _worker = t.work([task], { signals: false });
  await within(begun);
  assert.ok((await within(reason)) instanceof TimedOut);
  await assert.rejects(within(job.result()), /failed: timeout/);
});

test("a lease that is taken away aborts the signal with LeaseLost, and nothing is settled", async () => {
  const t = server.client();
  const logger = new Lines();
  const { task, begun, reason } = listening(t);
  const job = await task.push(null);
  const worker = t.work([task], { signals: false, ttl: "5s", logger });
  await within(begun);
  const lease = (await job.get()).lease as string;
  await t.queues.pause("t");
  await t.endLease(lease);
  assert.ok((await within(reason)) instanceof LeaseLost);
  await until(() => logger.has("attempt 1 lease_lost"));
  await worker.stop();
  assert.ok(!logger.has("no longer counts"));
  assert.equal((await job.get()).attempt, 0);
});

test("a server that hangs loses the lease in time", async () => {
  const own = await Server.start();
  const t = own.client();
  const { task, begun, reason } = listening(t);
  await task.push(null);
  const asked = performance.now();
  const worker = t.work([task], { signals: false, ttl: "6s" });
  await within(begun);
  const paused = performance.now();
  own.pause();
  assert.ok((await within(reason)) instanceof LeaseLost);
  // 0.8 ttl after the last answered call was sent: no sooner, and before another holder could be granted it.
  const lost = performance.now();
  assert.ok(lost - asked > 4750 && lost - paused < 6000, `${lost - asked} ${lost - paused}`);
  own.goOn();
  await worker.stop();
});

test("a stop lets runs end, and then aborts their signals with Draining", async () => {
  const t = server.client();
  const { task, begun, reason } = listening(t);
  const job = await task.push(null);
  const worker = t.work([task], { signals: false, drain: "300ms" });
  await within(begun);
  const stopped = worker.stop();
  assert.ok((await within(reason)) instanceof Draining);
  await within(stopped);
  const { state, attempt } = await job.get();
  assert.deepEqual([state, attempt], ["ready", 0]);
});

test("a stop waits for a run that ends by itself, and takes no other job", async () => {
  const t = server.client();
  const [begun, go] = [gate(), gate()];
  const task = t.task("t", {}, async () => {
    begun.open();
    return await go.promise.then(() => "done");
  });
  const job = await task.push(null);
  const worker = t.work([task], { signals: false, concurrency: 5 });
  await within(begun.promise);
  const stopped = worker.stop();
  const later = await task.push(null);
  setTimeout(() => go.open(), 300);
  await within(stopped);
  assert.equal(await job.result(), "done");
  assert.equal((await later.get()).state, "ready");
});

test("a handler that ignores its signal keeps its lease until it ends", async () => {
  const t = server.client();
  const logger = new Lines();
  const [begun, go] = [gate(), gate()];
  const task = t.task("t", {}, () => {
    begun.open();
    return go.promise.then(() => "late");
  });
  const job = await task.push(null);
  const worker = t.work([task], { signals: false, drain: 0, ttl: "3s", logger });
  await within(begun.promise);
  const stopped = worker.stop();
  await until(() =>
    logger.has(`1 handler does not stop at ctx.signal (${job.id}); the worker keeps their leases and ends after them`),
  );
  await sleep(4000);
  assert.equal((await job.get()).state, "running");
  go.open();
  await within(stopped);
  assert.equal(await job.result(), "late");
});

test("a handler that blocks the event loop for longer than the ttl keeps its lease", async () => {
  const t = server.client();
  const env = { TENURE_URL: server.url, TENURE_NAMESPACE: t.namespace, TTL: "3s" };
  const first = new Program("worker", env);
  await first.noted("ready");
  const job = await t.push("blocks", 8000, { kind: "blocks" });
  await first.noted("begin");
  // A second worker would get the job, were its lease lost.
  const second = new Program("worker", env, first.journal);
  assert.equal(await within(job.result(), 20_000), first.process.pid);
  assert.equal(first.notes("begin").length, 1);
  assert.equal((await job.get()).lost, 0);
  second.process.kill("SIGKILL");
});

test("a run that blocks past its lease settles nothing, and the process says so while it blocks", async () => {
  const own = await Server.start();
  const t = own.client();
  const worker = new Program("worker", { TENURE_URL: own.url, TENURE_NAMESPACE: t.namespace, TTL: "1s" });
  await worker.noted("ready");
  const job = await t.push("blocks", 5000, { kind: "blocks", retry: { base: "100ms" } });
  await worker.noted("begin");
  own.pause();
  await until(
    () =>
      worker.log.includes(
        `tenure: job ${job.id}: the lease is lost while the event loop is blocked; its outcome will not be settled`,
      ),
    5000,
    () => worker.log,
  );
  assert.equal(worker.notes("end").length, 0);
  own.goOn();
  // Its lease has expired, and the same worker gets it again once its event loop is free.
  await worker.noted("begin", 2);
  await until(
    () => worker.log.includes("lease_lost in"),
    5000,
    () => worker.log,
  );
  assert.ok(!worker.log.includes("no longer counts"), worker.log);
  await within(job.result(), 20_000);
  assert.equal((await job.get()).attempt, 1);
});
