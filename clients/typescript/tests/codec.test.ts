// Codecs: what the server sees of payloads, results and progress, and what opens them again.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type ClientOptions, type Codec, CodecError, Snooze, type Task, type Tenure } from "tenure";
import { runUntilIdle } from "tenure/testing";
import { z } from "zod";
import { open, seal } from "../dist/codec.js";
import { aesGcm } from "./aes-gcm.js";
import { blocks } from "./pages.js";
import { Server } from "./servers.js";
import { CLEAR, NEW, OLD, toy, VECTOR } from "./toy-codec.js";
import { all, until, within } from "./waiting.js";

const server = await Server.start();
const KEYS = `2:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=,1:${"AQEB".repeat(10)}AQE=`;
const MAIL = { queue: "mail", kind: "send" };

/** A client with a codec, and one without of the same namespace. */
function both(codec: Codec = toy(NEW, OLD), options: ClientOptions = {}): { t: Tenure; bare: Tenure } {
  const bare = server.client();
  return { bare, t: server.client({ namespace: bare.namespace, codec, ...options }) };
}

const mail = (t: Tenure): Task<{ to: string }, { sent: string }> =>
  t.task("send", { queue: "mail", schema: z.object({ to: z.string() }) }, ({ to }, ctx) => {
    ctx.progress({ "sent to": to });
    return { sent: to };
  });

/** All that the server answers of a job. */
const raw = async (bare: Tenure, id: string) => JSON.stringify(await bare.job(id).get());

test("the clients agree on the form", async () => {
  assert.deepEqual(JSON.parse(await seal(toy(NEW, OLD), JSON.stringify(CLEAR), "payload", MAIL)), VECTOR);
  assert.deepEqual(await open(toy(OLD, NEW), VECTOR, "payload"), CLEAR);
});

test("the codec of the guide opens what the other clients sealed", async () => {
  const [page] = blocks("docs/guides/encrypted-payloads.md").filter(({ file }) => file === "codec.ts");
  const tested = readFileSync(new URL("../tests/aes-gcm.ts", import.meta.url), "utf8");
  assert.equal(page?.code.split("\n").slice(1).join("\n"), tested.split("\n").slice(1).join("\n"));
  // What the Python codec of the guide made with the first key; it stands in the tests of that client, too.
  const made =
    "ArDexLQDDuL9ggQw3P0Djody7owzbybQ4m2j7F2+IO6s0djAXifDsE1MHlgRAeXXw3n2Fh8V4za6lA0Hn590lZvRLag/tjzbjzAsOZNMYljg";
  const codec = await aesGcm(KEYS);
  assert.deepEqual(await open(codec, { ...VECTOR, codec: "aes-gcm", $sealed: made }, "payload"), CLEAR);
  const old = await aesGcm(KEYS.split(",")[1] as string);
  for (const each of [codec, old]) {
    const sealed = JSON.parse(await seal(each, JSON.stringify(CLEAR), "payload", MAIL));
    assert.deepEqual(await open(codec, sealed, "payload"), CLEAR);
    await assert.rejects(open(codec, sealed, "result"), { code: "codec_failed" });
    await assert.rejects(open(codec, { ...sealed, kind: "resend" }, "payload"), { code: "codec_failed" });
  }
  const sealed = JSON.parse(await seal(codec, "1", "payload", MAIL));
  await assert.rejects(open(old, sealed, "payload"), /there is no key 2 here/);
});

test("the server never sees a value", async () => {
  const { t, bare } = both(await aesGcm(KEYS));
  const send = mail(t);
  await using worker = t.work([send], { signals: false });
  const job = await send.push({ to: "ann@example.com" });
  assert.deepEqual(await within(job.result()), { sent: "ann@example.com" });
  assert.deepEqual(await within(all(job.progress())), [{ "sent to": "ann@example.com" }]);
  const seen = await raw(bare, job.id);
  assert.ok(!seen.includes("ann@") && seen.split("$sealed").length === 4, seen);
  const shown = await t.job(job.id).get();
  assert.deepEqual(shown.payload, { to: "ann@example.com" });
  assert.deepEqual([shown.result, shown.progress], [{ sent: "ann@example.com" }, { "sent to": "ann@example.com" }]);
  assert.deepEqual((await all(t.jobs({ full: true })))[0]?.payload, { to: "ann@example.com" });
  await worker.stop();
});

test("every way of a push is sealed", async () => {
  const { t, bare } = both(undefined, { owner: "o" });
  const payload = { n: "secret" };
  await t.push("q", payload);
  await t.pushAll([{ queue: "q", payload }, { queue: "q" }]);
  await t.pushMany([1, 2, 3].map(() => ({ queue: "q", payload })));
  await Promise.all([t.push("q", payload), t.push("q", payload)]);
  await t.schedules.set("s", { every: "1h", job: { queue: "q", payload } });
  await t.schedules.change("s", { job: { queue: "q", kind: "k", payload } });
  await t.schedules.runNow("s");
  await t.schedules.sync("p", [{ id: "s2", every: "1h", job: { payload } }]);
  await t.schedules.runNow("s2");
  const send = mail(t);
  t.schedule(send, { every: "1h" }, { payload: { to: "secret" } });
  await t.syncSchedules();
  await t.schedules.runNow("o.send");
  await send.pushMany([{ to: "secret" }]);
  const jobs = await all(bare.jobs({ full: true }));
  assert.equal(jobs.length, 12);
  assert.ok(!JSON.stringify([jobs, await all(bare.schedules.list({ full: true }))]).includes("secret"));
  const clear = (await all(t.jobs({ full: true }))).map((job) => job.payload);
  assert.equal(clear.filter((each) => JSON.stringify(each).includes("secret")).length, 11);
});

test("follow-ups and results of parents are sealed and opened, also those that are not awaited", async () => {
  const { t, bare } = both();
  const found: unknown[] = [];
  const report = t.task("report", {}, async (name: string, ctx) => {
    for await (const parent of ctx.parents()) found.push("result" in parent && parent.result);
    return name;
  });
  const first = t.task("first", {}, (_: null, ctx) => {
    void ctx.push(report, "secret one", { after: [ctx.job.id] });
    void ctx.push({ queue: "report", kind: "report", payload: "secret two" });
    return "secret result";
  });
  await first.push(null);
  const runs = await runUntilIdle(t, [first, report]);
  assert.deepEqual(runs.map((run) => run.result).sort(), ["secret one", "secret result", "secret two"]);
  assert.deepEqual(found, ["secret result"]);
  const jobs = await all(bare.jobs({ full: true }));
  assert.ok(jobs.length === 3 && !JSON.stringify(jobs).includes("secret"));
});

test("a batch opens each payload, and one that cannot be opened fails alone", async () => {
  const { t, bare } = both();
  const schema = z.string();
  const send = t.task("send", { queue: "mail", schema, batch: { max: 3, wait: "50ms" } }, (items) =>
    items.map(({ payload }) => payload.toUpperCase()),
  );
  const jobs = [await send.push("a"), await send.push("b")];
  const odd = await bare.push("mail", { ...VECTOR, kind: "other" }, { kind: "send" });
  await using _worker = t.work([send], { signals: false });
  assert.deepEqual(await within(Promise.all(jobs.map((job) => job.result()))), ["A", "B"]);
  await assert.rejects(within(odd.result()), /was sealed for the kind "other" in queue "mail", and not for "send"/);
});

test("a changed payload is sealed for its job", async () => {
  const { t, bare } = both();
  const send = mail(t);
  const job = await send.push({ to: "bob" }, { unique: "k" });
  const changed = await t.job("key:k").change({ payload: { to: "ann@example.com" } });
  assert.deepEqual(changed.payload, { to: "ann@example.com" });
  assert.ok(!(await raw(bare, job.id)).includes("ann@"));
  assert.deepEqual((await runUntilIdle(t, [send]))[0]?.result, { sent: "ann@example.com" });
});

test("clear values are taken as they are, and a read-only codec sends them", async () => {
  const { t, bare } = both();
  await bare.push("mail", { to: "ann" }, { kind: "send" });
  assert.deepEqual((await runUntilIdle(t, [mail(t)]))[0]?.result, { sent: "ann" });
  const job = await mail(bare).push({ to: "bob" });
  await runUntilIdle(bare, [mail(bare)]);
  assert.deepEqual(await t.job(job.id).result(), { sent: "bob" });
  const reader = server.client({ namespace: bare.namespace, codec: { ...toy(OLD, NEW), readOnly: true } });
  const read = await mail(reader).push({ to: "cas" });
  assert.deepEqual((await bare.job(read.id).get()).payload, { to: "cas" });
  await runUntilIdle(t, [mail(t)]);
  assert.ok((await raw(bare, read.id)).includes("$sealed"));
  assert.deepEqual(await read.result(), { sent: "cas" });
});

const wrong: [Codec | undefined, string, RegExp][] = [
  [undefined, "no_codec", /sealed by the codec "toy", and this client has no codec/],
  [{ ...toy(NEW), name: "other" }, "wrong_codec", /this client has "other"/],
  [toy(OLD), "codec_failed", /there is no key 2 here/],
  [toy([2, "of somebody"]), "codec_failed", /the sum is wrong/],
];
for (const [codec, code, words] of wrong) {
  test(`a value that cannot be opened is a final failure: ${words.source}`, async () => {
    const { t, bare } = both();
    const client = server.client({ namespace: bare.namespace, ...(codec && { codec }) });
    const never = client.task("send", { queue: "mail" }, () => assert.fail("it must not run"));
    const job = await mail(t).push({ to: "ann" });
    const [ran] = await runUntilIdle(client, [never], { throws: false });
    assert.equal(ran?.outcome, "failed");
    assert.match(ran.error ?? "", words);
    assert.ok(ran.error?.includes(`[${code}]; `));
    const { state, attempt } = await bare.job(job.id).get();
    assert.deepEqual([state, attempt], ["failed", 1]);

    const done = await mail(t).push({ to: "ann" });
    await runUntilIdle(t, [mail(t)]);
    await assert.rejects(client.job(done.id).result(), (error: CodecError) => {
      assert.ok(error instanceof CodecError && error.code === code && error.hint);
      assert.match(error.message, words);
      return true;
    });
  });
}

test("no error quotes a value", async () => {
  const { t, bare } = both({ ...toy(NEW), decode: () => new TextEncoder().encode("secret, and no JSON") });
  const job = await mail(t).push({ to: "ann" });
  await runUntilIdle(t, [mail(t)], { throws: false });
  assert.match((await bare.job(job.id).get()).error ?? "", /did not open the payload: TypeError: it returned no JSON/);
});

test("a codec may ask for time", async () => {
  const { t, bare } = both();
  const away: Codec = { ...toy(NEW), decode: () => Promise.reject(new Snooze("1h")) };
  const client = server.client({ namespace: bare.namespace, codec: away });
  const job = await mail(t).push({ to: "ann" });
  assert.equal((await runUntilIdle(client, [mail(client)]))[0]?.outcome, "snoozed");
  assert.equal((await bare.job(job.id).get()).state, "scheduled");
});

test("a value that cannot be sealed is not sent", async () => {
  const { t, bare } = both({ ...toy(NEW), encode: () => 7 as never });
  await assert.rejects(
    t.push("q", 1),
    /^CodecError: the codec "toy" did not seal the payload: .*must return a Uint8Array/,
  );
  assert.equal((await all(bare.jobs())).length, 0);
  // A report that could not be sealed is not lost in silence, and neither is a result.
  await bare.push("mail", { to: "ann" }, { kind: "send" });
  const [ran] = await runUntilIdle(t, [mail(t)], { throws: false });
  assert.match(ran?.error ?? "", /did not seal the progress/);
  await bare.push("plain", null, { kind: "plain" });
  const [plain] = await runUntilIdle(t, [t.task("plain", {}, () => 1)], { throws: false });
  assert.match(plain?.error ?? "", /its result cannot be stored: .*did not seal the result/);
  assert.throws(
    () => server.client({ codec: { name: "x" } as never }),
    /must be an object with a `name`, `encode` and/,
  );
});

test("the last report goes with the outcome, sealed", async () => {
  const { t, bare } = both({ ...toy(NEW), encode: async (...value) => toy(NEW).encode(...value) });
  const task = t.task("t", { retry: 1 }, (_: null, ctx) => {
    ctx.progress("first");
    ctx.progress("last");
    throw new Error("no");
  });
  const job = await task.push(null);
  await using _worker = t.work([task], { signals: false });
  await until(async () => (await bare.job(job.id).get()).state === "failed");
  assert.equal((await t.job(job.id).get()).progress, "last");
});

test("needs from a sealed payload are refused with advice", async () => {
  const { t } = both();
  await t.limits.set("site:*", { concurrency: 1 });
  await t.queues.set("crawl", { needs: [{ limit: "site:{payload.host}" }] });
  const advice = { code: "invalid_field", hint: /^the payload is sealed/ };
  const job = { queue: "crawl", payload: { host: "a" } };
  await assert.rejects(t.push("crawl", job.payload), advice);
  await assert.rejects(t.pushAll([job]), advice);
  await assert.rejects(t.pushMany([job]), advice);
  await assert.rejects(t.schedules.set("s", { every: "1h", job }), advice);
  await t.push("crawl", job.payload, { needs: [{ limit: "site:a" }] });
});
