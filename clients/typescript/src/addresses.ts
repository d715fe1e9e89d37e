import { refuse, WrongOption } from "./errors.js";

export const DEFAULT_PORT = 7171;
/** Stores in which the servers that use them can be looked up: a Redis or Valkey of any kind. */
const SEARCHED = new Set(["redis", "rediss", "valkey", "valkeys", "redis-sentinel", "redis-cluster"]);
const FORMS = "HOST:PORT, http://HOST:PORT, https://HOST or tenure://HOST";
const PARTS = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/i;
const HOST = /^(\[[0-9a-f:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/i;
const BARE = /^(?:[\w.-]+|\[[0-9a-f:.]+\]):\d{1,5}(?:\/[^@?#]*)?$/i;

// No message repeats an address: it may hold a password.

/** The address of one server. It holds no secret, so it may be shown. */
export interface Address {
  readonly url: string;
  readonly tls: boolean;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  /** The path before `/v1`, for a server behind a proxy: "" or "/tenure". */
  readonly prefix: string;
}

/** Whether nobody on the network can read what goes there. */
export function isSafe(address: Address): boolean {
  return address.tls || address.host === "localhost" || address.host === "::1" || /^127\./.test(address.host);
}

/** Reads one address. */
export function readAddress(text: string): Address {
  const parts = PARTS.exec(BARE.test(text) ? `http://${text}` : text);
  const scheme = parts?.[1]?.toLowerCase() ?? text.split(":")[0]?.toLowerCase() ?? "";
  if (scheme === "memory" || scheme === "file" || SEARCHED.has(scheme)) {
    refuse(
      `"${scheme}:" is the address of a store, and this client calls a server; start "tenure serve --store ADDRESS" and give the server's address`,
    );
  }
  if (!parts || !["http", "https", "tenure"].includes(scheme)) refuse(`the address of a server is ${FORMS}`);
  const [, , authority = "", path = "", query, fragment] = parts;
  if (authority.includes("@")) {
    refuse("the address of a server takes no user and no password; give the token as `token` or in TENURE_TOKEN");
  }
  if (query !== undefined || fragment !== undefined) refuse('the address of a server takes no "?" and no "#"');
  const [host, port] = hostAndPort(authority, { http: 80, https: 443, tenure: DEFAULT_PORT }[scheme] as number);
  const tls = scheme === "https";
  const prefix = path.replace(/\/+$/, "");
  const bracketed = host.includes(":") ? `[${host}]` : host;
  return { url: `${tls ? "https" : "http"}://${bracketed}:${port}${prefix}`, tls, host, port, prefix };
}

function hostAndPort(text: string, usual: number): [host: string, port: number] {
  const found = HOST.exec(text);
  if (!found) refuse(`the address of a server is ${FORMS}`);
  const port = found[2] === undefined ? usual : Number(found[2]);
  if (port < 1 || port > 65_535) refuse("the port of an address is a number from 1 to 65535");
  return [(found[1] as string).replace(/^\[|\]$/g, "").toLowerCase(), port];
}

/** Reads one address, or several with commas between. One that stands twice counts once. */
export function readAddresses(text: string): Address[] {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.some((part) => part === "") && parts.length > 1) {
    refuse("a list of addresses has an empty part; write one comma between two addresses, and none at the end");
  }
  const found = new Map<string, Address>();
  for (const [n, part] of parts.entries()) {
    try {
      const address = readAddress(part);
      found.set(address.url, address);
    } catch (refused) {
      if (parts.length === 1 || !(refused instanceof WrongOption)) throw refused;
      refuse(`address ${n + 1} of ${parts.length}: ${refused.detail}`);
    }
  }
  return [...found.values()];
}

/** A store in Redis, in which its servers are looked up. It is never called as a server. */
export interface StoreAddress {
  /** The name of the store, with which its keys begin. */
  readonly name: string;
  /** The address without user and password, for messages. */
  readonly shown: string;
  readonly hosts: readonly (readonly [host: string, port: number])[];
  readonly cluster: boolean;
  /** The name under which sentinels watch the primary; undefined without sentinels. */
  readonly master: string | undefined;
  readonly db: number;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly sentinelUser: string | undefined;
  readonly sentinelPassword: string | undefined;
  readonly tls: boolean;
  /** A file of authorities that are trusted in place of the system's. */
  readonly ca: string | undefined;
}

/** Reads the address of a store that can be searched; undefined for any other address. */
export function readStore(text: string): StoreAddress | undefined {
  const parts = PARTS.exec(text.trim());
  const scheme = parts?.[1]?.toLowerCase() ?? "";
  if (!parts || !SEARCHED.has(scheme)) return undefined;
  const [, , authority = "", path = "", queryText = ""] = parts;
  const at = authority.lastIndexOf("@");
  const [user = "", password = ""] = at < 0 ? [] : splitOnce(authority.slice(0, at), ":");
  const listed = authority.slice(at + 1);
  const isList = scheme === "redis-sentinel" || scheme === "redis-cluster";
  const hosts = listed.split(",").map((one) => hostAndPort(one, scheme === "redis-sentinel" ? 26_379 : 6379));
  if (hosts.length > 1 && !isList)
    refuse(`the address of a Redis is ${scheme}://HOST:PORT; it stands alone, in no list`);
  const below = path.split("/").filter((part) => part !== "");
  const master = scheme === "redis-sentinel" ? decodeURIComponent(below.shift() ?? "") : undefined;
  if (master === "") refuse("the address of sentinels names no master; write /MASTER after them");
  const db = below[0] ?? "0";
  if (!/^\d+$/.test(db)) refuse("the address of a Redis has a database that is not a number from 0 on");
  const query = new URLSearchParams(queryText);
  const name = query.get("name") ?? "tenure";
  if (/[{}]/.test(name)) refuse('the name of a store takes no "{" and no "}"');
  return {
    name,
    shown: `${scheme}://${listed}${path.replace(/\/+$/, "")}${name === "tenure" ? "" : `?name=${name}`}`,
    hosts,
    cluster: scheme === "redis-cluster",
    master,
    db: Number(db),
    user: decodeURIComponent(user) || undefined,
    password: decodeURIComponent(password) || undefined,
    sentinelUser: query.get("sentinel_user") ?? undefined,
    sentinelPassword: query.get("sentinel_password") ?? undefined,
    tls: scheme === "rediss" || scheme === "valkeys" || query.get("tls") === "true",
    ca: query.get("ca") ?? undefined,
  };
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
