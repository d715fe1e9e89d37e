import { shownJob } from "./codec.js";
import { type EventOptions, lastEvent, readEvents, type TenureEvent } from "./events.js";
import { Flows } from "./flows.js";
import type {
  Audit,
  DoneMany,
  FailureGroup,
  JobFilter,
  Job as JobRecord,
  JobState,
  LeaseSummary,
  NewJob,
  PushedJob,
  Stats,
  Version,
  Worker as WorkerRecord,
} from "./generated.js";
import { Heartbeats } from "./heartbeats/heartbeats.js";
import { workerId } from "./ids.js";
import { Job } from "./job.js";
import { JOB, type JobOptions, type JobSpec, readSpec, writeJob, writeSpecs } from "./job-fields.js";
import { acquire, type Lease, type LeaseOptions } from "./leasing.js";
import { listOf } from "./lists.js";
import type { Need } from "./needs.js";
import { type Abortable, as, readOptions, type Shape, shape, signalOf } from "./options.js";
import { type PushedMany, Pusher, type PushManyOptions, pushMany } from "./pushing.js";
import { Limits, Pools, Queues } from "./scarce.js";
import { Schedules, type Timing } from "./schedules.js";
import { FetchSender, HttpSender, type Sender } from "./sender.js";
import { type ClientOptions, readSettings, type Settings, shownAddress } from "./settings.js";
import { type BatchHandler, type BatchOptions, type Handler, Task, type TaskOptions } from "./task.js";
import { type ScheduleEntry, Timetable } from "./timetable.js";
import { Transport } from "./transport.js";
import { readWorkerOptions, Worker, type WorkerOptions } from "./worker/worker.js";

/** A filter of jobs. All fields that are given must fit. */
export interface JobQuery {
  /** Jobs of this queue. */
  queue?: string;
  /** Jobs in this state, or in one of these. */
  state?: JobState | readonly JobState[];
  /** Jobs of this kind. */
  kind?: string;
  /** Jobs with this label, `KEY:VALUE`. */
  label?: string;
  /** Jobs whose last error contains this text. */
  error?: string;
  /** Jobs that ended at this moment or later. */
  finishedAfter?: Date | string;
  /** Jobs that ended before this moment. */
  finishedBefore?: Date | string;
  /** Jobs of this flow. */
  flow?: string;
  /** Jobs that this schedule made. */
  schedule?: string;
}

const QUERY = shape({
  queue: as.text,
  state: (value, name) => (Array.isArray(value) ? as.texts(value, name).join(",") : as.text(value, name)),
  kind: as.text,
  label: as.text,
  error: as.text,
  finishedAfter: as.moment,
  finishedBefore: as.moment,
  flow: as.text,
  schedule: as.text,
});
const LIST: Shape = { ...QUERY, full: ["full", as.flag], signal: ["signal", as.signal] };
const PUSH: Shape = { ...JOB, signal: ["signal", as.signal] };
const MANY = shape({ signal: as.signal, onRefused: as.callable });
const GROUPS = { queue: as.text, kind: as.text, finishedAfter: as.moment };
const FAILURES = shape({ ...GROUPS, max: as.whole(1, 1000), signal: as.signal });
const LEASES = shape({ queue: as.text, limit: as.text, pool: as.text, worker: as.text, signal: as.signal });

/**
 * A client of Tenure. It makes no call by itself, and needs no `close` to let a program end; `close`
 * ends its connections at once.
 */
export class Tenure implements AsyncDisposable {
  /** Limits: permits, rates and gaps. */
  readonly limits: Limits;
  /** Pools and their resources. */
  readonly pools: Pools;
  /** Queues. */
  readonly queues: Queues;
  /** Schedules. */
  readonly schedules: Schedules;
  /** Flows. */
  readonly flows: Flows;
  #settings: Settings;
  #transport: Transport;
  #sender: Sender;
  #pusher: Pusher;
  #heartbeats: Heartbeats;
  #timetable: Timetable;
  #worker: string | undefined;

  /** @throws `WrongOption` */
  constructor(options?: ClientOptions) {
    const settings = readSettings(options);
    this.#settings = settings;
    this.#sender = settings.fetch ? new FetchSender(settings.fetch) : new HttpSender(settings);
    this.#transport = new Transport(settings, settings.token, this.#sender, settings.logger, settings.retryFor);
    this.#transport.codec = settings.codec;
    this.#pusher = new Pusher(this.#transport, settings.logger, settings.instrumentation);
    this.#heartbeats = new Heartbeats(settings, this.#transport, settings.logger);
    this.limits = new Limits(this.#transport);
    this.pools = new Pools(this.#transport);
    this.queues = new Queues(this.#transport);
    this.schedules = new Schedules(this.#transport);
    this.flows = new Flows(this.#transport);
    this.#timetable = new Timetable(this.schedules, settings.owner, settings.logger);
  }

  /** The address, without user and password. */
  get url(): string {
    return shownAddress(this.#settings);
  }

  /** The namespace; `default` unless one was given. */
  get namespace(): string {
    return this.#settings.namespace ?? "default";
  }

  /**
   * Pushes a job. Without an `id` one is made, so a push whose answer was lost is repeated and not done
   * twice. A job with this `id`, or with the same unique key, is answered as it is, with `duplicate`.
   */
  async push<R = unknown>(queue: string, payload?: unknown, options?: JobOptions & Abortable): Promise<Job<R>> {
    const { signal, ...given } = readOptions(options, PUSH, "push") as Partial<NewJob> & Abortable;
    const spec = { queue: as.text(queue, "the queue of push"), ...given, payload: payload ?? null };
    const job = await writeJob(spec, this.#settings.codec);
    const answer = await this.#pusher.push(job, signal);
    return new Job<R>(this.#transport, answer.id, answer);
  }

  /**
   * Pushes 1 to 1,000 jobs, all or none, and returns them in their order. `ref` names one of them in the
   * `after` of another.
   *
   * @throws the error of the first refused job, with its `index`.
   */
  async pushAll(jobs: readonly JobSpec[], options?: Abortable): Promise<Job[]> {
    const signal = signalOf(options, "pushAll");
    const given = [...as.items(jobs, "the jobs of pushAll")];
    const written = await Promise.all(given.map((job) => writeJob(readSpec(job, "pushAll"), this.#settings.codec)));
    if (written.length === 0) return [];
    const pushed = await this.#pusher.call(written, (traced) =>
      this.#transport.json<PushedJob[]>({
        method: "POST",
        path: "jobs",
        body: `[${traced.map((job) => job.json).join(",")}]`,
        minimal: true,
        ...signal,
      }),
    );
    return pushed.map(
      (each) => new Job(this.#transport, each.id, { duplicate: each.duplicate, replaced: each.replaced ?? false }),
    );
  }

  /**
   * Pushes jobs of any number, from an array, a generator or a stream, which is read only as fast as the
   * server takes them. What was stored before a refused job stays stored.
   *
   * @throws the error of the first refused job; its `index` counts from the start.
   */
  async pushMany(jobs: Iterable<JobSpec> | AsyncIterable<JobSpec>, options?: PushManyOptions): Promise<PushedMany> {
    readOptions(options, MANY, "pushMany");
    const source = writeSpecs(as.items(jobs, "the jobs of pushMany"), this.#settings.codec);
    return await pushMany(this.#pusher, source, options ?? {});
  }

  /** A job, by its id or by `key:KEY`. No call is made. */
  job<R = unknown>(id: string): Job<R> {
    return new Job<R>(this.#transport, as.text(id, "the id of a job"));
  }

  /** Jobs, newest first. Payloads and results are left out unless `full` is given. */
  jobs(query?: JobQuery & { full?: boolean } & Abortable): AsyncIterable<JobRecord> {
    const { signal, ...read } = readOptions(query, LIST, "jobs") as Record<string, unknown> & Abortable;
    const { codec } = this.#settings;
    return listOf<JobRecord>(this.#transport, "jobs", read, signal, codec && ((job) => shownJob(codec, job)));
  }

  /** Cancels all jobs that fit; returns how many. */
  cancelJobs(query: JobQuery, options?: Abortable): Promise<number> {
    return this.#bulk("cancel", query, options);
  }

  /** Retries all failed or cancelled jobs that fit; returns how many. */
  retryJobs(query: JobQuery, options?: Abortable): Promise<number> {
    return this.#bulk("retry", query, options);
  }

  /** Deletes all jobs that fit and do not run; returns how many. */
  deleteJobs(query: JobQuery, options?: Abortable): Promise<number> {
    return this.#bulk("delete", query, options);
  }

  async #bulk(verb: string, query: JobQuery, options: Abortable | undefined): Promise<number> {
    const filter = readOptions(query, QUERY, `${verb}Jobs`) as JobFilter;
    let done = 0;
    let cursor: string | null | undefined;
    do {
      const body = JSON.stringify(cursor ? { ...filter, cursor } : filter);
      const answer: DoneMany = await this.#transport.call(`${verb}Jobs`, "POST", ["jobs", verb], options, body);
      done += answer.done;
      cursor = answer.next;
    } while (cursor);
    return done;
  }

  /** Failed jobs counted by their errors, the most frequent first; `max` is 1 to 1,000, 100 unless given. */
  async failures(
    query: { queue?: string; kind?: string; finishedAfter?: Date | string; max?: number } & Abortable = {},
  ): Promise<FailureGroup[]> {
    const { signal, ...read } = readOptions(query, FAILURES, "failures") as Record<string, unknown> & Abortable;
    const found = await this.#transport.json<{ items: FailureGroup[] }>({
      method: "GET",
      path: "failures",
      query: read,
      signal,
    });
    return found.items;
  }

  /**
   * Yields events as they happen, across lost connections and restarts of the server. Missed events are a
   * value with the type `gap`, and no error. It begins with what happens from its first step on, or
   * behind `since`, and never ends by itself.
   */
  events(options?: EventOptions): AsyncGenerator<TenureEvent, void, void> {
    return readEvents(this.#transport, options);
  }

  /** The id of the newest event; as `since` it means "from now on". */
  lastEvent(options?: Abortable): Promise<string> {
    return lastEvent(this.#transport, signalOf(options, "lastEvent").signal);
  }

  /** Makes a kind of job with a schema: its payload is checked at the push and at the run. */
  task<In, Out, RIn, ROut = RIn>(
    name: string,
    options: TaskOptions<In, Out, RIn, ROut> & {
      schema: NonNullable<TaskOptions<In, Out, RIn, ROut>["schema"]>;
      batch?: undefined;
    },
    handler: Handler<Out, RIn>,
  ): Task<In, ROut>;
  /** Makes a kind of job with a schema, whose handler takes several jobs at once. */
  task<In, Out, RIn, ROut = RIn>(
    name: string,
    options: TaskOptions<In, Out, RIn, ROut> & {
      schema: NonNullable<TaskOptions<In, Out, RIn, ROut>["schema"]>;
      batch: BatchOptions;
    },
    handler: BatchHandler<Out, RIn>,
  ): Task<In, ROut>;
  /** Makes a kind of job without a schema: its payload is what the handler says it takes, unchecked. */
  task<P, R, ROut = R>(
    name: string,
    options: TaskOptions<P, P, R, ROut> & { schema?: undefined; batch?: undefined },
    handler: Handler<P, R>,
  ): Task<P, ROut>;
  /** Makes a kind of job without a schema, whose handler takes several jobs at once. */
  task<P, R, ROut = R>(
    name: string,
    options: TaskOptions<P, P, R, ROut> & { schema?: undefined; batch: BatchOptions },
    handler: BatchHandler<P, R>,
  ): Task<P, ROut>;
  task(
    name: string,
    options: object,
    handler: Handler<never, unknown> | BatchHandler<never, unknown>,
  ): Task<never, unknown> {
    return new Task(this.#pusher, name, options, handler);
  }

  /** Starts a worker that runs the handlers of tasks, until it is stopped or a signal ends it. */
  work(tasks: readonly Task<never, unknown>[], options?: WorkerOptions): Worker {
    const read = readWorkerOptions(options);
    const parts = {
      transport: this.#transport,
      heartbeats: this.#heartbeats,
      id: workerId(),
      logger: this.#settings.logger,
      instrumentation: this.#settings.instrumentation,
    };
    const ready = async (signal: AbortSignal) => {
      if (read.schedules !== false) await this.#timetable.sync({ signal });
    };
    return new Worker(tasks, read, parts, ready);
  }

  /**
   * States a schedule of a task; the workers of this client sync it when they start, and `syncSchedules`
   * does it at once. The schedules of an `owner` are one set: one that is stated no more is deleted at the
   * next sync, so all programs of an owner must state the same.
   *
   * @param timing a cron expression, or `{ every }`.
   * @throws `WrongOption` if the client has no `owner`, or two schedules have one id.
   */
  schedule<In>(
    task: Task<In, unknown>,
    timing: string | Pick<Timing, "every" | "cron">,
    options?: ScheduleEntry<In>,
  ): void {
    this.#timetable.add(task as Task<never, unknown>, timing, options as ScheduleEntry<never> | undefined);
  }

  /**
   * Makes the schedules of this client's owner be those that `schedule` stated.
   *
   * @throws `Invalid` if most of them would be deleted, unless `force` is given.
   */
  syncSchedules(options?: { force?: boolean } & Abortable): Promise<void> {
    return this.#timetable.sync(options);
  }

  /**
   * Waits for a lock, and holds it until it is released: `await using lock = await client.lock("deploy")`.
   * `lock:NAME` is a limit with one permit, unless it was set otherwise.
   *
   * @throws `NotGranted` when `wait` is over; the message names the holders.
   */
  lock(name: string, options?: LeaseOptions): Promise<Lease> {
    return this.#acquire([{ limit: `lock:${as.text(name, "the name of a lock")}` }], options, "lock");
  }

  /**
   * Waits for permits and resources, and holds them until they are released.
   *
   * @throws `NotGranted` when `wait` is over.
   */
  lease(needs: readonly Need[] | { needs: readonly Need[] }, options?: LeaseOptions): Promise<Lease> {
    const given = (needs as { needs?: readonly Need[] } | undefined)?.needs ?? (needs as readonly Need[]);
    return this.#acquire(given, options, "lease");
  }

  #acquire(needs: readonly Need[], options: LeaseOptions | undefined, call: string): Promise<Lease> {
    this.#worker ??= workerId();
    return acquire(this.#transport, this.#heartbeats, this.#worker, needs, options, call);
  }

  /** Live leases, oldest first, without the data of resources. */
  leases(
    query?: { queue?: string; limit?: string; pool?: string; worker?: string } & Abortable,
  ): AsyncIterable<LeaseSummary> {
    const { signal, ...read } = readOptions(query, LEASES, "leases") as Record<string, unknown> & Abortable;
    return listOf(this.#transport, "leases", read, signal);
  }

  /** Takes a lease away from its holder. Its job runs again. */
  async endLease(lease: string, options?: Abortable): Promise<void> {
    await this.#transport.call("endLease", "DELETE", ["leases", lease], options);
  }

  /** The processes that asked for work within the last minute. */
  workers(options?: Abortable): AsyncIterable<WorkerRecord> {
    return listOf(this.#transport, "workers", {}, signalOf(options, "workers").signal);
  }

  /** Counts jobs by queue and state, and what else there is. */
  stats(options?: Abortable): Promise<Stats> {
    return this.#transport.call("stats", "GET", ["stats"], options);
  }

  /** Lets the server recount all sums and compare them; `deep` also compares what is stored with its checksums. */
  audit(options: { deep?: boolean } & Abortable = {}): Promise<Audit> {
    const known = shape({ deep: as.flag, signal: as.signal });
    const { signal, ...query } = readOptions(options, known, "audit") as Record<string, unknown> & Abortable;
    return this.#transport.json({ method: "GET", path: "audit", query, wait: 60_000, signal });
  }

  /** The version of the server. */
  version(options?: Abortable): Promise<Version> {
    return this.#transport.json({ method: "GET", path: "/version", ...signalOf(options, "version") });
  }

  /** Ends idle connections, and heartbeats as soon as nothing is held. Workers end, and no lock is granted any more. */
  close(): void {
    this.#heartbeats.close();
    this.#transport.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** For `tenure/testing`. @internal */
  get parts(): { transport: Transport; settings: Settings } {
    return { transport: this.#transport, settings: this.#settings };
  }
}
