import { now } from "./clock.js";
import { open, openParent, seal, shown, shownJob } from "./codec.js";
import { type Duration, durationText, type Moment } from "./durations.js";
import { Conflict, JobCancelled, JobFailed, NotFinished } from "./errors.js";
import { whatHappened } from "./failures.js";
import type { Child, Explained, JobPatch, Job as JobRecord, Parent, Result } from "./generated.js";
import { labelsJson } from "./job-fields.js";
import { encode } from "./json.js";
import { endable, listOf } from "./lists.js";
import { type Need, needsJson } from "./needs.js";
import { type Abortable, as, readOptions, shape, signalOf } from "./options.js";
import { type Call, part, type Transport } from "./transport.js";

/** The longest wait of one call. */
const SLICE_MS = 30_000;

/** How to wait for the end of a job. */
export interface ResultOptions extends Abortable {
  /** For how long. Default without end. */
  wait?: Duration;
}

/** The fields of a waiting job that may be changed. `null` is the default of the queue. */
export interface JobChanges {
  /** When it may run. Excludes `delay`. */
  runAt?: Moment | null;
  /** How long from now it may run. Excludes `runAt`. */
  delay?: Duration | null;
  /** -100 to 100. */
  priority?: number | null;
  /** Any JSON of at most 256 KiB. */
  payload?: unknown;
  /** At most 16. */
  needs?: readonly Need[] | null;
  /** At most 256 bytes. */
  group?: string | null;
  /** They replace all of the old ones. */
  labels?: Record<string, string> | null;
  /** The longest time of one run. */
  timeout?: Duration | null;
  /** It is cancelled if it does not run by then. */
  expiresAt?: Moment | null;
}

const CHANGES = shape({
  runAt: as.orNull(as.moment),
  delay: as.orNull(as.duration),
  priority: as.orNull(as.whole(-100, 100)),
  payload: as.any,
  needs: as.orNull(needsJson),
  group: as.orNull(as.text),
  labels: as.orNull(labelsJson),
  timeout: as.orNull(as.duration),
  expiresAt: as.orNull(as.moment),
});

const WHEN = shape({ runAt: as.moment, delay: as.duration });

/** The answer of a push. */
export interface Pushed {
  /** Whether the job was there already, by its id or its unique key: nothing was stored. */
  readonly duplicate: boolean;
  /** Whether the push gave the job that holds its unique key a new content. */
  readonly replaced: boolean;
}

/** A job on the server, by its id. `R` is the type of its result. */
export class Job<R = unknown> implements Pushed {
  /** The id, or `key:KEY` for the job that holds a unique key. */
  readonly id: string;
  readonly duplicate: boolean;
  readonly replaced: boolean;
  #transport: Transport;
  #read: ((result: unknown) => R | Promise<R>) | undefined;

  /** @internal */
  constructor(transport: Transport, id: string, pushed?: Pushed, read?: (result: unknown) => R | Promise<R>) {
    this.id = id;
    this.duplicate = pushed?.duplicate ?? false;
    this.replaced = pushed?.replaced ?? false;
    this.#transport = transport;
    this.#read = read;
  }

  get #path(): string {
    return `jobs/${part(this.id)}`;
  }

  #call<T>(
    call: string,
    method: Call["method"],
    below: string,
    options: Abortable | undefined,
    body?: string,
    id = this.id,
  ): Promise<T> {
    return this.#transport.call(call, method, below === "" ? ["jobs", id] : ["jobs", id, below], options, body);
  }

  /** Reads the job. @throws `NotFound` once it is no longer kept. */
  get(options?: Abortable): Promise<JobRecord> {
    return this.#shown(this.#call("get", "GET", "", options));
  }

  async #shown(read: Promise<JobRecord>): Promise<JobRecord> {
    return await shownJob(this.#transport.codec, await read);
  }

  /**
   * Waits for the end of the job and returns its result. The wait goes on over a restart of the server.
   *
   * @throws `JobFailed`, `JobCancelled`, or `NotFinished` when `wait` is over; `CodecError` for a result that this
   * client cannot open.
   */
  async result(options: ResultOptions = {}): Promise<R> {
    const read = readOptions(options, WAITING, "result");
    const signal = read["signal"] as AbortSignal | undefined;
    const until = read["wait"] === undefined ? Number.POSITIVE_INFINITY : now() + (read["wait"] as number);
    for (;;) {
      const left = until - now();
      const found = await this.#await(Math.max(0, Math.min(left, SLICE_MS)), undefined, left, signal);
      if (found.state === "succeeded") {
        const result = await open(this.#transport.codec, found.result, "result");
        return this.#read ? await this.#read(result) : (result as R);
      }
      if (found.state === "failed") {
        const error = found.error ?? "no error is known";
        throw new JobFailed("job_failed", `job ${this.id} failed: ${whatHappened(error)}`, { job: found.id, error });
      }
      if (found.state === "cancelled") {
        const why = found.error ? `: ${found.error}` : "";
        throw new JobCancelled("job_cancelled", `job ${this.id} was cancelled${why}`, { job: found.id });
      }
      if (now() >= until) {
        const waited = durationText(options.wait ?? 0);
        throw new NotFinished("not_finished", `job ${this.id} is ${found.state} and has not ended within ${waited}`, {
          job: found.id,
          hint: "wait for longer, or see what explain() says about it",
        });
      }
    }
  }

  /**
   * Yields what the handler reports, beginning with the last report, and ends with the job. A report
   * that is replaced before it was read is left out.
   */
  progress(options?: Abortable): AsyncGenerator<unknown, void, void> {
    return endable(signalOf(options, "progress").signal, (signal) => this.#progress(signal));
  }

  async *#progress(signal: AbortSignal): AsyncGenerator<unknown, void, void> {
    let seen = "none";
    for (;;) {
      const found = await this.#await(SLICE_MS, seen, Number.POSITIVE_INFINITY, signal);
      if (found.progress_id !== null && found.progress_id !== seen) {
        seen = found.progress_id;
        yield await open(this.#transport.codec, found.progress, "progress");
      }
      if (found.finished_at !== null) return;
    }
  }

  #await(wait: number, seen: string | undefined, lasts: number, signal: AbortSignal | undefined): Promise<Result> {
    return this.#transport.json({
      method: "GET",
      path: `${this.#path}/result`,
      query: { wait: durationText(wait), seen },
      wait,
      lasts,
      signal,
    });
  }

  /** Says what the job waits for: `summary` is a sentence, `reasons` has the parts. */
  explain(options?: Abortable): Promise<Explained> {
    return this.#call("explain", "GET", "explain", options);
  }

  /** Cancels the job. A running one is asked to stop. @throws `Conflict` if it has ended otherwise. */
  cancel(options?: Abortable): Promise<JobRecord> {
    return this.#shown(this.#call("cancel", "POST", "cancel", options));
  }

  /** Lets a failed or cancelled job run again; its attempts begin at 0. @throws `Conflict` if it is neither. */
  async retry(options?: Abortable): Promise<JobRecord> {
    // A repeat must not retry the next end: it names the end that it is about.
    const before = await this.get(options);
    const body = before.finished_at === null ? undefined : JSON.stringify({ finished_at: before.finished_at });
    try {
      return await this.#shown(this.#call("retry", "POST", "retry", options, body));
    } catch (refused) {
      if (!(refused instanceof Conflict) || refused.code !== "wrong_state" || body === undefined) throw refused;
      // The first sending may have been carried out.
      const after = await this.get(options);
      if (after.finished_at === before.finished_at) throw refused;
      return after;
    }
  }

  /** Changes when the job may run. @throws `Conflict` if it runs or has ended. */
  async reschedule(when: { runAt: Moment } | { delay: Duration }, options?: Abortable): Promise<JobRecord> {
    readOptions(when, WHEN, "reschedule");
    return await this.change(when, options);
  }

  /** Changes a job that waits. @throws `Conflict` if it runs or has ended. */
  async change(changes: JobChanges, options?: Abortable): Promise<JobRecord> {
    const read = readOptions(changes, CHANGES, "change") as JobPatch;
    const { codec } = this.#transport;
    let id: string | undefined;
    if (codec && read.payload !== undefined) {
      // Sealed for its queue and kind. A key may pass to a job of another place, so the id names it.
      const job = await this.get(options);
      id = job.id;
      read.payload = JSON.parse(await seal(codec, encode(read.payload, "payload"), "payload", job));
    }
    return await this.#shown(this.#call("change", "PATCH", "", options, encode(read, "change"), id));
  }

  /** Lets a scheduled job run now. @throws `Conflict` if it waits for parents or has ended. */
  runNow(options?: Abortable): Promise<JobRecord> {
    return this.#shown(this.#call("runNow", "POST", "run-now", options));
  }

  /** Cancels and forgets the job. @throws `Conflict` if it runs. */
  async delete(options?: Abortable): Promise<void> {
    await this.#call("delete", "DELETE", "", options);
  }

  /** The jobs that it waits for, with their results. */
  parents(options?: Abortable): AsyncIterable<Parent> {
    const { codec } = this.#transport;
    const read = codec && ((each: Parent) => openParent(each, (value, part) => shown(codec, value, part)));
    const { signal } = signalOf(options, "parents");
    return listOf<Parent>(this.#transport, `${this.#path}/parents`, { full: true }, signal, read);
  }

  /** The jobs that wait for it. */
  children(options?: Abortable): AsyncIterable<Child> {
    return listOf(this.#transport, `${this.#path}/children`, {}, signalOf(options, "children").signal);
  }
}

const WAITING = shape({ signal: as.signal, wait: as.ms });
