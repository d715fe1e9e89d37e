import { Worker } from "node:worker_threads";
import { sleep } from "../backoff.js";
import { now, sleptTime } from "../clock.js";
import { refuse, WrongOption } from "../errors.js";
import type { Logger } from "../log.js";
import { ConnectionLost, FetchSender, type Outgoing } from "../sender.js";
import type { Settings } from "../settings.js";
import type { Transport } from "../transport.js";
import { EXTEND_AT, type Extended, type Hold, STOP_AT, type StopReason } from "./holdings.js";
import type { FromThread, Start, ToThread } from "./messages.js";
import { Records } from "./records.js";
import { FREE, LOST, RUNNING, SETTLING, type State, Words } from "./words.js";

/** The most leases that one process holds at once. */
const SLOTS = 16_384;
/** A thread that fails at its start must not be started without end. */
const RESTART_MS = 100;
const LIVE: readonly State[] = [RUNNING, SETTLING, LOST];

/** A lease to hold. */
export interface ToHold {
  readonly lease: string;
  /** For messages: `job ID`, or `lock "NAME"`. */
  readonly name: string;
  readonly ttl: number;
  /** When the call that was granted it was first sent. */
  readonly sent: number;
  /** When the run must be over, as the server wrote it. */
  readonly deadline: string | null;
  readonly grantedAt: string;
  readonly onStop: (reason: StopReason) => void;
}

/** A lease that the heartbeat thread extends, until it is released. */
export class HeldLease {
  readonly lease: string;
  /** @internal */
  readonly hold: Hold;
  /** @internal */
  readonly onStop: (reason: StopReason) => void;
  #heartbeats: Heartbeats;
  #words: Words;
  #unsent: string | undefined;

  constructor(heartbeats: Heartbeats, words: Words, hold: Hold, onStop: (reason: StopReason) => void) {
    this.lease = hold.lease;
    this.hold = hold;
    this.onStop = onStop;
    this.#heartbeats = heartbeats;
    this.#words = words;
  }

  /** Whether the right is over, also if no message has said so yet: the event loop was blocked, or the process stopped. */
  get isLost(): boolean {
    const word = this.#words.read(this.hold.slot);
    if (word.generation !== this.hold.generation || word.state === LOST || word.state === FREE) return true;
    return word.state === RUNNING && now() >= word.stopAt;
  }

  /** Says that the work is done, so that it is only extended from now on; false if it was lost. */
  settling(): boolean {
    if (this.isLost) return false;
    return this.#words.change(this.hold.slot, this.hold.generation, [RUNNING, SETTLING], SETTLING);
  }

  /** Sends a report, which is JSON, within a second; only the last one counts. */
  report(progress: string): void {
    this.#unsent = progress;
    this.#heartbeats.report(this, progress);
  }

  /** A report that no heartbeat has taken along yet. */
  get unsent(): string | undefined {
    return this.#unsent;
  }

  /** @internal */
  reported(progress: string): void {
    if (this.#unsent === progress) this.#unsent = undefined;
  }

  /** Extends it no more. */
  release(): void {
    this.#heartbeats.release(this);
  }
}

/**
 * The heartbeats of a client: a thread of `node:worker_threads` extends all its leases, so that a
 * handler that blocks the event loop loses none.
 */
export class Heartbeats {
  #settings: Settings;
  #transport: Transport;
  #logger: Logger;
  #words = Words.of(SLOTS);
  /** Made with the thread. */
  #records: Records | undefined;
  #free = Array.from({ length: SLOTS }, (_, n) => SLOTS - 1 - n);
  #held = new Map<number, HeldLease>();
  #thread: Worker | undefined;
  /** Fulfilled when the thread has looked for the first time, or may be started again; otherwise undefined. */
  #starting: Promise<void> | undefined;
  #closed = false;

  constructor(settings: Settings, transport: Transport, logger: Logger) {
    this.#settings = settings;
    this.#transport = transport;
    this.#logger = logger;
  }

  /**
   * Starts the thread. A lease that is asked for before the returned promise is fulfilled may be lost: a handler may
   * block from its first line, and on a loaded machine a thread takes seconds to start. Undefined if it runs already.
   *
   * @throws `WrongOption` if the client is closed: nobody would extend a lease.
   */
  start(): Promise<void> | undefined {
    const { fault } = this;
    if (fault) throw fault;
    return this.#run();
  }

  /** Waits until the thread runs. @throws `WrongOption` if the client is closed, or holds as much as it can */
  async ready(): Promise<void> {
    for (let starting = this.start(); starting !== undefined; starting = this.start()) await starting;
    if (this.#free.length === 0) refuse(`this client holds ${SLOTS} leases, the most it can`, "release some of them");
  }

  /** Why nothing can be held any more: the client is closed. Otherwise undefined. */
  get fault(): WrongOption | undefined {
    if (!this.#closed) return undefined;
    return new WrongOption("wrong_option", "the client is closed; it takes no jobs and no locks", {
      hint: "make another one by new Tenure()",
    });
  }

  #run(): Promise<void> | undefined {
    if (this.#thread) return this.#starting;
    this.#records ??= Records.of(SLOTS);
    const token = this.#settings.token.get();
    const { addresses, store, namespace, ca, cert, key, secret, fetch, token: source } = this.#settings;
    const start: Start = {
      settings: { addresses, store, namespace, ca, cert, key, secret },
      words: this.#words.buffer,
      records: this.#records.buffer,
      slept: sleptTime(),
      token: typeof token === "string" ? token : undefined,
      tokenFile: source.file,
      relays: fetch !== undefined,
    };
    // Loaders and inspectors of the program are not for this thread.
    const thread = new Worker(new URL("./thread.js", import.meta.url), { workerData: start, execArgv: [] });
    this.#thread = thread;
    let started = () => {};
    this.#starting = new Promise((resolve) => {
      started = () => {
        started = () => {};
        // Only now: the program waits for it. Later it does not keep the program from ending.
        thread.unref();
        if (this.#thread === thread) this.#starting = undefined;
        resolve();
      };
    });
    thread.on("message", (message: FromThread) => ("started" in message ? started() : this.#take(message)));
    let fault = "it ended";
    thread.on("error", (error) => {
      fault = error.message;
    });
    thread.on("exit", () => {
      started();
      if (this.#thread !== thread) return;
      this.#logger.error(
        `the heartbeat thread failed, and another one is started: ${fault}; a bundler must leave this package as it is`,
      );
      // Until then no other one is started, whoever asks. It takes in all that is held then.
      this.#starting = sleep(RESTART_MS).then(() => {
        this.#thread = undefined;
        this.#starting = undefined;
        if (this.#held.size === 0) return;
        this.#tellLost();
        void this.#run();
      });
    });
    if (typeof token === "object") void this.#sendToken(token);
    return this.#starting;
  }

  /** Tells of the losses of which the old thread may have told nobody. */
  #tellLost(): void {
    for (const { hold, onStop } of [...this.#held.values()]) {
      const { generation, state } = this.#words.read(hold.slot);
      if (generation === hold.generation && state === LOST) onStop("lost");
    }
  }

  /**
   * Holds leases before their work starts. `undefined` stands for one that is lost already, for those
   * beyond the most that a process may hold, and for all once the client is closed.
   */
  async hold(leases: readonly ToHold[]): Promise<(HeldLease | undefined)[]> {
    const starting = this.#closed ? undefined : this.#run();
    if (starting !== undefined) await starting;
    const moment = now();
    const late = leases.filter((each) => moment - each.sent > EXTEND_AT * each.ttl);
    // A grant that is read late is extended, and the answer read, before its work starts.
    const proved = late.length > 0 ? await this.#confirm(late) : undefined;
    const held = leases.map((each) => {
      const goodSince = late.includes(each) ? proved?.get(each.lease) : each.sent;
      return goodSince === undefined ? undefined : this.#begin(each, goodSince);
    });
    this.#announce(held);
    return held;
  }

  /** Lets the thread look in time: a handler may block from its first line. */
  #announce(held: readonly (HeldLease | undefined)[]): void {
    let due = Number.POSITIVE_INFINITY;
    for (const each of held) {
      if (each) due = Math.min(due, each.hold.goodSince + EXTEND_AT * each.hold.ttl, each.hold.deadline ?? due);
    }
    if (this.#records && due < this.#records.nextLook) this.#post({ look: true });
  }

  #begin(each: ToHold, goodSince: number): HeldLease | undefined {
    const slot = this.#closed ? undefined : this.#free.pop();
    if (slot === undefined) return undefined;
    const { lease, name, ttl } = each;
    const deadlineAt = each.deadline === null ? undefined : Date.parse(each.deadline);
    const deadline = deadlineAt === undefined ? undefined : now() + deadlineAt - Date.parse(each.grantedAt);
    const record = { lease, name, ttl, deadline, deadlineAt };
    this.#records?.write(slot, record);
    const generation = this.#words.begin(slot, goodSince + STOP_AT * ttl);
    const held = new HeldLease(this, this.#words, { ...record, slot, generation, goodSince }, each.onStop);
    this.#held.set(slot, held);
    return held;
  }

  async #confirm(late: readonly ToHold[]): Promise<Map<string, number>> {
    const proved = new Map<string, number>();
    const patience = STOP_AT * Math.min(...late.map((each) => each.ttl));
    const until = now() + patience;
    const body = JSON.stringify({ leases: late.map((each) => each.lease) });
    while (now() < until) {
      const sent = now();
      try {
        const answer = await this.#transport.once({ method: "POST", path: "leases/extend", body }, until - sent);
        if (answer.status < 400) {
          for (const { lease } of (answer.data as Extended).extended) proved.set(lease, sent);
          break;
        }
      } catch (fault) {
        if (!(fault instanceof ConnectionLost)) throw fault;
      }
      await new Promise((resolve) => setTimeout(resolve, patience / 16));
    }
    return proved;
  }

  /** @internal */
  report(held: HeldLease, progress: string): void {
    this.#post({ progress, slot: held.hold.slot, generation: held.hold.generation });
  }

  /** @internal */
  release(held: HeldLease): void {
    const { slot, generation } = held.hold;
    if (this.#held.get(slot) !== held) return;
    this.#words.change(slot, generation, LIVE, FREE);
    this.#held.delete(slot);
    this.#free.push(slot);
    if (this.#closed) this.#endIdle();
  }

  /** Ends the thread once nothing is held: what still runs must not lose its lease without a word. */
  close(): void {
    this.#closed = true;
    this.#endIdle();
  }

  #endIdle(): void {
    if (this.#held.size > 0) return;
    const thread = this.#thread;
    this.#thread = undefined;
    void thread?.terminate();
  }

  #post(message: ToThread): void {
    this.#thread?.postMessage(message);
  }

  #take(message: Exclude<FromThread, { started: true }>): void {
    if ("stop" in message || "reported" in message) {
      const held = this.#held.get(message.slot);
      if ("stop" in message) this.#post({ heard: message.slot, generation: message.generation });
      if (held?.hold.generation !== message.generation) return;
      if ("stop" in message) held.onStop(message.stop);
      else held.reported(message.reported);
    } else if ("relay" in message) {
      void this.#relay(message.relay, message.request);
    } else if ("wantsToken" in message) {
      void this.#sendToken(Promise.resolve(this.#settings.token.get(true)));
    } else {
      this.#logger.warn(message.warns);
    }
  }

  async #sendToken(token: Promise<string | undefined>): Promise<void> {
    try {
      this.#post({ token: await token });
    } catch (refused) {
      this.#logger.error(`the heartbeats have no token: ${refused instanceof Error ? refused.message : refused}`);
    }
  }

  async #relay(id: number, request: Omit<Outgoing, "signal">): Promise<void> {
    try {
      const sender = new FetchSender(this.#settings.fetch as typeof fetch);
      const { status, text, header } = await sender.send({ ...request, signal: undefined });
      const answer = { status, text, owner: header("tenure-owner"), retryAfter: header("retry-after") };
      this.#post({ relayed: id, answer });
    } catch (fault) {
      const sent = fault instanceof ConnectionLost ? fault.sent : true;
      this.#post({ relayed: id, fault: { why: fault instanceof Error ? fault.message : String(fault), sent } });
    }
  }
}
