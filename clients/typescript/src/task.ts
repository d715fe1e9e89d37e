import type { Context } from "./context.js";
import type { Duration } from "./durations.js";
import { refuse, wrong } from "./errors.js";
import type { NewJob } from "./generated.js";
import { Job } from "./job.js";
import {
  JOB,
  type JobOptions,
  type Pushable,
  SHARED,
  type SharedJobOptions,
  type TaskPushOptions,
  type UniqueOptions,
  type WrittenJob,
  writeJob,
} from "./job-fields.js";
import { encode } from "./json.js";
import type { Need } from "./needs.js";
import { type Abortable, as, readOptions, type Shape, shape } from "./options.js";
import { type PushedMany, type Pusher, type PushManyOptions, pushMany } from "./pushing.js";
import type { StandardSchema } from "./standard-schema.js";
import { shown } from "./text.js";
import type { Transport } from "./transport.js";
import { schemaOption, validate } from "./validation.js";

/** How jobs of a batch task are collected. */
export interface BatchOptions {
  /** The most jobs of a call of the handler, 1 to 1,000; never more than the worker's concurrency. */
  max: number;
  /** How long the first of them waits for others. Default 100 ms. */
  wait?: Duration;
}

/** The options of a task, which all its jobs share. */
export interface TaskOptions<In, Out, RIn, ROut> extends SharedJobOptions {
  /** The schema of the payload. Checked at the push and at the run; a mismatch at the run fails the job for good. */
  schema?: StandardSchema<In, Out>;
  /** The schema of the result. A mismatch fails the job for good. */
  result?: StandardSchema<RIn, ROut>;
  /** The queue of its jobs. Default the name of the task. */
  queue?: string;
  /** Permits and resources that a run holds, or a function of the payload that returns them. */
  needs?: readonly Need[] | ((payload: In) => readonly Need[]);
  /** A key that one unfinished job holds at a time, or a function of the payload that returns it. */
  unique?: string | UniqueOptions | ((payload: In) => string | UniqueOptions);
  /** A job that does not run within this time of its push is cancelled. */
  expiresIn?: Duration;
}

/** A handler: returns the result, or throws. */
export type Handler<P, R> = (payload: P, ctx: Context) => R | Promise<R>;

/** A job of a batch. */
export interface BatchItem<P> {
  readonly payload: P;
  readonly ctx: Context;
}

/** Handles several jobs at once: returns a result for each, in their order; an `Error` in its place fails that job. */
export type BatchHandler<P, R> = (
  items: readonly BatchItem<P>[],
) => readonly (R | Error)[] | Promise<readonly (R | Error)[]>;

const TASK: Shape = shape({
  ...SHARED,
  schema: schemaOption,
  result: schemaOption,
  queue: as.text,
  needs: as.any,
  unique: as.any,
  expiresIn: as.duration,
  batch: as.any,
});
const BATCH = shape({ max: as.whole(1, 1000), wait: as.ms });
const PUSH: Shape = { ...JOB, queue: ["queue", as.text], signal: ["signal", as.signal] };
const PUSH_MANY: Shape = { ...PUSH, onRefused: ["", as.callable] };
const BATCH_WAIT_MS = 100;

/** A kind of job: its name, its payload, its options and its handler. */
export class Task<In, R> implements Pushable<In> {
  /** The kind of its jobs. */
  readonly name: string;
  /** The queue of its jobs. */
  readonly queue: string;
  /** @internal */
  readonly handler: Handler<never, unknown> | BatchHandler<never, unknown>;
  /** @internal */
  readonly batch: { readonly max: number; readonly wait: number } | undefined;
  #pusher: Pusher;
  #schema: StandardSchema | undefined;
  #result: StandardSchema | undefined;
  #options: { needs?: unknown; unique?: unknown; expiresIn?: Duration };
  #defaults: Partial<NewJob>;

  /** @internal */
  constructor(pusher: Pusher, name: string, options: object = {}, handler: Task<In, R>["handler"]) {
    if (typeof name !== "string" || name === "") refuse(`the name of a task must be text, not ${shown(name)}`);
    if (typeof handler !== "function") {
      refuse(`the handler of task "${name}" must be a function, not ${shown(handler)}`);
    }
    const read = readOptions(options, TASK, `task "${name}"`);
    const { schema, result, queue, needs: _n, unique: _u, expires_in: _e, batch, ...defaults } = read;
    const given = options as { needs?: unknown; unique?: unknown; expiresIn?: Duration };
    this.name = name;
    this.queue = (queue as string | undefined) ?? name;
    this.handler = handler;
    this.#pusher = pusher;
    this.#schema = schema as StandardSchema | undefined;
    this.#result = result as StandardSchema | undefined;
    this.#options = given;
    this.#defaults = defaults as Partial<NewJob>;
    if (batch !== undefined) {
      const { max, wait } = readOptions(batch as object, BATCH, `batch of task "${name}"`) as {
        max?: number;
        wait?: number;
      };
      if (max === undefined)
        refuse(`batch of task "${name}" has no "max"`, "say how many jobs a call of the handler takes at most");
      this.batch = { max, wait: wait ?? BATCH_WAIT_MS };
    }
    // Found out now, and not at the first push.
    readOptions(this.#ownOptions(undefined, true), JOB, `task "${name}"`);
  }

  /** Whether a client that makes its calls by this transport made it. @internal */
  isOf(transport: Transport): boolean {
    return this.#pusher.transport === transport;
  }

  /** Needs and key, as they are for a payload; `fixed` leaves out those that are functions. */
  #ownOptions(payload: unknown, fixed = false): JobOptions {
    const own: Record<string, unknown> = {};
    for (const name of ["needs", "unique"] as const) {
      const given = this.#options[name];
      if (given === undefined) continue;
      if (typeof given !== "function") own[name] = given;
      else if (!fixed) own[name] = given(payload);
    }
    if (this.#options.expiresIn !== undefined && !fixed) own["expiresAt"] = this.#options.expiresIn;
    return own;
  }

  /** A job of this task as the server reads it. Nothing is sent. @throws `SchemaMismatch` */
  async jobOf(payload: In, options?: TaskPushOptions & Abortable): Promise<Partial<NewJob>> {
    if (this.#schema) await validate(this.#schema, payload, "payload", this.name);
    const call = `push of task "${this.name}"`;
    const { signal: _, ...given } = readOptions(options, PUSH, call);
    const own = readOptions(this.#ownOptions(payload), JOB, call);
    const job: Partial<NewJob> = {
      queue: this.queue,
      kind: this.name,
      ...this.#defaults,
      ...own,
      ...given,
      payload: payload ?? null,
    };
    // A moment of one push takes the place of the task's delay.
    if ("run_at" in given) delete job.delay;
    return job;
  }

  /** The job of a schedule of this task. @internal */
  async scheduledJob(payload: In): Promise<Record<string, unknown>> {
    const { delay: _d, unique: _u, on_parent_failure: _p, expires_at: _e, ...job } = await this.jobOf(payload);
    encode(payload, "payload");
    const { expiresIn } = this.#options;
    return expiresIn === undefined ? job : { ...job, expires_in: as.duration(expiresIn, "expiresIn") };
  }

  async #written(payload: In, options?: TaskPushOptions & Abortable): Promise<WrittenJob> {
    return await writeJob(await this.jobOf(payload, options), this.#pusher.transport.codec);
  }

  /**
   * Pushes a job. Without an `id` one is made, so a push whose answer was lost is repeated and not done
   * twice. A job with this `id`, or with the same unique key, is answered as it is, with `duplicate`.
   *
   * @throws `SchemaMismatch` or `NotJson` before anything is sent; `Conflict` where `onConflict` is
   * `reject` and the key is held.
   */
  async push(payload: In, options?: TaskPushOptions & Abortable): Promise<Job<R>> {
    const job = await this.#written(payload, options);
    const answer = await this.#pusher.push(job, options?.signal);
    return this.job(answer.id, answer);
  }

  /**
   * Pushes jobs of any number, from an array, a generator or a stream, which is read only as fast as the
   * server takes them. What was stored before a refused job stays stored.
   *
   * @throws the error of the first refused job; its `index` counts from the start.
   */
  async pushMany(
    payloads: Iterable<In> | AsyncIterable<In>,
    options: TaskPushOptions & PushManyOptions = {},
  ): Promise<PushedMany> {
    const { signal, onRefused, ...shared } = options;
    if ("id" in shared) refuse("pushMany takes no id: it would be that of each job");
    readOptions(options, PUSH_MANY, `pushMany of task "${this.name}"`);
    as.items(payloads, "the payloads of pushMany");
    const written = async function* (task: Task<In, R>): AsyncGenerator<WrittenJob, void, void> {
      for await (const payload of payloads) yield await task.#written(payload, shared);
    };
    return await pushMany(this.#pusher, written(this), {
      ...(signal && { signal }),
      ...(onRefused && { onRefused }),
    });
  }

  /** A job of this task, by its id. No call is made. */
  job(id: string, pushed?: { duplicate: boolean; replaced: boolean }): Job<R> {
    const schema = this.#result;
    const read = schema && ((result: unknown) => validate(schema, result, "result", this.name) as Promise<R>);
    return new Job<R>(this.#pusher.transport, id, pushed, read);
  }

  /** Reads the payload of a run. @internal */
  read(payload: unknown): unknown {
    return this.#schema ? validate(this.#schema, payload, "payload", this.name) : payload;
  }

  /** Checks what the handler returned, and returns what is stored. @internal */
  async checkResult(result: unknown): Promise<void> {
    if (this.#result) await validate(this.#result, result, "result", this.name);
  }

  /** @internal */
  get checksResult(): boolean {
    return this.#result !== undefined;
  }
}

/**
 * Refuses what is no task of a client. A task pushes to the client that made it: run by a worker of another one, as
 * in a test with a client of its own, it would push to the wrong server.
 */
export function checkTask(task: unknown, transport: Transport, name: string): void {
  if (!(task instanceof Task)) wrong(name, `must be what client.task() makes, not ${shown(task)}`);
  if (task.isOf(transport)) return;
  wrong(
    name,
    `must be of this client, and task "${task.name}" is of another one`,
    "make it by task() of this client, or use the client that made it",
  );
}
