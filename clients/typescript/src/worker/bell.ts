/** Wakes the loop that waits for it. */
export class Bell {
  #wake: (() => void) | undefined;

  /** Waits until it rings, or for so long. */
  wait(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(() => this.ring(), ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  ring(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
