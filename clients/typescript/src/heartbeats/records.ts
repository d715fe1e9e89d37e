// The lease of each slot, in memory that both threads share, and when the heartbeat thread looks at the slots next. A
// message for each grant took a third of the processor time of a worker whose runs are short: most of these leases
// are settled before their first heartbeat is due, so the thread never needs to know them.

/** What the heartbeat thread must know of a lease. The word of its slot has the rest. */
export interface SlotRecord {
  readonly lease: string;
  /** For messages: `job ID`, or `lock "NAME"`. */
  readonly name: string;
  readonly ttl: number;
  /** When the run must be over, by `now`. */
  readonly deadline: number | undefined;
  /** The same by the server's clock, in milliseconds since 1970. */
  readonly deadlineAt: number | undefined;
}

/** Ids of leases have some 20 bytes; a name that is too long for the rest is cut. */
const RECORD_BYTES = 320;
const LENGTH_BYTES = 2;
/** The places of two numbers, before the records. */
const NEXT_LOOK = 0;
const USED = 1;
const HEAD_BYTES = 16;
const NEVER = Number.MAX_SAFE_INTEGER;

/** The records of one process. */
export class Records {
  readonly buffer: SharedArrayBuffer;
  #bytes: Buffer;
  #head: BigInt64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#bytes = Buffer.from(buffer);
    this.#head = new BigInt64Array(buffer, 0, 2);
  }

  static of(slots: number): Records {
    return new Records(new SharedArrayBuffer(HEAD_BYTES + slots * RECORD_BYTES));
  }

  /** Writes the record of a free slot, before its next use begins. */
  write(slot: number, { lease, name, ttl, deadline, deadlineAt }: SlotRecord): void {
    if (slot >= this.used) Atomics.store(this.#head, USED, BigInt(slot + 1));
    const at = HEAD_BYTES + slot * RECORD_BYTES;
    const text = `${ttl}\n${deadline ?? ""}\n${deadlineAt ?? ""}\n${lease}\n${name}`;
    this.#bytes.writeUInt16LE(this.#bytes.write(text, at + LENGTH_BYTES, RECORD_BYTES - LENGTH_BYTES), at);
  }

  /** Reads a record. It may be that of the next use, or a part of it, if the word of the slot has changed meanwhile. */
  read(slot: number): SlotRecord {
    const at = HEAD_BYTES + slot * RECORD_BYTES;
    const first = at + LENGTH_BYTES;
    const text = this.#bytes.toString("utf8", first, first + this.#bytes.readUInt16LE(at));
    const [ttl, deadline, deadlineAt, lease = "", ...name] = text.split("\n");
    const moment = (written = "") => (written === "" ? undefined : Number(written));
    return {
      lease,
      name: name.join("\n"),
      ttl: Number(ttl),
      deadline: moment(deadline),
      deadlineAt: moment(deadlineAt),
    };
  }

  /** How many slots were ever used: the first ones. */
  get used(): number {
    return Number(Atomics.load(this.#head, USED));
  }

  /** When the heartbeat thread looks next, by `now`. Starts at 0: a thread that starts looks at once. */
  get nextLook(): number {
    return Number(Atomics.load(this.#head, NEXT_LOOK));
  }

  /** Takes infinite moments, too: -Infinity is "at once". */
  set nextLook(moment: number) {
    Atomics.store(this.#head, NEXT_LOOK, BigInt(Math.floor(Math.max(0, Math.min(moment, NEVER)))));
  }
}
