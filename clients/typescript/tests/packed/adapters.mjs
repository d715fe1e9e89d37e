// The packed adapters beside the packages that they take.
import assert from "node:assert/strict";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { trace } from "@opentelemetry/api";
import Fastify from "fastify";
import plugin from "tenure/fastify";
import { TaskHandler, TenureModule, TenureWorker } from "tenure/nest";
import { otel } from "tenure/otel";
import { startServer } from "tenure/testing";

const server = await startServer({ clock: false });
const spans = [];
const tracer = { startSpan: (name) => trace.wrapSpanContext(spans.push(name)) };
tracer.startActiveSpan = (name, _options, act) => act(tracer.startSpan(name));
const t = server.client({ instrumentation: otel({ tracer }) });

const task = t.task("t", {}, () => "done");
const app = Fastify();
app.register(plugin, { client: t, tasks: [task] });
app.get("/", async () => await (await task.push(null)).result({ wait: "20s" }));
app.get("/none", async () => await t.job("none").get());
assert.equal((await app.inject("/")).body, "done");
assert.equal((await app.inject("/none")).json().code, "job_not_found");
assert.deepEqual(spans, ["tenure.push", "tenure.run", "tenure.settle"]);
await app.close();

class Provider {
  run = "an instance";
  handle() {
    return this.run;
  }
}
TaskHandler("n")(Provider.prototype, "handle", Object.getOwnPropertyDescriptor(Provider.prototype, "handle"));
class AppModule {}
Module({ imports: [TenureModule.forRoot({ client: t })], providers: [Provider] })(AppModule);
const nest = await NestFactory.createApplicationContext(AppModule, { logger: false });
assert.equal(await (await t.push("n")).result({ wait: "20s" }), "an instance");
assert.equal(TenureModule.forRoot().module.name, "TenureModule");
await nest.close();
await nest.get(TenureWorker).worker.done;

await server.stop();
console.log(`${process.argv[2]}: runs with its adapters`);
