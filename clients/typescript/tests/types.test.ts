// What the compiler knows: `tsc` checks this file, and a line that is expected to be wrong and is not fails it.
import { test } from "node:test";
import type {
  api,
  Job,
  JobChanges,
  JobSpec,
  LimitSettings,
  NewResource,
  PoolSettings,
  QueueSettings,
  RateOptions,
  RetryOptions,
  ScheduledJobOptions,
  TenureEvent,
  UniqueOptions,
} from "tenure";
import { Final, Snooze, Tenure } from "tenure";
import { z } from "zod";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const isTrue = <_T extends true>() => {};

/** `runAt` as the server writes it: `run_at`. */
type Snake<S> = S extends `${infer First}${infer Rest}`
  ? First extends Lowercase<First>
    ? `${First}${Snake<Rest>}`
    : `_${Lowercase<First>}${Snake<Rest>}`
  : S;
/** The fields of the API that options lack, and the options that the API lacks: both are mistakes. */
type Differ<Options, Fields> =
  | Exclude<Snake<keyof Options>, keyof Fields>
  | Exclude<keyof Fields, Snake<keyof Options>>;

// A field that is new in the API, and that no option names, does not compile.
isTrue<Equal<Differ<JobSpec, api.NewJob>, never>>();
isTrue<Equal<Differ<UniqueOptions, api.Unique>, never>>();
isTrue<Equal<Differ<RetryOptions, Omit<api.Retry, "backoff"> & api.Backoff>, never>>();
isTrue<Equal<Differ<JobChanges, api.JobPatch>, never>>();
isTrue<Equal<Differ<LimitSettings, api.LimitSettings>, never>>();
isTrue<Equal<Differ<PoolSettings, api.PoolSettings>, never>>();
isTrue<Equal<Differ<QueueSettings, api.QueueSettings>, never>>();
isTrue<Equal<Differ<NewResource, api.NewResource>, never>>();
isTrue<Equal<Differ<ScheduledJobOptions, api.ScheduledJob>, never>>();
isTrue<Equal<Differ<RateOptions, api.Rate>, never>>();

function never(t: Tenure): void {
  const crawl = t.task(
    "crawl",
    {
      schema: z.object({ url: z.string(), depth: z.number().default(0) }),
      result: z.object({ bytes: z.number() }),
      needs: ({ url }) => [`limit:site:${url}`],
    },
    async ({ url, depth }, ctx) => {
      isTrue<Equal<typeof url, string>>();
      isTrue<Equal<typeof depth, number>>();
      const { data } = ctx.resource<{ password: string }>("accounts");
      isTrue<Equal<typeof data, { password: string }>>();
      if (depth > 3) throw new Final("too deep");
      if (depth > 2) throw new Snooze({ until: new Date() });
      return { bytes: url.length };
    },
  );
  void crawl.push({ url: "x" });
  void crawl.push({ url: "x", depth: 1 }, { delay: "5m", unique: { key: "x", onConflict: "replace" } });
  isTrue<Equal<Awaited<ReturnType<typeof crawl.push>>, Job<{ bytes: number }>>>();
  // @ts-expect-error a payload of another type
  void crawl.push({ url: 5 });
  // @ts-expect-error a field that is missing
  void crawl.push({});
  // @ts-expect-error a misspelt option
  void crawl.push({ url: "x" }, { dealy: "5m" });
  // @ts-expect-error a duration of another form
  void crawl.push({ url: "x" }, { delay: "5 minutes" });
  // @ts-expect-error a choice that there is not
  void crawl.push({ url: "x" }, { unique: { key: "x", onConflict: "replaces" } });

  const add = t.task("add", { retry: { maxAttempts: 3, base: "1s" } }, ({ a, b }: { a: number; b: number }) => a + b);
  isTrue<Equal<Awaited<ReturnType<typeof add.push>>, Job<number>>>();
  // @ts-expect-error a payload of another type
  void add.push({ a: 1 });
  // @ts-expect-error a misspelt option
  t.task("x", { timout: "1m" }, () => 1);
  // @ts-expect-error a result that the schema does not take
  t.task("x", { result: z.object({ n: z.number() }) }, () => ({ n: "1" }));
  const batch = t.task("batch", { batch: { max: 10 } }, async (items: readonly { payload: { n: number } }[]) =>
    items.map((each) => each.payload.n),
  );
  isTrue<Equal<Awaited<ReturnType<typeof batch.push>>, Job<number>>>();

  t.work([crawl, add, batch], { concurrency: 5, drain: "30s" });
  // @ts-expect-error a misspelt option
  t.work([crawl], { concurency: 5 });
  // @ts-expect-error a misspelt option
  new Tenure({ nmespace: "x" });
  t.schedule(add, "0 9 * * *", { zone: "UTC", payload: { a: 1, b: 2 } });
  // @ts-expect-error a payload of another type
  t.schedule(add, "0 9 * * *", { payload: { a: 1 } });
  void t.limits.set("l", { concurrency: 5, rate: "10/1s" });
  // @ts-expect-error a need that is none
  void t.lease(["deploy"]);
  const outcome: api.SettleItem = { lease: "l", outcome: "succeeded", result: 1 };
  void outcome;
  const event = undefined as unknown as TenureEvent;
  if (event.type === "gap") isTrue<Equal<typeof event.why, api.GapWhy>>();
}

test("types are checked by the compiler", () => {
  void never;
});
