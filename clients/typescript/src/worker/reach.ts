import { now } from "../clock.js";
import { fromProblem, leavesDoubt } from "../errors.js";
import type { Logger } from "../log.js";
import { ConnectionLost } from "../sender.js";
import type { Answer, Call, Transport } from "../transport.js";

/** Shorter outages are no news: a server that starts again, a connection that was closed. */
const NEWS_MS = 500;
/** A call that is not answered for longer than this, beyond its wait, is an outage. */
const SILENT_MS = 1500;
const SAY_AGAIN_MS = 60_000;

/** Makes the calls of a worker, and logs when its server cannot be reached, and when it is back. */
export class Reach {
  #transport: Transport;
  #logger: Logger;
  #expected = new Set<{ readonly at: number }>();
  #awaySince: number | undefined;
  #wrong = "";
  #saidAt: number | undefined;

  constructor(transport: Transport, logger: Logger) {
    this.#transport = transport;
    this.#logger = logger;
  }

  /** Sends a call once; undefined if it is not answered. `doubt` is told if it may have been carried out all the same. */
  async once(call: Call, timeout: number, doubt?: { inDoubt: boolean }): Promise<Answer | undefined> {
    const expected = { at: now() + (call.wait ?? 0) };
    this.#expected.add(expected);
    try {
      const answer = await this.#transport.once(call, timeout);
      if (answer.status >= 500) {
        const error = fromProblem(answer.status, answer.data);
        if (doubt && leavesDoubt(error)) doubt.inDoubt = true;
        this.#away(`${this.#transport.servers.shown} cannot serve`, error.detail);
      } else {
        this.#back();
      }
      return answer;
    } catch (fault) {
      if (!(fault instanceof ConnectionLost)) throw fault;
      if (doubt && fault.sent) doubt.inDoubt = true;
      this.#away(`cannot reach ${this.#transport.servers.shown}`, fault.message);
      return undefined;
    } finally {
      this.#expected.delete(expected);
    }
  }

  /** Looks at the calls under way; called several times a second. */
  look(): void {
    const moment = now();
    let first = moment;
    for (const { at } of this.#expected) first = Math.min(first, at);
    if (this.#awaySince === undefined && moment - first > SILENT_MS) {
      this.#away(`cannot reach ${this.#transport.servers.shown}`, "it does not answer", first);
    }
    if (this.#awaySince === undefined || moment - this.#awaySince < NEWS_MS) return;
    if (this.#saidAt !== undefined && moment - this.#saidAt < SAY_AGAIN_MS) return;
    const [what, why] = this.#wrong.split("\0");
    const howLong = this.#saidAt === undefined ? "" : ` for ${Math.round((moment - this.#awaySince) / 1000)} s`;
    this.#saidAt = moment;
    this.#logger.warn(`${what}${howLong}: ${why}; trying again`);
  }

  #away(what: string, why: string, since = now()): void {
    this.#wrong = `${what}\0${why}`;
    this.#awaySince ??= since;
  }

  #back(): void {
    if (this.#awaySince !== undefined && this.#saidAt !== undefined) {
      const seconds = ((now() - this.#awaySince) / 1000).toFixed(1);
      this.#logger.info(`reached ${this.#transport.servers.shown} again after ${seconds} s`);
    }
    this.#awaySince = undefined;
    this.#saidAt = undefined;
  }
}
