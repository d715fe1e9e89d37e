import type { Context } from "../context.js";
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
/** A run whose pushes found their queue full is settled again after this. */
const FULL_MS = 1000;
/** The moment of a snooze, in what is written of it. */
const UNTIL = /^,"until":"([^"]+)"/;
const DAY_MS = 86_400_000;
/** The call itself is refused, so the same call again would be. */
const WRONG = new Set([400, 413, 422]);

/** One outcome that is to be settled. */
export interface Settle {
  written: Written;
  readonly lease: string;
  readonly ctx: Context;
  readonly since: number;
  /** Called when it is answered, or given up. */
  readonly over: () => void;
  /** Whether the server could not read it once. */
  wrongForm: boolean;
  /** A call with it and others was refused, and nothing said which of them was wrong. */
  alone: boolean;
  /** When it goes again, if a queue that it pushes to had no room. */
  again: number;
}

/** Outcomes in their order, until each is answered or it is too late. */
export class Settles {
  #patience: number;
  #logger: Logger;
  #waiting: Settle[] = [];
  /** Those whose pushes found a full queue. They must not hold up the others, so each goes alone, at its time. */
  #full: Settle[] = [];
  #sending = 0;
  #isOver = false;

  constructor(ttl: number, logger: Logger) {
    this.#patience = Math.max(SETTLE_FOR_MS, ttl);
    this.#logger = logger;
  }

  get size(): number {
    return this.#waiting.length;
  }

  add(lease: string, ctx: Context, written: Written, now: number, over: () => void): void {
    // Nothing is sent any more; the lease must not be extended without end.
    if (this.#isOver) over();
    else this.#waiting.push({ written, lease, ctx, since: now, over, wrongForm: false, alone: false, again: 0 });
  }

  /** Since when the first one waits. */
  get firstSince(): number | undefined {
    return this.#waiting[0]?.since;
  }

  /** Whether nothing waits and nothing is on its way. */
  get allAnswered(): boolean {
    return this.#waiting.length === 0 && this.#sending === 0 && this.#full.length === 0;
  }

  /** When the first one goes again that found a full queue. */
  get againAt(): number | undefined {
    return this.#full[0]?.again;
  }

  /** Lets those go again whose time has come. */
  again(now: number): void {
    while (this.#full[0] && this.#full[0].again <= now) this.#waiting.push(this.#full.shift() as Settle);
  }

  /** Ends all: what was not answered by now is not sent again. */
  end(): void {
    this.#isOver = true;
    for (const each of [...this.#waiting.splice(0), ...this.#full.splice(0)]) each.over();
  }

  /** Takes out as many as go in one call. */
  take(now: number): Settle[] {
    this.again(now);
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
  answered(settles: readonly Settle[], answers: readonly SettledLease[], now: number): void {
    const full: Settle[] = [];
    for (const [n, each] of settles.entries()) {
      const answer = answers[n];
      if (answer && !answer.ok && (answer.code as string) === "queue_full") {
        // An earlier item of the call took the room of its pushes. Its lease is held, and nothing is lost yet.
        each.again = now + FULL_MS;
        full.push(each);
        continue;
      }
      if (answer && !answer.ok && !each.written.quiet) {
        this.#logger.warn(
          `job ${each.ctx.job.id}: its outcome "${each.written.outcome}" no longer counts: ${answer.code}`,
        );
      }
      each.over();
    }
    this.#sending -= settles.length - full.length;
    this.putBack(full, now);
  }

  /** Keeps what was not answered, as long as an answer can still be had. */
  putBack(settles: readonly Settle[], now: number): void {
    this.#sending -= settles.length;
    const kept: Settle[] = [];
    for (const each of settles) {
      if (!this.#isOver && now - each.since <= this.#patience) {
        (each.again > now ? this.#full : kept).push(each);
        continue;
      }
      this.#logger.error(
        `job ${each.ctx.job.id}: its outcome "${each.written.outcome}" was not answered for ${durationText(Math.round((now - each.since) / 1000) * 1000)}; it may be lost, and the job may run again`,
      );
      each.over();
    }
    this.#waiting.unshift(...kept);
  }

  /** Replaces an outcome that the server cannot read by one that it can; false if none is wrong. */
  repair(answer: Answer, settles: readonly Settle[], now: number): boolean {
    const problem = (answer.data ?? {}) as Partial<Problem>;
    if (!(problem.pointer ?? "/settle/").startsWith("/settle/")) return false;
    // With an index and a place the refusal is that of one item, whatever its code: 409 for a key that is held, 429 for
    // a full queue. The others would be refused with it again and again.
    const ofOne = problem.index !== undefined && problem.pointer !== undefined && answer.status < 500;
    if (!ofOne && !WRONG.has(answer.status)) return false;
    if (problem.index === undefined && settles.length > 1) {
      // The call as a whole is refused: the others must not wait for the one that is wrong.
      for (const each of settles) each.alone = true;
      return true;
    }
    const wrong = settles[problem.index ?? 0];
    if (!wrong) return false;
    if (answer.status === 429) {
      wrong.alone = true;
      wrong.again = now + FULL_MS;
      return true;
    }
    const until = UNTIL.exec(wrong.written.rest)?.[1];
    if (until && problem.code === "out_of_bounds" && Date.parse(until) - Date.now() < DAY_MS) {
      // Its moment came before the settle did, as after an outage. Too far ahead has the same code.
      wrong.written = { ...wrong.written, rest: wrong.written.rest.replace(UNTIL, ',"for":"100ms"') };
      return true;
    }
    this.#logger.error(`job ${wrong.ctx.job.id}: its outcome is refused: ${problem.detail}`);
    wrong.written = wrong.wrongForm ? RELEASED : finalFailure(`its outcome was refused: ${problem.detail}`);
    wrong.wrongForm = true;
    return true;
  }
}
