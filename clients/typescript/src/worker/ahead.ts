// Jobs that are leased before a slot is free for them (prefetched): how many, and for how long.
//
// While runs take next to no time, a worker that asks only when a slot is free spends its time waiting
// for answers. So it leases as many more as start within some milliseconds, by what the last runs took.
// A job that waits here could run elsewhere: none waits longer than LONGEST_WAIT_MS, and leasing ahead
// ends for a while where runs are longer, or where jobs that wait here hold something scarce.

import type { Run } from "./run.js";

/** A job that has waited here for this long is given back. */
const LONGEST_WAIT_MS = 15;
/** As many are leased as start within this, as a rule. */
const USUAL_WAIT_MS = 5;
/** Runs that take longer than this on average have nothing leased ahead of them. */
const SHORT_MS = 20;
const MOST_FOR_EACH = 8;
const MOST = 64;
/** The average after leasing ahead was wrong; some forty short runs bring it back. */
const LONG_MS = 400;
const WEIGHT = 0.1;

/** Granted jobs that wait for a slot. Starts as one that allows none. */
export class Ahead {
  #concurrency: number;
  /** How long runs take; the last ones count most. */
  #usual = LONG_MS;
  /** Halved where jobs waited for too long, and one more with each answer. */
  #limit = MOST;
  #waiting: { run: Run; until: number }[] = [];

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Learns from a run. */
  ran(ms: number): void {
    this.#usual += WEIGHT * (Math.min(ms, LONG_MS * 10) - this.#usual);
  }

  /** Whether runs are short, so that jobs may wait here. */
  get short(): boolean {
    return this.#usual < SHORT_MS;
  }

  /** How many more may wait here. */
  room(): number {
    // A worker with one slot does one thing at a time: users count on the order of jobs.
    if (!this.short || this.#concurrency === 1) return 0;
    const forEach = Math.min(USUAL_WAIT_MS / Math.max(this.#usual, 1e-3), MOST_FOR_EACH);
    return Math.max(0, Math.min(Math.floor(this.#concurrency * forEach), this.#limit) - this.#waiting.length);
  }

  add(runs: readonly Run[], now: number): void {
    const until = now + LONGEST_WAIT_MS;
    this.#limit = Math.min(this.#limit + 1, MOST);
    for (const run of runs) this.#waiting.push({ run, until });
  }

  next(): Run | undefined {
    return this.#waiting.shift()?.run;
  }

  /** Learns from jobs that wait here with limits or resources which other workers could use. */
  keepsScarce(): void {
    if (this.#waiting.some(({ run }) => run.lease.limits.length > 0 || run.lease.resources.length > 0))
      this.#usual = LONG_MS;
  }

  /** When the first one has waited for too long. */
  overdueAt(): number | undefined {
    return this.#waiting[0]?.until;
  }

  /** Takes out those that have waited for too long. */
  overdue(now: number): Run[] {
    const taken: Run[] = [];
    while (this.#waiting[0] && this.#waiting[0].until <= now) taken.push(this.next() as Run);
    if (taken.length > 0) {
      this.#usual = LONG_MS;
      this.#limit = Math.max(1, this.#limit >> 1);
    }
    return taken;
  }

  takeAll(): Run[] {
    return this.#waiting.splice(0).map(({ run }) => run);
  }
}
