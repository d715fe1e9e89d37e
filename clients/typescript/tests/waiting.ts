import assert from "node:assert/strict";

/** Looks again and again until something is so; fails after a time. */
export async function until(
  met: () => boolean | Promise<boolean>,
  ms = 10_000,
  why: () => string = () => "",
): Promise<void> {
  const end = performance.now() + ms;
  while (!(await met())) {
    if (performance.now() > end) assert.fail(`not within ${ms} ms: ${met}; ${why()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Fails unless a promise is settled in time. */
export async function within<T>(promise: Promise<T>, ms = 10_000): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A promise that is fulfilled from outside. */
export function gate<T = void>(): { promise: Promise<T>; open: (value: T) => void } {
  let open!: (value: T) => void;
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

/** All items of an async iterable. */
export async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}

/** A logger that keeps its lines. */
export class Lines {
  readonly lines: string[] = [];
  info = (line: string) => void this.lines.push(`info ${line}`);
  warn = (line: string) => void this.lines.push(`warn ${line}`);
  error = (line: string) => void this.lines.push(`error ${line}`);
  has(text: string): boolean {
    return this.lines.some((line) => line.includes(text));
  }
}
