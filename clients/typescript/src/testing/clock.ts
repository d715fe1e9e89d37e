import { type Duration, durationText } from "../durations.js";
import type { Transport } from "../transport.js";

/** The clock of a server that was started for a test: it stands still until the test moves it. */
export class TestClock {
  #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The time of the server. */
  async now(): Promise<Date> {
    const { now } = await this.#transport.json<{ now: string }>({ method: "GET", path: "test/clock" });
    return new Date(now);
  }

  /** Lets time pass, from 1 ms on: jobs become due, leases run out, schedules fire. */
  async advance(time: Duration): Promise<Date> {
    const body = JSON.stringify({ advance: durationText(time, "advance") });
    // A repeat would move it twice.
    const call = { method: "POST", path: "test/clock", body, repeatable: false } as const;
    const { now } = await this.#transport.json<{ now: string }>(call);
    return new Date(now);
  }
}
