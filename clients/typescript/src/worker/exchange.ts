// The calls of a worker: asking for jobs and settling them.
//
// One loop asks, and takes along the settles that have come up: one call for both. While it waits for
// new jobs, another loop sends settles at once. Where runs are short, jobs are leased ahead, and settles
// wait for each other for a moment. A settle is repeated until it is answered or its time is over.

import { Backoff, sleep } from "../backoff.js";
import { now } from "../clock.js";
import { durationText } from "../durations.js";
import { fromProblem, TenureError } from "../errors.js";
import { describe } from "../failures.js";
import type { Lease as LeaseRecord, Settled } from "../generated.js";
import type { Heartbeats } from "../heartbeats/heartbeats.js";
import { type Instrumentation, instrumentSettle } from "../instrumentation.js";
import { sliceOf, workerFields } from "../leasing.js";
import type { Logger } from "../log.js";
import { type Answer, PATIENCE_MS, type Transport } from "../transport.js";
import { Ahead } from "./ahead.js";
import { Ask } from "./ask.js";
import { Bell } from "./bell.js";
import { Reach } from "./reach.js";
import { Run } from "./run.js";
import { type Settle, Settles } from "./settles.js";
import { itemOf, RELEASED, type Written } from "./written.js";

/** For how long the server remembers a request id at least. */
const SAME_ID_MS = 60_000;
const BRIEF_MS = 200;
/** Where runs are short, a settle waits this long for others that are about to come. */
const GATHER_MS = 1;
/** A grant that took a larger part of the ttl than this does not wait for a slot. */
const FRESH = 0.1;
const LONGEST_PAUSE_MS = 5000;
const NEVER = Number.POSITIVE_INFINITY;
/** For how long a worker that ends asks what its last call was granted: a server that is away must not keep it. */
const WITHDRAW_FOR_MS = 5000;
/** A waiting call that is not answered this long after its withdrawal is withdrawn again. */
const WITHDRAW_AGAIN_MS = 100;

/** The parts of a worker that its exchange uses. */
export interface ExchangeOptions {
  readonly transport: Transport;
  readonly heartbeats: Heartbeats;
  readonly logger: Logger;
  readonly instrumentation: Instrumentation | undefined;
  readonly worker: string;
  readonly queues: readonly string[];
  readonly concurrency: number;
  readonly ttl: number;
  /** Whether calls wait only briefly: the worker ends when there is nothing. */
  readonly untilEmpty: boolean;
  /** Starts a run in a slot. */
  readonly begin: (run: Run) => void;
}

/** The calls of one worker. */
export class Exchange {
  readonly reach: Reach;
  /** Why the worker ends by itself. */
  fault: TenureError | undefined;
  /** Whether the last ask without settles brought nothing. */
  foundNothing = false;
  #options: ExchangeOptions;
  #queues: readonly string[];
  #slice: number;
  #asker = new Bell();
  #settler = new Bell();
  /** Rings when a lease call is answered. */
  #answer = new Bell();
  #ahead: Ahead;
  #settles: Settles;
  /** How many runs have a slot. */
  #running = 0;
  /**
   * Whether jobs may come in still, by an answer or by a call whose answer is lost: the worker must not end before they
   * run or are given back. A call that only waits does not count.
   */
  #taking = false;
  #waiting: Ask | undefined;
  #askerIsAway = false;
  #draining = false;
  #closed = false;
  #answered = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#queues = options.queues;
    this.#slice = options.untilEmpty ? BRIEF_MS : sliceOf(options.ttl);
    this.#ahead = new Ahead(options.concurrency);
    this.#settles = new Settles(options.ttl, options.logger);
    this.reach = new Reach(options.transport, options.logger);
  }

  start(): void {
    const failed = (error: unknown) => {
      this.#options.logger.error(`the worker cannot go on: ${error instanceof Error ? error.stack : error}`);
      this.fault ??=
        error instanceof TenureError ? error : new TenureError("internal", `the worker failed: ${describe(error)}`);
      this.#askerIsAway = true;
      this.#taking = false;
      this.#settler.ring();
    };
    // What no loop will send any more must not keep its lease.
    void Promise.all([this.#askAll().catch(failed), this.#settleAll().catch(failed)]).then(() => this.#settles.end());
  }

  /** Frees the slot of a run, and settles it unless its lease is lost. */
  finish(run: Run, written: Written | null, took: number): void {
    this.#running--;
    this.#ahead.ran(took);
    this.foundNothing = false;
    if (written) this.#settle(run, written);
    else run.held?.release();
    this.#wake();
    this.#beginWaiting();
  }

  /** Releases a run that never began, or whose handler could not be stopped. */
  giveBack(run: Run): void {
    if (run.held && !run.held.settling()) run.held.release();
    else this.#settle(run, RELEASED);
    this.#wake();
  }

  // A grant may be answered to two calls, and given back twice: the second settle is answered as the first.
  #giveBackLease = (lease: LeaseRecord): void => this.giveBack(new Run(lease, this.#options.transport));

  #settle(run: Run, written: Written): void {
    this.#settles.add(run.id, run.ctx, written, now(), () => run.held?.release());
  }

  /** Wakes the loop that sends what was added, if it is not to wait for more. */
  #wake(): void {
    if (this.#settlerSends()) this.#settler.ring();
    if (this.#draining || this.#settles.size === 1 || !this.#gathers()) this.#asker.ring();
  }

  /** Whether the settler must not leave settles to the asker, which cannot call now. */
  #settlerSends(): boolean {
    const full = this.#running >= this.#options.concurrency && !this.#ahead.short;
    return this.#askerIsAway || this.#draining || full;
  }

  /** Whether nothing runs and nothing is to be settled. */
  get idle(): boolean {
    return this.#running === 0 && !this.#taking && this.#ahead.size === 0 && this.#settles.allAnswered;
  }

  /** Whether nothing is to be settled, nor about to be. */
  get settled(): boolean {
    return !this.#taking && this.#settles.allAnswered;
  }

  /**
   * Asks for nothing more. A call that waits is ended at the server, without a grant lost; fulfilled when it
   * is answered, or its server is away.
   */
  async drain(): Promise<void> {
    if (this.#draining) return;
    this.#draining = true;
    for (const run of this.#ahead.takeAll()) this.giveBack(run);
    this.#wake();
    const until = now() + WITHDRAW_FOR_MS;
    // The same request id takes the waiting call's place, unless it comes to the server before that call:
    // so it is sent again until that call is answered.
    while (this.#waiting && now() < until) {
      await this.#waiting.withdraw(this.reach, until, this.#giveBackLease);
      if (this.#waiting) await this.#answer.wait(WITHDRAW_AGAIN_MS);
    }
  }

  /** Ends both loops. */
  close(): void {
    this.#closed = true;
    this.#draining = true;
    this.#settler.ring();
    this.#asker.ring();
  }

  async #askAll(): Promise<void> {
    let backoff = new Backoff();
    let ask = new Ask();
    const { heartbeats } = this.#options;
    for (;;) {
      while (!this.#draining && this.#gathers()) await this.#asker.wait(this.#gatherFor());
      if (this.#draining) break;
      // With a closed client nothing that is granted could be held.
      const starting = heartbeats.start();
      if (starting !== undefined) {
        await starting;
        continue;
      }
      const settles = this.#settles.take(now());
      const { concurrency, ttl, worker } = this.#options;
      // A call that may wait comes back when it is too late to lease ahead.
      const room = settles.length > 0 ? this.#ahead.room() : 0;
      const free = Math.min(concurrency - this.#running + room, 1000);
      // With settles, an answer now: they must not wait for the next job.
      const wait = settles.length > 0 ? 0 : this.#slice;
      // As many as may wait here do so already: then the settles go alone.
      const fields = { queues: this.#queues, max: free, ttl: durationText(ttl), worker: workerFields(worker) };
      const body = free > 0 ? ask.write(wait, fields) : undefined;
      // Each queue is the first in its turn.
      this.#queues = [...this.#queues.slice(1), this.#queues[0] as string];
      this.#waiting = settles.length > 0 ? undefined : ask;
      this.#taking = settles.length > 0 || ask.inDoubt;
      this.#askerIsAway = settles.length === 0;
      const fault = await this.#askOnce(settles, ask, body, wait);
      this.#askerIsAway = false;
      if (fault === undefined) backoff = new Backoff();
      if ((body && fault === undefined) || now() - ask.firstSent > SAME_ID_MS) ask = new Ask();
      this.#taking = ask.inDoubt;
      this.#answer.ring();
      if (fault === undefined) continue;
      this.#askerIsAway = true;
      this.#settler.ring();
      const end = now() + Math.min(Math.max(backoff.pause(), fault), LONGEST_PAUSE_MS);
      while (!this.#draining && now() < end) await this.#asker.wait(end - now());
    }
    this.#askerIsAway = true;
    this.#settler.ring();
    if (!(await ask.takeBack(this.reach, now() + WITHDRAW_FOR_MS, this.#giveBackLease))) {
      const why = "the last call for jobs was not answered; what it was granted runs elsewhere after its ttl";
      this.#options.logger.warn(why);
    }
    this.#taking = false;
  }

  /** Whether the asker has nothing to call for, or not yet. */
  #gathers(): boolean {
    const { concurrency } = this.#options;
    if (!this.#ahead.short) return this.#running >= concurrency;
    if (this.#running === 0) return false;
    const since = this.#settles.firstSince;
    if (since === undefined) return this.#ahead.size > 0 || this.#running >= concurrency;
    if (this.#ahead.size === 0 && this.#settles.size >= concurrency) return false;
    return now() < this.#gatheredAt(since);
  }

  #gatheredAt(since: number): number {
    // While jobs wait for slots here, nothing stands still if the next ones are asked for later.
    return since + GATHER_MS * (this.#ahead.size > 0 ? 2 : 1);
  }

  /** How long to wait before the asker looks again; undefined: until it is woken. */
  #gatherFor(): number | undefined {
    const since = this.#settles.firstSince;
    if (!this.#ahead.short || since === undefined) return undefined;
    return Math.max(0, this.#gatheredAt(since) - now());
  }

  /** Asks, and begins what was granted; otherwise returns how long to wait at least. */
  async #askOnce(settles: Settle[], ask: Ask, body: string | undefined, wait: number): Promise<number | undefined> {
    const answer =
      settles.length > 0
        ? await this.#send(settles, ask, body)
        : await this.reach.once({ method: "POST", path: "leases", body, wait }, wait + PATIENCE_MS, ask);
    // A handler may stop the worker in its first line. Then the drain must not get, and give back, what runs.
    this.#waiting = undefined;
    this.#taking = true;
    if (!answer) return 0;
    if (answer.status >= 400) return this.#askRefused(answer);
    this.#answered = true;
    if (!body) return undefined;
    const { leases = [], refused } = (answer.data ?? {}) as Partial<Settled>;
    if (refused) return 1000;
    ask.inDoubt = false;
    await this.#take(leases as LeaseRecord[], ask.firstSent);
    this.foundNothing = leases.length === 0 && settles.length === 0;
    return undefined;
  }

  /** Takes in what was granted. */
  async #take(leases: LeaseRecord[], firstSent: number): Promise<void> {
    if (leases.length === 0) return;
    const { transport, ttl, heartbeats } = this.#options;
    const runs = leases.map((lease) => new Run(lease, transport));
    const held = await heartbeats.hold(
      runs.map((run) => ({
        lease: run.id,
        name: `job ${run.job.id}`,
        ttl,
        sent: firstSent,
        deadline: run.lease.deadline,
        grantedAt: run.lease.granted_at,
        onStop: (reason) => run.stop(reason),
      })),
    );
    const mayWait = now() - firstSent <= FRESH * ttl;
    const begun: Run[] = [];
    for (const [n, run] of runs.entries()) {
      run.held = held[n];
      const fits = mayWait || begun.length < this.#options.concurrency - this.#running;
      // One that is lost already is given back, too: the answer says so, and nothing else is known.
      if (run.held && fits && !this.#draining) begun.push(run);
      else this.giveBack(run);
    }
    this.#ahead.add(begun, now());
    this.#beginWaiting();
    if (this.#ahead.size > 0) {
      this.#ahead.keepsScarce();
      this.#settler.ring();
    }
    this.#wake();
  }

  /** Begins the jobs that wait for a slot, as far as slots are free. */
  #beginWaiting(): void {
    while (!this.#draining && this.#running < this.#options.concurrency) {
      const run = this.#ahead.next();
      if (!run) return;
      this.#running++;
      this.#options.begin(run);
    }
  }

  #askRefused(answer: Answer): number {
    const error = fromProblem(answer.status, answer.data, answer.retryAfter);
    const passes = answer.status === 408 || answer.status === 429 || answer.status >= 500;
    if (!passes && !this.#answered) {
      // A wrong token or a wrong name of a queue does not mend itself.
      this.fault = error;
      this.#draining = true;
      return 0;
    }
    if (answer.status < 500) this.#options.logger.warn(`the server gives no jobs: ${error.message}`);
    return answer.retryAfter ?? 1000;
  }

  async #settleAll(): Promise<void> {
    let backoff = new Backoff();
    for (;;) {
      while (!this.#closed && !(this.#settles.size > 0 && this.#settlerSends())) {
        const at = Math.min(this.#ahead.overdueAt() ?? NEVER, this.#settles.againAt ?? NEVER);
        await this.#settler.wait(at === NEVER ? undefined : Math.max(1, at - now()));
        for (const run of this.#ahead.overdue(now())) this.giveBack(run);
        this.#settles.again(now());
        if (this.#settles.size > 0 && !this.#gathers()) this.#asker.ring();
      }
      if (this.#closed && this.#settles.size === 0) return;
      // Ends of runs that come in this turn of the event loop go together.
      await new Promise(setImmediate);
      const settles = this.#settles.take(now());
      if (settles.length === 0) continue;
      const answer = await this.#send(settles);
      if (answer && answer.status < 400) {
        backoff = new Backoff();
        continue;
      }
      if (this.#closed) return;
      await sleep(backoff.pause());
    }
  }

  /** Sends settles, with an ask if there is one. Undefined if they are to be sent again. */
  async #send(settles: Settle[], ask?: Ask, lease?: string): Promise<Answer | undefined> {
    const items = settles.map((each) => itemOf(each.lease, each.written)).join(",");
    const body = `{"settle":[${items}]${lease ? `,"lease":${lease}` : ""}}`;
    let answer: Answer | undefined;
    try {
      answer = await instrumentSettle(
        this.#options.instrumentation,
        () => settles.map((each) => each.ctx),
        () => this.reach.once({ method: "POST", path: "leases/settle", body }, PATIENCE_MS, lease ? ask : undefined),
        this.#options.logger,
      );
    } catch (error) {
      this.#settles.putBack(settles, now());
      throw error;
    }
    const settled = (answer?.data as Partial<Settled> | undefined)?.settled;
    if (!answer || answer.status >= 400 || !Array.isArray(settled)) {
      const mended = answer ? this.#settles.repair(answer, settles, now()) : false;
      this.#settles.putBack(settles, now());
      this.#settler.ring();
      return mended || (answer && answer.status < 400) ? undefined : answer;
    }
    this.#settles.answered(settles, settled, now());
    if (this.#settles.againAt !== undefined) this.#settler.ring();
    return answer;
  }
}
