// Every message of a wrong call, as its user reads it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type ClientOptions, RetryIn, Snooze, Tenure, type WorkerOptions, type WrongOption } from "tenure";
import { runUntilIdle } from "tenure/testing";
import { folder } from "./servers.js";

// Nothing is called: each of these is refused before.
const t = new Tenure({ url: "http://127.0.0.1:9", retryFor: 0, logger: false });
const task = t.task("mail", {}, (_: { to: string }) => null);
const other = new Tenure({ url: "http://127.0.0.1:9", owner: "o", retryFor: 0, logger: false });
const others = other.task("their", {}, () => null);
// biome-ignore lint/suspicious/noExplicitAny: wrong options are the subject.
type Any = any;

const cases: [what: string, call: () => unknown, message: string][] = [
  [
    "an unknown option of the client",
    () => new Tenure({ nmespace: "x" } as ClientOptions),
    'Tenure has no option "nmespace" [wrong_option]; did you mean "namespace"?',
  ],
  [
    "a wrong address",
    () => new Tenure({ url: "ftp://h" }),
    "the address of a server is HOST:PORT, http://HOST:PORT, https://HOST or tenure://HOST [wrong_option]",
  ],
  [
    "an address with a password",
    () => new Tenure({ url: "http://me:secret@h" }),
    "the address of a server takes no user and no password; give the token as `token` or in TENURE_TOKEN [wrong_option]",
  ],
  [
    "a wrong token",
    () => new Tenure({ token: 5 as Any }),
    "token of Tenure must be text or a function, not 5 [wrong_option]",
  ],
  [
    "a certificate without a key",
    () => new Tenure({ clientCert: "-----BEGIN CERTIFICATE-----" }),
    "clientCert and clientKey go together; give both or none [wrong_option]",
  ],
  [
    "an authority that is not there",
    () => new Tenure({ ca: "/none.pem" }),
    'ca names the file "/none.pem", which cannot be read (ENOENT) [wrong_option]',
  ],
  [
    "an authority that is no PEM",
    () => new Tenure({ ca: join(folder, "no.pem") }),
    `ca names the file ${JSON.stringify(join(folder, "no.pem"))}, which is not PEM [wrong_option]`,
  ],
  [
    "a wrong retryFor",
    () => new Tenure({ retryFor: "1 minute" as Any }),
    'retryFor of Tenure is "1 minute"; give milliseconds as a number, or text such as "500ms", "90s" or "1h30m" [wrong_option]',
  ],
  [
    "a duration that is no whole number",
    () => t.push("q", null, { expiresAt: "1.5h" }),
    'expiresAt of push is "1.5h"; give milliseconds as a number, or text such as "500ms", "90s" or "1h30m" [wrong_option]',
  ],
  [
    "a misspelt option of a push",
    () => t.push("q", 1, { dealy: "5s" } as Any),
    'push has no option "dealy" [wrong_option]; did you mean "delay"?',
  ],
  [
    "an option in the server's spelling",
    () => t.push("q", 1, { run_at: "x" } as Any),
    'push has no option "run_at" [wrong_option]; did you mean "runAt"?',
  ],
  [
    "an option that is like none",
    () =>
      task.push({ to: "a" }, { zzz: 1 } as Any).catch((e) => {
        throw Object.assign(e, { message: e.message.slice(0, 63) });
      }),
    'push of task "mail" has no option "zzz" [wrong_option]; it has ',
  ],
  [
    "options that are no object",
    () => t.push("q", 1, "5s" as Any),
    'push takes its options as an object, not "5s" [wrong_option]',
  ],
  [
    "a priority out of range",
    () => t.push("q", 1, { priority: 101 }),
    "priority of push must be a whole number from -100 to 100, not 101 [wrong_option]",
  ],
  [
    "a wrong delay",
    () => t.push("q", 1, { delay: "5 minutes" as Any }),
    'delay of push is "5 minutes"; give milliseconds as a number, or text such as "500ms", "90s" or "1h30m" [wrong_option]',
  ],
  [
    "a moment without an offset",
    () => t.push("q", 1, { runAt: "2026-12-01 09:00" }),
    'runAt of push is "2026-12-01 09:00"; give a Date, or text with an offset such as "2026-12-01T09:55:00Z" [wrong_option]',
  ],
  [
    "labels that are no text",
    () => t.push("q", 1, { labels: { n: 5 } as Any }),
    "labels of push must be an object whose values are text, not an object [wrong_option]",
  ],
  [
    "a wrong choice",
    () => t.push("q", 1, { unique: { key: "k", onConflict: "replcae" as Any } }),
    'onConflict of unique of push must be "keep", "replace", "reject", not "replcae" [wrong_option]; did you mean "replace"?',
  ],
  [
    "a unique without a key",
    () => t.push("q", 1, { unique: {} as Any }),
    'unique of push has no "key" [wrong_option]; give the key alone, as text, or { key }',
  ],
  [
    "a misspelt retry",
    () => t.push("q", 1, { retry: { attempts: 3 } as Any }),
    'retry of push has no option "attempts" [wrong_option]; did you mean "maxAttempts"?',
  ],
  [
    "a wrong signal",
    () => t.push("q", 1, { signal: new AbortController() as Any }),
    "signal of push must be an AbortSignal, not an object [wrong_option]",
  ],
  ["a queue that is no text", () => t.push(5 as Any), "the queue of push must be text, not 5 [wrong_option]"],
  [
    "a payload that is no JSON",
    () => t.push("q", { at: [Number.NaN] }),
    "payload.at[0]: NaN is not JSON; use null or text [not_json]",
  ],
  [
    "a rate of another form",
    () => t.limits.set("l", { rate: "ten/s" as Any }),
    'rate of limits.set is "ten/s"; write it as "10/1s" or "100/5m" [wrong_option]',
  ],
  [
    "a misspelt limit",
    () => t.limits.set("l", { concurency: 5 } as Any),
    'limits.set has no option "concurency" [wrong_option]; did you mean "concurrency"?',
  ],
  [
    "a limit without a name",
    () => t.limits.get(""),
    'the name or id must be text that is not empty, not "" [wrong_option]',
  ],
  [
    "a need that is none",
    () => t.lease(["deploy" as Any]),
    'needs of lease[0] is "deploy"; a need is text such as "limit:NAME" or "pool:NAME#TAG" [wrong_option]',
  ],
  ["a short ttl", () => t.lock("l", { ttl: 500 }), "ttl of lock is 500ms; it must be from 1s to 1h [wrong_option]"],
  [
    "a task without a handler",
    () => t.task("x", {}, undefined as Any),
    'the handler of task "x" must be a function, not undefined [wrong_option]',
  ],
  ["a task without a name", () => t.task("", {}, () => 1), 'the name of a task must be text, not "" [wrong_option]'],
  [
    "a misspelt option of a task",
    () => t.task("x", { timout: "1m" } as Any, () => 1),
    'task "x" has no option "timout" [wrong_option]; did you mean "timeout"?',
  ],
  [
    "a schema that is none",
    () => t.task("x", { schema: { type: "object" } as Any }, () => 1),
    'schema of task "x" must be a schema of zod, valibot, arktype or another library of Standard Schema, not an object [wrong_option]',
  ],
  [
    "a batch without a size",
    () => t.task("x", { batch: {} as Any }, () => [] as Any),
    'batch of task "x" has no "max" [wrong_option]; say how many jobs a call of the handler takes at most',
  ],
  ["a worker without tasks", () => t.work([]), "tasks of work must be an array with at least one task [wrong_option]"],
  [
    "a worker of what is no task",
    () => t.work([{ name: "x" } as Any]),
    "tasks of work must be what client.task() makes, not an object [wrong_option]",
  ],
  [
    "a worker of another client's task",
    () => other.work([task]),
    'tasks of work must be of this client, and task "mail" is of another one [wrong_option]; make it by task() of this client, or use the client that made it',
  ],
  [
    "a test of another client's task",
    () => runUntilIdle(other, [task]),
    'tasks of runUntilIdle must be of this client, and task "mail" is of another one [wrong_option]; make it by task() of this client, or use the client that made it',
  ],
  [
    "a schedule of another client's task",
    () => other.schedule(task as Any, "@daily"),
    'the task of schedule must be of this client, and task "mail" is of another one [wrong_option]; make it by task() of this client, or use the client that made it',
  ],
  [
    "two tasks of one name",
    () => t.work([task, task]),
    'two tasks have the name "mail" in queue "mail" [wrong_option]; give one of them another name',
  ],
  [
    "a misspelt option of a worker",
    () => t.work([task], { concurency: 5 } as WorkerOptions),
    'work has no option "concurency" [wrong_option]; did you mean "concurrency"?',
  ],
  [
    "no concurrency",
    () => t.work([task], { concurrency: 0 }),
    "concurrency of work must be a whole number from 1 to 10000, not 0 [wrong_option]",
  ],
  [
    "a queue that no task has",
    () => t.work([task], { queues: ["other"] }),
    'no task of this worker has the queue "other" [wrong_option]; they have "mail"',
  ],
  [
    "a schedule without an owner",
    () => t.schedule(task, "@daily"),
    'the schedule of task "mail" needs an owner: a sync deletes schedules of the same owner that are stated no more [wrong_option]; name the program: new Tenure({ owner: "shop" })',
  ],
  [
    "a schedule without a timing",
    () => other.schedule(others as Any, {}),
    'the schedule of task "their" needs a cron expression such as "0 9 * * *", or { every: "15m" } [wrong_option]',
  ],
  [
    "a snooze of nothing",
    () => new Snooze("soon" as Any),
    'the time of Snooze is "soon"; give milliseconds as a number, or text such as "500ms", "90s" or "1h30m" [wrong_option]',
  ],
  [
    "a wrong RetryIn",
    () => new RetryIn(-1),
    'the time of RetryIn is -1; give milliseconds, 0 or more, or text such as "90s" [wrong_option]',
  ],
  [
    "an id for many",
    () => task.pushMany([], { id: "x" }),
    "pushMany takes no id: it would be that of each job [wrong_option]",
  ],
  [
    "a misspelt filter",
    () => t.jobs({ stat: "ready" } as Any),
    'jobs has no option "stat" [wrong_option]; did you mean "state"?',
  ],
  [
    "a misspelt filter of events",
    () => t.events({ types: "job.*" } as Any),
    'events has no option "types" [wrong_option]; did you mean "type"?',
  ],
  [
    "a short snooze",
    () => new Snooze("50ms"),
    "the time of Snooze is 50ms; it must be at least 100ms [wrong_option]; throw a Released to run at once",
  ],
  [
    "a token with a line break in it",
    () => new Tenure({ token: "geheim\ngeheim" }),
    "token has characters that no header can carry; use printable ASCII [wrong_option]",
  ],
  [
    "a namespace of other characters",
    () => new Tenure({ namespace: "Shop 1" }),
    "namespace of Tenure must be 1 to 63 of the characters a-z, 0-9 and -, the first of them not - [wrong_option]",
  ],
  [
    "a namespace that begins with a dash",
    () => new Tenure({ namespace: "-shop" }),
    "namespace of Tenure must be 1 to 63 of the characters a-z, 0-9 and -, the first of them not - [wrong_option]",
  ],
  [
    "a logger that is none",
    () => new Tenure({ logger: { log() {} } as Any }),
    "logger of Tenure must be an object with `info`, `warn` and `error`, or false, not an object [wrong_option]",
  ],
  [
    "an empty id of a job",
    () => t.job("").delete(),
    'the name or id must be text that is not empty, not "" [wrong_option]',
  ],
  [
    "jobs that are no array",
    () => t.pushAll({ queue: "q" } as Any),
    "the jobs of pushAll must be an array or another iterable, not an object [wrong_option]",
  ],
  [
    "many jobs that are no iterable",
    () => t.pushMany(5 as Any),
    "the jobs of pushMany must be an array or another iterable, not 5 [wrong_option]",
  ],
  [
    "many payloads that are no iterable",
    () => task.pushMany({ to: "ann" } as Any),
    "the payloads of pushMany must be an array or another iterable, not an object [wrong_option]",
  ],
  [
    "a misspelt option of pushMany",
    () => task.pushMany([], { onRefuse: () => {} } as Any),
    'pushMany of task "mail" has no option "onRefuse" [wrong_option]; did you mean "onRefused"?',
  ],
  [
    "resources that are not awaited",
    () => t.pools.sync("p", Promise.resolve([]) as Any),
    "the resources of pools.sync must be an array or another iterable, not an object [wrong_option]",
  ],
  [
    "needs that are not there",
    () => t.lease(undefined as Any),
    'needs of lease must be an array such as ["limit:site:example.com"], not undefined [wrong_option]',
  ],
  [
    "delays that are no array",
    () => t.push("q", 1, { retry: { delays: "5s" as Any } }),
    'delays of retry of push must be an array or another iterable, not "5s" [wrong_option]',
  ],
  [
    "more queues than a worker asks",
    () => t.work(Array.from({ length: 33 }, (_, n) => t.task(`t${n}`, {}, () => 1))),
    "a worker asks at most 32 queues, and these tasks have 33 [wrong_option]; start another worker for some of them",
  ],
  [
    "a schedule of a set without an id",
    () => t.schedules.sync("o", [{ every: "5m", job: {} } as Any]),
    'item 0 of schedules.sync has no "id" [wrong_option]; without one a sync could not tell it from a new one',
  ],
  [
    "a wrong reschedule",
    () => t.job("x").reschedule({ in: "5m" } as Any),
    'reschedule has no option "in" [wrong_option]; it has "runAt", "delay"',
  ],
];

writeFileSync(join(folder, "no.pem"), "hello");
for (const [what, call, message] of cases) {
  test(`${what} is refused`, async () => {
    await assert.rejects(
      async () => await call(),
      (error: WrongOption) => {
        assert.equal(error.message, message);
        assert.ok(error.code === "wrong_option" || error.code === "not_json");
        assert.ok(error.name === "WrongOption" || error.name === "NotJson");
        assert.equal(error.retryable, false);
        return true;
      },
    );
  });
}

test("a payload that no schema fits names all places, and no value", async () => {
  const { z } = await import("zod");
  const order = t.task(
    "order",
    { schema: z.object({ id: z.number(), lines: z.array(z.object({ sku: z.string() })) }) },
    () => 1,
  );
  await assert.rejects(order.push({ id: "hunter-2", lines: [{ sku: "a" }, {}] } as Any), (error: Error) => {
    assert.equal(
      error.message,
      'the payload does not fit the schema of task "order": payload.id: Invalid input: expected number, received string; payload.lines[1].sku: Invalid input: expected string, received undefined [schema_mismatch]; give a payload that fits, or change `schema` of the task',
    );
    return true;
  });
});

test("a store in Redis needs the package ioredis, or says that there is no server", async () => {
  const store = new Tenure({ url: "redis://me:hunter-2@127.0.0.1:9", retryFor: 0, logger: false });
  assert.equal(store.url, "redis://127.0.0.1:9");
  await assert.rejects(store.stats(), (error: Error) => {
    assert.match(
      error.message,
      /^redis:\/\/127\.0\.0\.1:9: cannot look up its servers: .+ \[unreachable\]; is a Redis there, and are its address and its password right\?$|^the package ioredis finds the servers of a store in Redis, and is not installed \[wrong_option\]; npm install ioredis, or give the address of a server as url$/,
    );
    return !error.message.includes("hunter-2");
  });
});
