import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Final, Snooze } from "tenure";
import { assertPushed, pushed, runUntilIdle, startServer } from "tenure/testing";
import { z } from "zod";

const shared = await startServer();
after(() => shared.stop());

test("handlers run in the test until nothing is left, and time moves only when the test says so", async () => {
  await using own = await startServer();
  const t = own.client();
  const task = t.task(
    "mail",
    { schema: z.object({ to: z.string() }), retry: { maxAttempts: 2, base: "1h" } },
    ({ to }, ctx) => {
      if (to === "bad" && ctx.attempt === 1) throw new RangeError("no address");
      if (to === "later" && ctx.job.progress === null) {
        ctx.progress("seen");
        throw new Snooze("1d");
      }
      return `sent to ${to}`;
    },
  );
  const clock = own.clock;
  const began = await clock.now();
  await task.push({ to: "ann" });
  await task.push({ to: "week" }, { delay: "7d" });
  assert.deepEqual(
    (await runUntilIdle(t, [task])).map((run) => run.result),
    ["sent to ann"],
  );
  assert.deepEqual(await runUntilIdle(t, [task]), []);
  await clock.advance("7d");
  assert.deepEqual(
    (await runUntilIdle(t, [task])).map((run) => run.result),
    ["sent to week"],
  );
  const bad = await task.push({ to: "bad" });
  await task.push({ to: "later" });
  await assert.rejects(runUntilIdle(t, [task]), /^RangeError: no address$/);
  const runs = await runUntilIdle(t, [task], { advance: true });
  assert.deepEqual(
    runs.map((run) => [run.outcome, run.result]),
    [
      ["snoozed", undefined],
      ["succeeded", "sent to bad"],
      ["succeeded", "sent to later"],
    ],
  );
  assert.deepEqual([runs[1]?.job.id, runs[1]?.job.attempt], [bad.id, 2]);
  const later = (await clock.now()).getTime() - began.getTime();
  assert.ok(later >= 8 * 86_400_000 && later < 8.2 * 86_400_000, `${later}`);
});

test("what a handler throws is thrown, except where it decides", async () => {
  const t = shared.client();
  const task = t.task("t", {}, (how: string) => {
    if (how === "final") throw new Final("no");
    throw new TypeError("broken");
  });
  await task.push("final");
  assert.deepEqual(
    (await runUntilIdle(t, [task])).map((run) => [run.outcome, run.error]),
    [["failed", "no"]],
  );
  await task.push("x");
  assert.equal((await runUntilIdle(t, [task], { throws: false }))[0]?.outcome, "failed");
});

test("an endless chain of jobs is given up", async () => {
  const t = shared.client();
  const task = t.task(
    "t",
    {},
    async (n: number, ctx) => void (await ctx.push({ queue: "t", kind: "t", payload: n + 1 })),
  );
  await task.push(0);
  await assert.rejects(
    runUntilIdle(t, [task], { limit: 20 }),
    /it is not idle after 20 steps; the last job was job_\w+\. Does a handler push itself again\?/,
  );
});

test("assertPushed finds jobs, and says what there is otherwise", async () => {
  const t = shared.client();
  const mail = t.task("mail", {}, (p: { to: string; copies?: number }) => p.to);
  await mail.push({ to: "ann", copies: 2 });
  await mail.push({ to: "bob" });
  assert.equal((await assertPushed(t, mail, { payload: { to: "ann" } }))[0]?.kind, "mail");
  assert.equal((await pushed(t, "mail")).length, 2);
  await assertPushed(t, mail, { count: 2 });
  await assertPushed(t, mail, { payload: { to: "cid" }, count: 0 });
  await assert.rejects(assertPushed(t, mail, { payload: { to: "cid" } }), {
    name: "AssertionError",
    message: 'task "mail" got no job with the payload {"to":"cid"}; it got: {"to":"ann","copies":2}, {"to":"bob"}',
  });
  await assert.rejects(assertPushed(t, mail, { count: 1 }), { message: /^task "mail" got 2 jobs, not 1; it got/ });
});

test("a server that cannot start says why", async () => {
  await assert.rejects(
    startServer({ binary: "/none/tenure" }),
    /there is no binary "\/none\/tenure"; put `tenure` on the PATH, or name it in TENURE_BIN/,
  );
  await assert.rejects(startServer({ binary: "false" }), /`false serve .*` did not start/);
  await using real = await startServer({ clock: false });
  assert.throws(() => real.clock, /this server has the machine's clock; start it with \{ clock: true \}/);
});
