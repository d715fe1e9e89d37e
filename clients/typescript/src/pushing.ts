import { Backoff, onAbort, sleep } from "./backoff.js";
import { now } from "./clock.js";
import { withAdvice } from "./codec.js";
import { fromProblem, OutcomeUnknown, TenureError } from "./errors.js";
import type { Problem } from "./generated.js";
import { type Instrumentation, instrumentPush } from "./instrumentation.js";
import type { WrittenJob } from "./job-fields.js";
import type { Logger } from "./log.js";
import { notTenure, type Transport } from "./transport.js";

/** The most jobs of one call, and about the most bytes of them. */
const PORTION = 1000;
const PORTION_BYTES = 1024 * 1024;
/** A portion of `pushMany` waits no longer for more jobs. */
const GATHER_MS = 200;

/** The server's answer to the push of one job. */
export interface PushAnswer {
  readonly id: string;
  readonly duplicate: boolean;
  readonly replaced: boolean;
  /** 0 if no worker has asked for the queue within the last minute; otherwise absent. */
  readonly workers?: number | undefined;
}

interface Line {
  readonly job: WrittenJob;
  readonly resolve: (answer: PushAnswer) => void;
  readonly reject: (error: unknown) => void;
  readonly signal: AbortSignal | undefined;
  failingSince: number | undefined;
  backoff: Backoff | undefined;
}

type LineAnswer =
  | { line: number; id: string; duplicate: boolean; replaced?: boolean; workers?: number }
  | (Problem & { line: number });

/** Sends jobs as lines, each answered by itself. */
export async function pushLines(
  transport: Transport,
  jobs: readonly WrittenJob[],
  signal?: AbortSignal,
): Promise<(PushAnswer | TenureError)[]> {
  const body = jobs.map((job) => job.json).join("\n");
  const reply = await transport.send({ method: "POST", path: "jobs", body, lines: true, signal });
  const answers: (PushAnswer | TenureError)[] = [];
  for (const text of reply.text.split("\n")) {
    if (text === "") continue;
    let line: LineAnswer;
    try {
      line = JSON.parse(text);
    } catch {
      throw notTenure(transport.servers.shown, reply.status);
    }
    answers[line.line - 1] =
      "code" in line
        ? withAdvice(transport.codec, fromProblem(line.status, line))
        : { ...line, replaced: line.replaced ?? false };
  }
  for (let n = 0; n < jobs.length; n++) {
    answers[n] ??= new OutcomeUnknown("outcome_unknown", `the push of job ${jobs[n]?.id} was not answered`, {
      hint: "push it again with the same id: nothing is stored twice",
    });
  }
  return answers;
}

/**
 * Pushes single jobs, in the order in which they came. Those that are pushed while a call is under way go
 * together in the next call, each with an answer of its own: many pushes at once cost a call for all of them.
 */
export class Pusher {
  readonly transport: Transport;
  #logger: Logger;
  #instrumentation: Instrumentation | undefined;
  #waiting: Line[] = [];
  #calling = false;
  #scheduled = false;
  #warned = new Set<string>();

  constructor(transport: Transport, logger: Logger, instrumentation: Instrumentation | undefined) {
    this.transport = transport;
    this.#logger = logger;
    this.#instrumentation = instrumentation;
  }

  /** Makes a call that pushes jobs, within the instrumentation of the client. */
  call<T>(jobs: readonly WrittenJob[], send: (jobs: readonly WrittenJob[]) => Promise<T>): Promise<T> {
    return instrumentPush(this.#instrumentation, jobs, send, this.#logger);
  }

  push(job: WrittenJob, signal?: AbortSignal): Promise<PushAnswer> {
    return this.call([job], ([written]) => this.#add(written as WrittenJob, signal));
  }

  #add(job: WrittenJob, signal: AbortSignal | undefined): Promise<PushAnswer> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const over =
        <T>(act: (value: T) => void) =>
        (value: T) => {
          forget();
          act(value);
        };
      const line: Line = {
        job,
        resolve: over(resolve),
        reject: over(reject),
        signal,
        failingSince: undefined,
        backoff: undefined,
      };
      const forget = onAbort(signal, () => {
        const place = this.#waiting.indexOf(line);
        if (place >= 0) this.#waiting.splice(place, 1);
        reject(signal?.reason);
      });
      this.#waiting.push(line);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled || this.#calling) return;
    this.#scheduled = true;
    // Pushes of one turn of the event loop go together.
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#waiting.length > 0) void this.#call(this.#take());
    });
  }

  #take(): Line[] {
    let size = 0;
    let count = 0;
    while (count < this.#waiting.length && count < PORTION && (count === 0 || size < PORTION_BYTES)) {
      size += (this.#waiting[count] as Line).job.json.length;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #call(lines: Line[]): Promise<void> {
    this.#calling = true;
    const again: Line[] = [];
    let pause = 0;
    try {
      if (lines.length === 1) {
        await this.#single(lines[0] as Line);
      } else {
        const answers = await pushLines(
          this.transport,
          lines.map((line) => line.job),
        );
        for (const [n, line] of lines.entries()) {
          const answer = answers[n] as PushAnswer | TenureError;
          if (!(answer instanceof TenureError)) line.resolve(this.#noted(line.job, answer));
          else if (answer.retryable && this.#mayRepeat(line, answer)) again.push(line);
          else line.reject(answer);
        }
      }
    } catch (error) {
      const [line] = lines as [Line];
      // The transport has repeated it already, unless its queue is full.
      const isFull = error instanceof TenureError && error.retryable && error.status === 429;
      if (lines.length === 1 && isFull && this.#mayRepeat(line, error)) {
        again.push(line);
        pause = error.retryAfter ?? 0;
      } else {
        for (const each of lines) each.reject(error);
      }
    } finally {
      this.#calling = false;
    }
    // Those that found their queue full come back after a pause, in which the others go on.
    if (this.#waiting.length > 0) this.#schedule();
    if (again.length === 0) return;
    const backoff = again[0]?.backoff ?? new Backoff();
    for (const line of again) line.backoff = backoff;
    await sleep(Math.max(backoff.pause(), pause));
    this.#waiting.unshift(...again.filter((line) => !line.signal?.aborted));
    this.#schedule();
  }

  async #single(line: Line): Promise<void> {
    const { job } = line;
    const answer = await this.transport.json<PushAnswer>({
      method: "POST",
      path: "jobs",
      body: job.json,
      minimal: true,
      fullThrows: true,
      signal: line.signal,
    });
    line.resolve(this.#noted(job, answer));
  }

  #mayRepeat(line: Line, error: TenureError): boolean {
    line.failingSince ??= now();
    return now() - line.failingSince + (error.retryAfter ?? 0) < this.transport.retryFor;
  }

  #noted(job: WrittenJob, answer: PushAnswer): PushAnswer {
    if (answer.workers === 0 && !this.#warned.has(job.queue)) {
      this.#warned.add(job.queue);
      this.#logger.warn(`no worker has asked for queue "${job.queue}" within the last minute; is its name right?`);
    }
    return { id: answer.id, duplicate: answer.duplicate, replaced: answer.replaced ?? false };
  }
}

/** How many jobs a `pushMany` stored. */
export interface PushedMany {
  /** Jobs that are stored now, or were there already. */
  count: number;
  /** Those of them that were there already. */
  duplicates: number;
}

/** How `pushMany` goes on. */
export interface PushManyOptions {
  /** Ends the push after the calls under way; what was answered is stored. */
  signal?: AbortSignal;
  /**
   * Takes a refused job, whose `index` counts from the start, and the push goes on. Without it the
   * push ends at the first refused job and rejects with its error.
   */
  onRefused?: (error: TenureError) => void;
}

/** Pushes jobs of any number. The source is read only as fast as the server takes them. */
export async function pushMany(
  pusher: Pusher,
  source: AsyncGenerator<WrittenJob, void, void>,
  options: PushManyOptions,
): Promise<PushedMany> {
  const { signal } = options;
  const total: PushedMany = { count: 0, duplicates: 0 };
  let call: Promise<unknown> = Promise.resolve();
  let fault: unknown;
  let failed = false;
  let portion: WrittenJob[] = [];
  let bytes = 0;
  let start = 0;
  let timer: NodeJS.Timeout | undefined;
  /** Ends the wait for the source. */
  let interrupt = () => {};

  const fail = (error: unknown) => {
    if (!failed) fault = error;
    failed = true;
    interrupt();
  };
  const flush = (): Promise<unknown> => {
    clearTimeout(timer);
    timer = undefined;
    const [jobs, first, before] = [portion, start, call];
    portion = [];
    bytes = 0;
    start += jobs.length;
    // One call at a time keeps the order of the jobs; the next portion is read meanwhile.
    const send = () => pusher.call(jobs, (written) => sendPortion(pusher, written, first, total, options, fail));
    call = before.then(() => (failed ? undefined : send())).catch(fail);
    return before;
  };
  // Not beside a call: then the source would be read faster than the server takes its jobs.
  const flushSoon = () => void call.then(() => (portion.length > 0 ? flush() : undefined));
  const next = (): Promise<IteratorResult<WrittenJob, void>> =>
    new Promise((resolve, reject) => {
      interrupt = () => resolve({ done: true, value: undefined });
      source.next().then(resolve, reject);
    });
  signal?.throwIfAborted();
  const forget = onAbort(signal, () => fail(signal?.reason));
  try {
    while (!failed) {
      const { done, value: job } = await next();
      if (done || failed) break;
      portion.push(job);
      bytes += job.json.length;
      if (portion.length >= PORTION || bytes >= PORTION_BYTES) await flush();
      // A source that has no more for now must not hold up the jobs that it gave.
      else timer ??= setTimeout(flushSoon, GATHER_MS);
    }
    if (!failed && portion.length > 0) await flush();
  } finally {
    clearTimeout(timer);
    await call;
    forget();
    // Not awaited: a generator that waits for its next job ends after that.
    if (failed) void source.return().catch(() => {});
  }
  if (failed) throw fault;
  return total;
}

async function sendPortion(
  { transport }: Pusher,
  jobs: readonly WrittenJob[],
  first: number,
  total: PushedMany,
  options: PushManyOptions,
  fail: (error: unknown) => void,
): Promise<void> {
  let left = jobs.map((job, n) => [job, first + n] as const);
  const backoff = new Backoff();
  const until = now() + transport.retryFor;
  let refused: TenureError | undefined;
  while (left.length > 0) {
    const answers = await pushLines(
      transport,
      left.map(([job]) => job),
      options.signal,
    );
    const again: typeof left = [];
    for (const [n, entry] of left.entries()) {
      const answer = answers[n] as PushAnswer | TenureError;
      if (!(answer instanceof TenureError)) {
        total.count++;
        if (answer.duplicate) total.duplicates++;
      } else if (answer.retryable && now() < until) {
        again.push(entry);
      } else {
        answer.index = entry[1];
        if (options.onRefused) options.onRefused(answer);
        else {
          refused ??= answer;
          fail(answer);
        }
      }
    }
    left = again;
    if (left.length > 0) await sleep(backoff.pause(), options.signal);
  }
  // For the instrumentation.
  if (refused) throw refused;
}
