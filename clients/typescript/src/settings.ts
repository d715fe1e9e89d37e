import { readFileSync, statSync } from "node:fs";
import { type Address, DEFAULT_PORT, readAddresses, readStore, type StoreAddress } from "./addresses.js";
import type { Codec } from "./codec.js";
import type { Duration } from "./durations.js";
import { refuse, wrong } from "./errors.js";
import type { Instrumentation } from "./instrumentation.js";
import { type Logger, SILENT, TO_STDERR, unfailing } from "./log.js";
import { as, readOptions, shape } from "./options.js";
import { shown } from "./text.js";

/** The token: text, or a function that returns it, asked at the first call, each minute, and after a 401. */
export type Token = string | (() => string | Promise<string>);

/** The address of the server, and how it is called. Absent options are read from the environment. */
export interface ClientOptions {
  /**
   * The address of a server, of several with commas between, or of the Redis in which its servers are
   * looked up (`redis://HOST:6379`, which needs the package `ioredis`). Default: TENURE_URL, then
   * `http://127.0.0.1:7171`.
   */
  url?: string;
  /** The token. Default: TENURE_TOKEN, then the file. */
  token?: Token;
  /** A file with the token in its first line, read again when it changes. Default: TENURE_TOKEN_FILE. */
  tokenFile?: string;
  /** 1 to 63 letters `a-z0-9-`, the first of them no `-`. Default: TENURE_NAMESPACE, then `default`. */
  namespace?: string;
  /** The authority of the servers' certificates: a PEM file, or PEM text. Default: TENURE_CA. */
  ca?: string;
  /** The certificate that this client shows: a PEM file, or PEM text. Default: TENURE_CLIENT_CERT. */
  clientCert?: string;
  /** The key of that certificate: a PEM file, or PEM text. Default: TENURE_CLIENT_KEY. */
  clientKey?: string;
  /**
   * Makes the calls instead of `node:http`. Heartbeats go through it, too, from the main thread:
   * then a handler that blocks the event loop loses its lease.
   */
  fetch?: typeof fetch;
  /** For how long a call is repeated while no server answers. Default 60 s; 0 is not at all. */
  retryFor?: Duration;
  /** The name of the set that the schedules of this program are, at most 128 bytes. `schedule` needs it. */
  owner?: string;
  /** Takes log lines; `false` takes none. Default: warnings and errors on stderr. */
  logger?: Logger | false;
  /** Seals payloads, results and progress, and opens them: the server reads none of them. Default none. */
  codec?: Codec;
  /** Surrounds pushes and runs, as `otel()` of `tenure/otel` does for traces. Default none. */
  instrumentation?: Instrumentation;
}

const NAMESPACE = "must be 1 to 63 of the characters a-z, 0-9 and -, the first of them not -";
const SHAPE = shape({
  url: as.text,
  token: (value, name) => {
    if (typeof value === "string" || typeof value === "function") return value;
    refuse(`${name} must be text or a function, not ${shown(value)}`);
  },
  tokenFile: as.text,
  namespace: (value, name) => (/^[a-z0-9][a-z0-9-]{0,62}$/.test(as.text(value, name)) ? value : wrong(name, NAMESPACE)),
  ca: as.text,
  clientCert: as.text,
  clientKey: as.text,
  fetch: as.callable,
  retryFor: as.ms,
  owner: as.text,
  logger: as.logger,
  codec: (value, name) => {
    const codec = value as Partial<Codec> | null;
    return typeof codec?.encode === "function" && typeof codec.decode === "function" && codec.name
      ? codec
      : wrong(name, "must be an object with a `name`, `encode` and `decode`");
  },
  instrumentation: (value, name) =>
    typeof value === "object" && value !== null
      ? value
      : wrong(name, `must be an object with \`push\`, \`run\` or \`settle\`, not ${shown(value)}`),
});

/** The part of the settings that can be sent to another thread, which then calls the same servers. */
export interface Plain {
  readonly addresses: readonly Address[];
  readonly store: StoreAddress | undefined;
  readonly namespace: string | undefined;
  /** PEM text. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  /** Whether there is a token. */
  readonly secret: boolean;
}

/** Where the servers are and how to call them. */
export interface Settings extends Plain {
  readonly token: TokenSource;
  readonly fetch: typeof fetch | undefined;
  readonly retryFor: number;
  readonly owner: string | undefined;
  readonly logger: Logger;
  readonly codec: Codec | undefined;
  readonly instrumentation: Instrumentation | undefined;
}

/** The address for messages, without user and password. */
export function shownAddress(settings: Plain): string {
  return settings.store?.shown ?? settings.addresses.map((address) => address.url).join(",");
}

/** Reads options, and the environment for what is not given. */
export function readSettings(options: ClientOptions | undefined): Settings {
  const read = readOptions(options, SHAPE, "Tenure");
  const given = (name: string, variable: string): string | undefined =>
    ((read[name] as string | undefined) ?? process.env[variable]) || undefined;
  const url = given("url", "TENURE_URL") ?? `http://127.0.0.1:${DEFAULT_PORT}`;
  const store = readStore(url);
  const cert = pem(given("client_cert", "TENURE_CLIENT_CERT"), "clientCert");
  const key = pem(given("client_key", "TENURE_CLIENT_KEY"), "clientKey");
  if ((cert === undefined) !== (key === undefined)) {
    refuse("clientCert and clientKey go together; give both or none");
  }
  const token = (read["token"] as Token | undefined) ?? (process.env["TENURE_TOKEN"] || undefined);
  const file = token === undefined ? given("token_file", "TENURE_TOKEN_FILE") : undefined;
  return {
    addresses: store ? [] : readAddresses(url),
    store,
    namespace: given("namespace", "TENURE_NAMESPACE"),
    ca: pem(given("ca", "TENURE_CA"), "ca"),
    cert,
    key,
    secret: (token !== undefined && token !== "") || file !== undefined,
    token: new TokenSource(token, file),
    fetch: read["fetch"] as typeof fetch | undefined,
    owner: read["owner"] as string | undefined,
    retryFor: (read["retry_for"] as number | undefined) ?? 60_000,
    logger: read["logger"] === false ? SILENT : unfailing((read["logger"] as Logger | undefined) ?? TO_STDERR),
    codec: read["codec"] as Codec | undefined,
    instrumentation: read["instrumentation"] as Instrumentation | undefined,
  };
}

function pem(given: string | undefined, name: string): string | undefined {
  if (given === undefined || given.includes("-----BEGIN ")) return given;
  let text: string;
  try {
    text = readFileSync(given, "utf8");
  } catch (refused) {
    const code = (refused as NodeJS.ErrnoException).code ?? "unreadable";
    refuse(`${name} names the file ${shown(given)}, which cannot be read (${code})`);
  }
  if (text.includes("-----BEGIN ")) return text;
  refuse(`${name} names the file ${shown(given)}, which is not PEM`);
}

const ASK_AGAIN_MS = 60_000;
const LOOK_AGAIN_MS = 2000;

/** The token of a client, wherever it comes from. It is never part of a message. */
export class TokenSource {
  /** The file that it is read from. */
  readonly file: string | undefined;
  #given: Token | undefined;
  #known: string | undefined;
  #changed = 0;
  #until = 0;
  #asking: Promise<string | undefined> | undefined;

  constructor(given: Token | undefined, file: string | undefined) {
    this.#given = given;
    this.file = file;
    if (typeof given === "string") this.#known = sendable(given, "token");
  }

  /** The token; `fresh` asks for it again, since the server refused the present one. */
  get(fresh = false): string | undefined | Promise<string | undefined> {
    if (typeof this.#given !== "function" && this.file === undefined) return this.#known;
    if (!fresh && Date.now() < this.#until) return this.#known;
    if (this.file !== undefined) return this.#read(this.file);
    this.#asking ??= this.#ask(this.#given as () => string | Promise<string>).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  #read(file: string): string | undefined {
    this.#until = Date.now() + LOOK_AGAIN_MS;
    try {
      const changed = statSync(file).mtimeMs;
      if (changed !== this.#changed) {
        const lines = readFileSync(file, "utf8").split("\n");
        this.#known = lines.map((line) => line.trim()).find((line) => line !== "" && !line.startsWith("#"));
        this.#changed = changed;
      }
    } catch (refused) {
      // A file that is being replaced may be away for a moment: the token that is known goes on.
      if (this.#known === undefined) {
        const code = (refused as NodeJS.ErrnoException).code ?? "unreadable";
        refuse(`the token file ${shown(file)} cannot be read (${code})`);
      }
    }
    if (this.#known === undefined) refuse(`the token file ${shown(file)} has no token`, "write it into the first line");
    return sendable(this.#known, `the token of ${shown(file)}`);
  }

  async #ask(ask: () => string | Promise<string>): Promise<string> {
    const token: unknown = await ask();
    if (typeof token !== "string" || token === "") {
      refuse(`the function \`token\` must return the token as text, not ${typeof token}`);
    }
    this.#known = sendable(token, "the token that the function `token` returned");
    this.#until = Date.now() + ASK_AGAIN_MS;
    return this.#known;
  }
}

/** A token as a header takes it. One that is read from a file ends with a line break. */
function sendable(token: string, name: string): string {
  const trimmed = token.trim();
  if (/^[\x20-\x7e]*$/.test(trimmed)) return trimmed;
  return wrong(name, "has characters that no header can carry; use printable ASCII");
}
