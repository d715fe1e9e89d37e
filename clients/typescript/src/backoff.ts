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

/** Waits; rejects with the reason of the signal if that comes first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
