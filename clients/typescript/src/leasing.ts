import { hostname } from "node:os";
import { now } from "./clock.js";
import { type Duration, durationText } from "./durations.js";
import { NotGranted, TenureError, Unreachable, wrong } from "./errors.js";
import type { Granted, LeasedResource, Lease as LeaseRecord, Reason, Need as WireNeed } from "./generated.js";
import type { Heartbeats, HeldLease } from "./heartbeats/heartbeats.js";
import type { StopReason } from "./heartbeats/holdings.js";
import { holderShown, newId } from "./ids.js";
import { describeNeeds, type Need, needsJson } from "./needs.js";
import { type Abortable, as, readOptions, shape } from "./options.js";
import { LeaseLost } from "./outcomes.js";
import type { Transport } from "./transport.js";
import { resourceOf, Verdicts } from "./verdicts.js";
import { VERSION } from "./version.js";

/** A slice of a wait is at most this part of the ttl: what comes out of it is fresh. */
const SLICE = 1 / 6;
const LONGEST_SLICE_MS = 30_000;
export const TTL_MS = 30_000;

/** For how long one call may wait. */
export function sliceOf(ttl: number): number {
  return Math.min(ttl * SLICE, LONGEST_SLICE_MS);
}

/** Says which process asks. */
export function workerFields(id: string): object {
  return { id, host: hostname().slice(0, 128), pid: process.pid, version: `typescript-${VERSION}` };
}

/** Reads a ttl: what the server takes, in milliseconds. */
export function ttlOption(value: unknown, name: string): number {
  const ttl = as.ms(value, name);
  if (ttl < 1000 || ttl > 3_600_000) wrong(name, `is ${durationText(ttl)}; it must be from 1s to 1h`);
  return ttl;
}

/** How a lock or a lease is waited for and held. */
export interface LeaseOptions extends Abortable {
  /** How long it lives without a heartbeat, 1 s to 1 h. Default 30 s. */
  ttl?: Duration;
  /** How long to wait for it; 0 is not at all. Default without end. */
  wait?: Duration;
}

const SHAPE = shape({ ttl: ttlOption, wait: as.ms, signal: as.signal });

/** A lease without a job: locks, permits and resources that this process holds until it is released. */
export class Lease implements AsyncDisposable {
  /** Grows with every grant of the namespace: a store that compares it can refuse an older holder. */
  readonly fence: number;
  /** The resources that it holds, with their data. */
  readonly resources: readonly LeasedResource[];
  /** The names of the limits that it holds. */
  readonly limits: readonly string[];
  /** The id of the lease. */
  readonly id: string;
  #held: HeldLease;
  #verdicts: Verdicts;
  #transport: Transport;
  #stop: AbortController;
  #over: Promise<void> | undefined;

  /** @internal */
  constructor(transport: Transport, record: LeaseRecord, held: HeldLease, stop: AbortController) {
    this.id = record.lease;
    this.fence = record.fence;
    this.resources = record.resources;
    this.limits = record.limits;
    this.#held = held;
    this.#verdicts = new Verdicts(record.resources);
    this.#transport = transport;
    this.#stop = stop;
  }

  /** Aborts with a `LeaseLost` when the lease is lost: another holder may have the same then. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Whether it is lost, also if the event loop was blocked and `signal` has not been told yet. */
  get lost(): boolean {
    return this.#over === undefined && this.#held.isLost;
  }

  /** The first resource of a pool. @throws `WrongOption` if the lease holds none of it. */
  resource<D = unknown>(pool: string): LeasedResource & { data: D } {
    return resourceOf<D>(this.resources, pool);
  }

  /** Hands a resource out no more, from the release on. `resource` is one, or the pool of the first. */
  ban(resource: LeasedResource | string, reason: string): void {
    this.#verdicts.ban(resource, reason);
  }

  /** Lets a resource rest, from the release on. `resource` is one, or the pool of the first. */
  cool(resource: LeasedResource | string, time: Duration): void {
    this.#verdicts.cool(resource, time);
  }

  /** Grants a limit to nobody for a time, from the release on. */
  pause(limit: string, time: Duration): void {
    this.#verdicts.pause(limit, time);
  }

  /** Says how many rate tokens were spent in truth; it corrects the cost that the grant booked. */
  spent(limit: string, tokens: number): void {
    this.#verdicts.spent(limit, tokens);
  }

  /** Gives it back. A second time does nothing, and so does one whose server is away: the lease then ends within its ttl. */
  release(): Promise<void> {
    this.#over ??= this.#release();
    return this.#over;
  }

  async #release(): Promise<void> {
    try {
      if (!this.#held.settling()) return;
      const retryFor = Math.min(this.#transport.retryFor, this.#held.hold.ttl);
      await settleReleased(this.#transport, this.id, this.#verdicts.json(), retryFor);
    } catch (fault) {
      // Without heartbeats it ends by itself, within its ttl.
      if (!(fault instanceof TenureError) || !fault.retryable) throw fault;
    } finally {
      this.#held.release();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

async function settleReleased(
  transport: Transport,
  lease: string,
  verdicts = "",
  retryFor = transport.retryFor,
): Promise<void> {
  const body = `{"settle":[{"lease":${JSON.stringify(lease)},"outcome":"released"${verdicts}}]}`;
  await transport.send({ method: "POST", path: "leases/settle", body, retryFor });
}

/**
 * Waits for needs, and holds them.
 *
 * @throws {@link NotGranted} when `wait` is over.
 */
export async function acquire(
  transport: Transport,
  heartbeats: Heartbeats,
  worker: string,
  needs: readonly Need[],
  options: LeaseOptions | undefined,
  call: string,
): Promise<Lease> {
  const read = readOptions(options, SHAPE, call) as { ttl?: number; wait?: number; signal?: AbortSignal };
  const asked = needsJson(needs, `needs of ${call}`);
  const ttl = read.ttl ?? TTL_MS;
  await heartbeats.ready();
  const until = read.wait === undefined ? Number.POSITIVE_INFINITY : now() + read.wait;
  for (;;) {
    const { record, sent } = await wait(transport, worker, asked, ttl, until, read.wait, read.signal);
    const stop = new AbortController();
    const name = describeNeeds(asked);
    const onStop = (reason: StopReason) => {
      if (reason === "lost")
        stop.abort(new LeaseLost(`${name} is lost: the lease could not be extended in time, or was taken back`));
    };
    const toHold = {
      lease: record.lease,
      name,
      ttl,
      sent,
      deadline: record.deadline,
      grantedAt: record.granted_at,
      onStop,
    };
    const [held] = await heartbeats.hold([toHold]);
    // One that was read too late is lost, and its place in line with it.
    if (held) return new Lease(transport, record, held, stop);
    await settleReleased(transport, record.lease);
    await heartbeats.ready();
  }
}

async function wait(
  transport: Transport,
  worker: string,
  needs: WireNeed[],
  ttl: number,
  until: number,
  whole: number | undefined,
  signal: AbortSignal | undefined,
): Promise<{ record: LeaseRecord; sent: number }> {
  let place: string | undefined;
  for (;;) {
    const slice = Math.max(0, Math.min(until - now(), sliceOf(ttl)));
    const id = newId("request");
    const asking = {
      needs,
      wait: durationText(slice),
      ttl: durationText(ttl),
      worker: workerFields(worker),
      request_id: id,
      place,
    };
    let answer: { leases: Granted[]; reasons?: Reason[] };
    let sent: number;
    try {
      const reply = await transport.send({
        method: "POST",
        path: "leases",
        body: JSON.stringify(asking),
        wait: slice,
        lasts: until - now(),
        signal,
      });
      answer = reply.data as typeof answer;
      sent = reply.firstSent;
    } catch (fault) {
      // One that was refused, or reached nobody, stands in no line.
      const isOver = fault instanceof TenureError && (!fault.retryable || fault instanceof Unreachable);
      // The answer may be under way: the same request id leaves the line, or gets what was granted.
      if (signal?.aborted || !isOver) void withdraw(transport, asking, ttl).catch(() => {});
      throw fault;
    }
    const record = answer.leases[0];
    if (record && record.lease !== null) return { record: record as LeaseRecord, sent };
    // All slices of one wait stand at the place of the first.
    place ??= id;
    if (now() >= until) {
      const why = (answer.reasons ?? []).slice(0, 3).map(because).join("");
      throw new NotGranted(
        "not_granted",
        `could not get ${describeNeeds(needs)} within ${durationText(whole ?? 0)}${why}`,
        {
          hint: "wait for longer, or look at the holders",
        },
      );
    }
  }
}

async function withdraw(transport: Transport, asking: object, ttl: number): Promise<void> {
  const body = JSON.stringify({ ...asking, wait: "0s" });
  // What was granted ends by itself after its ttl.
  const retryFor = Math.min(transport.retryFor, ttl);
  const { leases } = await transport.json<{ leases: Granted[] }>({ method: "POST", path: "leases", body, retryFor });
  for (const each of leases) if (each.lease !== null) await settleReleased(transport, each.lease);
}

function because(reason: Reason): string {
  const holders = reason.holders.slice(0, 3).map((each) => holderShown(each.holder ?? ""));
  const known = holders.filter((each) => each !== "");
  if (known.length > 0) return `; held by ${known.join(", ")}`;
  return reason.detail ? `; ${reason.detail}` : "";
}
