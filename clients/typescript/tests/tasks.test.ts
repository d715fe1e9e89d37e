import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { type } from "arktype";
import {
  type Context,
  Final,
  JobFailed,
  Released,
  RetryIn,
  SchemaMismatch,
  Snooze,
  type StandardSchema,
  type Task,
  type Tenure,
  type Worker,
  type WorkerOptions,
} from "tenure";
import * as v from "valibot";
import { z } from "zod";
import { Server } from "./servers.js";
import { all, gate, Lines, until, within } from "./waiting.js";

const server = await Server.start();

function work(t: Tenure, tasks: Task<never, unknown>[], options: WorkerOptions = {}): Worker {
  return t.work(tasks, { signals: false, ttl: "5s", ...options });
}

const schemas: [string, StandardSchema<{ url: string; depth?: number | undefined }, { url: string; depth: number }>][] =
  [
    ["zod", z.object({ url: z.string(), depth: z.number().default(0) })],
    ["valibot", v.object({ url: v.string(), depth: v.optional(v.number(), 0) })],
    ["arktype", type({ url: "string", depth: "number = 0" }) as never],
  ];
for (const [library, schema] of schemas) {
  test(`a schema of ${library} is checked at the push and at the run`, async () => {
    const t = server.client();
    const crawl = t.task("crawl", { schema }, ({ url, depth }) => `${url} ${depth}`);
    await assert.rejects(crawl.push({ url: 5 as never }), (error: SchemaMismatch) => {
      assert.ok(error instanceof SchemaMismatch);
      assert.match(
        error.message,
        /^the payload does not fit the schema of task "crawl": payload\.url: .+ \[schema_mismatch\]; give a payload that fits/,
      );
      assert.equal(error.issues[0]?.path, "payload.url");
      return true;
    });
    assert.equal((await all(t.jobs())).length, 0);
    const good = await crawl.push({ url: "a" });
    const bad = await t.push("crawl", { url: true }, { kind: "crawl" });
    await using _worker = work(t, [crawl]);
    assert.equal(await within(good.result()), "a 0");
    await assert.rejects(within(bad.result()), /the payload does not fit the schema of task "crawl": payload\.url/);
    // A mismatch is final: another attempt would not fit either.
    assert.equal((await bad.get()).attempt, 1);
  });
}

test("a schema's output reaches the handler, and its input is what is stored", async () => {
  const t = server.client();
  const at = t.task(
    "at",
    { schema: z.object({ at: z.coerce.date<string>() }), result: z.object({ year: z.number() }) },
    ({ at: moment }) => ({ year: moment.getUTCFullYear() }),
  );
  const job = await at.push({ at: "2026-12-01T00:00:00Z" });
  assert.deepEqual((await job.get()).payload, { at: "2026-12-01T00:00:00Z" });
  await using _worker = work(t, [at]);
  const { year } = await within(job.result());
  assert.equal(year, 2026);
});

test("a result that does not fit, or is no JSON, fails the job for good", async () => {
  const t = server.client();
  const shaped = t.task("shaped", { result: z.object({ n: z.number() }) }, () => ({ n: "1" as unknown as number }));
  const odd = t.task("odd", {}, () => ({ at: [1n] }));
  const large = t.task("large", {}, () => "x".repeat(300_000));
  const jobs = [await shaped.push(undefined as never), await odd.push(null), await large.push(null)];
  await using _worker = work(t, [shaped, odd, large]);
  await assert.rejects(
    within(jobs[0]?.result() as Promise<unknown>),
    /the result does not fit the schema of task "shaped": result\.n: /,
  );
  await assert.rejects(
    within(jobs[1]?.result() as Promise<unknown>),
    /its result cannot be stored: result\.at\[0\]: a bigint is not JSON/,
  );
  await assert.rejects(
    within(jobs[2]?.result() as Promise<unknown>),
    /its result has 300002 bytes as JSON; at most 262144 can be stored/,
  );
  for (const job of jobs) assert.equal((await job?.get())?.attempt, 1);
});

test("needs and the unique key may be functions of the payload", async () => {
  const t = server.client();
  await t.limits.set("site:*", { concurrency: 1 });
  const crawl = t.task(
    "crawl",
    {
      needs: ({ host }: { host: string }) => [`limit:site:${host}`],
      unique: ({ host }) => ({ key: host }),
      expiresIn: "1h",
      timeout: "1m",
    },
    ({ host }, ctx) => `${host} ${ctx.limits.join()}`,
  );
  const job = await crawl.push({ host: "a" });
  assert.equal((await crawl.push({ host: "a" })).duplicate, true);
  const read = await job.get();
  assert.deepEqual([read.unique?.key, read.timeout, read.expires_at !== null], ["a", "1m", true]);
  await using _worker = work(t, [crawl]);
  assert.equal(await within(job.result()), "a site:a");
});

test("errors decide how a run ends", async () => {
  const t = server.client();
  const seen: string[] = [];
  const task = t.task("t", { retry: { maxAttempts: 2, base: "1h" } }, async (how: string, ctx) => {
    seen.push(`${how} ${ctx.attempt}`);
    const again = seen.filter((each) => each.startsWith(`${how} `)).length > 1;
    if (again) return "done";
    if (how === "final") throw new Final("no such page");
    if (how === "snooze") throw new Snooze("100ms");
    if (how === "until") throw new Snooze({ until: new Date(Date.now() + 200) });
    if (how === "released") throw new Released();
    if (how === "retry") throw new RetryIn("50ms", "not yet", { cause: new Error("429") });
    throw new TypeError("broken", { cause: new RangeError("below") });
  });
  const jobs = Object.fromEntries(
    await Promise.all(
      ["final", "snooze", "until", "released", "retry", "other"].map(
        async (how) => [how, await task.push(how)] as const,
      ),
    ),
  );
  await using _worker = work(t, [task]);
  for (const how of ["snooze", "until", "released", "retry"])
    assert.equal(await within(jobs[how]?.result() as Promise<unknown>), "done");
  await assert.rejects(within(jobs["final"]?.result() as Promise<unknown>), /failed: no such page \[job_failed\]/);
  assert.equal((await jobs["snooze"]?.get())?.attempt, 1);
  const retried = await jobs["retry"]?.get();
  assert.equal(retried?.attempt, 2);
  assert.match(retried?.errors[0]?.error ?? "", /^not yet\nError: 429\n {4}at /);
  await until(async () => (await jobs["other"]?.get())?.state === "scheduled");
  const error = (await jobs["other"]?.get())?.error ?? "";
  assert.match(error, /^TypeError: broken\n {4}at .*tasks\.test\.js.*\n(.*\n)*caused by RangeError: below\n {4}at /);
  assert.ok(!error.includes("/dist/") && !error.includes("node:"), error);
});

test("an error is bounded: its message is cut in the middle, and frames stay", async () => {
  const t = server.client();
  const errors: Record<string, () => unknown> = {
    long: () => new Error(`begins ${"é".repeat(20_000)} ends`),
    thrown: () => ({ code: 7 }),
    // An error of another realm, as of Node itself in a test of jest, is no instance of this one's `Error`.
    foreign: () => runInNewContext("new RangeError('of another realm')"),
    several: () => new AggregateError([new RangeError("the first"), new Error("the second")], "none was right"),
  };
  const task = t.task("t", { retry: 1 }, (how: string) => {
    throw errors[how]?.();
  });
  await using _worker = work(t, [task]);
  const stored: Record<string, string> = {};
  for (const how of Object.keys(errors)) {
    const job = await task.push(how);
    await assert.rejects(within(job.result()), (failed: JobFailed) => {
      stored[how] = failed.error as string;
      // What happened stands in the message, and where in `error`.
      assert.equal(failed.detail, `job ${job.id} failed: ${failed.error?.split("\n    at ")[0]}`);
      return failed instanceof JobFailed;
    });
    assert.equal((await job.get()).error, stored[how]);
  }
  const { long = "", several = "" } = stored;
  assert.match(long, /^Error: begins éé+ … éé+ ends\n {4}at .*tasks\.test\.js:\d+:\d+\)?/);
  assert.ok(Buffer.byteLength(long) <= 8192);
  assert.equal(stored["thrown"], 'a thrown value that is no Error: {"code":7}');
  assert.match(stored["foreign"] ?? "", /^RangeError: of another realm\n {4}at /);
  assert.match(several, /^AggregateError: none was right\n(.*\n)+caused by RangeError: the first\n {4}at /);
});

test("ctx says more beside the outcome", async () => {
  const t = server.client();
  await t.pools.sync("accounts", [
    { id: "ann", data: { password: "hunter-22", proxy: "http://me:pass-word@h" } },
    { id: "bob" },
  ]);
  await t.limits.set("llm", { rate: { count: 100, per: "1h", burst: 100 } });
  const follow = t.task("follow", {}, (n: number) => n);
  const task = t.task(
    "t",
    {
      retry: 1,
      needs: [
        { pool: "accounts", prefer: "ann" },
        { limit: "llm", cost: 10 },
      ],
    },
    async (end: string, ctx) => {
      const account = ctx.resource<{ password: string }>("accounts");
      ctx.progress({ login: account.data?.password, n: 1 });
      const id = await ctx.push(follow, 7, { priority: 3 });
      await ctx.push({ queue: "raw", payload: 1 });
      ctx.spent("llm", 25);
      ctx.pause("llm", "1m");
      if (end === "ban") ctx.ban("accounts", "captcha for hunter-22");
      if (end === "fail") throw new Error(`login with ${account.data?.password} at http://me:pass-word@h/ refused`);
      assert.throws(() => ctx.resource("none"), /the pool "none" is not held here/);
      return id;
    },
  );
  const ok = await task.push("ban");
  const worker = work(t, [task]);
  const id = await within(ok.result());
  assert.deepEqual([(await t.job(id).get()).payload, (await t.job(id).get()).priority], [7, 3]);
  assert.equal((await t.limits.get("llm")).paused_until !== null, true);
  await t.limits.resume("llm");
  const ann = await t.pools.resource("accounts", "ann");
  assert.deepEqual([ann.state, ann.reason], ["banned", "captcha for •••"]);
  assert.deepEqual((await ok.get()).progress, { login: "•••", n: 1 });
  await t.pools.restore("accounts", "ann");
  const failed = await task.push("fail");
  await assert.rejects(within(failed.result()), /Error: login with ••• at •••\/ refused/);
  // The pushes of a failed run are not stored.
  assert.equal((await all(t.jobs({ queue: "follow" }))).length, 1);
  await worker.stop();
});

test("a push that comes after the end of its run is refused", async () => {
  const t = server.client();
  let late: Context | undefined;
  const task = t.task("t", undefined as never, (_: null, ctx) => {
    late = ctx;
  });
  const job = await task.push(null);
  await using _worker = work(t, [task]);
  await within(job.result());
  await assert.rejects(late?.push(task, null) as Promise<string>, {
    message:
      "ctx.push comes after the end of the run, which stores what it pushes [wrong_option]; await it in the handler",
  });
});

test("progress is followed to the end of the job", async () => {
  const t = server.client();
  const { promise, open } = gate();
  const task = t.task("t", {}, async (_: null, ctx) => {
    ctx.progress({ page: 1 });
    await promise;
    ctx.progress({ page: 2 });
  });
  const job = await task.push(null);
  await using _worker = work(t, [task]);
  const seen: unknown[] = [];
  for await (const report of job.progress({ signal: AbortSignal.timeout(15_000) })) {
    seen.push(report);
    open();
  }
  assert.deepEqual(seen, [{ page: 1 }, { page: 2 }]);
});

test("a batch handler gets several jobs, and each has an end of its own", async () => {
  const t = server.client();
  const sizes: number[] = [];
  const mail = t.task(
    "mail",
    { schema: z.object({ n: z.number() }), retry: 1, batch: { max: 4, wait: "200ms" } },
    async (items) => {
      sizes.push(items.length);
      return items.map(({ payload, ctx }) => {
        ctx.progress(payload.n);
        if (payload.n === 2) return new Final("no");
        return payload.n * 2;
      });
    },
  );
  const wrongCount = t.task("wrong", { batch: { max: 2, wait: 0 } }, (_: readonly unknown[]) => [1, 2, 3]);
  const jobs = await Promise.all(Array.from({ length: 10 }, (_, n) => mail.push({ n })));
  const misfit = await t.push("mail", { n: "x" }, { kind: "mail" });
  const wrong = await wrongCount.push(null);
  await using _worker = work(t, [mail, wrongCount], { concurrency: 8 });
  const results = await within(Promise.allSettled(jobs.map((job) => job.result())));
  assert.deepEqual(
    results.map((each) => (each.status === "fulfilled" ? each.value : "no")),
    [0, 2, "no", 6, 8, 10, 12, 14, 16, 18],
  );
  await assert.rejects(within(misfit.result()), /payload\.n/);
  await assert.rejects(within(wrong.result()), /the batch handler of task "wrong" returned 3 results for 1 jobs/);
  assert.equal(
    sizes.reduce((a, b) => a + b),
    10,
  );
  assert.ok(Math.max(...sizes) === 4, `${sizes}`);
});

test("a job without a kind goes to the only handler of its queue, and one of an unknown kind is retried", async () => {
  const t = server.client();
  const logger = new Lines();
  const task = t.task("t", {}, (n: number) => n + 1);
  const bare = await t.push("t", 1);
  const unknown = await t.push("t", 1, { kind: "other", retry: { maxAttempts: 2, base: "1h" } });
  await using _worker = work(t, [task], { logger });
  assert.equal(await within(bare.result()), 2);
  await until(async () => (await unknown.get()).state === "scheduled");
  assert.equal((await unknown.get()).error, 'no handler takes the kind "other" in queue "t"');
  await until(() => logger.has("attempt 1 failed") && logger.has("attempt 1 succeeded"));
});

test("schedules are synced by the worker, and stay those of their owner", async () => {
  const t = server.client({ owner: "shop" });
  await t.schedules.set("other", { every: "1h", owner: "else", job: {} });
  const report = t.task("report", { retry: 2, expiresIn: "10m" }, (p: { kind: string }) => p.kind);
  t.schedule(report, "0 9 * * 1-5", { zone: "Europe/Berlin", payload: { kind: "daily" } });
  t.schedule(report, { every: "15m" }, { id: "often", payload: { kind: "often" } });
  assert.throws(() => t.schedule(report, "@daily"), /two schedules have the id "shop.report"/);
  await using _worker = work(t, [report]);
  await until(async () => (await all(t.schedules.list({ owner: "shop" }))).length === 2);
  const daily = await t.schedules.get("shop.report");
  assert.deepEqual(
    [daily.cron, daily.zone, daily.job.kind, daily.job.queue, daily.job.expires_in],
    ["0 9 * * 1-5", "Europe/Berlin", "report", "report", "10m"],
  );
  const job = await t.schedules.runNow("often");
  assert.equal(await within(job.result()), "often");
  assert.ok(await t.schedules.get("other"));
});

test("a worker that is to end when nothing is left ends by itself", async () => {
  const t = server.client();
  let count = 0;
  const task = t.task("t", {}, () => void count++);
  await task.pushMany(Array(500).fill(null));
  await within(work(t, [task], { untilEmpty: true, concurrency: 50 }).done, 20_000);
  assert.equal(count, 500);
  assert.equal((await t.stats()).jobs["succeeded"], 500);
});
