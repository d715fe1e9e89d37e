import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Address } from "./addresses.js";
import { onAbort } from "./backoff.js";
import type { Plain } from "./settings.js";

/** A request was sent and not answered, or could not be sent. */
export class ConnectionLost extends Error {
  /** Whether the server may have read the request. */
  readonly sent: boolean;
  /** Whether it went over a kept connection that the server had closed meanwhile. */
  readonly wasIdle: boolean;
  /** Whether another try would end the same: a certificate that is not trusted. */
  readonly permanent: boolean;

  constructor(why: string, at: { sent: boolean; wasIdle?: boolean; permanent?: boolean }) {
    super(why);
    this.sent = at.sent;
    this.wasIdle = at.wasIdle ?? false;
    this.permanent = at.permanent ?? false;
  }
}

/** One sending of a request. */
export interface Outgoing {
  readonly address: Address;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
  /** Milliseconds until the whole answer must be there. */
  readonly timeout: number;
  /** Milliseconds until there must be a connection. */
  readonly connectTimeout: number;
  readonly signal: AbortSignal | undefined;
}

/** What came back. */
export interface Incoming {
  readonly status: number;
  header(name: string): string | undefined;
  readonly text: string;
}

/** Sends requests to servers; throws {@link ConnectionLost}, or the reason of the signal. */
export interface Sender {
  send(request: Outgoing): Promise<Incoming>;
  /** Closes idle connections. */
  close(): void;
}

const FAULTS: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was closed",
  EPIPE: "the connection was closed",
  ENOTFOUND: "the name of the host is unknown",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ETIMEDOUT: "no connection in time",
};
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/;

function faultOf(error: NodeJS.ErrnoException, sent: boolean, wasIdle = false): ConnectionLost {
  const code = error.code ?? "";
  if (CERTIFICATE.test(code) && !sent) {
    return new ConnectionLost(`the certificate of the server is not accepted: ${error.message}`, {
      sent,
      permanent: true,
    });
  }
  return new ConnectionLost(FAULTS[code] ?? (code || error.message), { sent, wasIdle });
}

/**
 * Sends over `node:http` and `node:https`. The global `fetch` was measured at a quarter of the calls
 * a second, and knows no authority or certificate of one client without a package of its own.
 */
export class HttpSender implements Sender {
  #plain = new http.Agent({ keepAlive: true });
  #tls: https.Agent;

  constructor(settings: Pick<Plain, "ca" | "cert" | "key">) {
    const { ca, cert, key } = settings;
    this.#tls = new https.Agent({
      keepAlive: true,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
  }

  send(request: Outgoing): Promise<Incoming> {
    return new Promise((resolve, reject) => {
      const { address, signal, body } = request;
      // It may have aborted while the address or the token was looked up, and tells nobody a second time.
      signal?.throwIfAborted();
      let connected = false;
      let over = false;
      let connecting: NodeJS.Timeout | undefined;
      const headers: http.OutgoingHttpHeaders = { ...request.headers };
      if (body !== undefined) headers["content-length"] = Buffer.byteLength(body);
      const options = {
        host: address.host,
        port: address.port,
        method: request.method,
        path: address.prefix + request.path,
        headers,
      };
      const sending = address.tls
        ? https.request({ ...options, agent: this.#tls })
        : http.request({ ...options, agent: this.#plain });

      const end = (outcome: () => void) => {
        if (over) return;
        over = true;
        clearTimeout(timer);
        clearTimeout(connecting);
        forget();
        outcome();
      };
      const fail = (fault: unknown) =>
        end(() => {
          sending.destroy();
          reject(fault);
        });
      const timer = setTimeout(
        () => fail(new ConnectionLost("no answer in time", { sent: connected })),
        request.timeout,
      );
      const forget = onAbort(signal, () => fail(signal?.reason));

      sending.on("socket", (socket: Socket) => {
        if (!socket.connecting && sending.reusedSocket) {
          connected = true;
          return;
        }
        connecting = setTimeout(
          () => fail(new ConnectionLost("no connection in time", { sent: false })),
          request.connectTimeout,
        );
        socket.once(address.tls ? "secureConnect" : "connect", () => {
          connected = true;
          clearTimeout(connecting);
        });
      });
      sending.on("error", (error: NodeJS.ErrnoException) =>
        fail(
          faultOf(error, connected, sending.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE")),
        ),
      );
      sending.on("response", (answer) => {
        const parts: Buffer[] = [];
        answer.on("data", (part: Buffer) => parts.push(part));
        answer.on("error", (error: NodeJS.ErrnoException) => fail(faultOf(error, true)));
        answer.on("end", () => {
          if (!answer.complete) return fail(new ConnectionLost("the answer broke off", { sent: true }));
          const text = (parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts)).toString("utf8");
          end(() =>
            resolve({
              status: answer.statusCode ?? 0,
              header: (name) => {
                const value = answer.headers[name];
                return Array.isArray(value) ? value[0] : value;
              },
              text,
            }),
          );
        });
        answer.on("close", () => {
          // It comes after each answer; an error that nobody sees costs as much as the rest of the call.
          if (!over) fail(new ConnectionLost("the answer broke off", { sent: true }));
        });
      });
      sending.end(body);
    });
  }

  // Not `agent.destroy`, which breaks off the calls under way, too: the answer of one may be a grant.
  close(): void {
    for (const agent of [this.#plain, this.#tls]) {
      agent.maxFreeSockets = 0;
      for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
    }
  }
}

/** Sends by a `fetch` that the user gave. */
export class FetchSender implements Sender {
  #fetch: typeof fetch;

  constructor(given: typeof fetch) {
    this.#fetch = given;
  }

  async send(request: Outgoing): Promise<Incoming> {
    const { address, signal } = request;
    signal?.throwIfAborted();
    const stop = new AbortController();
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      stop.abort();
    }, request.timeout);
    const forget = onAbort(signal, () => stop.abort(signal?.reason));
    try {
      const answer = await this.#fetch(address.url + request.path, {
        method: request.method,
        headers: request.headers,
        redirect: "manual",
        signal: stop.signal,
        ...(request.body === undefined ? {} : { body: request.body }),
      });
      const text = await answer.text();
      return { status: answer.status, header: (name) => answer.headers.get(name) ?? undefined, text };
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (late) throw new ConnectionLost("no answer in time", { sent: true });
      const cause = (error as { cause?: NodeJS.ErrnoException }).cause;
      const code = cause?.code ?? "";
      const sent = !["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"].includes(code);
      throw faultOf(cause ?? (error as NodeJS.ErrnoException), sent && !CERTIFICATE.test(code));
    } finally {
      clearTimeout(timer);
      forget();
    }
  }

  close(): void {}
}
