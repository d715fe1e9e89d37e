import type { Tenure } from "../client.js";
import { now } from "../clock.js";
import { TenureError } from "../errors.js";
import { isError } from "../failures.js";
import type { Job as JobRecord, Lease as LeaseRecord, Queue, Settled } from "../generated.js";
import { newId, workerId } from "../ids.js";
import { instrumentRun, instrumentSettle } from "../instrumentation.js";
import { workerFields } from "../leasing.js";
import { as, readOptions, shape } from "../options.js";
import { Outcome } from "../outcomes.js";
import type { Settings } from "../settings.js";
import type { BatchHandler, Handler, Task } from "../task.js";
import { part, type Transport } from "../transport.js";
import { type AnyTask, judge, judgeError, noHandler, payloadOf, Run } from "../worker/run.js";
import { Handlers } from "../worker/worker.js";
import { itemOf, type Written } from "../worker/written.js";
import { TestClock } from "./clock.js";

/** No test takes longer for one job, so no lease is extended. */
const TTL = "1h";

/** How handlers are run until there is nothing to do. */
export interface IdleOptions {
  /** Whether the test clock jumps to the next moment at which a job may run. Default false. */
  advance?: boolean;
  /** Whether what a handler throws is thrown in the test, after it is settled as a worker would. Default true. */
  throws?: boolean;
  /** After how many runs or jumps it gives up, since a handler may push itself again. Default 1,000. */
  limit?: number;
}

/** A run of a handler in a test. */
export interface Ran {
  /** The job as it was granted. */
  job: JobRecord;
  /** How the run ended. */
  outcome: Written["outcome"];
  /** What the handler returned. */
  result: unknown;
  /** The error that was stored. */
  error: string | undefined;
}

const SHAPE = shape({ advance: as.flag, throws: as.flag, limit: as.whole(1) });

/**
 * Runs the handlers of tasks, one after the other, until no job is left that may run now; returns the runs
 * in their order. Jobs that are scheduled for later stay; with `advance` the test clock jumps to each of
 * them. No timeout is enforced, and no lease is extended.
 */
export async function runUntilIdle(
  client: Tenure,
  tasks: readonly Task<never, unknown>[],
  options?: IdleOptions,
): Promise<Ran[]> {
  const { advance = false, throws = true, limit = 1000 } = readOptions(options, SHAPE, "runUntilIdle") as IdleOptions;
  const { transport, settings } = client.parts;
  const handlers = new Handlers(tasks, transport, "runUntilIdle");
  const clock = new TestClock(transport);
  const worker = workerFields(workerId());
  const runs: Ran[] = [];
  let jumps = 0;
  for (;;) {
    const ask = { queues: handlers.queues, wait: "0s", ttl: TTL, worker, request_id: newId("request") };
    const answer = await transport.json<{ leases: LeaseRecord[]; next_at?: string | null }>({
      method: "POST",
      path: "leases",
      body: JSON.stringify(ask),
    });
    for (const lease of answer.leases) {
      const { ran, error } = await runOne(
        transport,
        settings,
        handlers.find(lease.job?.queue ?? "", lease.job?.kind ?? ""),
        lease,
      );
      runs.push(ran);
      if (error !== undefined && throws) throw error;
    }
    if (runs.length >= limit || jumps >= limit) {
      throw new Error(
        `it is not idle after ${limit} steps; the last job was ${runs.at(-1)?.job.id}. Does a handler push itself again?`,
      );
    }
    if (answer.leases.length > 0) continue;
    if (!advance || !answer.next_at || !(await waits(transport, handlers.queues))) return runs;
    const left = Date.parse(answer.next_at) - (await clock.now()).getTime();
    // The server counts microseconds, and a jump is whole milliseconds.
    await clock.advance(Math.max(1, left + 1));
    jumps++;
  }
}

/** Whether a job waits here: `next_at` may be the moment of another queue, or of a pause. */
async function waits(transport: Transport, queues: readonly string[]): Promise<boolean> {
  for (const name of queues) {
    const { counts } = await transport.json<Queue>({ method: "GET", path: `queues/${part(name)}` });
    if (counts.ready + counts.blocked + counts.scheduled > 0) return true;
  }
  return false;
}

async function runOne(
  transport: Transport,
  settings: Settings,
  task: AnyTask | undefined,
  lease: LeaseRecord,
): Promise<{ ran: Ran; error: unknown }> {
  let progress: string | undefined;
  const run = new Run(lease, transport, (written) => {
    progress = written;
  });
  run.began = now();
  let error: unknown;
  let result: unknown;
  const handle = async (): Promise<Written | null> => {
    try {
      if (!task) {
        const written = noHandler(run);
        error = new Error(written.error);
        return written;
      }
      const payload = await payloadOf(task, run);
      result = task.batch
        ? (await (task.handler as BatchHandler<unknown, unknown>)([{ payload, ctx: run.ctx }]))[0]
        : await (task.handler as Handler<unknown, unknown>)(payload, run.ctx);
      if (isError(result)) throw result;
      const written = await judge(task, run, result);
      if (written?.outcome === "failed") error = new Error(written.error);
      return written;
    } catch (raised) {
      if (!(raised instanceof Outcome)) error = raised;
      return judgeError(run, raised);
    }
  };
  const settle = await new Promise<Written>((resolve) => {
    const start = () => void handle().then((written) => resolve(written as Written));
    instrumentRun(settings.instrumentation, run, start, settings.logger);
  });
  await run.ctx.sealing;
  run.onEnd?.({ outcome: settle.outcome, error: run.error });
  const item = itemOf(
    run.id,
    progress === undefined ? settle : { ...settle, rest: `${settle.rest},"progress":${progress}` },
  );
  const body = `{"settle":[${item}]}`;
  const answer = await instrumentSettle(
    settings.instrumentation,
    () => [run.ctx],
    () => transport.json<Settled>({ method: "POST", path: "leases/settle", body }),
    settings.logger,
  );
  if (!answer.settled[0]?.ok)
    error ??= new TenureError("lease_lost", `job ${run.job.id}: its outcome no longer counts`, {
      hint: "its lease was taken away or is over; does another worker of the test run?",
    });
  const isDone = settle.outcome === "succeeded";
  return {
    ran: { job: run.job, outcome: settle.outcome, result: isDone ? result : undefined, error: settle.error },
    error,
  };
}
