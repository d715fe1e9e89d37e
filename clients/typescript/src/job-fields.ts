import { type Codec, seal } from "./codec.js";
import type { Duration, Moment } from "./durations.js";
import { refuse } from "./errors.js";
import type { AfterEntry, NewJob } from "./generated.js";
import { newId } from "./ids.js";
import { encode } from "./json.js";
import { type Need, needsJson } from "./needs.js";
import { as, type Reader, readOptions, type Shape, shape } from "./options.js";
import { shown } from "./text.js";

/** How the waits between attempts grow. */
export interface BackoffOptions {
  /** Default `exponential`: attempt n waits min(max, base · 2^(n-1)). `fixed` waits `base`, `list` the `delays`. */
  kind?: "exponential" | "fixed" | "list";
  /** The first wait. Default 1 s. */
  base?: Duration;
  /** The longest wait of `exponential`. Default 1 h. */
  max?: Duration;
  /** The waits of `list`, 1 to 100; the last one repeats. */
  delays?: Duration[];
  /** Whether each wait is drawn between half of it and the whole. Default true. */
  jitter?: boolean;
}

/** How often, and after which waits, a failed run is repeated. */
export interface RetryOptions extends BackoffOptions {
  /** How many runs may fail; 0 is without end. Default 20. */
  maxAttempts?: number;
  /** How many times in a row the worker may be lost before the job fails as poison; 0 is never. Default 3. */
  maxLost?: number;
  /** How often a job may snooze before it fails. Default without end. */
  maxSnoozes?: number;
}

/** A key that one job of the namespace holds at a time. */
export interface UniqueOptions {
  /** The key, 1 to 256 bytes. */
  key: string;
  /** Until when the job holds it. Default `end`. */
  until?: "end" | "start";
  /** It is held at least this long after the push, also by a finished job. */
  for?: Duration;
  /** The effect of a push that meets a holder: it answers it (`keep`, the default), gives it the new content (`replace`), or is refused (`reject`). */
  onConflict?: "keep" | "replace" | "reject";
  /** With `replace`: pushes move the moment no further than this beyond the first wait. */
  within?: Duration;
}

/** Options that jobs of one task share, and that one push may override. */
export interface SharedJobOptions {
  /** -100 to 100; higher goes first. Default 0. */
  priority?: number;
  /** How long after the push it may run. Default at once. Excludes `runAt`. */
  delay?: Duration;
  /** The longest time of one run. Default that of the queue. */
  timeout?: Duration;
  /** A number of attempts, or how often and after which waits a failed run is repeated. */
  retry?: number | RetryOptions;
  /** How long the finished job is kept. Default 1 h, 7 days if it failed. */
  retain?: Duration;
  /** Groups of a queue take turns by their shares, at most 256 bytes. */
  group?: string;
  /** Words to find it by: at most 16, keys of 1 to 64 bytes, values up to 256. */
  labels?: Record<string, string>;
  /** Whether it is cancelled or runs if a parent fails for good. Default `cancel`. */
  onParentFailure?: "cancel" | "run";
}

/** The options of one job beside its queue and payload. */
export interface JobOptions extends SharedJobOptions {
  /**
   * The id, 1 to 256 bytes; made by this package if absent. A push under an id that is there stores
   * nothing and answers that job.
   */
  id?: string;
  /** By which a worker chooses the handler, at most 128 bytes. */
  kind?: string;
  /** When it may run. Excludes `delay`. */
  runAt?: Moment;
  /** It is cancelled if it does not run by then: a moment, or a duration from now by this machine's clock. */
  expiresAt?: Moment | Duration;
  /** Permits and resources that it holds while it runs; they replace those of the queue. At most 16. */
  needs?: readonly Need[];
  /** A key that one unfinished job holds at a time. */
  unique?: string | UniqueOptions;
  /** Its parents: ids of jobs, or `{ flow }`, `{ job }`, `{ ref }`. At most 10,000. */
  after?: readonly AfterEntry[];
  /** The flow that it belongs to. */
  flow?: string;
  /** By which other items of the same `pushAll` name it in `after`. */
  ref?: string;
  /** The W3C trace context of the push. */
  traceparent?: string;
}

/** A job as `pushAll` and `pushMany` take it. */
export interface JobSpec extends JobOptions {
  /** Its queue. Default `default`. */
  queue?: string;
  /** Any JSON of at most 256 KiB. */
  payload?: unknown;
}

/** The options of one job of a task. */
export interface TaskPushOptions extends Omit<JobOptions, "kind"> {
  /** The queue. Default that of the task. */
  queue?: string;
}

/** A task, as far as a push of its jobs goes. */
export interface Pushable<In> {
  /** The kind of its jobs. */
  readonly name: string;
  /** A job of this task as the server reads it. */
  jobOf(payload: In, options?: TaskPushOptions): Promise<Partial<NewJob>>;
}

const BACKOFF = shape({
  kind: as.oneOf("exponential", "fixed", "list"),
  base: as.duration,
  max: as.duration,
  delays: (value, name) => [...as.items(value as unknown[], name)].map((each) => as.duration(each, name)),
  jitter: as.flag,
});
const RETRY: Shape = {
  ...shape({ maxAttempts: as.whole(0), maxLost: as.whole(0), maxSnoozes: as.whole(0) }),
  ...BACKOFF,
};
const UNIQUE = shape({
  key: as.text,
  until: as.oneOf("end", "start"),
  for: as.duration,
  onConflict: as.oneOf("keep", "replace", "reject"),
  within: as.duration,
});

/** Reads `retry` as the server reads it: what concerns the waits stands in `backoff`. */
export const retryJson: Reader = (value, name) => {
  if (typeof value === "number") return { max_attempts: as.whole(0)(value, name) };
  const read = readOptions(value as object, RETRY, name);
  const retry: Record<string, unknown> = {};
  const backoff: Record<string, unknown> = {};
  for (const [key, each] of Object.entries(read)) (key in BACKOFF ? backoff : retry)[key] = each;
  if (Object.keys(backoff).length > 0) {
    retry["backoff"] = { kind: "delays" in backoff ? "list" : "exponential", ...backoff };
  }
  return retry;
};

const uniqueJson: Reader = (value, name) => {
  if (typeof value === "string") return { key: value };
  const read = readOptions(value as object, UNIQUE, name);
  if (read["key"] === undefined) refuse(`${name} has no "key"`, "give the key alone, as text, or { key }");
  return read;
};

const expiryJson: Reader = (value, name) => {
  const isDuration =
    typeof value === "number" || (typeof value === "string" && /^(\d+(\.\d+)?(ms|[smhd]))+$/.test(value));
  return isDuration ? new Date(Date.now() + as.ms(value, name)).toISOString() : as.moment(value, name);
};

/** Labels of a job. */
export const labelsJson: Reader = (value, name) => {
  if (typeof value === "object" && value !== null && Object.values(value).every((each) => typeof each === "string")) {
    return value;
  }
  refuse(`${name} must be an object whose values are text, not ${shown(value)}`);
};

/** Readers of the options that jobs of one task share. */
export const SHARED: Record<string, Reader> = {
  priority: as.whole(-100, 100),
  delay: as.duration,
  timeout: as.duration,
  retry: retryJson,
  retain: as.duration,
  group: as.text,
  labels: labelsJson,
  onParentFailure: as.oneOf("cancel", "run"),
};

/** The options of one job. */
export const JOB = shape({
  ...SHARED,
  id: as.text,
  kind: as.text,
  runAt: as.moment,
  expiresAt: expiryJson,
  needs: needsJson,
  unique: uniqueJson,
  after: as.any,
  flow: as.text,
  ref: as.text,
  traceparent: as.text,
});
const SPEC: Shape = { ...JOB, queue: ["queue", as.text], payload: ["payload", as.any] };

/** A job as it is sent, and its id. */
export interface WrittenJob {
  readonly id: string;
  readonly queue: string;
  /** Whether it names its trace. */
  readonly isTraced: boolean;
  readonly json: string;
}

/** Writes a job as the server reads it. One without an id gets one, by which its push can be repeated. */
export async function writeJob(job: Partial<NewJob>, codec: Codec | undefined): Promise<WrittenJob> {
  const id = job.id ?? newId("job");
  const { payload, ...rest } = job;
  const written =
    payload === undefined ? "" : `,"payload":${await seal(codec, encode(payload, "payload"), "payload", job)}`;
  const json = `${JSON.stringify({ ...rest, id }).slice(0, -1)}${written}}`;
  return { id, queue: job.queue ?? "default", isTraced: job.traceparent !== undefined, json };
}

/** Reads a job of `pushAll` and `pushMany`. */
export function readSpec(spec: JobSpec, call: string): Partial<NewJob> {
  return readOptions(spec, SPEC, call) as Partial<NewJob>;
}

/** Writes the jobs of `pushMany`, one by one as they are read. */
export async function* writeSpecs(
  specs: Iterable<JobSpec> | AsyncIterable<JobSpec>,
  codec: Codec | undefined,
): AsyncGenerator<WrittenJob, void, void> {
  for await (const spec of specs) yield await writeJob(readSpec(spec, "pushMany"), codec);
}
