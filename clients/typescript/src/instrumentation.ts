import type { Context } from "./context.js";
import { describe } from "./failures.js";
import type { WrittenJob } from "./job-fields.js";
import type { Logger } from "./log.js";

/** A call that pushes jobs. */
export interface PushCall {
  /** The queue of all its jobs; undefined if they have several. */
  readonly queue: string | undefined;
  /** How many jobs it pushes, from 1 on. */
  readonly count: number;
}

/** How a run ended. */
export interface RunEnd {
  /** As it is settled; `lost` if the lease was lost, so that nothing is settled. */
  readonly outcome: "succeeded" | "failed" | "snoozed" | "released" | "lost";
  /** What the handler threw, an `Outcome` such as `Snooze` too; undefined if it returned a value. */
  readonly error: unknown;
}

/**
 * Surrounds the pushes, the runs and the settles of a client, for traces and reports of errors. `tenure/otel` makes one.
 *
 * It cannot change the end of a push or of a run. If it throws an error of its own, that is a line of the log, and
 * the push or the run goes on without it.
 */
export interface Instrumentation {
  /**
   * Surrounds a call that pushes jobs; `pushMany` makes several. `send` makes the call, and rejects as the push does.
   * A `traceparent` that it is given is stored with each job that has none.
   */
  push?(call: PushCall, send: (traceparent?: string) => Promise<unknown>): Promise<unknown>;
  /**
   * Surrounds a run. `handle` starts the handler, within the async context of its caller, and never rejects. A
   * `traceparent` that it is given is stored with each job of `ctx.push` that has none. In a batch each run is
   * surrounded, and the handler starts within the first one.
   */
  run?(ctx: Context, handle: (traceparent?: string) => Promise<RunEnd>): Promise<unknown>;
  /**
   * Surrounds a call that settles runs, by their contexts; also jobs that are given back before they began. `send`
   * makes the call. Ends that were not answered are settled in a later call.
   */
  settle?(runs: readonly Context[], send: () => Promise<unknown>): Promise<unknown>;
}

/** Acts within a hook; without it, if it fails first. The end is that of the act, whatever the hook makes of it. */
async function within<T>(
  hook: (act: (traceparent?: string) => Promise<T>) => unknown,
  act: (traceparent?: string) => Promise<T>,
  logger: Logger,
): Promise<T> {
  let acting: Promise<T> | undefined;
  let fault: unknown;
  const once = (traceparent?: string) => {
    acting ??= act(traceparent);
    // Handled in any case: the hook may look at it late, or not at all.
    acting.catch((thrown) => {
      fault = thrown;
    });
    return acting;
  };
  try {
    await hook(once);
  } catch (error) {
    if (error !== fault) logger.error(`the instrumentation failed: ${describe(error)}`);
  }
  return once();
}

/** Makes a call that pushes jobs. */
export function instrumentPush<T>(
  instrumentation: Instrumentation | undefined,
  jobs: readonly WrittenJob[],
  send: (jobs: readonly WrittenJob[]) => Promise<T>,
  logger: Logger,
): Promise<T> {
  if (!instrumentation?.push) return send(jobs);
  const queue = jobs[0]?.queue;
  const call = { queue: jobs.every((job) => job.queue === queue) ? queue : undefined, count: jobs.length };
  return within(
    (act) => instrumentation.push?.(call, act),
    (traceparent) => send(traceparent === undefined ? jobs : jobs.map((job) => traced(job, traceparent))),
    logger,
  );
}

function traced(job: WrittenJob, traceparent: string): WrittenJob {
  if (job.isTraced) return job;
  return { ...job, json: `{"traceparent":${JSON.stringify(traceparent)},${job.json.slice(1)}` };
}

/** Makes a call that settles runs. */
export function instrumentSettle<T>(
  instrumentation: Instrumentation | undefined,
  runs: () => readonly Context[],
  send: () => Promise<T>,
  logger: Logger,
): Promise<T> {
  return instrumentation?.settle
    ? within((act) => instrumentation.settle?.(runs(), act as () => Promise<T>), send, logger)
    : send();
}

/** Starts a run; `start` is called once. */
export function instrumentRun(
  instrumentation: Instrumentation | undefined,
  run: { readonly ctx: Context; onEnd?: (end: RunEnd) => void },
  start: () => void,
  logger: Logger,
): void {
  if (!instrumentation?.run) {
    start();
    return;
  }
  const end = new Promise<RunEnd>((resolve) => {
    run.onEnd = resolve;
  });
  void within<RunEnd>(
    (act) => instrumentation.run?.(run.ctx, act),
    (traceparent) => {
      if (traceparent !== undefined) run.ctx.traceparent = traceparent;
      start();
      return end;
    },
    logger,
  );
}
