import { onAbort } from "./backoff.js";
import type { Call, Transport } from "./transport.js";

/** The longest page: fewer calls for long lists. */
const PAGE = 500;

/**
 * A stream whose calls wait for long. Generators alone take a `return` only when their call is answered: a reader that
 * goes away, as of a `Readable.from`, left its call waiting for half a minute.
 */
export function endable<T>(
  signal: AbortSignal | undefined,
  make: (signal: AbortSignal) => AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  const stop = new AbortController();
  const forget = onAbort(signal, () => stop.abort(signal?.reason));
  if (signal?.aborted) stop.abort(signal.reason);
  const stream = make(stop.signal);
  const { next, return: end, throw: fail } = stream;
  const ended = {};
  const close = () => {
    forget();
    stop.abort(ended);
  };
  return Object.assign(stream, {
    next: async (): Promise<IteratorResult<T, void>> => {
      try {
        const step = await next.call(stream);
        if (step.done) forget();
        return step;
      } catch (error) {
        forget();
        if (error === ended) return { done: true, value: undefined };
        throw error;
      }
    },
    return: () => {
      close();
      return end.call(stream);
    },
    throw: (error: unknown) => {
      close();
      return fail.call(stream, error);
    },
  });
}

/** Reads a list page by page, as it is iterated. */
export async function* listOf<T>(
  transport: Transport,
  path: string,
  query: Call["query"],
  signal?: AbortSignal,
  read?: (item: T) => Promise<T>,
): AsyncGenerator<T, void, void> {
  let cursor: string | undefined;
  do {
    const call: Call = { method: "GET", path, query: { max: PAGE, ...query, cursor }, signal };
    const page = await transport.json<{ items: T[]; next?: string | null }>(call);
    for (const item of page.items) yield read ? await read(item) : item;
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
}
