import assert from "node:assert/strict";
import { test } from "node:test";
import { type Context, Snooze, type Worker } from "tenure";
import { encode } from "../dist/json.js";
import { Settles } from "../dist/worker/settles.js";
import { failure, RELEASED } from "../dist/worker/written.js";
import { Server } from "./servers.js";
import { gate, Lines, until, within } from "./waiting.js";

const server = await Server.start();

test("a push of a run that finds its key held fails that job, and holds up no other", async () => {
  const t = server.client();
  await t.push("later", 1, { unique: { key: "k", onConflict: "reject" } });
  const go = gate();
  const task = t.task("t", {}, async (n: number, ctx) => {
    await go.promise;
    if (n === 1) await ctx.push({ queue: "later", payload: n, unique: { key: "k", onConflict: "reject" } });
    return n;
  });
  const jobs = await Promise.all([0, 1, 2].map((n) => task.push(n)));
  await using _worker = t.work([task], { signals: false });
  await until(async () => (await t.stats()).jobs["running"] === 3);
  go.open();
  assert.deepEqual(await within(Promise.all([jobs[0]?.result(), jobs[2]?.result()]), 5000), [0, 2]);
  await assert.rejects(within(jobs[1]?.result() as Promise<unknown>, 5000), /its outcome was refused/);
});

test("a snooze whose moment is over when it is settled runs again at once", async () => {
  const t = server.client();
  const task = t.task("t", { retry: 1 }, async (_: null, ctx) => {
    if (ctx.job.progress !== null) return "done";
    ctx.progress("snoozed");
    throw new Snooze({ until: new Date(Date.now() - 1000) });
  });
  const never = t.task("never", { retry: 1 }, () => {
    throw new Snooze({ until: "2300-01-01T00:00:00Z" });
  });
  await using _worker = t.work([task, never], { signals: false });
  assert.equal(await within((await task.push(null)).result()), "done");
  await assert.rejects(within((await never.push(null)).result()), /its outcome was refused/);
});

test("a snooze may let the attempts of its job start again", async () => {
  const t = server.client();
  const seen: string[] = [];
  const task = t.task("t", { retry: { maxAttempts: 3, base: "1ms" } }, async (when: "for" | "until", ctx) => {
    seen.push(`${when} ${ctx.attempt}`);
    const runs = seen.filter((each) => each.startsWith(when)).length;
    if (runs === 1) throw new Error("no");
    if (runs === 2) throw new Snooze("100ms", { reset: false });
    // Its moment may be over when it is settled: then another wait is settled in its place.
    if (runs === 3) throw new Snooze(when === "for" ? "100ms" : { until: new Date(0) }, { reset: true });
  });
  const jobs = [await task.push("for"), await task.push("until")];
  await using _worker = t.work([task], { signals: false });
  await within(Promise.all(jobs.map((job) => job.result())));
  const attempts = (when: string) => seen.filter((each) => each.startsWith(when)).map((each) => each.split(" ")[1]);
  assert.deepEqual(attempts("for"), ["1", "2", "2", "1"]);
  assert.deepEqual(attempts("until"), attempts("for"));
  assert.throws(() => new Snooze("5s", { reest: true } as never), /Snooze has no option "reest".*did you mean "reset"/);
});

test("a push of a run that finds its queue full is settled later, and holds up no other", async () => {
  const t = server.client();
  await t.queues.set("small", { maxWaiting: 1 });
  const first = await t.push("small", 0);
  const go = gate();
  const task = t.task("t", {}, async (n: number, ctx) => {
    await go.promise;
    if (n === 1) await ctx.push({ queue: "small", payload: n });
    return n;
  });
  const jobs = await Promise.all([0, 1, 2].map((n) => task.push(n)));
  await using _worker = t.work([task], { signals: false });
  await until(async () => (await t.stats()).jobs["running"] === 3);
  go.open();
  assert.deepEqual(await within(Promise.all([jobs[0]?.result(), jobs[2]?.result()]), 5000), [0, 2]);
  // The worker goes on meanwhile.
  assert.equal(await within((await task.push(3)).result(), 5000), 3);
  assert.equal((await jobs[1]?.get())?.state, "running");
  await first.cancel();
  assert.equal(await within(jobs[1]?.result() as Promise<unknown>, 5000), 1);
});

test("what two runs of a call push is settled one after the other, if there is room for one", async () => {
  const t = server.client();
  await t.queues.set("small", { maxWaiting: 1 });
  const go = gate();
  const task = t.task("t", {}, async (n: number, ctx) => {
    await go.promise;
    await ctx.push({ queue: "small", payload: n });
    return n;
  });
  const jobs = await Promise.all([0, 1].map((n) => task.push(n)));
  await using _worker = t.work([task], { signals: false });
  await until(async () => (await t.stats()).jobs["running"] === 2);
  go.open();
  await until(async () => (await t.stats()).jobs["succeeded"] === 1);
  await t.queues.set("small", { maxWaiting: null });
  assert.deepEqual(await within(Promise.all(jobs.map((job) => job.result())), 5000), [0, 1]);
});

test("text that is cut through a surrogate pair is stored with a mark in its place", async () => {
  const t = server.client();
  const half = "\u{1f600}".slice(0, 1);
  const task = t.task("t", { retry: 2 }, (n: number, ctx) => {
    ctx.progress({ at: half });
    if (n === 1) throw new Error(`no page ${half}`);
    return { [half]: [half, "\\ud83d", "\u{1f600}"] };
  });
  const [failing, good] = [await task.push(1, { retry: { maxAttempts: 1 } }), await task.push(2)];
  await using _worker = t.work([task], { signals: false });
  await assert.rejects(within(failing.result()), /no page \ufffd/);
  assert.deepEqual(await within(good.result()), { "\ufffd": ["\ufffd", "\\ud83d", "\u{1f600}"] });
  assert.ok(failure(half).rest.includes("\ufffd"));
  assert.throws(() => encode({ a: [half] }, "payload"), /^NotJson: payload\.a\[0\]: text with half a surrogate pair/);
});

test("a promise of another library is awaited", async () => {
  const t = server.client();
  // A query of drizzle or knex runs when it is awaited, and is no `Promise`.
  const task = t.task("t", {}, (n: number) => {
    // biome-ignore lint/suspicious/noThenProperty: such an object is the subject.
    return { then: (done: (value: number) => void) => done(n * 2) } as unknown as number;
  });
  const job = await task.push(21);
  await using _worker = t.work([task], { signals: false });
  assert.equal(await within(job.result()), 42);
});

test("a stop in the first line of a handler does not give back its job", async () => {
  const t = server.client();
  const logger = new Lines();
  let worker: Worker | undefined;
  const go = gate();
  const task = t.task("t", {}, async () => {
    void worker?.stop();
    await go.promise;
    return "done";
  });
  worker = t.work([task], { signals: false, logger });
  const job = await task.push(null);
  await until(async () => (await job.get()).state === "running");
  setTimeout(() => go.open(), 500);
  await within(worker.done);
  assert.ok(!logger.has("no longer counts"), logger.lines.join("\n"));
  assert.equal(await job.result(), "done");
});

for (const path of ["/v1/leases", "/v1/leases/settle"]) {
  test(`a stop gives back what a lost answer of ${path} granted`, async () => {
    let worker: Worker | undefined;
    let lost = 0;
    const t = server.client({
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        if (lost > 0 || !String(url).endsWith(path)) return answer;
        const { leases = [] } = (await answer.clone().json()) as { leases?: unknown[] };
        if (leases.length === 0) return answer;
        lost++;
        // Then nothing runs, and no call is under way.
        setImmediate(() => void worker?.stop());
        throw new TypeError("cut off");
      },
    });
    const task = t.task("t", {}, () => "done");
    const jobs = [await task.push(null), await task.push(null)];
    worker = t.work([task], { signals: false, concurrency: 1 });
    await within(worker.done);
    assert.equal(lost, 1);
    const states = await Promise.all(jobs.map(async (job) => (await job.get()).state));
    assert.deepEqual(states, [path === "/v1/leases" ? "ready" : "succeeded", "ready"]);
  });
}

test("an answer that is not one of a Tenure server is no answer to an outcome", async () => {
  let odd = 0;
  const t = server.client({
    fetch: async (url, init) => {
      if (!String(url).endsWith("/leases/settle") || odd > 1) return await fetch(url, init);
      odd++;
      return new Response("{}");
    },
  });
  const task = t.task("t", {}, (n: number) => n);
  const job = await task.push(1);
  await using worker = t.work([task], { signals: false });
  assert.equal(await within(job.result()), 1);
  assert.equal(odd, 2);
  await within(worker.stop());
});

test("outcomes that no loop sends any more are over", () => {
  const settles = new Settles(30_000, new Lines());
  const over: string[] = [];
  const add = (lease: string) =>
    settles.add(lease, { job: { id: "j" } } as Context, RELEASED, 0, () => over.push(lease));
  add("a");
  const sent = settles.take(0);
  add("b");
  settles.end();
  assert.deepEqual(over, ["b"]);
  settles.putBack(sent, 0);
  add("c");
  assert.deepEqual(over, ["b", "a", "c"]);
  assert.ok(settles.allAnswered);
});
