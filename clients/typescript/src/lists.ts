import type { Call, Transport } from "./transport.js";

/** The longest page: fewer calls for long lists. */
const PAGE = 500;

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
