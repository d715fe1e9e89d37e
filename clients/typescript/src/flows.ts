import { now } from "./clock.js";
import { type Duration, durationText } from "./durations.js";
import { NotFinished } from "./errors.js";
import type { Flow } from "./generated.js";
import { listOf } from "./lists.js";
import { type Abortable, as, readOptions, shape, signalOf } from "./options.js";
import { part, type Transport } from "./transport.js";

const SLICE_MS = 30_000;
const WAITING = shape({ wait: as.ms, signal: as.signal });

/** Flows: jobs that belong together. */
export class Flows {
  #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Shows a flow. @throws `NotFound` */
  get(flow: string, options?: Abortable): Promise<Flow> {
    return this.#transport.call("flows.get", "GET", ["flows", flow], options);
  }

  /**
   * Waits until no job of the flow is unfinished.
   *
   * @throws `NotFinished` when `wait` is over. Default without end.
   */
  async finished(flow: string, options: { wait?: Duration } & Abortable = {}): Promise<Flow> {
    const { wait, signal } = readOptions(options, WAITING, "flows.finished") as { wait?: number; signal?: AbortSignal };
    const until = wait === undefined ? Number.POSITIVE_INFINITY : now() + wait;
    for (;;) {
      const left = until - now();
      const slice = Math.max(0, Math.min(left, SLICE_MS));
      const found = await this.#transport.json<Flow>({
        method: "GET",
        path: `flows/${part(flow)}`,
        query: { wait: durationText(slice) },
        wait: slice,
        lasts: left,
        signal,
      });
      if (found.finished_at !== null) return found;
      if (now() >= until) {
        throw new NotFinished("not_finished", `flow "${flow}" has not finished within ${durationText(wait ?? 0)}`, {
          hint: "wait for longer",
        });
      }
    }
  }

  /** All flows, by name. */
  list(options?: Abortable): AsyncIterable<Flow> {
    return listOf(this.#transport, "flows", {}, signalOf(options, "flows.list").signal);
  }

  /** Cancels all unfinished jobs of a flow. @throws `NotFound` */
  cancel(flow: string, options?: Abortable): Promise<Flow> {
    return this.#transport.call("flows.cancel", "POST", ["flows", flow, "cancel"], options);
  }
}
