import { isSealed, open, openParent, seal, shown } from "./codec.js";
import { type Duration, durationText } from "./durations.js";
import { wrong } from "./errors.js";
import type { Job as JobRecord, LeasedResource, Lease as LeaseRecord, NewJob, Parent } from "./generated.js";
import { type JobSpec, type Pushable, readSpec, type TaskPushOptions, writeJob } from "./job-fields.js";
import { encode } from "./json.js";
import { listOf } from "./lists.js";
import { type Abortable, signalOf } from "./options.js";

import type { OutcomeFields, Stopped } from "./outcomes.js";
import { valueWithout, without } from "./secrets.js";
import { part, type Transport } from "./transport.js";
import { resourceOf, Verdicts } from "./verdicts.js";

const PROGRESS_BYTES = 4096;
const PUSHES_MAX = 100;

function bounded(progress: string): void {
  const bytes = Buffer.byteLength(progress);
  if (bytes > PROGRESS_BYTES) wrong("progress", `has ${bytes} bytes as JSON; it takes at most ${PROGRESS_BYTES}`);
}

/** One run of a job, as its handler sees it. */
export class Context {
  /** The job as it was granted, with its payload; `job.progress` is the last report of the run before. */
  readonly job: JobRecord;
  /** Grows with every grant: a store that compares it can refuse an older holder. */
  readonly fence: number;
  /** The resources that the run holds, with their data. */
  readonly resources: readonly LeasedResource[];
  /** The names of the limits that the run holds. */
  readonly limits: readonly string[];
  /** The resources of this run, and of those in the same batch. @internal */
  together: readonly LeasedResource[];
  /** The trace of the jobs that are stored with the end of this run. @internal */
  traceparent: string | undefined;
  /** Done when all that was said until now is sealed and can be sent. @internal */
  sealing: Promise<unknown> | undefined;
  /** Why a report could not be sealed. @internal */
  fault: unknown;
  #lease: LeaseRecord;
  #transport: Transport;
  #report: (progress: string) => void;
  #stop: AbortController | undefined;
  #reason: Stopped | undefined;
  #verdicts: Verdicts | undefined;
  #pushes: string[] = [];
  #isWritten = false;
  #nextIn: string | undefined;

  /** @internal */
  constructor(lease: LeaseRecord, transport: Transport, report: (progress: string) => void) {
    this.job = lease.job as JobRecord;
    this.fence = lease.fence;
    this.resources = lease.resources;
    this.limits = lease.limits;
    this.together = lease.resources;
    this.traceparent = this.job.traceparent;
    this.#lease = lease;
    this.#transport = transport;
    this.#report = report;
  }

  /** The number of this run, from 1. */
  get attempt(): number {
    return this.job.attempt;
  }

  /** When the run must be over, by the server's clock; null without a timeout. */
  get deadline(): Date | null {
    return this.#lease.deadline === null ? null : new Date(this.#lease.deadline);
  }

  /**
   * Aborts when the run is to stop. Its reason is a `LeaseLost`, `Cancelled`, `TimedOut` or `Draining`.
   * Give it to all that the handler awaits.
   */
  get signal(): AbortSignal {
    // Made for the runs that ask for it: it costs as much as all the rest of a short run.
    if (!this.#stop) {
      this.#stop = new AbortController();
      if (this.#reason) this.#stop.abort(this.#reason);
    }
    return this.#stop.signal;
  }

  /** The first resource of a pool. @throws `WrongOption` if the run holds none of it. */
  resource<D = unknown>(pool: string): LeasedResource & { data: D } {
    return resourceOf<D>(this.resources, pool);
  }

  /**
   * Reports how far the run is: any JSON of at most 4 KiB. The job shows it within a second; of several
   * reports in a second the last one counts. The value is read at once. A codec makes it a third longer,
   * and the bound is for what it made.
   */
  progress(value: unknown): void {
    let written = encode(value, "progress", true);
    // Looked for in its texts: a secret of digits may stand in a number by accident.
    if (this.together.length > 0) written = JSON.stringify(valueWithout(JSON.parse(written), this.#said().secrets));
    bounded(written);
    if (value === null || value === undefined) return;
    if (!this.#transport.codec) {
      this.#report(written);
      return;
    }
    // One after the other, so that the last one counts.
    this.sealing = this.#after(async () => {
      const sealed = await this.seal(written, "progress");
      bounded(sealed);
      this.#report(sealed);
    }).catch((fault) => {
      this.fault = fault;
    });
  }

  async #after<T>(act: () => Promise<T>): Promise<T> {
    await this.sealing;
    return await act();
  }

  /** What is sent of a value of this job. @internal */
  seal(json: string, part: "result" | "progress"): Promise<string> {
    return seal(this.#transport.codec, json, part, this.job);
  }

  /** Opens the payload of the job; undefined if it is not sealed. @throws `CodecError` @internal */
  open(): Promise<void> | undefined {
    return isSealed(this.job.payload) || isSealed(this.job.progress) ? this.#open() : undefined;
  }

  async #open(): Promise<void> {
    const { codec } = this.#transport;
    this.job.payload = await open(codec, this.job.payload, "payload", this.job);
    // The report of the run before is a help, and no reason to fail.
    this.job.progress = await shown(codec, this.job.progress, "progress");
  }

  /**
   * Pushes a job in the same step in which this run is settled as succeeded, or neither happens; at most
   * 100. A run that ends otherwise pushes nothing. Returns the id of the job.
   */
  async push<In>(task: Pushable<In>, payload: In, options?: TaskPushOptions): Promise<string>;
  async push(job: JobSpec): Promise<string>;
  async push(what: Pushable<never> | JobSpec, payload?: unknown, options?: TaskPushOptions): Promise<string> {
    const before = this.sealing;
    const pushing = this.#push(what, payload, options, before);
    // The end of the run waits for it, also where the handler does not.
    this.sealing = pushing.catch(() => before);
    return await pushing;
  }

  async #push(
    what: Pushable<never> | JobSpec,
    payload: unknown,
    options: TaskPushOptions | undefined,
    before: Promise<unknown> | undefined,
  ): Promise<string> {
    const isTask = typeof (what as Partial<Pushable<never>> | undefined)?.jobOf === "function";
    const spec: Partial<NewJob> = isTask
      ? await (what as Pushable<never>).jobOf(payload as never, options)
      : readSpec(what as JobSpec, "ctx.push");
    const traced = this.traceparent === undefined ? spec : { traceparent: this.traceparent, ...spec };
    const job = await writeJob(traced, this.#transport.codec);
    await before;
    if (this.#isWritten)
      wrong("ctx.push", "comes after the end of the run, which stores what it pushes", "await it in the handler");
    if (this.#pushes.length >= PUSHES_MAX)
      wrong("ctx.push", `takes at most ${PUSHES_MAX} jobs in a run`, "push the others at once, by push of the task");
    this.#pushes.push(job.json);
    return job.id;
  }

  /** Says how many rate tokens the run spent in truth; it corrects the cost that the grant booked. */
  spent(limit: string, tokens: number): void {
    this.#said().spent(limit, tokens);
  }

  /** Grants a limit to nobody for a time, from the settle of this run on. */
  pause(limit: string, time: Duration): void {
    this.#said().pause(limit, time);
  }

  /** Hands a resource out no more, from the settle of this run on. `resource` is one, or the pool of the first. */
  ban(resource: LeasedResource | string, reason: string): void {
    this.#said().ban(resource, reason);
  }

  /** Lets a resource rest, from the settle of this run on. `resource` is one, or the pool of the first. */
  cool(resource: LeasedResource | string, time: Duration): void {
    this.#said().cool(resource, time);
  }

  /** How long after the settle the schedule of this job fires next: whole seconds, from 1 on. */
  nextIn(time: Duration): void {
    this.#nextIn = durationText(time, "nextIn");
  }

  /** The jobs that this one waited for, with their results. @throws `CodecError` for a result that it cannot open */
  parents(options?: Abortable): AsyncIterable<Parent> {
    const { signal } = signalOf(options, "parents");
    const { codec } = this.#transport;
    const read = (each: Parent) => openParent(each, (value, part) => open(codec, value, part));
    return listOf<Parent>(this.#transport, `jobs/${part(this.job.id)}/parents`, { full: true }, signal, read);
  }

  // Made for the runs that need them.
  #said(): Verdicts {
    this.#verdicts ??= new Verdicts(this.resources, this.together);
    return this.#verdicts;
  }

  /** Stops the run; the first reason stands, except that a lost lease is told in any case. @internal */
  stop(reason: Stopped): void {
    this.#reason = reason;
    this.#stop?.abort(reason);
  }

  /** An error without what the resources hold. @internal */
  hide(error: string): string {
    return this.together.length > 0 || error.includes("://") ? without(error, this.#said().secrets) : error;
  }

  /** The fields of a settle item, as JSON behind its outcome: what was said beside it. @internal */
  beside(outcome: OutcomeFields["outcome"]): string {
    this.#isWritten = true;
    let json = this.#verdicts?.json() ?? "";
    if (this.#nextIn !== undefined) json += `,"next_in":"${this.#nextIn}"`;
    // A run that is given back or failed has pushed nothing: its next run would push the same again.
    if (this.#pushes.length > 0 && outcome === "succeeded") json += `,"push":[${this.#pushes.join(",")}]`;
    return json;
  }
}
