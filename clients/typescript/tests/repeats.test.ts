import assert from "node:assert/strict";
import { test } from "node:test";
import { OutcomeUnknown, Tenure, UnexpectedAnswer, Unreachable } from "tenure";
import { LossyProxy } from "./proxy.js";
import { freePort, Server } from "./servers.js";
import { all, Lines, until, within } from "./waiting.js";

const server = await Server.start();
const proxy = await LossyProxy.before(server.port);
const through = (options = {}) => server.client({ url: proxy.url, ...options });

test("a push whose answer is lost is repeated, and stored once", async () => {
  const t = through();
  proxy.spoil("lose", "POST", "/v1/jobs");
  proxy.spoil("half", "POST", "/v1/jobs");
  proxy.spoil("refuse", "POST", "/v1/jobs");
  const job = await t.push("q", 1);
  assert.equal(proxy.left, 0);
  assert.deepEqual(
    (await all(t.jobs())).map((each) => each.id),
    [job.id],
  );
});

test("many pushes whose answers are lost are stored once each", async () => {
  const t = through();
  proxy.spoil("lose", "POST", "/v1/jobs", 2);
  const jobs = await Promise.all(Array.from({ length: 50 }, (_, n) => t.push("q", n)));
  proxy.spoil("half", "POST", "/v1/jobs", 2);
  const total = await t.pushMany(Array.from({ length: 2500 }, (_, n) => ({ queue: "q", payload: n })));
  assert.deepEqual([proxy.left, total.count], [0, 2500]);
  assert.equal((await all(t.jobs())).length, 2550);
  assert.equal(new Set(jobs.map((job) => job.id)).size, 50);
});

test("a server that says when to come again is asked then", async () => {
  const t = through();
  proxy.spoil({ status: 503, retryAfter: 1 }, "GET", "/v1/stats");
  const began = performance.now();
  await t.stats();
  assert.ok(performance.now() - began >= 990);
  // Longer than there is patience: no further call.
  proxy.spoil({ status: 503, retryAfter: 100 }, "GET", "/v1/stats");
  const calls = proxy.count("GET", "/v1/stats");
  await assert.rejects(through({ retryFor: "1s" }).stats(), { code: "draining", status: 503, retryAfter: 100_000 });
  assert.equal(proxy.count("GET", "/v1/stats"), calls + 1);
});

test("settles and leases whose answers are lost are repeated, and no handler runs twice", async () => {
  const t = through();
  const ran: number[] = [];
  const task = t.task("t", {}, (n: number) => {
    ran.push(n);
    return n;
  });
  await task.pushMany(Array.from({ length: 300 }, (_, n) => n));
  for (const how of ["lose", "half", "refuse", "lose"] as const) {
    proxy.spoil(how, "POST", "/v1/leases/settle", 2);
    proxy.spoil(how, "POST", "/v1/leases", 1);
  }
  const worker = t.work([task], { signals: false, concurrency: 20, ttl: "5s" });
  await until(async () => ((await t.stats()).jobs["succeeded"] ?? 0) === 300, 30_000);
  await worker.stop();
  assert.deepEqual(
    ran.sort((a, b) => a - b),
    Array.from({ length: 300 }, (_, n) => n),
  );
  assert.equal(proxy.left, 0);
});

test("a retry and a delete whose answers are lost are done", async () => {
  const t = through();
  const job = await t.push("q", 1);
  await job.cancel();
  proxy.spoil("lose", "POST", "/v1/jobs");
  assert.equal((await job.retry()).state, "ready");
  proxy.spoil("lose", "DELETE", "/v1/jobs");
  await job.delete();
  assert.equal(proxy.left, 0);
});

test("a server that is not there, or is another one, is an error that says what to do", async () => {
  const port = await freePort();
  const t = new Tenure({ url: `http://127.0.0.1:${port}`, retryFor: 200 });
  await assert.rejects(t.push("q", 1), (error: Unreachable) => {
    assert.ok(error instanceof Unreachable);
    assert.equal(
      error.message,
      `http://127.0.0.1:${port}: connection refused [unreachable]; is \`tenure serve\` running there, and is the address right?`,
    );
    assert.deepEqual([error.retryable, error.status], [true, undefined]);
    return true;
  });
  proxy.spoil("lose", "POST", "/v1/jobs", 100);
  await assert.rejects(through({ retryFor: 200 }).push("q", 1), (error: OutcomeUnknown) => {
    assert.ok(error instanceof OutcomeUnknown);
    assert.match(
      error.message,
      /: the answer was lost \(.*\); the call may have been carried out \[outcome_unknown\]; make the same call again, with the same ids/,
    );
    return true;
  });
  while (proxy.left > 0) await fetch(`${proxy.url}/v1/jobs`, { method: "POST" }).catch(() => {});
  const html = { fetch: async () => new Response("<html>", { status: 200 }) };
  await assert.rejects(new Tenure({ url: "http://h:1", ...html }).stats(), (error: UnexpectedAnswer) => {
    assert.equal(
      error.message,
      "the server at http://h:1 is no Tenure server: its answer is no JSON [unexpected_answer]; look at the address, and at what stands between this client and the server",
    );
    return error instanceof UnexpectedAnswer;
  });
});

test("of several servers, one that cannot be reached is left for the next", async () => {
  const port = await freePort();
  const t = server.client({ url: `http://127.0.0.1:${port},${proxy.url},${server.url}` });
  const began = performance.now();
  await t.push("q", 1);
  assert.ok(performance.now() - began < 1000);
  proxy.spoil({ status: 503 }, "POST", "/v1/jobs");
  await t.push("q", 2);
  const seen = proxy.seen.length;
  await t.push("q", 3);
  assert.equal(proxy.seen.length, seen);
  const nobody = new Tenure({ url: `http://127.0.0.1:${port},http://127.0.0.1:${await freePort()}`, retryFor: 100 });
  await assert.rejects(
    nobody.stats(),
    /^Unreachable: no server can be reached at http:\/\/127.0.0.1:\d+,http:\/\/127.0.0.1:\d+; the last fault: connection refused/,
  );
});

test("a worker says that its server is away, and that it is back", async () => {
  const own = await Server.start("file:");
  const t = own.client();
  const logger = new Lines();
  const task = t.task("t", {}, (n: number) => n);
  const worker = t.work([task], { signals: false, logger, ttl: "30s" });
  await within(worker.id ? (await task.push(1)).result() : Promise.reject());
  await own.kill();
  await until(() => logger.has(`cannot reach ${own.url}: connection refused; trying again`));
  await own.start();
  const job = await task.push(2);
  assert.equal(await within(job.result(), 20_000), 2);
  await until(() => logger.has(`reached ${own.url} again after `));
  await worker.stop();
});

test("a wrong token ends a worker with the error", async () => {
  const guarded = await Server.start("memory:", [], { TENURE_TOKEN: "a".repeat(40) });
  const t = guarded.client({ token: "b".repeat(40) });
  const worker = t.work([t.task("t", {}, () => 1)], { signals: false });
  await assert.rejects(within(worker.done), { code: "unauthorized", status: 401 });
});
