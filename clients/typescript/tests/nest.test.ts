// Apps of Nest with providers, tasks and a worker.
import "reflect-metadata";
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type INestApplicationContext,
  Inject,
  Injectable,
  type LoggerService,
  Module,
  type ModuleMetadata,
  Scope,
} from "@nestjs/common";
import { NestFactory, REQUEST } from "@nestjs/core";
import { type BatchItem, type Context, Snooze, type Task, Tenure, WrongOption } from "tenure";
import {
  getTaskToken,
  InjectTask,
  InjectTenure,
  TaskHandler,
  TenureModule,
  type TenureModuleOptions,
  TenureWorker,
} from "tenure/nest";
import { runUntilIdle } from "tenure/testing";
import { z } from "zod";
import { Program, Server } from "./servers.js";
import { gate, Lines, until, within } from "./waiting.js";

const server = await Server.start();
const apps: INestApplicationContext[] = [];
test.afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

/** An app with these modules and providers. */
async function start(
  given: ModuleMetadata & { tenure?: TenureModuleOptions },
  lines = new Lines(),
): Promise<INestApplicationContext> {
  const { tenure, imports = [], ...metadata } = given;
  class AppModule {}
  Module({ imports: [...imports, ...(tenure ? [TenureModule.forRoot(tenure)] : [])], ...metadata })(AppModule);
  const logger: LoggerService = { log: lines.info, warn: lines.warn, error: lines.error };
  const app = await NestFactory.createApplicationContext(AppModule, { logger, abortOnError: false });
  apps.push(app);
  return app;
}

@Injectable()
class Clock {
  readonly year = 2030;
}

const month = z.object({ month: z.coerce.number() });

@Injectable()
class Reports {
  constructor(
    private readonly clock: Clock,
    @InjectTask("archive") private readonly archive: Task<string, void>,
  ) {}

  @TaskHandler("reports", { schema: month, retry: 1, timeout: "1m" })
  async render(payload: { month: number }, ctx: Context): Promise<string> {
    await ctx.push(this.archive, "a report");
    return `report of ${this.clock.year}-${payload.month}, attempt ${ctx.attempt}`;
  }
}

@Injectable()
class Archive {
  readonly kept: string[] = [];

  @TaskHandler("archive")
  keep(text: string): void {
    this.kept.push(text);
  }
}

/** Pushes, as a controller would. */
@Injectable()
class Orders {
  constructor(
    readonly worker: TenureWorker,
    @InjectTenure() readonly tenure: Tenure,
    readonly same: Tenure,
    @InjectTask("reports") readonly reports: Task<{ month: unknown }, string>,
  ) {}
}

const modules: ModuleMetadata = {
  imports: [TenureModule.forFeature("reports", "archive")],
  providers: [Clock, Reports, Archive, Orders],
};

test("a service pushes, and the method of a provider runs with what was injected", async () => {
  const lines = new Lines();
  const t = server.client();
  const before = process.listenerCount("SIGTERM");
  const app = await start({ ...modules, tenure: { client: t, worker: { concurrency: 3 } } }, lines);
  assert.equal(process.listenerCount("SIGTERM"), before);
  const { tenure, same, reports, worker } = app.get(Orders);
  assert.deepEqual([tenure === t, same === t, app.get(getTaskToken("reports")) === reports], [true, true, true]);
  const job = await reports.push({ month: "12" });
  assert.equal(await within(job.result()), "report of 2030-12, attempt 1");
  assert.equal((await job.get()).timeout, "1m");
  const { kept } = app.get(Archive);
  await until(() => kept.length === 1);
  await assert.rejects(reports.push({ month: "x" }), { code: "schema_mismatch" });
  assert.ok(lines.has("info takes jobs of reports, archive, 3 at once"), lines.lines.join("\n"));
  await app.close();
  await within(worker.worker?.done as Promise<void>);
  // A client that was given goes on.
  await (await t.lock("l")).release();
});

test("the end of an app drains its worker, and closes the client that it made", async () => {
  const [begun, go] = [gate(), gate()];
  @Injectable()
  class Slow {
    @TaskHandler("slow")
    async run() {
      begun.open();
      await go.promise;
      return "whole";
    }
  }
  const namespace = "nest-drain";
  const app = await start({ providers: [Slow], tenure: { client: { url: server.url, namespace } } });
  const tenure = app.get(Tenure);
  const witness = server.client({ namespace });
  const job = witness.job((await tenure.push("slow")).id);
  await within(begun.promise);
  const closed = app.close();
  setTimeout(go.open, 300);
  await within(closed);
  assert.equal(await job.result({ wait: 0 }), "whole");
  await assert.rejects(tenure.lock("l"), /the client is closed/);
});

test("the worker starts after all that its handlers use, and at SIGTERM it ends before that", async () => {
  const t = server.client();
  const program = new Program("nest", { TENURE_URL: server.url, TENURE_NAMESPACE: t.namespace });
  const job = await t.push("reports", "May");
  await program.noted("begins");
  program.process.kill("SIGTERM");
  assert.equal(await program.ended(), "SIGTERM");
  assert.deepEqual(program.notes(), [["begins", "May", "true"], ["ends", "true"], ["closed"], ["closed"]]);
  assert.equal(await job.result({ wait: 0 }), true);
});

test("a process that only pushes has the tasks and no worker", async () => {
  const t = server.client();
  const app = await start({ ...modules, tenure: { client: t, worker: false } });
  const { reports } = app.get(Orders);
  const job = await reports.push({ month: 1 });
  assert.equal(app.get(TenureWorker).worker, undefined);
  assert.equal((await job.get()).state, "ready");
  // A test runs its handlers where it wants to.
  const runs = await runUntilIdle(t, [reports, app.get<Task<string, void>>(getTaskToken("archive"))]);
  assert.deepEqual(
    runs.map((run) => run.result),
    ["report of 2030-1, attempt 1", undefined],
  );
  const none = await start({ providers: [Clock], tenure: { client: t } });
  assert.equal(none.get(TenureWorker).worker, undefined);
});

test("options come from other providers with forRootAsync", async () => {
  @Injectable()
  class Config {
    readonly url = server.url;
  }
  @Module({ providers: [Config], exports: [Config] })
  class ConfigModule {}
  @Injectable()
  class Factory {
    createTenureOptions(): TenureModuleOptions {
      return { client: { url: server.url, namespace: "of-a-class" }, worker: false };
    }
  }
  const byFunction = TenureModule.forRootAsync({
    imports: [ConfigModule],
    inject: [Config],
    useFactory: async (config: Config) => ({ client: { url: config.url, namespace: "of-a-function" } }),
  });
  for (const [tenure, namespace] of [
    [byFunction, "of-a-function"],
    [TenureModule.forRootAsync({ useClass: Factory }), "of-a-class"],
  ] as const) {
    const app = await start({ ...modules, imports: [tenure, ...(modules.imports ?? [])] });
    const { tenure: t } = app.get(Orders);
    assert.deepEqual([t.namespace, t.url], [namespace, server.url]);
    assert.equal(app.get(TenureWorker).worker === undefined, namespace === "of-a-class");
  }
});

test("a request-scoped provider is made for each run, with the run as its REQUEST", async () => {
  const made: string[] = [];
  @Injectable({ scope: Scope.REQUEST })
  class Scoped {
    constructor(@Inject(REQUEST) readonly run: Context) {
      made.push(run.job.id);
    }
    @TaskHandler("scoped")
    handle(_: unknown, ctx: Context) {
      return ctx === this.run;
    }
  }
  const t = server.client();
  await start({ providers: [Scoped], tenure: { client: t } });
  const jobs = [await t.push("scoped"), await t.push("scoped")];
  for (const job of jobs) assert.equal(await within(job.result()), true);
  assert.deepEqual(made.sort(), jobs.map((job) => job.id).sort());
});

test("handlers of batches, of values, of factories and of base classes are found", async () => {
  class Base {
    @TaskHandler("inherited")
    inherited() {
      return this.constructor.name;
    }
  }
  @Injectable()
  class Batch extends Base {
    @TaskHandler("batch", { schema: z.number(), batch: { max: 2, wait: "1s" } })
    all(items: readonly BatchItem<number>[]) {
      return items.map(({ payload }) => payload * items.length);
    }
  }
  class Value {
    @TaskHandler("value")
    run() {
      throw new Snooze("1h");
    }
  }
  class Made {
    constructor(readonly clock: Clock) {}
    @TaskHandler("made")
    run() {
      return this.clock.year;
    }
  }
  const t = server.client();
  await start({
    providers: [
      Batch,
      { provide: "alias", useExisting: Batch },
      { provide: "value", useValue: new Value() },
      Clock,
      { provide: "made", useFactory: async (clock: Clock) => new Made(clock), inject: [Clock] },
    ],
    tenure: { client: t },
  });
  const pair = await t.pushAll([1, 2].map((payload) => ({ queue: "batch", payload })));
  assert.deepEqual(await within(Promise.all(pair.map((job) => job.result()))), [2, 4]);
  assert.equal(await within((await t.push("made")).result()), 2030);
  assert.equal(await within((await t.push("inherited")).result()), "Batch");
  const snoozed = await t.push("value");
  await until(async () => (await snoozed.get()).state === "scheduled");
});

test("a task without a handler, and one with two, are found at the start", async () => {
  const client = server.client();
  await assert.rejects(
    start({ imports: [TenureModule.forFeature("report")], providers: [Clock, Archive], tenure: { client } }),
    (error: WrongOption) => {
      assert.ok(error instanceof WrongOption);
      assert.match(
        error.message,
        /no provider of this app has a method with @TaskHandler\("report"\).*there: "archive"/,
      );
      return true;
    },
  );
  class Twice extends Archive {}
  Injectable()(Twice);
  await assert.rejects(
    start({ providers: [Archive, Twice], tenure: { client } }),
    /two providers have a method with @TaskHandler\("archive"\): Archive and Twice/,
  );
  // Nest says which class asks for it if no module has it.
  await assert.rejects(start({ providers: [Clock, Archive, Orders], tenure: { client } }), /tenure:task:reports/);
});

test("a worker that the server refuses does not keep the app from closing", async () => {
  const lines = new Lines();
  const guarded = await Server.start("memory:", [], { TENURE_TOKEN: "a".repeat(40) });
  const client = guarded.client({ token: "b".repeat(40) });
  const app = await start({ providers: [Archive], tenure: { client } }, lines);
  await assert.rejects(within(app.get(TenureWorker).worker?.done as Promise<void>), { code: "unauthorized" });
  await until(() => lines.has("error the worker ends:"));
  await within(app.close());
  await guarded.kill();
});

test("a method that does not fit its schema does not compile", () => {
  class Wrong {
    // @ts-expect-error: the payload is a number
    @TaskHandler("wrong", { schema: z.number() })
    one(payload: string) {
      return payload;
    }
    // @ts-expect-error: a batch has items
    @TaskHandler("wrong", { schema: z.number(), batch: { max: 2 } })
    many(payload: number) {
      return payload;
    }
    // @ts-expect-error: the result is a text
    @TaskHandler("wrong", { schema: z.number(), result: z.string() })
    result(payload: number) {
      return payload;
    }
    @TaskHandler("right", { needs: ({ site }: { site: string }) => [`limit:${site}`] })
    right({ site }: { site: string }, ctx: Context) {
      return [site, ctx.attempt];
    }
  }
  assert.ok(Wrong);
});
