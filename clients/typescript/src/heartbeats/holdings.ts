// The held leases: when they are extended and when their work must stop. No I/O happens here.
//
// A lease is extended each ttl/5. Its work must have stopped 0.8 ttl after the last answered extend
// was *sent* (before the first: after the lease call was sent), and at its deadline. Then the same
// can be granted to no other holder while the work goes on.

import type { Records, SlotRecord } from "./records.js";
import { FREE, LOST, RUNNING, SETTLING, type Words } from "./words.js";

/** The part of the ttl after which a lease is extended. */
export const EXTEND_AT = 0.2;
/** The part of the ttl after which its work must have stopped. */
export const STOP_AT = 0.8;
/** Between two extends that are sent for the sake of progress reports. */
const PROGRESS_EVERY_MS = 900;

/** Why work must stop. */
export type StopReason = "lost" | "cancelled" | "timed_out";

/** A lease that is to be held. */
export interface Hold extends SlotRecord {
  readonly slot: number;
  readonly generation: number;
  /** When the last call that proved the lease was sent. */
  readonly goodSince: number;
}

/** One held lease. */
export interface Held extends Omit<Hold, "goodSince" | "deadline"> {
  goodSince: number;
  deadline: number | undefined;
  nextExtend: number;
  /** JSON that no extend has taken along yet. */
  progress: string | undefined;
  /** When the extend was sent whose answer the next one waits for; otherwise 0. */
  asked: number;
  settling: boolean;
  cancelTold: boolean;
  timeoutTold: boolean;
}

/** The answer of an extend. */
export interface Extended {
  readonly extended: readonly { lease: string; expires_at: string }[];
  readonly lost: readonly string[];
  readonly cancel: readonly string[];
}

/** Who must stop, and why. */
export type Stop = readonly [held: Held, reason: StopReason];

/** The leases of one process. */
export class Holdings {
  #words: Words;
  #held = new Map<number, Held>();
  #reportsFrom = Number.NEGATIVE_INFINITY;

  constructor(words: Words) {
    this.#words = words;
  }

  add(hold: Hold): void {
    this.#held.set(hold.slot, {
      ...hold,
      nextExtend: hold.goodSince + EXTEND_AT * hold.ttl,
      progress: undefined,
      asked: 0,
      settling: false,
      cancelTold: false,
      timeoutTold: false,
    });
  }

  /** Takes in the leases that were begun since the last look; returns whether there are any. */
  adopt(records: Records): boolean {
    let found = false;
    const { used } = records;
    for (let slot = 0; slot < used; slot++) {
      const { generation, stopAt, state } = this.#words.read(slot);
      if (state === FREE || state === LOST || this.#held.get(slot)?.generation === generation) continue;
      const record = records.read(slot);
      const after = this.#words.read(slot);
      // Otherwise its lease is over, and the record may be that of the next one.
      if (after.generation !== generation || after.state === FREE) continue;
      this.add({ ...record, slot, generation, goodSince: stopAt - STOP_AT * record.ttl });
      found = true;
    }
    return found;
  }

  report(slot: number, generation: number, progress: string): void {
    const held = this.#held.get(slot);
    if (held?.generation === generation) held.progress = progress;
  }

  /** Takes out the leases that are held no more, and sees which are settled by now. */
  sweep(now: number): void {
    for (const held of this.#held.values()) {
      const word = this.#words.read(held.slot);
      if (word.generation !== held.generation || word.state === FREE || word.state === LOST) {
        this.#held.delete(held.slot);
      } else if (word.state === SETTLING && !held.settling) {
        // Its settle is on its way, and would be overtaken by an extend that finds no lease. So it is
        // extended only if the settle is not answered soon, and no later than its holder must.
        held.settling = true;
        const latest = held.goodSince + (STOP_AT - EXTEND_AT) * held.ttl;
        held.nextExtend = Math.max(held.nextExtend, Math.min(now + EXTEND_AT * held.ttl, latest));
      }
    }
  }

  /** What is to be extended in one call now: also what is due soon, once one is due. */
  due(now: number): Held[] {
    const idle = [...this.#held.values()].filter((held) => !held.asked);
    let due: Held[] = [];
    if (idle.some((held) => held.nextExtend <= now)) {
      due = idle.filter((held) => held.nextExtend <= now + (held.settling ? 0 : EXTEND_AT * held.ttl));
    } else if (now >= this.#reportsFrom) {
      due = idle.filter(reports);
    }
    if (due.some(reports)) this.#reportsFrom = now + PROGRESS_EVERY_MS;
    return due;
  }

  /** Who must stop by the clock. */
  overdue(now: number): Stop[] {
    const stops: Stop[] = [];
    for (const held of this.#held.values()) {
      if (held.settling) continue;
      if (now >= held.goodSince + STOP_AT * held.ttl) {
        if (this.#lose(held)) stops.push([held, "lost"]);
      } else if (held.deadline !== undefined && now >= held.deadline && !held.timeoutTold) {
        held.timeoutTold = true;
        stops.push([held, "timed_out"]);
      }
    }
    return stops;
  }

  /** When to look again; undefined if nothing is held. */
  next(): number | undefined {
    let first: number | undefined;
    for (const held of this.#held.values()) {
      let at = held.asked ? Number.POSITIVE_INFINITY : held.nextExtend;
      if (reports(held) && !held.asked) at = Math.min(at, this.#reportsFrom);
      if (!held.settling) {
        at = Math.min(at, held.goodSince + STOP_AT * held.ttl);
        if (held.deadline !== undefined && !held.timeoutTold) at = Math.min(at, held.deadline);
      }
      first = Math.min(first ?? at, at);
    }
    return first;
  }

  /** Takes in the answer of an extend. */
  answered(asked: readonly Held[], sent: number, now: number, answer: Extended): Stop[] {
    const stops: Stop[] = [];
    const extended = new Map(answer.extended.map((each) => [each.lease, each.expires_at]));
    const lost = new Set(answer.lost);
    const cancel = new Set(answer.cancel);
    for (const held of asked) {
      if (this.#held.get(held.slot) !== held) continue;
      if (lost.has(held.lease)) {
        // A lease whose settle was carried out is not held any more either.
        held.nextExtend = now + EXTEND_AT * held.ttl;
        if (this.#lose(held)) stops.push([held, "lost"]);
        continue;
      }
      const expiresAt = extended.get(held.lease);
      if (expiresAt === undefined) continue;
      held.goodSince = Math.max(held.goodSince, sent);
      // Two answers may come in the wrong order, and a settle may have put the next extend off meanwhile.
      held.nextExtend = Math.max(held.nextExtend, held.goodSince + EXTEND_AT * held.ttl);
      this.#tighten(held, sent, Date.parse(expiresAt));
      this.#words.prolong(held.slot, held.generation, held.goodSince + STOP_AT * held.ttl);
      if (cancel.has(held.lease) && !held.cancelTold && !held.settling) {
        held.cancelTold = true;
        stops.push([held, "cancelled"]);
      }
    }
    return stops;
  }

  /** Notes that an extend was not answered: it is tried again soon, unless that was done already. */
  failed(asked: readonly Held[], sent: number, now: number): void {
    for (const held of asked) if (held.asked === sent) held.nextExtend = now + (EXTEND_AT * held.ttl) / 4;
  }

  #lose(held: Held): boolean {
    const isLost = this.#words.change(held.slot, held.generation, [RUNNING], LOST);
    if (isLost) this.#held.delete(held.slot);
    return isLost;
  }

  // The server answered at `expires_at - ttl` by its clock, which was not before `sent`. So the
  // deadline is known without comparing clocks.
  #tighten(held: Held, sent: number, expiresAt: number): void {
    if (held.deadline === undefined || held.deadlineAt === undefined || Number.isNaN(expiresAt)) return;
    held.deadline = Math.min(held.deadline, sent + held.deadlineAt - expiresAt + held.ttl);
  }
}

/** Whether it has a report to send; one that comes last goes with the settle. */
function reports(held: Held): boolean {
  return held.progress !== undefined && !held.settling;
}
