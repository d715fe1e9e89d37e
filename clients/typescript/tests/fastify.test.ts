// The plugin in a real Fastify.
import assert from "node:assert/strict";
import { get } from "node:http";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import Fastify, { type FastifyInstance } from "fastify";
import {
  Busy,
  JobFailed,
  NotFinished,
  NotGranted,
  NotPermitted,
  OutcomeUnknown,
  Tenure,
  type TenureError,
  Unreachable,
  WrongOption,
} from "tenure";
import plugin, { problemOf } from "tenure/fastify";
import { z } from "zod";
import { Server } from "./servers.js";
import { gate, Lines, until, within } from "./waiting.js";

const server = await Server.start();

/** An app whose log lines are kept. */
function appOf(lines: Lines = new Lines()): FastifyInstance {
  const level = (name: "info" | "warn" | "error") => (first: unknown, second?: string) =>
    lines[name](second ?? String(first));
  const logger = {
    level: "info",
    info: level("info"),
    warn: level("warn"),
    error: level("error"),
    fatal: level("error"),
    debug: () => {},
    trace: () => {},
    silent: () => {},
    child: () => logger,
  };
  return Fastify({ loggerInstance: logger }) as unknown as FastifyInstance;
}

test("a route pushes, the worker of the app runs it, and close drains", async () => {
  const lines = new Lines();
  const t = server.client();
  const signals = () => process.listenerCount("SIGTERM");
  const before = signals();
  const [begun, go] = [gate(), gate()];
  const render = t.task("reports", { schema: z.object({ month: z.string() }) }, async ({ month }) => {
    if (month === "2030-12") begun.open();
    await go.promise;
    return `report of ${month}`;
  });
  const app = appOf(lines);
  await app.register(plugin, { client: t, tasks: [render], worker: { concurrency: 2 } });
  assert.equal(app.tenure, t);
  app.register(async (inner) => {
    inner.post<{ Body: { month: string } }>("/reports", async ({ body }, reply) => {
      assert.equal(inner.tenure, t);
      return reply.code(202).send({ job: (await render.push(body)).id });
    });
  });
  // No worker before the app is ready.
  const early = await render.push({ month: "2030-11" });
  assert.equal((await early.get()).state, "ready");
  const answer = await app.inject({ method: "POST", path: "/reports", payload: { month: "2030-12" } });
  assert.equal(answer.statusCode, 202);
  const job = t.job(answer.json().job);
  // Not only granted: a grant that is on its way to the worker when it drains is given back.
  await within(begun.promise);
  assert.equal(signals(), before);
  const closed = app.close();
  setTimeout(go.open, 300);
  await within(closed);
  assert.equal(await job.result({ wait: 0 }), "report of 2030-12");
  assert.ok(lines.has("takes jobs of reports, 2 at once"));
  assert.ok(lines.has("attempt 1 succeeded"));
  // A client that was given goes on.
  await (await t.lock("l")).release();
});

test("a request that waits for its job is answered before the worker ends", async () => {
  const t = server.client();
  const begun = gate();
  const task = t.task("t", {}, async () => {
    begun.open();
    await sleep(300);
    return "done";
  });
  const app = appOf();
  app.register(plugin, { client: t, tasks: [task] });
  app.get("/", async () => (await task.push(null)).result({ wait: "10s" }));
  const answer = app.inject("/");
  await within(begun.promise);
  await within(app.close());
  assert.equal((await answer).body, "done");
});

test("the worker takes no job while the server still closes", async () => {
  const t = server.client();
  const [begun, go] = [gate(), gate()];
  const task = t.task("t", {}, () => null);
  const app = appOf();
  app.register(plugin, { client: t, tasks: [task] });
  app.get("/", async () => {
    begun.open();
    await go.promise;
    return "done";
  });
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  const ended = new Promise((resolve) => get(url, { agent: false }, (answer) => answer.resume().once("end", resolve)));
  await within(begun.promise);
  const closed = app.close();
  await sleep(300);
  const job = await task.push(null);
  await sleep(500);
  assert.equal((await job.get()).state, "ready");
  go.open();
  await within(Promise.all([closed, ended]));
});

test("a client that the plugin makes has its options, and ends with the app", async () => {
  const lines = new Lines();
  const app = appOf(lines);
  await app.register(plugin, { client: { url: server.url, namespace: "own" } });
  await app.ready();
  assert.deepEqual([app.tenure.namespace, app.tenure instanceof Tenure], ["own", true]);
  await app.tenure.push("nobody");
  assert.ok(lines.has('warn no worker has asked for queue "nobody"'));
  const { tenure } = app;
  await app.close();
  await assert.rejects(tenure.lock("l"), /the client is closed/);
});

test("a wrong option is found when the app is made ready", async () => {
  const misspelt = appOf().register(plugin, { client: { nmespace: "x" } as never });
  await assert.rejects(async () => await misspelt, /Tenure has no option "nmespace"/);
  const empty = appOf().register(plugin, { client: server.client(), tasks: [] });
  await assert.rejects(async () => await empty.ready(), WrongOption);
});

test("a worker that the server refuses does not keep the app from closing", async () => {
  const guarded = await Server.start("memory:", [], { TENURE_TOKEN: "a".repeat(40) });
  const lines = new Lines();
  const t = guarded.client({ token: "b".repeat(40) });
  const app = appOf(lines);
  app.register(plugin, { client: t, tasks: [t.task("t", {}, () => null)] });
  await app.ready();
  await until(() => lines.has("error the worker ends:"));
  await within(app.close());
  await guarded.kill();
});

test("errors of calls are problems", async () => {
  const t = server.client();
  const lines = new Lines();
  const app = appOf(lines);
  await app.register(plugin, { client: t });
  const mail = t.task("mail", { schema: z.object({ to: z.string() }) }, () => null);
  const unique = { key: "k", onConflict: "reject" as const };
  await t.push("q", null, { unique });
  const away = new Tenure({ url: "http://127.0.0.1:1", retryFor: 0, logger: false });
  const routes: Record<string, () => Promise<unknown>> = {
    none: () => t.job("none").get(),
    conflict: () => t.push("q", null, { unique }),
    mismatch: () => mail.push({ to: 5 as never }),
    away: () => away.stats(),
    invalid: () => t.push("q", null, { priority: 1, labels: { "": "x" } }),
    other: () => Promise.reject(Object.assign(new Error("its own"), { statusCode: 418 })),
  };
  for (const [name, call] of Object.entries(routes)) app.get(`/${name}`, call);
  const answers: Record<string, unknown> = {};
  for (const name of Object.keys(routes)) {
    const { statusCode, headers, body } = await app.inject(`/${name}`);
    answers[name] = [statusCode, headers["content-type"], headers["retry-after"], JSON.parse(body)];
  }
  const type = "application/problem+json; charset=utf-8";
  assert.deepEqual(answers, {
    none: [
      404,
      type,
      undefined,
      { status: 404, title: "Not Found", code: "job_not_found", detail: (answers["none"] as never)[3]["detail"] },
    ],
    conflict: [
      409,
      type,
      undefined,
      { status: 409, title: "Conflict", code: "unique_conflict", detail: (answers["conflict"] as never)[3]["detail"] },
    ],
    mismatch: [
      422,
      type,
      undefined,
      {
        status: 422,
        title: "Unprocessable Content",
        code: "schema_mismatch",
        detail: (answers["mismatch"] as never)[3]["detail"],
        issues: [{ path: "payload.to", message: "Invalid input: expected string, received number" }],
      },
    ],
    away: [
      503,
      type,
      "5",
      { status: 503, title: "Service Unavailable", code: "unreachable", detail: "try again later" },
    ],
    // The program's own fault, of which its caller hears nothing.
    invalid: [500, type, undefined, { status: 500, title: "Internal Server Error" }],
    other: [
      418,
      "application/json; charset=utf-8",
      undefined,
      { statusCode: 418, error: "I'm a Teapot", message: "its own" },
    ],
  });
  assert.ok(lines.has("error http://127.0.0.1:1: connection refused"));
  await app.close();
});

test("each kind of error has its status", () => {
  const kinds: [TenureError, number, number | undefined][] = [
    [new Busy("queue_full", "x", { retryAfter: 1200 }), 503, 2],
    [new Busy("overloaded", "x"), 503, 5],
    [new OutcomeUnknown("outcome_unknown", "x"), 503, 5],
    [new Unreachable("unreachable", "x"), 503, 5],
    [new NotGranted("not_granted", "x"), 503, 5],
    [new NotFinished("not_finished", "x"), 504, undefined],
    [new NotPermitted("unauthorized", "x", { status: 401 }), 500, undefined],
    [new JobFailed("job_failed", "x"), 500, undefined],
    [new WrongOption("wrong_option", "x"), 500, undefined],
  ];
  for (const [error, status, retryAfter] of kinds) {
    const problem = problemOf(error);
    assert.deepEqual([problem?.status, problem?.retryAfter, problem?.body.status], [status, retryAfter, status]);
  }
  assert.equal(problemOf(new Error("x")), undefined);
});

test("an error handler of the app gets the other errors, and all with errors: false", async () => {
  const t = server.client();
  for (const [errors, none, other] of [
    [true, 404, 499],
    [false, 499, 499],
  ] as const) {
    const app = appOf();
    app.setErrorHandler((_error, _request, reply) => reply.code(499).send("own"));
    await app.register(async (api) => {
      await api.register(plugin, { client: t, errors });
      api.get("/none", () => t.job("none").get());
      api.get("/other", () => Promise.reject(new Error("x")));
    });
    const answers = [await app.inject("/none"), await app.inject("/other")];
    assert.deepEqual(
      answers.map((answer) => answer.statusCode),
      [none, other],
    );
    await app.close();
  }
});
