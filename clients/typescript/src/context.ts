import { type Duration, durationText } from "./durations.js";
import type {
  Job as JobRecord,
  LeasedResource,
  Lease as LeaseRecord,
  LimitVerdict,
  NewJob,
  Parent,
  ResourceVerdict,
} from "./generated.js";
import { type JobSpec, type Pushable, readSpec, type TaskPushOptions, writeJob } from "./job-fields.js";
import { encode } from "./json.js";
import { resourceOf } from "./leasing.js";
import { listOf } from "./lists.js";
import { as, wrong } from "./options.js";
import type { OutcomeFields, Stopped } from "./outcomes.js";
import { secretsOf, valueWithout, without } from "./secrets.js";
import { shown } from "./text.js";
import { part, type Transport } from "./transport.js";

const PROGRESS_BYTES = 4096;
const PUSHES_MAX = 100;

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
  #lease: LeaseRecord;
  #transport: Transport;
  #report: (progress: string) => void;
  #stop: AbortController | undefined;
  #reason: Stopped | undefined;
  #verdicts = new Map<string, ResourceVerdict>();
  #limits = new Map<string, LimitVerdict>();
  #pushes: string[] = [];
  #nextIn: string | undefined;
  #secrets: string[] | undefined;

  /** @internal */
  constructor(lease: LeaseRecord, transport: Transport, report: (progress: string) => void) {
    this.job = lease.job as JobRecord;
    this.fence = lease.fence;
    this.resources = lease.resources;
    this.limits = lease.limits;
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
   * reports in a second the last one counts. The value is read at once.
   */
  progress(value: unknown): void {
    let written = encode(value, "progress");
    // Looked for in its texts: a secret of digits may stand in a number by accident.
    if (this.resources.length > 0) written = JSON.stringify(valueWithout(JSON.parse(written), this.#hidden()));
    const bytes = Buffer.byteLength(written);
    if (bytes > PROGRESS_BYTES) wrong("progress", `has ${bytes} bytes as JSON; it takes at most ${PROGRESS_BYTES}`);
    if (value !== null && value !== undefined) this.#report(written);
  }

  /**
   * Pushes a job in the same step in which this run is settled as succeeded, or neither happens; at most
   * 100. A run that ends otherwise pushes nothing. Returns the id of the job.
   */
  async push<In>(task: Pushable<In>, payload: In, options?: TaskPushOptions): Promise<string>;
  async push(job: JobSpec): Promise<string>;
  async push(what: Pushable<never> | JobSpec, payload?: unknown, options?: TaskPushOptions): Promise<string> {
    const isTask = "jobOf" in what;
    const spec: Partial<NewJob> = isTask ? await what.jobOf(payload as never, options) : readSpec(what, "ctx.push");
    if (this.#pushes.length >= PUSHES_MAX) wrong("ctx.push", `takes at most ${PUSHES_MAX} jobs in a run`);
    const job = writeJob(spec);
    this.#pushes.push(job.json);
    return job.id;
  }

  /** Says how many rate tokens the run spent in truth; it corrects the cost that the grant booked. */
  spent(limit: string, tokens: number): void {
    this.#limit(limit)["spent"] = as.whole(0)(tokens, "spent");
  }

  /** Grants a limit to nobody for a time, from the settle of this run on. */
  pause(limit: string, time: Duration): void {
    this.#limit(limit)["pause"] = as.duration(time, "pause");
  }

  /** Hands a resource out no more, from the settle of this run on. `resource` is one, or the pool of the first. */
  ban(resource: LeasedResource | string, reason: string): void {
    this.#judge(resource, { verdict: "ban", reason: without(as.text(reason, "reason of ban"), this.#hidden()) });
  }

  /** Lets a resource rest, from the settle of this run on. `resource` is one, or the pool of the first. */
  cool(resource: LeasedResource | string, time: Duration): void {
    this.#judge(resource, { verdict: "cool", for: as.duration(time, "cool") });
  }

  /** How long after the settle the schedule of this job fires next: whole seconds, from 1 on. */
  nextIn(time: Duration): void {
    this.#nextIn = durationText(time, "nextIn");
  }

  /** The jobs that this one waited for, with their results. */
  parents(): AsyncIterable<Parent> {
    return listOf(this.#transport, `jobs/${part(this.job.id)}/parents`, { full: true });
  }

  #limit(limit: string): LimitVerdict {
    const name = as.text(limit, "the limit").replace(/^limit:/, "");
    let verdict = this.#limits.get(name);
    if (!verdict) {
      verdict = { limit: name };
      this.#limits.set(name, verdict);
    }
    return verdict;
  }

  #judge(resource: LeasedResource | string, verdict: Omit<ResourceVerdict, "pool" | "id">): void {
    const { pool, id } = typeof resource === "string" ? this.resource(resource) : resource;
    if (typeof id !== "string")
      wrong("the resource", `must be one of ctx.resources or the name of a pool, not ${shown(resource)}`);
    this.#verdicts.set(`${pool}/${id}`, { pool, id, ...verdict });
  }

  #hidden(): string[] {
    this.#secrets ??= secretsOf(this.resources.map((each) => each.data));
    return this.#secrets;
  }

  /** Stops the run; the first reason stands, except that a lost lease is told in any case. @internal */
  stop(reason: Stopped): void {
    this.#reason = reason;
    this.#stop?.abort(reason);
  }

  /** An error without what the resources hold. @internal */
  hide(error: string): string {
    return this.resources.length > 0 || error.includes("://") ? without(error, this.#hidden()) : error;
  }

  /** The fields of a settle item, as JSON behind its outcome: what was said beside it. @internal */
  beside(outcome: OutcomeFields["outcome"]): string {
    let json = "";
    if (this.#verdicts.size > 0) json += `,"resources":${JSON.stringify([...this.#verdicts.values()])}`;
    if (this.#limits.size > 0) json += `,"limits":${JSON.stringify([...this.#limits.values()])}`;
    if (this.#nextIn !== undefined) json += `,"next_in":"${this.#nextIn}"`;
    // A run that is given back or failed has pushed nothing: its next run would push the same again.
    if (this.#pushes.length > 0 && outcome === "succeeded") json += `,"push":[${this.#pushes.join(",")}]`;
    return json;
  }
}
