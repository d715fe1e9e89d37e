import { describe, isError } from "../failures.js";
import type { BatchHandler, BatchItem } from "../task.js";
import { type AnyTask, judge, judgeError, payloadOf, type Run } from "./run.js";
import { finalFailure, type Written } from "./written.js";

/** Starts a run within the instrumentation of the client. */
export type Start = (run: Run, start: () => void) => void;
/** Takes in the end of a run. */
export type Finish = (run: Run, written: Written | null) => void;

/** Jobs of one batch task, collected until there are enough or the first has waited long enough. */
export class Batches {
  #task: AnyTask;
  #max: number;
  #wait: number;
  #start: Start;
  #finish: Finish;
  #collected: { run: Run; payload: unknown }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #ends = false;

  constructor(task: AnyTask, concurrency: number, start: Start, finish: Finish) {
    const batch = task.batch as NonNullable<AnyTask["batch"]>;
    this.#task = task;
    // A worker never has more jobs at once than its concurrency.
    this.#max = Math.min(batch.max, concurrency);
    this.#wait = batch.wait;
    this.#start = start;
    this.#finish = finish;
  }

  /** Adds a job. One whose payload does not fit fails alone. */
  async add(run: Run): Promise<void> {
    let payload: unknown;
    try {
      payload = await payloadOf(this.#task, run);
    } catch (error) {
      this.#start(run, () => this.#finish(run, judgeError(run, error)));
      return;
    }
    this.#collected.push({ run, payload });
    if (this.#ends || this.#collected.length >= this.#max) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), this.#wait);
  }

  /** Runs what is collected, and from now on each job at once: the worker waits for them to end. */
  end(): void {
    this.#ends = true;
    this.flush();
  }

  /** Runs what is collected. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#collected.length > 0) this.#run(this.#collected.splice(0));
  }

  #run(collected: { run: Run; payload: unknown }[]): void {
    // A run that was stopped while it waited is not begun.
    const begun = collected.filter(({ run, payload: _ }) => {
      if (run.stopping === undefined) return true;
      this.#finish(run, judgeError(run, new Error("stopped before it began")));
      return false;
    });
    const [first, ...others] = begun;
    if (first === undefined) return;
    // The handler can start within one run only. The others begin before it.
    for (const { run } of others) this.#start(run, () => {});
    this.#start(first.run, () => void this.#handle(begun));
  }

  async #handle(begun: { run: Run; payload: unknown }[]): Promise<void> {
    // What a batch throws may hold the secrets of any of its jobs.
    const together = begun.flatMap(({ run }) => run.ctx.resources);
    for (const { run } of begun) run.ctx.together = together;
    const items: BatchItem<unknown>[] = begun.map(({ run, payload }) => ({ payload, ctx: run.ctx }));
    let results: readonly unknown[];
    try {
      results = await (this.#task.handler as BatchHandler<unknown, unknown>)(items as never);
    } catch (error) {
      for (const { run } of begun) this.#finish(run, judgeError(run, error));
      return;
    }
    if (!Array.isArray(results) || results.length !== begun.length) {
      const count = Array.isArray(results) ? `${results.length} results` : "no array";
      const why = `the batch handler of task "${this.#task.name}" returned ${count} for ${begun.length} jobs; it must return an array with a result for each`;
      for (const { run } of begun) this.#finish(run, finalFailure(why));
      return;
    }
    for (const [n, { run }] of begun.entries()) {
      const result: unknown = results[n];
      try {
        this.#finish(run, isError(result) ? judgeError(run, result) : await judge(this.#task, run, result));
      } catch (error) {
        this.#finish(run, finalFailure(run.ctx.hide(`its outcome cannot be written: ${describe(error)}`)));
      }
    }
  }
}
