import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  Conflict,
  type Job,
  JobCancelled,
  JobFailed,
  type JobOptions,
  NotFinished,
  NotFound,
  NotPermitted,
  Tenure,
} from "tenure";
import { folder, Server } from "./servers.js";
import { all, within } from "./waiting.js";

const server = await Server.start();

test("a push answers the job, and the same id again answers that job", async () => {
  const t = server.client();
  const job = await t.push("mail", { to: "ann" }, { id: "m-1", priority: 5, labels: { shop: "a" } });
  assert.deepEqual([job.id, job.duplicate], ["m-1", false]);
  const again = await t.push("mail", { to: "bob" }, { id: "m-1" });
  assert.equal(again.duplicate, true);
  const read = await job.get();
  assert.deepEqual([read.payload, read.priority, read.labels, read.state], [{ to: "ann" }, 5, { shop: "a" }, "ready"]);
});

test("options reach the server under its names", async () => {
  const t = server.client();
  const options: JobOptions = {
    kind: "k",
    delay: "1h",
    timeout: 90_000,
    retry: { maxAttempts: 4, maxLost: 2, base: "2s", max: "1m", jitter: false },
    retain: "2h30m",
    group: "g",
    needs: ["limit:lock:a", "limit:site:b,weight=2,cost=3", { pool: "p", tag: "cn", count: 2 }, "pool:q#de"],
    unique: { key: "u", until: "start", for: "1m", onConflict: "reject" },
    expiresAt: "2h",
    flow: "f",
  };
  const job = await t.push("mail", null, options).catch((refused) => refused);
  // The pools and the limit are not there, and the answer of the server names the first of them.
  assert.equal(job.code, "unknown_limit");
  await t.limits.set("site:*", { concurrency: 4, rate: { count: 10, per: "1s", burst: 5 } });
  await t.pools.sync("p", [
    { id: "a", tags: ["cn"] },
    { id: "b", tags: ["cn"] },
  ]);
  await t.pools.sync("q", [{ id: "a", tags: ["de"] }]);
  const stored = await t.push("mail", null, options);
  const read = await stored.get();
  assert.deepEqual(
    [read.kind, read.state, read.timeout, read.retain, read.group, read.flow],
    ["k", "scheduled", "1m30s", "2h30m", "g", "f"],
  );
  assert.equal(read.retry?.max_attempts, 4);
  assert.equal(read.needs.length, 4);
  await assert.rejects(t.push("mail", null, { unique: { key: "u", onConflict: "reject" } }), (error: Conflict) => {
    assert.ok(error instanceof Conflict);
    assert.deepEqual(
      [error.code, error.status, error.job, error.retryable],
      ["unique_conflict", 409, stored.id, false],
    );
    return true;
  });
  const key = await t.job("key:u").get();
  assert.equal(key.id, stored.id);
});

test("many pushes at once are answered one by one", async () => {
  const t = server.client();
  const jobs = await Promise.all(
    Array.from({ length: 300 }, (_, n) => t.push("many", { n }, n === 7 ? { id: "seven" } : {})),
  );
  assert.equal(new Set(jobs.map((job) => job.id)).size, 300);
  assert.equal((await jobs[7]?.get())?.id, "seven");
  const mixed = await Promise.allSettled([
    t.push("many", 1),
    t.push("many", 2, { needs: ["limit:nope:x"] }),
    t.push("many", 3),
  ]);
  assert.deepEqual(
    mixed.map((each) => each.status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  const all300 = await all(t.jobs({ queue: "many" }));
  assert.equal(all300.length, 302);
});

test("pushAll stores all or none, with parents", async () => {
  const t = server.client();
  const [a, b] = await t.pushAll([
    { queue: "q", ref: "first" },
    { queue: "q", after: [{ ref: "first" }] },
  ]);
  assert.equal((await b?.get())?.state, "dependent");
  assert.deepEqual(
    (await all((b as Job).parents())).map((each) => ("id" in each ? each.id : undefined)),
    [a?.id],
  );
  assert.deepEqual((await all(a?.children() as never)).length, 1);
  await assert.rejects(
    t.pushAll([{ queue: "q" }, { queue: "q", needs: ["limit:nope:x"] }]),
    (error: { index: number }) => error.index === 1,
  );
  assert.equal((await all(t.jobs({ queue: "q" }))).length, 2);
});

test("lists are read page by page, with filters", async () => {
  const t = server.client();
  await t.pushMany(
    (function* () {
      for (let n = 0; n < 1234; n++) yield { queue: n % 2 ? "odd" : "even", payload: n, labels: { n: `${n % 10}` } };
    })(),
  );
  assert.equal((await all(t.jobs())).length, 1234);
  assert.equal((await all(t.jobs({ queue: "odd", state: ["ready", "scheduled"], label: "n:3" }))).length, 124);
  let seen = 0;
  for await (const job of t.jobs({ queue: "even", full: true })) {
    assert.equal(job.payload, 1232);
    if (++seen === 1) break;
  }
  assert.deepEqual(
    (await all(t.queues.list())).map((queue) => queue.name),
    ["even", "odd"],
  );
});

test("a job is explained, cancelled, retried, rescheduled, changed and deleted", async () => {
  const t = server.client();
  const job = await t.push("q", null, { delay: "1h" });
  const why = await job.explain();
  assert.equal(why.reasons[0]?.kind, "scheduled");
  assert.equal((await job.reschedule({ delay: "2h" })).state, "scheduled");
  assert.equal((await job.change({ priority: 7, payload: { a: 1 }, needs: ["limit:lock:x"] })).priority, 7);
  assert.equal((await job.runNow()).state, "ready");
  assert.equal((await job.cancel()).state, "cancelled");
  assert.equal((await job.cancel()).state, "cancelled");
  await assert.rejects(job.result(), (error: JobCancelled) => error instanceof JobCancelled && error.job === job.id);
  assert.equal((await job.retry()).state, "ready");
  await assert.rejects(job.result({ wait: "50ms" }), (error: NotFinished) => {
    assert.match(error.message, /is ready and has not ended within 50ms \[not_finished\]; wait for longer/);
    return error instanceof NotFinished;
  });
  await job.delete();
  await assert.rejects(
    job.get(),
    (error: NotFound) => error instanceof NotFound && error.code === "job_not_found" && error.status === 404,
  );
  await t.pushMany([{ queue: "bulk" }, { queue: "bulk" }, { queue: "other" }]);
  assert.equal(await t.cancelJobs({ queue: "bulk" }), 2);
  assert.equal(await t.retryJobs({ queue: "bulk", state: "cancelled" }), 2);
  assert.equal(await t.deleteJobs({ queue: "bulk" }), 2);
});

test("limits, pools and queues are set, shown and deleted", async () => {
  const t = server.client();
  const limit = await t.limits.set("site:*", { concurrency: 2, rate: "10/1s" });
  assert.deepEqual([limit.concurrency, limit.rate?.count, limit.rate?.per], [2, 10, "1s"]);
  assert.equal((await t.limits.set("site:*", { concurrency: 3 })).rate?.count, 10);
  assert.equal((await t.limits.set("site:*", { rate: null })).rate, null);
  await t.limits.set("site:a", { concurrency: 5 });
  assert.ok((await t.limits.pause("site:a", { for: "1m" })).paused_until);
  assert.equal((await t.limits.resume("site:a")).paused_until, null);
  assert.equal((await t.limits.observe("site:a", { external: 2, for: "1m" })).external, 2);
  assert.deepEqual(
    (await all(t.limits.list())).map((each) => each.name).filter((name) => name.startsWith("site")),
    ["site:*", "site:a"],
  );
  await t.limits.delete("site:a");
  await assert.rejects(t.limits.delete("site:nope"), (error: NotFound) => error.code === "limit_not_found");

  assert.equal((await t.pools.set("accounts", { quarantine: "30s", maxUses: 5, pick: "random" })).quarantine, "30s");
  assert.equal(
    (await t.pools.sync("accounts", [{ id: "ann", data: { password: "secret-1" }, tags: ["cn"] }, { id: "bob" }]))
      .added,
    2,
  );
  await t.pools.add("accounts", { id: "cid", slots: 2 });
  await t.pools.change("accounts", "cid", { tags: ["de"] });
  await t.pools.ban("accounts", "cid", "captcha");
  assert.deepEqual(
    [(await t.pools.resource("accounts", "cid")).state, (await t.pools.resource("accounts", "cid")).tags],
    ["banned", ["de"]],
  );
  await t.pools.restore("accounts", "cid");
  await t.pools.cool("accounts", "cid", { for: "1m" });
  const shown = JSON.stringify(await all(t.pools.resources("accounts")));
  assert.ok(!shown.includes("secret-1"));
  await t.pools.remove("accounts", "cid");
  await assert.rejects(t.pools.sync("accounts", []), (error: { code: string }) => error.code === "empty_set");

  const queue = await t.queues.set("crawl", { maxWaiting: 10, retry: 3, needs: ["limit:lock:c"], shares: { a: 2 } });
  assert.deepEqual([queue.max_waiting, queue.needs.length, queue.retry?.max_attempts], [10, 1, 3]);
  assert.equal((await t.queues.pause("crawl")).paused, true);
  assert.equal((await t.queues.resume("crawl")).paused, false);
  await t.queues.delete("crawl");
});

test("a set sends no change that is refused", async () => {
  const sent: string[] = [];
  const counted: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init);
    sent.push(`${init?.method} ${new URL(String(url)).pathname} ${answer.status}`);
    return answer;
  };
  const t = server.client({ fetch: counted });
  // The settings of this template hold for the limit until it has its own.
  await t.limits.set("site:*", { concurrency: 9 });
  for (const [path, set] of [
    ["/v1/limits/site:x", () => t.limits.set("site:x", { concurrency: 1 })],
    ["/v1/queues/x", () => t.queues.set("x", { maxWaiting: 3 })],
    ["/v1/pools/x", () => t.pools.set("x", { maxUses: 3 })],
  ] as const) {
    sent.length = 0;
    await set();
    await set();
    const first = path.includes("limits") ? "200" : "404";
    assert.deepEqual(sent, [`GET ${path} ${first}`, `PUT ${path} 201`, `GET ${path} 200`, `PATCH ${path} 200`]);
  }
});

test("a set looks before it changes", async () => {
  const bare = { template: null, concurrency: null, rate: null };
  const [shown, ofTemplate] = [
    { ...bare, rate: { count: 1 } },
    { ...bare, template: "site:*", concurrency: 1 },
  ];
  const done = { ...bare, concurrency: 3 };
  for (const [answers, methods] of [
    [{ GET: 404, PUT: done }, "GET PUT"],
    [{ GET: shown, PATCH: done }, "GET PATCH"],
    [{ GET: ofTemplate, PUT: done }, "GET PUT"],
    // It was deleted, and a lease still holds it.
    [{ GET: bare, PUT: done }, "GET PUT"],
    // A token that may change settings and not see them.
    [{ GET: 403, PATCH: done }, "GET PATCH"],
    [{ GET: 403, PATCH: 404, PUT: done }, "GET PATCH PUT"],
    [{ GET: 403, PATCH: 403 }, "GET PATCH"],
    // It was deleted meanwhile.
    [{ GET: shown, PATCH: 404, PUT: done }, "GET PATCH PUT"],
    [{ GET: 401 }, "GET"],
    [{ GET: 500 }, "GET"],
  ] as [Record<string, number | object>, string][]) {
    const sent: string[] = [];
    const double: typeof fetch = async (_, init) => {
      const method = String(init?.method);
      sent.push(method);
      const answer = answers[method];
      const status = typeof answer === "number" ? answer : 200;
      return new Response(JSON.stringify(status === 200 ? answer : { code: "refused", detail: "no" }), { status });
    };
    const set = new Tenure({ url: "http://h:1", fetch: double }).limits.set("site:a", { concurrency: 3 });
    const outcome = await set.catch((refused: { status: number }) => refused.status);
    assert.deepEqual([sent.join(" "), outcome], [methods, answers[sent.at(-1) as string]]);
  }
});

test("schedules and flows", async () => {
  const t = server.client({ owner: "shop" });
  const schedule = await t.schedules.set("daily", {
    cron: "0 9 * * *",
    zone: "Europe/Berlin",
    job: { queue: "r", payload: { a: 1 }, retry: 2 },
  });
  assert.equal(schedule.next?.length, 5);
  assert.equal((await t.schedules.change("daily", { overlap: "queue", catchUp: "none" })).overlap, "queue");
  const job = await t.schedules.runNow("daily");
  assert.deepEqual((await job.get()).payload, { a: 1 });
  assert.equal((await t.schedules.pause("daily")).paused, true);
  assert.equal((await t.schedules.resume("daily")).paused, false);
  assert.equal((await t.schedules.preview({ id: "hourly", every: "1h", count: 3 })).length, 3);
  assert.deepEqual(await t.schedules.sync("set", [{ id: "a", every: "15m", job: { queue: "r" } }]), {
    added: 1,
    updated: 0,
    unchanged: 0,
    deleted: 0,
  });
  assert.deepEqual(
    (await all(t.schedules.list({ owner: "set" }))).map((each) => each.id),
    ["a"],
  );
  await t.schedules.delete("a");
  await t.push("r", 1, { flow: "f" });
  assert.equal((await t.flows.get("f")).counts.unfinished, 1);
  await assert.rejects(t.flows.finished("f", { wait: 20 }), NotFinished);
  await t.flows.cancel("f");
  assert.equal((await t.flows.finished("f", { wait: "10s" })).state, "finished");
  assert.equal((await all(t.flows.list())).length, 1);
});

test("stats, audit, version, workers and leases", async () => {
  const t = server.client();
  await t.push("q", 1);
  assert.equal((await t.stats()).jobs["ready"], 1);
  assert.equal((await t.audit()).ok, true);
  assert.equal((await t.version()).contract, 1);
  await using lock = await t.lock("deploy");
  const [held] = await all(t.leases());
  assert.equal(held?.lease, lock.id);
  await t.endLease(lock.id);
  assert.equal((await all(t.leases())).length, 0);
  assert.deepEqual(
    (await all(t.workers())).map((each) => [each.pid, each.leases]),
    [[process.pid, 0]],
  );
});

test("the token comes from an option, a file or a function, and is refreshed when it is refused", async () => {
  const token = "a".repeat(40);
  const guarded = await Server.start("memory:", [], { TENURE_TOKEN: token });
  const stats = (options: object) =>
    within(new Tenure({ url: guarded.url, retryFor: "5s", logger: false, ...options }).stats());
  await stats({ token });
  const file = join(folder, "token");
  writeFileSync(file, `# the token\n${token}\n`);
  await stats({ tokenFile: file });
  await stats({ token: async () => token });
  // As a file is read that an editor wrote.
  await stats({ token: () => `${token}\n` });
  const tokens = ["old", token];
  await stats({ token: () => tokens.shift() as string });
  await assert.rejects(stats({ token: "b".repeat(40) }), (error: NotPermitted) => {
    assert.ok(error instanceof NotPermitted);
    assert.ok(!error.message.includes("bbbb"));
    return error.code === "unauthorized" && error.status === 401;
  });
  await assert.rejects(stats({ tokenFile: join(folder, "none") }), /the token file ".*none" cannot be read \(ENOENT\)/);
  await assert.rejects(
    stats({ token: () => undefined as never }),
    /the function `token` must return the token as text, not undefined/,
  );
  process.env["TENURE_TOKEN"] = token;
  await stats({});
  delete process.env["TENURE_TOKEN"];
  await guarded.kill();
});

test("an injected fetch makes the calls", async () => {
  let calls = 0;
  const counted: typeof fetch = (...args) => {
    calls++;
    return fetch(...args);
  };
  const t = server.client({ fetch: counted });
  await t.push("q", 1);
  assert.equal(calls, 1);
  await assert.rejects(t.job("none").get(), NotFound);
});

test("an abort ends a call with its reason", async () => {
  const t = server.client();
  const job = await t.push("q", 1);
  const stop = new AbortController();
  const waiting = job.result({ signal: stop.signal });
  const reason = new Error("enough");
  setTimeout(() => stop.abort(reason), 50);
  await assert.rejects(within(waiting), (error) => error === reason);
  await assert.rejects(t.push("q", 1, { signal: AbortSignal.abort(reason) }), (error) => error === reason);
  await assert.rejects(within(all(job.progress({ signal: AbortSignal.timeout(50) }))), { name: "TimeoutError" });
});

test("failures are counted, as many as are asked for", async () => {
  const t = server.client();
  const task = t.task("bad", { retry: 1 }, (text: string) => Promise.reject(new Error(text)));
  const jobs = [await task.push("a"), await task.push("b"), await task.push("b")];
  await using _worker = t.work([task], { signals: false });
  for (const job of jobs) await assert.rejects(within(job.result()), JobFailed);
  assert.deepEqual(
    (await t.failures({ queue: "bad", max: 1 })).map((each) => [each.error, each.count]),
    [["Error: b", 2]],
  );
  assert.equal((await t.failures()).length, 2);
});

test("a failed job's result is an error with its text", async () => {
  const t = server.client();
  const task = t.task("bad", { retry: 1 }, () => {
    throw new RangeError("no such page");
  });
  const job = await task.push(null);
  await using _worker = t.work([task], { signals: false });
  await assert.rejects(within(job.result()), (error: JobFailed) => {
    assert.ok(error instanceof JobFailed);
    assert.match(error.message, /^job job_\w+ failed: RangeError: no such page \[job_failed\]$/);
    assert.match(error.error ?? "", /^RangeError: no such page\n {4}at .*client\.test/);
    return true;
  });
});
