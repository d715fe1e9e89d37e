import { seal } from "./codec.js";
import type { Duration, Moment } from "./durations.js";
import { refuse } from "./errors.js";
import type { PushedJob, Schedule, ScheduledJob, SyncedSchedules } from "./generated.js";
import { newId } from "./ids.js";
import { Job } from "./job.js";
import { labelsJson, type RetryOptions, retryJson } from "./job-fields.js";
import { encode } from "./json.js";
import { listOf } from "./lists.js";
import { type Need, needsJson } from "./needs.js";
import { type Abortable, as, type Reader, readOptions, type Shape, shape } from "./options.js";
import { putSet, SYNC, UNTIL, type Until } from "./scarce.js";
import type { Transport } from "./transport.js";

/** When a schedule fires, and what it does with moments that it cannot fire. */
export interface Timing {
  /** A cron expression of five fields, or six with seconds first. Excludes `every`. */
  cron?: string;
  /** The interval, whole seconds, 1 s to 3,650 days. Excludes `cron` and `zone`. */
  every?: Duration;
  /** The IANA zone in which `cron` is read. Default `UTC`. */
  zone?: string;
  /** No moment lies before it; an interval counts from it. */
  startsAt?: Moment | null;
  /** No moment lies after it. */
  endsAt?: Moment | null;
  /** The longest delay of a moment, up to 1 day. Default none. */
  jitter?: Duration;
  /** The effect of a moment while an earlier job of the schedule is unfinished. Default `skip`. */
  overlap?: "skip" | "queue" | "allow";
  /** Which of several due moments fire, as after an outage. Default `last`. */
  catchUp?: "none" | "last" | "all";
  /** The most moments that `all` fires, 1 to 1,000. Default 100. */
  catchUpMax?: number;
}

/** The job that each moment makes. */
export interface ScheduledJobOptions {
  /** Its queue. Default `default`. */
  queue?: string;
  /** By which a worker chooses the handler. */
  kind?: string;
  /** Any JSON of at most 256 KiB. */
  payload?: unknown;
  /** -100 to 100. Default 0. */
  priority?: number;
  /** Groups of a queue take turns. */
  group?: string;
  /** Default those of the queue at the moment of firing. */
  needs?: readonly Need[];
  /** A number of attempts, or how often and after which waits a failed run is repeated. */
  retry?: number | RetryOptions;
  /** The longest time of one run. */
  timeout?: Duration;
  /** How long the finished job is kept. */
  retain?: Duration;
  /** Words to find it by. */
  labels?: Record<string, string>;
  /** It is cancelled if it does not run this long after its moment. */
  expiresIn?: Duration;
}

/** A schedule: a timing and a job. */
export interface ScheduleSettings extends Timing {
  /** The job that each moment pushes. */
  job: ScheduledJobOptions;
  /** The set that it belongs to, for `sync`. */
  owner?: string | null;
}

/** A schedule of a set. */
export interface ScheduleItem extends Omit<ScheduleSettings, "owner"> {
  /** 1 to 200 bytes. */
  id: string;
}

/** Readers of a timing. */
export const TIMING: Record<string, Reader> = {
  cron: as.text,
  every: as.duration,
  zone: as.text,
  startsAt: as.orNull(as.moment),
  endsAt: as.orNull(as.moment),
  jitter: as.duration,
  overlap: as.oneOf("skip", "queue", "allow"),
  catchUp: as.oneOf("none", "last", "all"),
  catchUpMax: as.whole(1, 1000),
};
const SCHEDULED = shape({
  queue: as.text,
  kind: as.text,
  payload: as.any,
  priority: as.whole(-100, 100),
  group: as.text,
  needs: needsJson,
  retry: retryJson,
  timeout: as.duration,
  retain: as.duration,
  labels: labelsJson,
  expiresIn: as.duration,
});

/** Reads the job of a schedule. */
export const scheduledJob: Reader = (value, name) => {
  const job = readOptions(value as object, SCHEDULED, name);
  if (job["payload"] !== undefined) encode(job["payload"], `payload of ${name}`);
  return job as ScheduledJob;
};
const SETTINGS: Shape = shape({ ...TIMING, job: scheduledJob, owner: as.orNull(as.text) });
const RUN_NOW = shape({ id: as.text, signal: as.signal });
const ITEM: Shape = shape({ ...TIMING, job: scheduledJob, id: as.text });

/** How a set of schedules is synced. */
export interface SyncOptions extends Abortable {
  /** Whether an empty set, and one that deletes more than half, is taken. Default false. */
  force?: boolean;
  /** A sync with a lower number than the last one is refused as `stale_sync`. */
  version?: number;
}

/** Schedules: each moment of one makes a job. */
export class Schedules {
  /** @internal */
  readonly transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.transport = transport;
  }

  /** Makes a schedule, or replaces all settings of one. The same settings again do nothing. */
  async set(id: string, settings: ScheduleSettings, options?: Abortable): Promise<Schedule> {
    return await this.#write("set", "PUT", id, settings, options);
  }

  /** Changes what is given. @throws `NotFound` */
  async change(id: string, changes: Partial<ScheduleSettings>, options?: Abortable): Promise<Schedule> {
    return await this.#write("change", "PATCH", id, changes, options);
  }

  async #write(
    verb: string,
    method: "PUT" | "PATCH",
    id: string,
    given: object,
    options?: Abortable,
  ): Promise<Schedule> {
    const body = async () => JSON.stringify(await this.#sealed(readOptions(given, SETTINGS, `schedules.${verb}`)));
    return await this.transport.call(`schedules.${verb}`, method, ["schedules", id], options, body);
  }

  async #sealed(item: { job?: ScheduledJob }): Promise<object> {
    const { codec } = this.transport;
    if (!codec || item.job?.payload === undefined) return item;
    const payload = JSON.parse(await seal(codec, encode(item.job.payload, "payload"), "payload", item.job));
    return { ...item, job: { ...item.job, payload } };
  }

  /** Shows one, with its next five moments. @throws `NotFound` */
  get(id: string, options?: Abortable): Promise<Schedule> {
    return this.transport.call("schedules.get", "GET", ["schedules", id], options);
  }

  /** All schedules, or those of one owner, by id. */
  list(options?: { owner?: string; full?: boolean } & Abortable): AsyncIterable<Schedule> {
    const known = shape({ owner: as.text, full: as.flag, signal: as.signal });
    const { signal, ...query } = readOptions(options, known, "schedules.list") as { signal?: AbortSignal };
    return listOf(this.transport, "schedules", query, signal);
  }

  /** Deletes one. Its jobs stay. @throws `NotFound` */
  async delete(id: string, options?: Abortable): Promise<void> {
    await this.transport.call("schedules.delete", "DELETE", ["schedules", id], options);
  }

  /** Fires no moment for a time, until a moment, or until `resume`. */
  pause(id: string, until?: Until, options?: Abortable): Promise<Schedule> {
    const body = () => until && JSON.stringify(readOptions(until, UNTIL, "schedules.pause"));
    return this.transport.call("schedules.pause", "POST", ["schedules", id, "pause"], options, body);
  }

  /** Ends a pause. */
  resume(id: string, options?: Abortable): Promise<Schedule> {
    return this.transport.call("schedules.resume", "POST", ["schedules", id, "resume"], options);
  }

  /**
   * Makes its job now, beside its moments, under `options.id` or an id that is made. Unless `overlap` is `allow`, an
   * unfinished job of the schedule is answered instead, with `duplicate`.
   */
  async runNow(id: string, options?: { id?: string } & Abortable): Promise<Job> {
    const call = "schedules.runNow";
    const { id: job = newId("job"), ...rest } = readOptions(options, RUN_NOW, call) as { id?: string } & Abortable;
    const path = ["schedules", id, "run-now"];
    const made = await this.transport.call<PushedJob>(call, "POST", path, rest, JSON.stringify({ id: job }));
    return new Job(this.transport, made.id, { duplicate: made.duplicate, replaced: false });
  }

  /**
   * The next moments of a timing, without jitter; 1 to 100, 5 unless `count` is given. They come after `from`, or after
   * now. An interval without `startsAt` needs the `id` of the schedule, which decides its phase.
   */
  async preview(timing: Timing & { id?: string; from?: Moment; count?: number }, options?: Abortable): Promise<Date[]> {
    const known = shape({
      cron: as.text,
      every: as.duration,
      zone: as.text,
      startsAt: as.moment,
      endsAt: as.moment,
      from: as.moment,
      count: as.whole(1, 100),
      id: as.text,
    });
    const body = JSON.stringify(readOptions(timing, known, "schedules.preview"));
    const path = ["schedules", "preview"];
    const found = await this.transport.call<{ next: string[] }>("schedules.preview", "POST", path, options, body);
    return found.next.map((each) => new Date(each));
  }

  /**
   * Makes the set of an owner be exactly this: adds, changes and deletes. Schedules of others stay.
   *
   * @throws `Invalid` with the code `empty_set` or `retires_most`, unless `force` is given.
   */
  async sync(owner: string, items: readonly ScheduleItem[], options?: SyncOptions): Promise<SyncedSchedules> {
    const { signal, ...query } = readOptions(options, SYNC, "schedules.sync") as { signal?: AbortSignal };
    const read = [...as.items(items, "the items of schedules.sync")].map((item, n) => {
      const written = readOptions(item, ITEM, "schedules.sync");
      if (written["id"] === undefined)
        refuse(`item ${n} of schedules.sync has no "id"`, "without one a sync could not tell it from a new one");
      return written;
    });
    return await this.putSet(owner, read, query, signal);
  }

  /** Sends a set whose items are read already. @internal */
  async putSet(owner: string, items: readonly object[], query: object, signal?: AbortSignal): Promise<SyncedSchedules> {
    const written = await Promise.all(items.map(async (item) => JSON.stringify(await this.#sealed(item))));
    return await putSet(this.transport, "schedules", { owner, ...query }, written, signal);
  }
}
