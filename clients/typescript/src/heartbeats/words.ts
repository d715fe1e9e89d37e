// The state of each held lease, in memory that the main thread and the heartbeat thread share: a blocked
// event loop takes in no message, and still must not settle a lost lease.
//
// A slot is one 64-bit word: the generation of its use, the moment by which the work must stop, and
// the state. Each write is a compare-and-exchange on the generation, so news of the heartbeat
// thread about a settled lease never reaches the next lease in its slot.

/** States of a slot. */
export const FREE = 0;
/** Its work goes on. */
export const RUNNING = 1;
/** Its work is done: it is extended until its settle is answered, and never stopped. */
export const SETTLING = 2;
/** Its right is over. */
export const LOST = 3;
export type State = typeof FREE | typeof RUNNING | typeof SETTLING | typeof LOST;

const STATES = 4n;
const GENERATION = 1n << 44n;
const GENERATIONS = 1 << 19;

/** What a slot says. */
export interface Word {
  readonly generation: number;
  /** By `now`; whole milliseconds. */
  readonly stopAt: number;
  readonly state: State;
}

/** The slots of one process. */
export class Words {
  readonly buffer: SharedArrayBuffer;
  #words: BigInt64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#words = new BigInt64Array(buffer);
  }

  static of(slots: number): Words {
    return new Words(new SharedArrayBuffer(slots * 8));
  }

  /** How many slots there are. */
  get size(): number {
    return this.#words.length;
  }

  read(slot: number): Word {
    return decode(Atomics.load(this.#words, slot));
  }

  /** Begins a new use of a free slot; returns its generation. */
  begin(slot: number, stopAt: number): number {
    const generation = (this.read(slot).generation + 1) % GENERATIONS;
    Atomics.store(this.#words, slot, encode(generation, stopAt, RUNNING));
    return generation;
  }

  /** Writes the state of a use; false if the use is over, or its state is another one. */
  change(slot: number, generation: number, from: readonly State[], to: State, stopAt?: number): boolean {
    for (;;) {
      const before = Atomics.load(this.#words, slot);
      const word = decode(before);
      if (word.generation !== generation || !from.includes(word.state)) return false;
      const after = encode(generation, stopAt ?? word.stopAt, to);
      if (Atomics.compareExchange(this.#words, slot, before, after) === before) return true;
    }
  }

  /** Moves the moment by which the work must stop, which never comes nearer; false if the use is over. */
  prolong(slot: number, generation: number, stopAt: number): boolean {
    for (;;) {
      const before = Atomics.load(this.#words, slot);
      const word = decode(before);
      if (word.generation !== generation || word.state === FREE || word.state === LOST) return false;
      const after = encode(generation, Math.max(stopAt, word.stopAt), word.state);
      if (Atomics.compareExchange(this.#words, slot, before, after) === before) return true;
    }
  }
}

function encode(generation: number, stopAt: number, state: State): bigint {
  return BigInt(generation) * GENERATION + BigInt(Math.floor(stopAt)) * STATES + BigInt(state);
}

function decode(word: bigint): Word {
  const low = word % GENERATION;
  return {
    generation: Number(word / GENERATION),
    stopAt: Number(low / STATES),
    state: Number(low % STATES) as State,
  };
}
