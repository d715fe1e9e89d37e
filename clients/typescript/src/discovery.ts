import { readFileSync } from "node:fs";
import { type Address, readAddress, type StoreAddress } from "./addresses.js";
import { Unreachable, WrongOption } from "./errors.js";

/** A living server registers itself each second; after this long without that it counts as gone. */
const LIVES_US = 10_000_000;
const TIMEOUT_MS = 3000;

interface RedisClient {
  connect?(): Promise<void>;
  hget(key: string, field: string): Promise<string | null>;
  hgetall(key: string): Promise<Record<string, string>>;
  time(): Promise<(number | string)[]>;
  on(event: "error", listener: (error: Error) => void): unknown;
  disconnect(): void;
}

interface Ioredis {
  Redis: new (options: object) => RedisClient;
  Cluster: new (nodes: object[], options: object) => RedisClient;
}

async function load(): Promise<Ioredis> {
  // The name is no literal, so that compilers and bundlers do not ask for it.
  const name = "ioredis";
  try {
    return (await import(name)) as Ioredis;
  } catch (refused) {
    throw new WrongOption(
      "wrong_option",
      "the package ioredis finds the servers of a store in Redis, and is not installed",
      {
        hint: "npm install ioredis, or give the address of a server as url",
        cause: refused,
      },
    );
  }
}

function client(redis: Ioredis, store: StoreAddress): RedisClient {
  const tls = store.tls ? { tls: store.ca === undefined ? {} : { ca: readFileSync(store.ca, "utf8") } } : {};
  const options = {
    ...(store.user === undefined ? {} : { username: store.user }),
    ...(store.password === undefined ? {} : { password: store.password }),
    ...tls,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    // The repeats of the call are the only ones.
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    enableReadyCheck: false,
  };
  const nodes = store.hosts.map(([host, port]) => ({ host, port }));
  if (store.cluster) {
    return new redis.Cluster(nodes, { redisOptions: options, clusterRetryStrategy: () => null });
  }
  if (store.master !== undefined) {
    return new redis.Redis({
      ...options,
      sentinels: nodes,
      name: store.master,
      db: store.db,
      sentinelRetryStrategy: () => null,
      ...(store.sentinelUser === undefined ? {} : { sentinelUsername: store.sentinelUser }),
      ...(store.sentinelPassword === undefined ? {} : { sentinelPassword: store.sentinelPassword }),
      ...(store.tls ? { sentinelTLS: tls.tls, enableTLSForSentinelMode: true } : {}),
    });
  }
  return new redis.Redis({ ...options, ...nodes[0], db: store.db });
}

/**
 * Looks up the living servers of a store, its leader first. Nothing is written to the Redis.
 *
 * @throws {@link Unreachable} if there is none.
 */
export async function findServers(store: StoreAddress): Promise<Address[]> {
  const redis = client(await load(), store);
  let fault: Error | undefined;
  redis.on("error", (error) => {
    fault = error;
  });
  let leader: string | null;
  let servers: Record<string, string>;
  let time: (number | string)[];
  try {
    [leader, servers, time] = await Promise.all([
      redis.hget(`{${store.name}}:own`, "owner"),
      redis.hgetall(`{${store.name}}:servers`),
      redis.time(),
    ]);
  } catch (refused) {
    // An error of the library names the host, and never the password.
    const why = fault?.message || (refused instanceof Error ? refused.message : String(refused));
    throw new Unreachable("unreachable", `${store.shown}: cannot look up its servers: ${why}`, {
      hint: "is a Redis there, and are its address and its password right?",
    });
  } finally {
    redis.disconnect();
  }
  const found = readServers(leader, servers, Number(time[0]) * 1e6 + Number(time[1]));
  if (found.length > 0) return found;
  throw new Unreachable("unreachable", `no server of Tenure uses ${store.shown}`, {
    hint: `start one: tenure serve --store ${store.shown}`,
  });
}

/**
 * Reads what servers wrote of themselves: the leader first, then by their last registration. A field
 * is the id of a server; its value is the moment of the registration in microseconds, its release,
 * the newest format that it reads, the last entry that its rows have, and its address.
 */
export function readServers(leader: string | null, servers: Record<string, string>, nowUs: number): Address[] {
  const found: [boolean, number, Address][] = [];
  for (const [id, text] of Object.entries(servers)) {
    const [at, , , , ...url] = text.split(" ");
    if (!(nowUs - Number(at) <= LIVES_US)) continue;
    try {
      found.push([id === leader, Number(at), readAddress(url.join(" "))]);
    } catch {
      // A newer release may write it otherwise.
    }
  }
  found.sort((a, b) => Number(b[0]) - Number(a[0]) || b[1] - a[1]);
  return [...new Map(found.map(([, , address]) => [address.url, address])).values()];
}
