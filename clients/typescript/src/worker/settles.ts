import { durationText } from "../durations.js";
import type { Problem, SettledLease } from "../generated.js";
import type { Logger } from "../log.js";
import type { Answer } from "../transport.js";
import { finalFailure, RELEASED, type Written } from "./written.js";

/** For how long a settle is repeated, or the ttl of its lease if that is longer. */
const SETTLE_FOR_MS = 60_000;
/** The most settles of a call, and about the most bytes of them: the server takes 8 MiB. */
const BATCH = 1000;
const BATCH_BYTES = 4 * 1024 * 1024;
const AROUND_BYTES = 256;
/** The call itself is refused, so the same call again would be. */
const WRONG = new Set([400, 413, 422]);

/** One outcome that is to be settled. */
export interface Settle {
  written: Written;
  readonly lease: string;
  readonly job: string;
  readonly since: number;
  /** Called when it is answered, or given up. */
  readonly over: () => void;
  /** Whether the server could not read it once. */
  wrongForm: boolean;
  /** A call with it and others was refused, and nothing said which of them was wrong. */
  alone: boolean;
}

/** Outcomes in their order, until each is answered or it is too late. */
export class Settles {
  #patience: number;
  #logger: Logger;
  #waiting: Settle[] = [];
  #sending = 0;

  constructor(ttl: number, logger: Logger) {
    this.#patience = Math.max(SETTLE_FOR_MS, ttl);
    this.#logger = logger;
  }

  get size(): number {
    return this.#waiting.length;
  }

  add(lease: string, job: string, written: Written, now: number, over: () => void): void {
    this.#waiting.push({ written, lease, job, since: now, over, wrongForm: false, alone: false });
  }

  /** Since when the first one waits. */
  get firstSince(): number | undefined {
    return this.#waiting[0]?.since;
  }

  /** Whether nothing waits and nothing is on its way. */
  get allAnswered(): boolean {
    return this.#waiting.length === 0 && this.#sending === 0;
  }

  /** Takes out as many as go in one call. */
  take(): Settle[] {
    let size = 0;
    let count = 0;
    for (const each of this.#waiting) {
      size += each.written.rest.length + AROUND_BYTES;
      if (count >= BATCH || (count > 0 && (size > BATCH_BYTES || this.#waiting[0]?.alone || each.alone))) break;
      count++;
    }
    this.#sending += count;
    return this.#waiting.splice(0, count);
  }

  /** Takes in the answers of a call. */
  answered(settles: readonly Settle[], answers: readonly SettledLease[]): void {
    this.#sending -= settles.length;
    for (const [n, each] of settles.entries()) {
      const answer = answers[n];
      if (answer && !answer.ok && !each.written.quiet) {
        this.#logger.warn(`job ${each.job}: its outcome "${each.written.outcome}" no longer counts: ${answer.code}`);
      }
      each.over();
    }
  }

  /** Keeps what was not answered, as long as an answer can still be had. */
  putBack(settles: readonly Settle[], now: number): void {
    this.#sending -= settles.length;
    const kept: Settle[] = [];
    for (const each of settles) {
      if (now - each.since <= this.#patience) {
        kept.push(each);
        continue;
      }
      this.#logger.error(
        `job ${each.job}: its outcome "${each.written.outcome}" was not answered for ${durationText(Math.round((now - each.since) / 1000) * 1000)}; it may be lost, and the job may run again`,
      );
      each.over();
    }
    this.#waiting.unshift(...kept);
  }

  /** Replaces an outcome that the server cannot read by one that it can; false if none is wrong. */
  repair(answer: Answer, settles: readonly Settle[]): boolean {
    const problem = (answer.data ?? {}) as Partial<Problem>;
    if (!WRONG.has(answer.status) || !(problem.pointer ?? "/settle/").startsWith("/settle/")) return false;
    if (problem.index === undefined && settles.length > 1) {
      // The call as a whole is refused: the others must not wait for the one that is wrong.
      for (const each of settles) each.alone = true;
      return true;
    }
    const wrong = settles[problem.index ?? 0];
    if (!wrong) return false;
    this.#logger.error(`job ${wrong.job}: its outcome is refused: ${problem.detail}`);
    wrong.written = wrong.wrongForm ? RELEASED : finalFailure(`its outcome was refused: ${problem.detail}`);
    wrong.wrongForm = true;
    return true;
  }
}
