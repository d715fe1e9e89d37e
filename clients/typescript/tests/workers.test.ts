import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker as Thread } from "node:worker_threads";
import type { StandardSchema } from "tenure";
import { Server } from "./servers.js";
import { all, gate, Lines, until, within } from "./waiting.js";

const server = await Server.start();

test("a logger that throws costs no outcome, and no process", async () => {
  const t = server.client();
  const fail = () => {
    throw new Error("the disk is full");
  };
  const logger = { info: async () => fail(), warn: fail, error: fail };
  const task = t.task("t", { retry: 1 }, (n: number) => {
    if (n === 1) throw new Error("no page");
    return n;
  });
  const batch = t.task("b", { batch: { max: 2, wait: 0 } }, (items: readonly unknown[]) => items.map(() => 3));
  await using _worker = t.work([task, batch], { signals: false, logger, ttl: "5s" });
  const jobs = [await task.push(1), await task.push(2), await batch.push(null)];
  await assert.rejects(within(jobs[0]?.result() as Promise<unknown>), /no page/);
  assert.deepEqual(await within(Promise.all([jobs[1]?.result(), jobs[2]?.result()])), [2, 3]);
});

test("a gateway's page does not end a worker, and a sync ends with its worker", async () => {
  let pages = 0;
  let most = 1;
  const gateway: typeof fetch = async (url, init) => {
    if (init?.method !== "PUT" || pages >= most) return await fetch(url, init);
    pages++;
    return new Response("<html>502</html>", { status: 502 });
  };
  const t = server.client({ owner: "shop", retryFor: 0, fetch: gateway });
  const task = t.task("t", {}, () => null);
  t.schedule(task, { every: "1h" });
  const first = t.work([task], { signals: false });
  await until(async () => (await all(t.schedules.list())).length === 1);
  await within(first.stop());
  most = 1000;
  const second = t.work([task], { signals: false });
  await until(() => pages > 1);
  await within(second.stop());
  const seen = pages;
  await sleep(2500);
  assert.equal(pages, seen);
});

test("a job that comes to its batch when the worker ends does not wait for others", async () => {
  const t = server.client();
  const [begun, read] = [gate(), gate()];
  const validate = () => {
    begun.open();
    return read.promise.then(() => ({ value: null }));
  };
  const schema: StandardSchema<null, null> = { "~standard": { version: 1, vendor: "test", validate } } as never;
  const task = t.task("t", { schema, batch: { max: 5, wait: "1m" } }, (items) => items.map(() => "done"));
  const job = await t.push("t", null, { kind: "t" });
  const worker = t.work([task], { signals: false });
  await within(begun.promise);
  const stopped = worker.stop();
  await sleep(200);
  read.open();
  await within(stopped);
  assert.equal(await job.result(), "done");
});

test("an error of a batch shows the secrets of none of its jobs", async () => {
  const t = server.client();
  await t.pools.sync("accounts", [
    { id: "a", data: { password: "secret-of-a" } },
    { id: "b", data: { password: "secret-of-b" } },
  ]);
  const options = { needs: ["pool:accounts" as const], retry: 1, batch: { max: 2, wait: "5s" as const } };
  const task = t.task("t", options, (items: readonly { ctx: { resources: readonly { data: unknown }[] } }[]) => {
    throw new Error(`no login: ${JSON.stringify(items.map(({ ctx }) => ctx.resources.map((each) => each.data)))}`);
  });
  const logger = new Lines();
  const jobs = [await task.push(1 as never), await task.push(2 as never)];
  await using _worker = t.work([task], { signals: false, logger });
  for (const job of jobs) await assert.rejects(within(job.result()), /no login/);
  for (const job of jobs) assert.ok(!JSON.stringify(await job.get()).includes("secret-of"));
  assert.ok(!logger.has("secret-of"));
});

test("a closed client takes no jobs and no locks, and what runs keeps its lease until its end", async () => {
  const t = server.client();
  const witness = server.client({ namespace: t.namespace });
  const [begun, go] = [gate(), gate()];
  const task = t.task("t", {}, () => {
    begun.open();
    return go.promise.then(() => "done");
  });
  const job = await task.push(null);
  const worker = t.work([task], { signals: false, ttl: "3s" });
  // The server calls a job "running" before its grant is read here, and a grant that is read after the close is given back.
  await within(begun.promise);
  t.close();
  await assert.rejects(t.lock("l"), /^WrongOption: the client is closed; it takes no jobs and no locks/);
  assert.throws(() => t.work([task]), /the client is closed/);
  await sleep(4000);
  assert.equal((await witness.job(job.id).get()).attempt, 1);
  go.open();
  await assert.rejects(within(worker.done), /the client is closed/);
  assert.equal(await within(witness.job(job.id).result()), "done");
});

test("a grant that is on its way when its client is closed is given back", async () => {
  const t = server.client();
  const witness = server.client({ namespace: t.namespace });
  const worker = t.work([t.task("t", {}, () => "done")], { signals: false });
  await until(async () => (await all(witness.workers())).length === 1);
  // Another process pushes while this one is blocked: the grant waits in the socket, unread.
  const push = `await fetch("${server.url}/v1/jobs", { method: "POST", body: '{"queue":"t","kind":"t","id":"a"}',
    headers: { "content-type": "application/json", "tenure-namespace": "${t.namespace}" } })`;
  execFileSync(process.execPath, ["--input-type=module", "-e", push]);
  t.close();
  await assert.rejects(within(worker.done), /the client is closed/);
  const { state, lost } = await witness.job("a").get();
  assert.deepEqual([state, lost], ["ready", 0]);
});

test("a worker of some of its queues may have tasks of any number", async () => {
  const t = server.client();
  const tasks = Array.from({ length: 33 }, (_, n) => t.task(`t${n}`, {}, () => n));
  const job = await tasks[7]?.push(null as never);
  await using _worker = t.work(tasks, { signals: false, queues: ["t7"] });
  assert.equal(await within(job?.result() as Promise<unknown>), 7);
});

test("a heartbeat thread that failed is replaced, and no lease is lost", async (context) => {
  const t = server.client();
  const threads = new Set<Thread>();
  const unref = Thread.prototype.unref;
  context.mock.method(Thread.prototype, "unref", function (this: Thread) {
    threads.add(this);
    return Reflect.apply(unref, this, []);
  });
  const lock = await t.lock("l", { ttl: "4s" });
  await until(() => threads.size === 1);
  for (const each of threads) await each.terminate();
  await until(() => threads.size === 2);
  assert.deepEqual([lock.lost, lock.signal.aborted], [false, false]);
  // Longer than the ttl: without a heartbeat it would be lost.
  await sleep(5000);
  assert.equal(lock.lost, false);
  await lock.release();
});
