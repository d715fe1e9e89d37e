import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { type AddressInfo, createServer } from "node:net";
import os from "node:os";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type JobSpec, Tenure } from "tenure";
import { readAddresses } from "../dist/addresses.js";
import { FetchSender, HttpSender } from "../dist/sender.js";
import { freePort, Server } from "./servers.js";
import { all, gate, until, within } from "./waiting.js";

const server = await Server.start();

/** A client, and the calls that it makes. */
function counted(options: object = {}) {
  const calls: string[] = [];
  const count: typeof fetch = (url, init) => {
    calls.push(`${init?.method} ${new URL(String(url)).pathname}`);
    return fetch(url, init);
  };
  return { t: server.client({ fetch: count, ...options }), calls };
}

test("pushMany sends nothing after a refused job but what was under way", async () => {
  const { t, calls } = counted();
  const unique = { key: "k", onConflict: "reject" as const };
  await t.push("held", 1, { unique });
  calls.length = 0;
  const jobs = Array.from({ length: 3000 }, (_, n) => ({
    queue: "q",
    payload: n,
    ...(n === 5 ? { unique, queue: "held" } : {}),
  }));
  await assert.rejects(t.pushMany(jobs), { code: "unique_conflict", index: 5 });
  assert.deepEqual(calls, ["POST /v1/jobs"]);
});

test("pushMany sends what a slow source gave, and does not wait for it to end", async () => {
  const t = server.client();
  await t.push("held", 1, { unique: { key: "k", onConflict: "reject" } });
  const go = gate();
  let closed = 0;
  async function* slow(first: JobSpec) {
    try {
      yield first;
      await go.promise;
      yield { queue: "q", payload: 2 };
    } finally {
      closed++;
    }
  }
  const stop = new AbortController();
  const stopped = t.pushMany(slow({ queue: "q", payload: 1 }), { signal: stop.signal });
  const whole = t.pushMany(slow({ queue: "q", payload: 1 }));
  await until(async () => (await all(t.jobs({ queue: "q" }))).length === 2);
  // Neither an abort nor a refusal waits for the source.
  stop.abort(new Error("enough"));
  await assert.rejects(within(stopped), /enough/);
  const refused = t.pushMany(slow({ queue: "held", unique: { key: "k", onConflict: "reject" } }));
  await assert.rejects(within(refused), { code: "unique_conflict", index: 0 });
  go.open();
  assert.deepEqual(await within(whole), { count: 2, duplicates: 0 });
  await until(() => closed === 3);
  assert.equal((await all(t.jobs({ queue: "q" }))).length, 3);
  await assert.rejects(t.pushMany([{ queue: "q" }], { signal: AbortSignal.abort(new Error("before")) }), /before/);
});

test("pushMany reads no further than a call and a portion beyond what the server took", async () => {
  const go = gate();
  const slow: typeof fetch = async (url, init) => {
    await go.promise;
    return await fetch(url, init);
  };
  const t = server.client({ fetch: slow });
  let read = 0;
  async function* trickle() {
    for (; read < 4000; read++) {
      // Slow enough that portions are sent before they are full.
      if (read % 50 === 0) await sleep(20);
      yield { queue: "q", payload: read };
    }
  }
  const pushed = t.pushMany(trickle());
  await sleep(2500);
  assert.ok(read < 2100, `${read}`);
  go.open();
  assert.deepEqual(await within(pushed, 30_000), { count: 4000, duplicates: 0 });
});

test("a source that fails ends pushMany after the call under way", async () => {
  const { t, calls } = counted();
  const lists = server.client({ namespace: t.namespace });
  async function* breaks() {
    for (let n = 0; n < 1001; n++) yield { queue: "q", payload: n };
    throw new Error("the file ends here");
  }
  await assert.rejects(t.pushMany(breaks()), /the file ends here/);
  const answered = (await lists.stats()).jobs["ready"];
  assert.deepEqual([calls.length, answered], [1, 1000]);
});

test("a push that no server answers is repeated for retryFor, and no longer", async () => {
  const t = server.client({ url: `http://127.0.0.1:${await freePort()}`, retryFor: "1s" });
  const ended = async (call: Promise<unknown>) => {
    await assert.rejects(call, /Unreachable/);
    return performance.now();
  };
  const [pushed, asked] = await Promise.all([ended(t.push("q")), ended(t.stats())]);
  assert.ok(pushed - asked < 500, `${pushed - asked} ms after a call that was made at the same time`);
});

test("many calls may share a signal, and leave no listener", async (context) => {
  const t = server.client();
  const warned = context.mock.fn();
  process.on("warning", warned);
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 30 }, () => t.push("q", 1, { signal })));
  await Promise.all(Array.from({ length: 30 }, () => t.stats({ signal })));
  await sleep(10);
  process.off("warning", warned);
  assert.equal(warned.mock.callCount(), 0);
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("a push to a full queue holds up no other, and is not sent after its abort", async () => {
  const t = server.client();
  await t.queues.set("small", { maxWaiting: 1 });
  await t.push("small", 0);
  const stop = new AbortController();
  const late = t.push("small", 1);
  const aborted = t.push("small", 2, { signal: stop.signal });
  await sleep(100);
  await within(t.push("other", 1), 2000);
  stop.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
  await t.queues.set("small", { maxWaiting: null });
  await within(late, 5000);
  await sleep(500);
  assert.deepEqual((await all(t.jobs({ queue: "small", full: true }))).map((job) => job.payload).sort(), [0, 1]);
  // Alone, too, one that waits for room must not hold up what comes later.
  await t.queues.set("small", { maxWaiting: 2 });
  const single = t.push("small", 3);
  await sleep(200);
  await within(t.push("other", 2), 2000);
  await t.queues.set("small", { maxWaiting: null });
  await within(single, 5000);
  await t.queues.set("small", { maxWaiting: 3 });
  await assert.rejects(within(server.client({ namespace: t.namespace, retryFor: "300ms" }).push("small", 4)), {
    code: "queue_full",
  });
});

test("a lock that was refused is not withdrawn", async () => {
  const { t, calls } = counted();
  await assert.rejects(t.lock("x".repeat(5000)), /Invalid/);
  await sleep(200);
  assert.deepEqual(calls, ["POST /v1/leases"]);
  const away = counted({ url: `http://127.0.0.1:${await freePort()}`, retryFor: 0 });
  await assert.rejects(away.t.lock("l", { wait: 0 }), /Unreachable/);
  await sleep(200);
  assert.equal(away.calls.length, 1);
});

test("a signal ends a call that waits for its token or for a store in Redis", async () => {
  const signal = () => AbortSignal.timeout(100);
  const hangs = server.client({ token: () => new Promise<string>(() => {}) });
  await assert.rejects(within(hangs.stats({ signal: signal() })), { name: "TimeoutError" });
  // A Redis that takes connections, and answers nothing.
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as AddressInfo;
  const store = new Tenure({ url: `redis://127.0.0.1:${port}`, logger: false });
  await assert.rejects(within(store.stats({ signal: signal() })), { name: "TimeoutError" });
  silent.close();
});

test("a page in place of the answer to a push is no answer of Tenure", async () => {
  const page: typeof fetch = async () => new Response("<html>welcome</html>");
  const t = server.client({ fetch: page });
  await assert.rejects(t.push("q"), { name: "UnexpectedAnswer" });
  await assert.rejects(t.pushMany([{}, {}]), { name: "UnexpectedAnswer" });
});

test("a signal that aborted before the call is sent ends it", async () => {
  const [address] = readAddresses(`http://127.0.0.1:${server.port}`);
  const request = {
    address: address as NonNullable<typeof address>,
    method: "GET",
    path: "/v1/stats",
    headers: {},
    body: undefined,
    timeout: 1000,
    connectTimeout: 1000,
    signal: AbortSignal.abort(new Error("enough")),
  };
  await assert.rejects(new HttpSender({} as never).send(request), /enough/);
  let sent = 0;
  const count: typeof fetch = (url, init) => {
    sent++;
    return fetch(url, init);
  };
  await assert.rejects(new FetchSender(count).send(request), /enough/);
  assert.equal(sent, 0);
});

test("a sleep of the machine is counted once, however many threads see it", async () => {
  const real = os.uptime;
  const load = (n: number): Promise<typeof import("../dist/clock.js")> => import(`../dist/clock.js?${n}`);
  const [main, first, second] = [await load(1), await load(2), await load(3)];
  for (const thread of [first, second]) thread.shareSleptTime(main.sleptTime());
  for (const thread of [first, second]) thread.lookForSleep();
  try {
    os.uptime = () => real() + 60;
    syncBuiltinESMExports();
    const before = main.now();
    for (let n = 0; n < 2; n++) for (const thread of [first, second]) thread.lookForSleep();
    const missed = main.now() - before;
    assert.ok(missed > 59_000 && missed < 61_500, `${missed}`);
  } finally {
    os.uptime = real;
    syncBuiltinESMExports();
  }
});
