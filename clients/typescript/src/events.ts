import { durationText } from "./durations.js";
import type { Event, Events, EventType, Gap } from "./generated.js";
import { endable } from "./lists.js";
import { type Abortable, as, readOptions, shape } from "./options.js";
import type { Transport } from "./transport.js";

/** The longest wait of one call for the next event. */
const SLICE_MS = 30_000;

/** The place to read from, and filters. All filters that are given must fit. */
export interface EventOptions extends Abortable {
  /** Goes on behind this event: an id, or `first` for the oldest that is kept. Default: from now on. */
  since?: string;
  /** Types, or families such as `job.*`. */
  type?: EventType | `${string}.*` | readonly (EventType | `${string}.*`)[];
  /** Events of this queue. */
  queue?: string;
  /** Events of this job. */
  job?: string;
  /** Events of this flow. */
  flow?: string;
  /** Events of this schedule. */
  schedule?: string;
  /** Events about this limit. */
  limit?: string;
  /** Events about this pool. */
  pool?: string;
}

/** Events were missed: they are not kept any more, or the store may have forgotten them. */
export interface EventGap extends Gap {
  readonly type: "gap";
  /** The id of the event with which the stream goes on. */
  readonly id: string;
}

/** An event, or a gap in them. `type` tells which. */
export type TenureEvent = Event | EventGap;

const SHAPE = shape({
  since: as.text,
  type: (value, name) => (Array.isArray(value) ? as.texts(value, name) : as.text(value, name)),
  queue: as.text,
  job: as.text,
  flow: as.text,
  schedule: as.text,
  limit: as.text,
  pool: as.text,
  signal: as.signal,
});

/** Reads events as they happen, across lost connections and restarts of the server. */
export function readEvents(
  transport: Transport,
  options: EventOptions | undefined,
): AsyncGenerator<TenureEvent, void, void> {
  const { signal, since, ...filter } = readOptions(options, SHAPE, "events") as {
    signal?: AbortSignal;
    since?: string;
  };
  return endable(signal, (ending) => follow(transport, since, filter, ending));
}

async function* follow(
  transport: Transport,
  from: string | undefined,
  filter: Record<string, unknown>,
  signal: AbortSignal,
): AsyncGenerator<TenureEvent, void, void> {
  let since = from ?? (await lastEvent(transport, signal));
  for (;;) {
    const page = await transport.json<Events>({
      method: "GET",
      path: "events",
      query: { ...filter, since, wait: durationText(SLICE_MS) },
      wait: SLICE_MS,
      // A reader waits for the next event however long that takes, and an outage is no reason to end.
      lasts: Number.POSITIVE_INFINITY,
      signal,
    });
    if (page.gap) yield { ...page.gap, type: "gap", id: page.gap.first ?? since };
    yield* page.items;
    since = page.next;
  }
}

/** The id of the newest event: as `since` it means "from now on". */
export async function lastEvent(transport: Transport, signal?: AbortSignal): Promise<string> {
  const page = await transport.json<Events>({ method: "GET", path: "events", signal });
  return page.next;
}
