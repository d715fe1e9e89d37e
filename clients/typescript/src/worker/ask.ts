import { Backoff, sleep } from "../backoff.js";
import { now } from "../clock.js";
import { durationText } from "../durations.js";
import type { Lease } from "../generated.js";
import { newId } from "../ids.js";
import type { Reach } from "./reach.js";

/** A call for jobs: what is sent under one request id, until it is answered. */
export class Ask {
  /** When it was first sent: what it is granted counts from then. */
  firstSent = 0;
  /**
   * Whether a sending that was not answered may have been granted jobs. They would wait for their ttl, and count as
   * lost, unless the same request id asks for them again.
   */
  inDoubt = false;
  #id = newId("request");
  #body = {};

  /** What is sent now. */
  write(wait: number, fields: object): string {
    this.firstSent ||= now();
    this.#body = { ...fields, wait: durationText(wait), request_id: this.#id };
    return JSON.stringify(this.#body);
  }

  /**
   * Sends it without its wait, and gives back what comes; returns whether the server has said all that it will. A
   * sending that still waits is answered with nothing at once, and what an earlier one was granted comes here.
   */
  async withdraw(reach: Reach, until: number, giveBack: (lease: Lease) => void): Promise<boolean> {
    const doubt = { inDoubt: false };
    const body = JSON.stringify({ ...this.#body, wait: "0s" });
    const answer = await reach.once({ method: "POST", path: "leases", body }, Math.max(1, until - now()), doubt);
    if (answer && answer.status < 400) {
      for (const lease of (answer.data as { leases?: Lease[] } | null)?.leases ?? []) giveBack(lease);
      this.inDoubt = false;
    }
    return answer !== undefined && !doubt.inDoubt;
  }

  /** Gives back what was granted to a sending whose answer is lost; returns whether that is known now. */
  async takeBack(reach: Reach, until: number, giveBack: (lease: Lease) => void): Promise<boolean> {
    const backoff = new Backoff();
    while (this.inDoubt && now() < until && !(await this.withdraw(reach, until, giveBack))) {
      await sleep(backoff.pause());
    }
    return !this.inDoubt;
  }
}
