// The packed package in an empty project: a worker runs a job whose handler blocks for longer than its ttl.
import assert from "node:assert/strict";
import { Final, SchemaMismatch, TenureError } from "tenure";
import { runUntilIdle, startServer } from "tenure/testing";

const server = await startServer({ clock: false });
const t = server.client();
const task = t.task("blocks", {}, (ms) => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  return "done";
});
// On an overloaded machine the heartbeat thread got a processor up to 1.2 s late. A ttl of 4 s bears twice that.
const job = await task.push(6000);
const worker = t.work([task], { ttl: "4s", signals: false });
assert.equal(await job.result({ wait: "60s" }), "done");
await worker.stop();
assert.equal((await job.get()).attempt, 1);
assert.equal((await job.get()).lost, 0);
await task.push(0);
assert.equal((await runUntilIdle(t, [task])).length, 1);
// A minifier shortens the names of classes, and must not shorten those of errors.
await assert.rejects(t.job("none").get(), (error) => error instanceof TenureError && error.name === "NotFound");
assert.equal(new Final("x").name, "Final");
assert.equal(new SchemaMismatch("x", [], "y").name, "SchemaMismatch");
const bad = t.task("bad", { retry: 1 }, () => {
  throw new RangeError("no such page");
});
const failed = await bad.push(null);
await runUntilIdle(t, [bad], { throws: false });
assert.match((await failed.get()).error, /^RangeError: no such page\n {4}at .*runs\.mjs/);
// An adapter names the package that it takes, and the rest of the package needs none.
await assert.rejects(import("tenure/nest"), /@nestjs\/co/);
await assert.rejects(import("tenure/otel"), /@opentelemetry\/api/);
t.close();
await server.stop();
console.log(`${process.argv[2]}: runs`);
