import { now } from "../clock.js";
import type { Duration } from "../durations.js";
import { durationText } from "../durations.js";
import { refuse, wrong } from "../errors.js";
import { describe } from "../failures.js";
import type { Heartbeats } from "../heartbeats/heartbeats.js";
import { type Instrumentation, instrumentRun } from "../instrumentation.js";
import { TTL_MS, ttlOption } from "../leasing.js";
import { type Logger, SILENT, TO_STDERR, unfailing } from "../log.js";
import { as, readOptions, shape } from "../options.js";
import { checkTask } from "../task.js";
import type { Transport } from "../transport.js";
import { Batches, type Finish, type Start } from "./batches.js";
import { Exchange } from "./exchange.js";
import { type AnyTask, perform, type Run, type Stopping } from "./run.js";
import { endProcess, listen, onlyStuckLeft, type Stoppable, unlisten } from "./signals.js";
import { failure, type Written } from "./written.js";

/** How long handlers that were told to stop may take before they are given up. */
const GRACE_MS = 2000;
const LOOK_MS = 250;
/** A handler that still runs so long after it was told to stop is news. */
const IGNORES_MS = 10_000;

/** The options of a worker. */
export interface WorkerOptions {
  /** How many jobs run at once, 1 to 10,000. Default 10. */
  concurrency?: number;
  /** The queues that are asked. Default those of the tasks. */
  queues?: readonly string[];
  /** How long a lease lives without a heartbeat, 1 s to 1 h. Default 30 s. */
  ttl?: Duration;
  /** How long running handlers may go on when the worker is to end. Default 25 s. */
  drain?: Duration;
  /** Whether SIGTERM and SIGINT end it. Default true. */
  signals?: boolean;
  /** Whether it ends when no job is left that may run now. Default false. */
  untilEmpty?: boolean;
  /** Whether the schedules of the client are synced at its start. Default true. */
  schedules?: boolean;
  /** Takes its log lines; `false` takes none. Default that of the client. */
  logger?: Logger | false;
}

const SHAPE = shape({
  concurrency: as.whole(1, 10_000),
  queues: as.texts,
  ttl: ttlOption,
  drain: as.ms,
  signals: as.flag,
  untilEmpty: as.flag,
  schedules: as.flag,
  logger: as.logger,
});

/** Reads the options of a worker. */
export function readWorkerOptions(
  options: WorkerOptions | undefined,
): WorkerOptions & { ttl?: number; drain?: number } {
  const { until_empty, ...read } = readOptions(options, SHAPE, "work");
  return (until_empty === undefined ? read : { ...read, untilEmpty: until_empty }) as WorkerOptions & {
    ttl?: number;
    drain?: number;
  };
}

/** Finds the handler of a job. */
export class Handlers {
  readonly queues: readonly string[];
  #byKind = new Map<string, AnyTask>();
  #only = new Map<string, AnyTask | undefined>();

  /** `call` is the call that was given the tasks; `chosen` are the only queues that are asked. */
  constructor(tasks: readonly AnyTask[], transport: Transport, call: string, chosen?: readonly string[]) {
    if (!Array.isArray(tasks) || tasks.length === 0)
      wrong(`tasks of ${call}`, "must be an array with at least one task");
    for (const task of tasks) {
      checkTask(task, transport, `tasks of ${call}`);
      const key = `${task.queue}\0${task.name}`;
      if (this.#byKind.has(key))
        refuse(`two tasks have the name "${task.name}" in queue "${task.queue}"`, "give one of them another name");
      this.#byKind.set(key, task);
      // A job without a kind goes to the only handler of its queue.
      this.#only.set(task.queue, this.#only.has(task.queue) ? undefined : task);
    }
    this.queues = chosen ?? [...this.#only.keys()];
    for (const queue of this.queues) {
      if (this.#only.has(queue)) continue;
      const all = [...this.#only.keys()].map((each) => `"${each}"`).join(", ");
      refuse(`no task of this worker has the queue "${queue}"`, `they have ${all}`);
    }
    if (this.queues.length > 32)
      refuse(
        `a worker asks at most 32 queues, and these tasks have ${this.queues.length}`,
        "start another worker for some of them",
      );
  }

  find(queue: string, kind: string): AnyTask | undefined {
    return kind === "" ? this.#only.get(queue) : this.#byKind.get(`${queue}\0${kind}`);
  }
}

/** Takes jobs, runs them, extends their leases and settles them, until it is stopped. */
export class Worker implements AsyncDisposable {
  /** Its id, as lists of holders show it: `HOST:PID:RANDOM`. */
  readonly id: string;
  /** Fulfilled when the worker has ended; rejects with the error for which it could not go on. */
  readonly done: Promise<void>;
  #handlers: Handlers;
  #exchange: Exchange;
  #heartbeats: Heartbeats;
  #logger: Logger;
  #instrumentation: Instrumentation | undefined;
  #drain: number;
  #untilEmpty: boolean;
  #listens: boolean;
  #concurrency: number;
  #runs = new Set<Run>();
  #batches = new Map<AnyTask, Batches>();
  // Counted apart: a program's own listener may call `stop` at the same signal.
  #calls = 0;
  #signals = 0;
  #stoppable: Stoppable = {
    stopBySignal: () => {
      this.#signals++;
      this.#wake?.();
    },
    isStuck: false,
    giveUp: () => this.#giveUp(),
  };
  #wake: (() => void) | undefined;

  /** @internal */
  constructor(
    tasks: readonly AnyTask[],
    options: WorkerOptions & { ttl?: number; drain?: number },
    parts: {
      transport: Transport;
      heartbeats: Heartbeats;
      id: string;
      logger: Logger;
      instrumentation: Instrumentation | undefined;
    },
    ready: (signal: AbortSignal) => Promise<void>,
  ) {
    this.#handlers = new Handlers(tasks, parts.transport, "work", options.queues);
    const { queues } = this.#handlers;
    this.id = parts.id;
    this.#logger = options.logger === false ? SILENT : unfailing(options.logger ?? parts.logger);
    this.#instrumentation = parts.instrumentation;
    this.#heartbeats = parts.heartbeats;
    this.#concurrency = options.concurrency ?? 10;
    this.#drain = options.drain ?? 25_000;
    this.#untilEmpty = options.untilEmpty ?? false;
    this.#listens = options.signals ?? true;
    this.#exchange = new Exchange({
      transport: parts.transport,
      heartbeats: parts.heartbeats,
      logger: this.#logger,
      instrumentation: parts.instrumentation,
      worker: parts.id,
      queues,
      concurrency: this.#concurrency,
      ttl: options.ttl ?? TTL_MS,
      untilEmpty: this.#untilEmpty,
      begin: (run) => this.#begin(run),
    });
    const start: Start = (run, begin) => this.#start(run, begin);
    const finish: Finish = (run, written) => this.#finish(run, written);
    for (const task of tasks) {
      if (task.batch) this.#batches.set(task, new Batches(task, this.#concurrency, start, finish));
    }
    void parts.heartbeats.start();
    this.done = this.#live(queues, ready);
    // A program may not wait for it.
    this.done.catch((error) =>
      this.#logger.error(`the worker ends: ${error instanceof Error ? error.message : error}`),
    );
  }

  /**
   * Takes no more jobs, and lets those that run end within `drain`. Runs that are left then are told to stop
   * and given back. A second call tells it at once. Fulfilled when the worker has ended.
   */
  stop(): Promise<void> {
    this.#calls++;
    this.#wake?.();
    return this.done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #live(queues: readonly string[], ready: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#listens) listen(this.#stoppable);
    this.#logger.info(`takes jobs of ${queues.join(", ")}, ${this.#concurrency} at once`);
    let syncFault: unknown;
    const over = new AbortController();
    void ready(over.signal).catch((error) => {
      if (over.signal.aborted) return;
      syncFault = error;
      this.#wake?.();
    });
    this.#exchange.start();
    try {
      await this.#until(() => this.#calls + this.#signals > 0 || syncFault !== undefined || this.#isDone());
      await this.#end();
    } finally {
      over.abort();
      this.#exchange.close();
      if (this.#listens) unlisten(this.#stoppable);
    }
    const fault = this.#exchange.fault ?? syncFault;
    if (fault !== undefined) throw fault;
  }

  #isDone(): boolean {
    this.#exchange.fault ??= this.#heartbeats.fault;
    if (this.#exchange.fault) return true;
    return this.#untilEmpty && this.#exchange.foundNothing && this.#exchange.idle;
  }

  async #until(met: () => boolean, ms = Number.POSITIVE_INFINITY): Promise<boolean> {
    const end = now() + ms;
    while (!met()) {
      const left = end - now();
      if (left <= 0) return false;
      this.#look();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(left, LOOK_MS));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
    return true;
  }

  async #end(): Promise<void> {
    const draining = this.#exchange
      .drain()
      .catch((error) => this.#logger.error(`the drain failed: ${describe(error)}`));
    for (const batches of this.#batches.values()) batches.end();
    const idle = () => this.#exchange.idle;
    if (this.#runs.size > 0) this.#logger.info(`drains: ${this.#runs.size} jobs still run`);
    await this.#until(() => idle() || this.#calls > 1 || this.#signals > 1, this.#drain);
    if (!idle()) {
      for (const run of this.#runs) run.stop("draining");
      if (!(await this.#until(idle, GRACE_MS))) await this.#stuck();
    }
    // Jobs that the last waiting call was granted are given back, too.
    await draining;
    if (!(await this.#until(() => this.#exchange.settled, GRACE_MS))) {
      this.#logger.error("ends with outcomes that the server did not answer; their jobs may run again");
    }
  }

  /** Handlers do not stop. Their code goes on, and nothing can end it from here but the end of the process. */
  async #stuck(): Promise<void> {
    if (this.#runs.size === 0) return;
    if (this.#signals === 0) {
      // Given back, the jobs could run twice at once: here and elsewhere.
      this.#logger.warn(`${this.#named()}; the worker keeps their leases and ends after them`);
      await this.#until(() => this.#exchange.idle || this.#signals > 0);
    }
    if (this.#runs.size === 0) return;
    // The end of the process ends the other workers, too: what they run may still end well.
    this.#stoppable.isStuck = true;
    await this.#until(() => this.#runs.size === 0 || onlyStuckLeft());
    if (this.#runs.size > 0) await endProcess();
  }

  async #giveUp(): Promise<void> {
    const named = this.#named();
    for (const run of this.#runs) {
      run.ended = true;
      this.#exchange.giveBack(run);
    }
    await this.#until(() => this.#exchange.settled, GRACE_MS);
    this.#logger.error(
      `${named}; what they run is given back, and the process ends at once, so that nothing runs twice`,
    );
  }

  #named(): string {
    const runs = [...this.#runs];
    const jobs = runs.slice(0, 5).map((run) => run.job.id);
    return `${runs.length} ${runs.length === 1 ? "handler does" : "handlers do"} not stop at ctx.signal (${jobs.join(", ")})`;
  }

  #look(): void {
    this.#exchange.reach.look();
    const moment = now();
    for (const run of this.#runs) {
      if (run.stopping === undefined || moment - run.stoppedAt < IGNORES_MS) continue;
      run.stoppedAt = Number.POSITIVE_INFINITY;
      this.#logger.warn(
        `job ${run.job.id}: its handler still runs ${durationText(IGNORES_MS)} after it was told to stop (${run.stopping}); give ctx.signal to what it awaits`,
      );
    }
  }

  #begin(run: Run): void {
    this.#runs.add(run);
    run.began = now();
    const task = this.#handlers.find(run.job.queue, run.job.kind);
    // It waited for its slot, and may have been lost or cancelled meanwhile.
    if (run.held?.isLost) run.stop("lost");
    const batches = task && this.#batches.get(task);
    if (run.stopping !== undefined) {
      this.#finish(run, run.stopping === "lost" ? null : this.#unbegun(run.stopping));
      return;
    }
    if (batches) {
      void batches.add(run);
      return;
    }
    this.#start(run, () =>
      perform(task, run).then(
        (written) => this.#finish(run, written),
        (error) => this.#finish(run, failure(run.ctx.hide(`its outcome cannot be written: ${describe(error)}`))),
      ),
    );
  }

  #start(run: Run, start: () => void): void {
    instrumentRun(this.#instrumentation, run, start, this.#logger);
  }

  #unbegun(stopping: Stopping): Written {
    return stopping === "timed_out"
      ? failure("timeout")
      : { outcome: "released", error: undefined, rest: "", quiet: true };
  }

  #finish(run: Run, written: Written | null): void {
    if (run.ended) return;
    const { sealing } = run.ctx;
    if (sealing !== undefined) {
      // The last report goes with the outcome.
      run.ctx.sealing = undefined;
      void sealing.then(() => this.#finish(run, written));
      return;
    }
    run.ended = true;
    this.#runs.delete(run);
    const settled = this.#toSettle(run, written);
    const took = now() - run.began;
    this.#exchange.finish(run, settled, took);
    run.onEnd?.({ outcome: settled?.outcome ?? "lost", error: run.error });
    this.#log(run, settled, (took / 1000).toFixed(3));
    if (this.#runs.size === 0) this.#wake?.();
  }

  /** The outcome to settle; null for a lost lease, whose result no longer counts. */
  #toSettle(run: Run, written: Written | null): Written | null {
    const held = run.held;
    if (!written || !held?.settling()) return null;
    // A report that came after the last heartbeat goes with the settle.
    return held.unsent === undefined ? written : { ...written, rest: `${written.rest},"progress":${held.unsent}` };
  }

  #log(run: Run, written: Written | null, took: string): void {
    let outcome: string = written?.outcome ?? "lease_lost";
    if (outcome === "released" && run.stopping === "cancelled") outcome = "cancelled";
    const isBad = outcome === "failed" || outcome === "lease_lost";
    if (!isBad && (this.#logger === SILENT || (this.#logger === TO_STDERR && !process.env["TENURE_LOG"]))) return;
    const { job } = run;
    let why = written?.error ? `: ${written.error.split("\n", 1)[0]}` : "";
    if (!written)
      why = `: the lease was lost after ${took} s${run.stopping === "lost" ? "" : " (the event loop was blocked, or the process stopped)"}; its outcome is not settled, and the job may run elsewhere`;
    const line = `job ${job.id} ${job.queue} ${job.kind || "-"} attempt ${job.attempt} ${outcome} in ${took} s${why}`;
    if (isBad) this.#logger.warn(line);
    else this.#logger.info(line);
  }
}
