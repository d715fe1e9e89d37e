import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScheduleItem } from "tenure";
import { Server } from "./servers.js";
import { all } from "./waiting.js";

const server = await Server.start();

/** A set of schedules that never fire in a test. */
function items(count: number, payload?: unknown): ScheduleItem[] {
  return Array.from({ length: count }, (_, n) => ({ id: `s-${n}`, every: "30d", job: { queue: "r", payload } }));
}

test("a set of more schedules than an array takes is synced", async () => {
  const t = server.client();
  const counts = { added: 0, updated: 0, unchanged: 0, deleted: 0 };
  assert.deepEqual(await t.schedules.sync("many", items(1001)), { ...counts, added: 1001 });
  assert.deepEqual(await t.schedules.sync("many", items(1000)), { ...counts, unchanged: 1000, deleted: 1 });
  assert.deepEqual(await t.schedules.sync("many", [], { force: true }), { ...counts, deleted: 1000 });
});

test("a set of more bytes than a body takes is synced", async () => {
  const t = server.client();
  const large = items(60, "x".repeat(200_000));
  assert.equal((await t.schedules.sync("large", large)).added, 60);
  const [first] = await all(t.schedules.list({ owner: "large", full: true }));
  assert.equal((first?.job.payload as string | undefined)?.length, 200_000);
});

test("the schedules of a client's tasks may be more than an array takes", async () => {
  const t = server.client({ owner: "shop" });
  const task = t.task("r", {}, (n: number) => n);
  for (const { id } of items(1001)) t.schedule(task, { every: "30d" }, { id, payload: 1 });
  await t.syncSchedules();
  assert.equal((await all(t.schedules.list({ owner: "shop" }))).length, 1001);
});

test("run-now answers the unfinished job of the schedule, and takes the id of its job", async () => {
  const t = server.client();
  await t.schedules.set("news", { every: "30d", job: { queue: "r" } });
  const first = await t.schedules.runNow("news", { id: "now-1" });
  assert.deepEqual([first.id, first.duplicate, first.replaced], ["now-1", false, false]);
  // Whether by its id, or since a schedule that skips has an unfinished job.
  for (const options of [{ id: "now-1" }, { id: "now-2" }, undefined]) {
    const again = await t.schedules.runNow("news", options);
    assert.deepEqual([again.id, again.duplicate], ["now-1", true]);
  }
  await first.cancel();
  const next = await t.schedules.runNow("news");
  assert.deepEqual([next.id.startsWith("job_"), next.duplicate], [true, false]);
});

test("a preview begins where it is told to", async () => {
  const t = server.client();
  for (const from of ["2026-03-01T00:00:00Z", new Date("2026-03-01T01:00:00+01:00")]) {
    const moments = await t.schedules.preview({ cron: "0 12 * * *", from, count: 2 });
    assert.deepEqual(
      moments.map((each) => each.toISOString()),
      ["2026-03-01T12:00:00.000Z", "2026-03-02T12:00:00.000Z"],
    );
  }
});
