import { setMaxListeners } from "node:events";

/** Pauses that double, each between half of it and the whole, so that clients do not march in step. */
export class Backoff {
  #next: number;
  #longest: number;

  constructor(first = 50, longest = 2000) {
    this.#next = first;
    this.#longest = longest;
  }

  /** The next pause in milliseconds. */
  pause(): number {
    const pause = this.#next;
    this.#next = Math.min(this.#longest, pause * 2);
    return pause * (0.5 + Math.random() / 2);
  }
}

/**
 * Acts when a signal that has not aborted yet aborts; returns what ends that. Many calls may share a signal, and Node
 * warns of a leak from the eleventh listener on.
 */
export function onAbort(signal: AbortSignal | undefined, act: () => void): () => void {
  if (!signal) return () => {};
  setMaxListeners(0, signal);
  signal.addEventListener("abort", act, { once: true });
  return () => signal.removeEventListener("abort", act);
}

/** Waits for what cannot be ended; rejects with the reason of the signal if that comes first. */
export function orAbort<T>(pending: T | Promise<T>, signal: AbortSignal | undefined): T | Promise<T> {
  if (!signal || !(pending instanceof Promise)) return pending;
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    const forget = onAbort(signal, () => reject(signal.reason));
    pending.then(resolve, reject).finally(forget);
  });
}

/** Waits; rejects with the reason of the signal if that comes first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      forget();
      resolve();
    }, ms);
    const forget = onAbort(signal, () => {
      clearTimeout(timer);
      reject(signal?.reason);
    });
  });
}
