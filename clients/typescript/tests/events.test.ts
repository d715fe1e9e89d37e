import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { TenureEvent } from "tenure";
import { LossyProxy } from "./proxy.js";
import { Server } from "./servers.js";
import { until, within } from "./waiting.js";

const server = await Server.start("memory:", ["--events-bytes", "64KiB"]);

/** The first events of a stream. */
async function take(events: AsyncGenerator<TenureEvent>, count: number): Promise<TenureEvent[]> {
  const taken: TenureEvent[] = [];
  await within(
    (async () => {
      for await (const event of events) if (taken.push(event) === count) return;
    })(),
  );
  return taken;
}

test("events come in their order, from now on or from a place on", async () => {
  let asked = 0;
  const count: typeof fetch = (url, init) => {
    if (String(url).includes("since=")) asked++;
    return fetch(url, init);
  };
  const t = server.client({ fetch: count });
  const since = await t.lastEvent();
  const live = t.events({ type: ["job.pushed", "job.cancelled"] });
  const first = live.next();
  // It begins with its first step.
  await until(() => asked > 0);
  const job = await t.push("q", 1);
  await job.cancel();
  assert.equal((await within(first)).value?.type, "job.pushed");
  assert.equal((await within(live.next())).value?.type, "job.cancelled");
  await live.return();
  const again = await take(t.events({ since, job: job.id }), 2);
  assert.deepEqual(
    again.map((each) => each.type),
    ["job.pushed", "job.cancelled"],
  );
});

test("events go on after lost connections and a restart of the server", async () => {
  const own = await Server.start("file:");
  const proxy = await LossyProxy.before(own.port);
  const t = own.client();
  const reader = own.client({ url: proxy.url, namespace: t.namespace, retryFor: 100 });
  const since = await t.lastEvent();
  const events = reader.events({ since, type: "job.pushed" });
  await t.push("q", 1, { id: "one" });
  proxy.spoil("half", "GET", "/v1/events");
  proxy.spoil("refuse", "GET", "/v1/events");
  assert.equal(((await within(events.next())).value as { job?: string }).job, "one");
  const next = events.next();
  await own.kill();
  await own.start();
  await t.push("q", 1, { id: "two" });
  assert.equal(((await within(next, 20_000)).value as { job?: string }).job, "two");
  await events.return();
});

test("a stream of events or reports that is closed while it waits ends at once", async () => {
  const t = server.client();
  const job = await t.push("q");
  for (const stream of [t.events(), t.events({ signal: new AbortController().signal }), job.progress()]) {
    const waiting = stream.next();
    await sleep(100);
    // As a `Readable.from` of Node does when its reader goes away.
    assert.deepEqual(await within(stream.return()), { done: true, value: undefined });
    assert.deepEqual(await within(waiting), { done: true, value: undefined });
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
  }
  const stream = t.events();
  const waiting = stream.next();
  await sleep(100);
  await assert.rejects(within(stream.throw(new Error("enough"))), /enough/);
  assert.equal((await within(waiting)).done, true);
});

test("a gap is a value that says why, and the stream goes on", async () => {
  const t = server.client();
  const since = await t.lastEvent();
  await t.pushMany(Array.from({ length: 3000 }, (_, n) => ({ queue: "q", payload: n })));
  const [gap, event] = await take(t.events({ since }), 2);
  assert.deepEqual(
    [gap?.type, gap && "why" in gap && gap.why, gap && "after" in gap && gap.after],
    ["gap", "dropped", since],
  );
  assert.equal(event?.type, "job.pushed");
  const [other] = await take(t.events({ since: "ffff-1" }), 1);
  assert.equal(other?.type === "gap" && other.why, "restarted");
});

test("an abort ends the stream with its reason, and a wrong type is refused", async () => {
  const t = server.client();
  await assert.rejects(within(take(t.events({ signal: AbortSignal.timeout(50) }), 1)), { name: "TimeoutError" });
  await assert.rejects(within(take(t.events({ type: "job.nothing" as never }), 1)), { code: "invalid_field" });
});
