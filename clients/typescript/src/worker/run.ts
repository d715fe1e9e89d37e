import { now } from "../clock.js";
import { Context } from "../context.js";
import { CodecError, SchemaMismatch } from "../errors.js";
import { describe } from "../failures.js";
import type { Job as JobRecord, Lease as LeaseRecord } from "../generated.js";
import type { HeldLease } from "../heartbeats/heartbeats.js";
import type { StopReason } from "../heartbeats/holdings.js";
import type { RunEnd } from "../instrumentation.js";
import { Cancelled, Draining, LeaseLost, Outcome, type Stopped, TimedOut } from "../outcomes.js";
import type { Handler, Task } from "../task.js";
import type { Transport } from "../transport.js";
import { isThenable } from "../validation.js";
import { failure, finalFailure, RELEASED, returned, thrown, type Written } from "./written.js";

/** Why a run was stopped. */
export type Stopping = StopReason | "draining";

/** A granted job, until it is settled. */
export class Run {
  readonly lease: LeaseRecord;
  readonly job: JobRecord;
  readonly ctx: Context;
  /** When its handler began. */
  began = 0;
  /** Why it was told to stop, if it was. */
  stopping: Stopping | undefined;
  stoppedAt = 0;
  ended = false;
  /** What its handler, or a schema, threw. */
  error: unknown;
  /** Set by the instrumentation, which waits for the end. */
  onEnd?: (end: RunEnd) => void;
  /** Absent where nothing extends the lease: in `runUntilIdle` of `tenure/testing`. */
  held: HeldLease | undefined;

  constructor(lease: LeaseRecord, transport: Transport, report?: (progress: string) => void) {
    this.lease = lease;
    this.job = lease.job as JobRecord;
    this.ctx = new Context(lease, transport, report ?? ((progress) => this.held?.report(progress)));
  }

  get id(): string {
    return this.lease.lease;
  }

  /** Tells the handler to stop. A lost lease stands above every other reason. */
  stop(why: Stopping): void {
    if (this.ended || this.stopping === "lost") return;
    this.stopping = why;
    this.stoppedAt = now();
    this.ctx.stop(this.#reason(why));
  }

  #reason(why: Stopping): Stopped {
    const { id } = this.job;
    if (why === "lost") return new LeaseLost(`job ${id}: the lease is lost; another worker may run it now`);
    if (why === "cancelled") return new Cancelled(`job ${id} is cancelled`);
    if (why === "timed_out") return new TimedOut(`job ${id} took longer than its timeout`);
    return new Draining(`job ${id}: the worker ends and gives the job back`);
  }
}

/** A task as the worker runs it. */
export type AnyTask = Task<never, unknown>;

/** The payload of a run, as its handler takes it. @throws `CodecError`, `SchemaMismatch` */
export function payloadOf(task: AnyTask, run: Run): unknown {
  const opening = run.ctx.open();
  return opening !== undefined ? opening.then(() => task.read(run.job.payload)) : task.read(run.job.payload);
}

/** Runs a handler, and says how its run ended; null for a run whose lease was lost. */
export async function perform(task: AnyTask | undefined, run: Run): Promise<Written | null> {
  if (!task) return noHandler(run);
  try {
    let payload = payloadOf(task, run);
    if (isThenable(payload)) payload = await payload;
    const handler = task.handler as Handler<unknown, unknown>;
    let value = handler(payload, run.ctx);
    if (isThenable(value)) value = await value;
    return await judge(task, run, value);
  } catch (error) {
    return judgeError(run, error);
  }
}

/** How a run ended whose handler returned a value. */
export async function judge(task: AnyTask, run: Run, value: unknown): Promise<Written | null> {
  if (task.checksResult) {
    try {
      await task.checkResult(value);
    } catch (error) {
      return judgeError(run, error);
    }
  }
  return await returned(value, run.ctx);
}

/** How a run ended whose handler, or schema, threw. */
export function judgeError(run: Run, error: unknown): Written | null {
  run.error = error;
  if (run.stopping === "lost") return null;
  if (run.stopping !== undefined && !(error instanceof Outcome)) {
    // A handler that is told to stop throws the reason of its signal, or an error that follows from it.
    if (run.stopping === "timed_out") return failure("timeout");
    // After a cancel this end makes the job `cancelled`.
    return RELEASED;
  }
  if (error instanceof SchemaMismatch) return finalFailure(run.ctx.hide(error.detail));
  if (error instanceof CodecError) return finalFailure(run.ctx.hide(error.message));
  try {
    return thrown(error, run.ctx);
  } catch (why) {
    return failure(run.ctx.hide(`its outcome cannot be written: ${describe(why)}`));
  }
}

/** The outcome of a job that no handler takes. It is retried by its policy: a newer worker may know its kind. */
export function noHandler(run: Run): Written {
  return failure(`no handler takes the kind "${run.job.kind}" in queue "${run.job.queue}"`);
}
