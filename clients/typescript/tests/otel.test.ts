// Traces from the push to the run, as an SDK of OpenTelemetry collects them.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-node";
import { Final, type Instrumentation, type JobSpec, Released, RetryIn, Snooze, type Task, type Tenure } from "tenure";
import { otel } from "tenure/otel";
import { runUntilIdle } from "tenure/testing";
import { Server } from "./servers.js";
import { all, gate, Lines, until, within } from "./waiting.js";

const server = await Server.start();
const traced = () => server.client({ instrumentation: otel() });
const FOREIGN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

async function work(t: Tenure, ...tasks: Task<never, unknown>[]): Promise<void> {
  await within(t.work(tasks, { signals: false, untilEmpty: true }).done);
}

// Before there is an SDK.
test("without an SDK nothing is carried", async () => {
  const t = traced();
  const task = t.task("mail", {}, () => "sent");
  const job = await task.push(null);
  await work(t, task);
  assert.equal(await job.result(), "sent");
  assert.equal((await job.get()).traceparent, undefined);
});

const exporter = new InMemorySpanExporter();
test("an SDK is set up", () => {
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
});
beforeEach(() => exporter.reset());

function named(name: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => span.name === name);
}

function only(name: string): ReadableSpan {
  const found = named(name);
  assert.equal(found.length, 1, `spans named ${name}`);
  return found[0] as ReadableSpan;
}

function traceparent(span: ReadableSpan): string {
  const { traceId, spanId } = span.spanContext();
  return `00-${traceId}-${spanId}-01`;
}

/** Whether a span is a child of another, in the same trace. */
function isChild(span: ReadableSpan, parent: ReadableSpan): void {
  assert.equal(span.spanContext().traceId, parent.spanContext().traceId);
  assert.equal(span.parentSpanContext?.spanId, parent.spanContext().spanId);
}

const tracer = trace.getTracer("test");
const request = <T>(act: () => Promise<T>): Promise<T> =>
  tracer.startActiveSpan("request", (span) => act().finally(() => span.end()));

test("a trace goes from the request over the push to the run, and to what the run does", async () => {
  const t = traced();
  const next = t.task("next", {}, () => "done");
  const mail = t.task("mail", {}, async (_: null, ctx) => {
    tracer.startSpan("inside").end();
    await next.push(null);
    await ctx.push(next, null);
    return "sent";
  });
  const job = await request(() => mail.push(null));
  // The span that is current where a worker is started is no parent of its runs.
  await request(() => work(t, mail));
  const push = named("tenure.push").find((span) => span.attributes["messaging.destination.name"] === "mail");
  assert.ok(push);
  const run = only("tenure.run");
  isChild(push, named("request")[0] as ReadableSpan);
  isChild(run, push);
  isChild(only("inside"), run);
  const settle = only("tenure.settle");
  isChild(settle, run);
  assert.deepEqual([push.kind, run.kind, settle.kind], [SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.CLIENT]);
  assert.deepEqual(settle.attributes, {
    "messaging.system": "tenure",
    "messaging.operation.type": "settle",
    "messaging.batch.message_count": 1,
  });
  assert.deepEqual(push.attributes, {
    "messaging.system": "tenure",
    "messaging.operation.type": "send",
    "messaging.destination.name": "mail",
  });
  const { fence: _, ...fixed } = { ...run.attributes, fence: run.attributes["tenure.fence"] };
  assert.deepEqual(fixed, {
    "messaging.system": "tenure",
    "messaging.operation.type": "process",
    "messaging.destination.name": "mail",
    "messaging.message.id": job.id,
    "tenure.kind": "mail",
    "tenure.attempt": 1,
    "tenure.fence": run.attributes["tenure.fence"],
    "tenure.outcome": "succeeded",
  });
  assert.equal((await job.get()).traceparent, traceparent(push));

  const pushed = named("tenure.push").find((span) => span !== push) as ReadableSpan;
  isChild(pushed, run);
  await work(t, next);
  const runs = named("tenure.run").filter((span) => span !== run);
  const parents = runs.map((span) => span.parentSpanContext?.spanId).sort();
  // The job that goes along with the end of the run has no push of its own.
  assert.deepEqual(parents, [pushed.spanContext().spanId, run.spanContext().spanId].sort());
});

test("a settle of several runs is linked to each", async () => {
  const t = traced();
  const task = t.task("mail", {}, () => null);
  for (let n = 0; n < 20; n++) await task.push(null);
  await t.work([task], { signals: false, untilEmpty: true, concurrency: 20 }).done;
  const runs = new Set(named("tenure.run").map((run) => run.spanContext().spanId));
  assert.equal(runs.size, 20);
  const settled = named("tenure.settle").flatMap((settle) => {
    const count = settle.attributes["messaging.batch.message_count"];
    if (count === 1) return [settle.parentSpanContext?.spanId];
    assert.deepEqual([settle.links.length, settle.parentSpanContext], [count, undefined]);
    return settle.links.map((link) => link.context.spanId);
  });
  assert.deepEqual([settled.length, new Set(settled)], [20, runs]);
});

test("a trace that another program pushed is continued, and one that a push names stays", async () => {
  const t = traced();
  const task = t.task("mail", {}, () => null);
  await server.client({ namespace: t.namespace }).push("mail", null, { kind: "mail", traceparent: FOREIGN });
  await task.push(null, { traceparent: FOREIGN });
  await work(t, task);
  for (const run of named("tenure.run")) {
    assert.equal(run.spanContext().traceId, FOREIGN.slice(3, 35));
    assert.equal(run.parentSpanContext?.spanId, FOREIGN.slice(36, 52));
  }
  assert.equal(named("tenure.run").length, 2);
});

test("a failed run is an error that shows no content; an end that the handler chose is none", async () => {
  const t = traced();
  const ends: Record<string, () => unknown> = {
    fails: () => {
      throw new RangeError("geheim");
    },
    final: () => {
      throw new Final("geheim");
    },
    again: () => {
      throw new RetryIn("1h", "geheim");
    },
    snoozes: () => {
      throw new Snooze("1h");
    },
    released: () => {
      throw new Released();
    },
    unwritable: () => 5n,
  };
  const seen: Record<string, unknown> = {};
  for (const [name, handler] of Object.entries(ends)) {
    const task = t.task(name, { retry: 1 }, handler);
    await task.push({ text: "geheim" });
    const worker = t.work([task], { signals: false });
    await until(() => named("tenure.run").length > 0);
    await worker.stop();
    const [{ attributes, status, events } = assert.fail()] = named("tenure.run");
    seen[name] = [attributes["tenure.outcome"], status.code, status.message, events.length];
    assert.ok(!JSON.stringify(exporter.getFinishedSpans().map(content)).includes("geheim"));
    exporter.reset();
  }
  const { ERROR, UNSET } = SpanStatusCode;
  assert.deepEqual(seen, {
    fails: ["failed", ERROR, "RangeError", 0],
    final: ["failed", ERROR, "Final", 0],
    again: ["failed", ERROR, "RetryIn", 0],
    snoozes: ["snoozed", UNSET, undefined, 0],
    released: ["released", UNSET, undefined, 0],
    unwritable: ["failed", ERROR, undefined, 0],
  });
});

const content = ({ name, attributes, status, events }: ReadableSpan) => ({ name, attributes, status, events });

test("a lost lease and a job without a handler are errors", async () => {
  const t = traced();
  const begun = gate();
  const task = t.task("t", {}, (_: null, { signal }) => {
    begun.open();
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  await task.push(null);
  const worker = t.work([task], { signals: false, ttl: "1s" });
  await within(begun.promise);
  for (const { lease } of await all(t.leases())) await t.endLease(lease);
  await until(() => named("tenure.run").length > 0);
  const stopped = worker.stop();
  const [lost = assert.fail()] = named("tenure.run");
  assert.deepEqual([lost.attributes["tenure.outcome"], lost.status.message], ["lost", "LeaseLost"]);
  await stopped;
  exporter.reset();

  await t.push("u", null, { kind: "unknown", retry: 1 });
  await work(
    t,
    t.task("u", {}, () => null),
  );
  assert.equal(only("tenure.run").status.code, SpanStatusCode.ERROR);
});

test("pushes of several jobs are one span for each call, and all jobs carry it", async () => {
  const t = traced();
  const jobs = await t.pushAll([{ queue: "a" }, { queue: "a", traceparent: FOREIGN }]);
  await t.pushAll([{ queue: "a" }, { queue: "b" }]);
  const task = t.task("many", {}, () => null);
  await task.pushMany(Array.from({ length: 1500 }, () => null));
  assert.deepEqual(
    named("tenure.push").map(({ attributes }) => [
      attributes["messaging.destination.name"],
      attributes["messaging.batch.message_count"],
    ]),
    [
      ["a", 2],
      [undefined, 2],
      ["many", 1000],
      ["many", 500],
    ],
  );
  const [first = assert.fail()] = named("tenure.push");
  assert.equal((await jobs[0]?.get())?.traceparent, traceparent(first));
  assert.equal((await jobs[1]?.get())?.traceparent, FOREIGN);
  const carried = new Set<string | undefined>();
  for await (const job of t.jobs({ queue: "many", full: true })) carried.add(job.traceparent);
  assert.deepEqual(carried, new Set(named("tenure.push").slice(2).map(traceparent)));
});

test("pushes that go together in one call have a span and a trace each", async () => {
  const t = traced();
  const task = t.task("t", {}, () => null);
  const jobs = await Promise.all([1, 2, 3].map(() => request(() => task.push(null))));
  const carried = await Promise.all(jobs.map(async (job) => (await job.get()).traceparent));
  assert.deepEqual(new Set(carried), new Set(named("tenure.push").map(traceparent)));
  assert.equal(new Set(named("tenure.push").map((span) => span.spanContext().traceId)).size, 3);
});

test("a refused push is an error, and rejects as it does without a trace", async () => {
  const t = traced();
  const job = { queue: "q", unique: { key: "k", onConflict: "reject" as const } };
  await t.pushAll([job]);
  await assert.rejects(t.pushAll([job]), { code: "unique_conflict" });
  const bad = t.pushMany([{ queue: "q" }, job] as JobSpec[]);
  await assert.rejects(bad, { code: "unique_conflict", index: 1 });
  assert.deepEqual(
    named("tenure.push").map(({ status }) => [status.code, status.message]),
    [
      [SpanStatusCode.UNSET, undefined],
      [SpanStatusCode.ERROR, "Conflict"],
      [SpanStatusCode.ERROR, "Conflict"],
    ],
  );
});

test("each job of a batch has its run in its own trace", async () => {
  const t = traced();
  let current: string | undefined;
  const task = t.task("t", { retry: 1, batch: { max: 2, wait: "5s" } }, (items: readonly { payload: number }[]) => {
    current = trace.getSpan(context.active())?.spanContext().spanId;
    return items.map(({ payload }) => (payload === 1 ? new Error("no") : "yes"));
  });
  await task.push(1);
  await task.push(2);
  await work(t, task);
  const runs = named("tenure.run");
  for (const run of runs) {
    isChild(
      run,
      named("tenure.push").find((push) => push.spanContext().spanId === run.parentSpanContext?.spanId) as never,
    );
  }
  assert.deepEqual(runs.map((run) => run.attributes["tenure.outcome"]).sort(), ["failed", "succeeded"]);
  assert.ok(runs.some((run) => run.spanContext().spanId === current));
  assert.equal(new Set(runs.map((run) => run.spanContext().traceId)).size, 2);
});

test("runs of runUntilIdle have spans, too", async () => {
  const t = traced();
  const task = t.task("t", { retry: 1 }, () => {
    throw new TypeError("no");
  });
  await task.push(null);
  await runUntilIdle(t, [task], { throws: false });
  isChild(only("tenure.run"), only("tenure.push"));
  isChild(only("tenure.settle"), only("tenure.run"));
  assert.equal(only("tenure.run").status.message, "TypeError");
});

test("a job without instrumentation goes on with the trace of its push in what it pushes with its end", async () => {
  const t = server.client();
  const next = t.task("next", {}, () => null);
  const task = t.task("t", {}, async (_: null, ctx) => await ctx.push(next, null));
  const job = await task.push(null, { traceparent: FOREIGN });
  await work(t, task);
  assert.equal((await t.job((await job.result()) as string).get()).traceparent, FOREIGN);
});

test("an instrumentation that fails loses nothing, and the log says so", async () => {
  const logger = new Lines();
  const fail = () => {
    throw new Error("no collector");
  };
  const kinds: Instrumentation[] = [
    { push: fail, run: fail, settle: fail },
    {
      push: async (_, send) => send().then(fail),
      run: async (_, handle) => handle().then(fail),
      settle: async (_, send) => send().then(fail),
    },
    // It swallows errors and calls nothing.
    { push: async (_, send) => void send().catch(() => {}), run: async () => {}, settle: async () => {} },
  ];
  for (const instrumentation of kinds) {
    const t = server.client({ instrumentation, logger });
    let runs = 0;
    const task = t.task("t", { retry: 1 }, (end: string) => {
      runs++;
      if (end === "fails") throw new Error("its own");
      return end;
    });
    const job = await task.push("well");
    await assert.rejects(t.pushAll([{ queue: "q", priority: 1, delay: "1h", runAt: new Date() }]), { code: /./ });
    const failing = await task.push("fails");
    await work(t, task);
    assert.equal(await job.result(), "well");
    await assert.rejects(failing.result(), /its own/);
    assert.equal(runs, 2);
  }
  assert.ok(logger.has("error the instrumentation failed: Error: no collector"));
  assert.throws(() => server.client({ instrumentation: otel as never }), /instrumentation of Tenure must be an object/);
});
