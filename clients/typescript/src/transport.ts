import type { Address } from "./addresses.js";
import { Backoff, orAbort, sleep } from "./backoff.js";
import { now } from "./clock.js";
import { type Codec, withAdvice } from "./codec.js";
import {
  fromProblem,
  leavesDoubt,
  OutcomeUnknown,
  TenureError,
  UnexpectedAnswer,
  Unreachable,
  wrong,
} from "./errors.js";
import type { Logger } from "./log.js";
import { type Abortable, signalOf } from "./options.js";
import { ConnectionLost, type Incoming, type Sender } from "./sender.js";
import { Servers } from "./servers.js";
import type { Plain } from "./settings.js";
import { shown } from "./text.js";

/** One call of the API. */
export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below `/v1`: `jobs/ID`, or a whole path that begins with "/". Its parts are encoded already. */
  readonly path: string;
  readonly query?: Record<string, unknown>;
  /** JSON, or lines of it. */
  readonly body?: string | undefined;
  /** Whether the body is NDJSON; the answer then is, too. */
  readonly lines?: boolean;
  /** Whether the body is NDJSON, and the answer is JSON. */
  readonly bodyLines?: boolean;
  /** Whether the answer may leave out what the caller knows. */
  readonly minimal?: boolean;
  /** How long the server may wait before it answers, in milliseconds. */
  readonly wait?: number;
  /** For how many milliseconds it is repeated at least, if that is longer than `retryFor`. */
  readonly lasts?: number;
  /** For how long it is repeated, in place of `retryFor`. */
  readonly retryFor?: number;
  /** Whether a second sending does nothing twice; true unless it is given. */
  readonly repeatable?: boolean;
  /** Whether a 429 is thrown at once: the caller repeats it, and makes other calls meanwhile. */
  readonly fullThrows?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** The answer of a call that was not refused. */
export interface Reply {
  readonly status: number;
  /** JSON; undefined without a body. */
  readonly data: unknown;
  /** The body as it came, for NDJSON. */
  readonly text: string;
  /** When it was first sent, by `now`. */
  readonly firstSent: number;
  /** Whether an earlier sending may have been carried out. */
  readonly repeated: boolean;
}

/** The answer to one sending. */
export interface Answer {
  readonly status: number;
  readonly data: unknown;
  readonly text: string;
  readonly retryAfter: number | undefined;
}

/** The token, where it is known: see `TokenSource`. */
export interface Tokens {
  get(fresh?: boolean): string | undefined | Promise<string | undefined>;
}

/** Calls that do not wait are answered within this, or sent again. */
export const PATIENCE_MS = 15_000;
/** Where there are other servers, a connection that is not made within this is given up. */
const CONNECT_MS = 3000;
/** After a restart of the server, each kept connection is closed. */
const IDLE_LOSSES_MAX = 16;

/** Encodes a name as one part of a path. `key:` of a job's key stays readable. An empty one would name the whole list. */
export function part(name: string): string {
  if (typeof name !== "string" || name === "")
    wrong("the name or id", `must be text that is not empty, not ${shown(name)}`);
  return encodeURIComponent(name).replaceAll("%3A", ":").replaceAll("%40", "@");
}

/** Calls the servers of one client. */
export class Transport {
  readonly servers: Servers;
  readonly retryFor: number;
  /** Set by the client. */
  codec: Codec | undefined;
  #sender: Sender;
  #tokens: Tokens;
  #namespace: string | undefined;

  constructor(settings: Plain, tokens: Tokens, sender: Sender, logger: Logger, retryFor: number) {
    this.servers = new Servers(settings, logger);
    this.retryFor = retryFor;
    this.#sender = sender;
    this.#tokens = tokens;
    this.#namespace = settings.namespace;
  }

  /** Makes a call and returns the JSON of its answer. */
  async json<T>(call: Call): Promise<T> {
    return (await this.send(call)).data as T;
  }

  /**
   * Makes a call of a user, named `call` in messages, whose only option is a signal; returns the JSON of its answer.
   * The parts of the path are words and names in turn.
   */
  async call<T>(
    call: string,
    method: Call["method"],
    path: readonly string[],
    options?: Abortable,
    body?: string | (() => string | undefined | Promise<string>),
  ): Promise<T> {
    const { signal } = signalOf(options, call);
    const written = typeof body === "function" ? await body() : body;
    return await this.json({ method, path: path.map(part).join("/"), body: written, signal });
  }

  /**
   * Makes a call, and repeats it while it is not answered.
   *
   * @throws the error that the server answers, or {@link Unreachable} or {@link OutcomeUnknown} when
   * `retryFor` is over, or the reason of the signal.
   */
  async send(call: Call): Promise<Reply> {
    const retryFor = Math.max(call.retryFor ?? this.retryFor, call.lasts ?? 0);
    const backoff = new Backoff();
    const tried = new Set<string>();
    const firstSent = now();
    let failingSince: number | undefined;
    let mayHaveHappened = false;
    let idleLosses = 0;
    let refreshed = false;
    for (;;) {
      call.signal?.throwIfAborted();
      let error: TenureError;
      try {
        const address = await orAbort(this.servers.current(), call.signal);
        tried.add(address.url);
        const answer = await this.#sendTo(address, call, (call.wait ?? 0) + PATIENCE_MS);
        if (answer.status < 400) {
          return { status: answer.status, data: answer.data, text: answer.text, firstSent, repeated: mayHaveHappened };
        }
        error = withAdvice(this.codec, fromProblem(answer.status, answer.data, answer.retryAfter));
        if (answer.status === 401 && !refreshed) {
          refreshed = true;
          const before = await this.#tokens.get();
          if ((await this.#tokens.get(true)) !== before) continue;
        }
        if (!error.retryable || (call.fullThrows && answer.status === 429)) {
          // It is deleted: an earlier sending may have been carried out.
          if (answer.status === 404 && mayHaveHappened && call.method === "DELETE") {
            return { status: 204, data: undefined, text: "", firstSent, repeated: true };
          }
          throw error;
        }
        mayHaveHappened ||= leavesDoubt(error);
      } catch (fault) {
        if (fault instanceof Unreachable) {
          error = fault;
        } else if (fault instanceof ConnectionLost) {
          mayHaveHappened ||= fault.sent;
          error = this.#lostError(fault, mayHaveHappened);
          if (fault.permanent) throw error;
          if (fault.wasIdle && idleLosses < IDLE_LOSSES_MAX && call.repeatable !== false) {
            idleLosses++;
            continue;
          }
        } else {
          throw fault;
        }
      }
      if (call.repeatable === false && mayHaveHappened) throw error;
      failingSince ??= now();
      // Another server is asked at once, whatever this one said about when to come again.
      const next = this.servers.at;
      if (next && !tried.has(next.url)) continue;
      const left = failingSince + retryFor - now();
      if (left <= 0 || (error.retryAfter ?? 0) > left) throw error;
      tried.clear();
      await sleep(Math.min(Math.max(backoff.pause(), error.retryAfter ?? 0), left), call.signal);
    }
  }

  /**
   * Sends a call once, for callers that send it again until it is answered.
   *
   * @throws {@link ConnectionLost} if no server answered it, whatever the reason: an outage may also be a
   * gateway that answers with a page, or a token that cannot be had.
   */
  async once(call: Call, timeout: number): Promise<Answer> {
    let sent = false;
    try {
      const address = await this.servers.current();
      sent = true;
      const answer = await this.#sendTo(address, call, timeout);
      if (answer.status === 401) await this.#tokens.get(true);
      return answer;
    } catch (fault) {
      if (fault instanceof ConnectionLost) throw fault;
      const why = fault instanceof TenureError ? fault.detail : fault instanceof Error ? fault.message : String(fault);
      throw new ConnectionLost(why, { sent });
    }
  }

  /** Closes idle connections. */
  close(): void {
    this.#sender.close();
  }

  async #sendTo(address: Address, call: Call, timeout: number): Promise<Answer> {
    const known = this.#tokens.get();
    const token = typeof known === "object" ? await orAbort(known, call.signal) : known;
    let incoming: Incoming;
    try {
      incoming = await this.#sender.send({
        address,
        method: call.method,
        path: target(call),
        headers: this.#headers(call, token),
        body: call.body,
        timeout,
        connectTimeout: this.servers.several ? Math.min(timeout, CONNECT_MS) : timeout,
        signal: call.signal,
      });
    } catch (fault) {
      if (fault instanceof ConnectionLost) this.servers.lost(address);
      throw fault;
    }
    const { status, text } = incoming;
    let data: unknown;
    if (text !== "" && !(call.lines && status < 400)) {
      try {
        data = JSON.parse(text);
      } catch {
        if (status < 400) throw notTenure(address.url, status);
      }
    } else if (status < 400 && status !== 204 && text === "") {
      throw notTenure(address.url, status);
    }
    if (status >= 300 && status < 400) throw notTenure(address.url, status);
    const code = (data as { code?: string } | undefined)?.code;
    this.servers.answered(address, status, code, incoming.header("tenure-owner"));
    const after = Number(incoming.header("retry-after"));
    return { status, data, text, retryAfter: after > 0 ? after * 1000 : undefined };
  }

  #headers(call: Call, token: string | undefined): Record<string, string> {
    const headers: Record<string, string> = { accept: call.lines ? "application/x-ndjson" : "application/json" };
    if (call.body !== undefined)
      headers["content-type"] = call.lines || call.bodyLines ? "application/x-ndjson" : "application/json";
    if (call.minimal) headers["prefer"] = "return=minimal";
    if (token) headers["authorization"] = `Bearer ${token}`;
    if (this.#namespace) headers["tenure-namespace"] = this.#namespace;
    return headers;
  }

  #lostError(fault: ConnectionLost, mayHaveHappened: boolean): TenureError {
    const shown = this.servers.shown;
    if (mayHaveHappened) {
      return new OutcomeUnknown(
        "outcome_unknown",
        `${shown}: the answer was lost (${fault.message}); the call may have been carried out`,
        { hint: "make the same call again, with the same ids: nothing is done twice" },
      );
    }
    const where = this.servers.several ? `no server can be reached at ${shown}; the last fault` : shown;
    return new Unreachable("unreachable", `${where}: ${fault.message}`, {
      hint: fault.permanent
        ? "give the authority of the servers' certificates as `ca` or in TENURE_CA"
        : "is `tenure serve` running there, and is the address right?",
    });
  }
}

/** The error of an answer that no Tenure server gives. */
export function notTenure(url: string, status: number): UnexpectedAnswer {
  return new UnexpectedAnswer("unexpected_answer", `the server at ${url} is no Tenure server: its answer is no JSON`, {
    status,
    hint: "look at the address, and at what stands between this client and the server",
  });
}

function target(call: Call): string {
  let query = "";
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (value === undefined || value === null) continue;
    const text = Array.isArray(value) ? value.join(",") : String(value);
    query += `${query ? "&" : "?"}${name}=${encodeURIComponent(text)}`;
  }
  return `${call.path.startsWith("/") ? "" : "/v1/"}${call.path}${query}`;
}
