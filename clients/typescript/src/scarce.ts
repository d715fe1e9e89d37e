import type { Duration, Moment } from "./durations.js";
import { wrong } from "./errors.js";
import type { Limit, Pool, Queue, Resource, Synced } from "./generated.js";
import { type RetryOptions, retryJson } from "./job-fields.js";
import { encode } from "./json.js";
import { listOf } from "./lists.js";
import { type Need, needsJson } from "./needs.js";
import { type Abortable, as, type Reader, readOptions, type Shape, shape, signalOf } from "./options.js";
import { shown } from "./text.js";
import { type Call, part, type Transport } from "./transport.js";

/** How many in a period: `"10/1s"`, `"100/5m"`, or an object. */
export type Rate = `${number}/${string}` | RateOptions;

/** How many in a period. */
export interface RateOptions {
  /** How many, from 1 on. */
  count: number;
  /** The period. */
  per: Duration;
  /** How many may go at once after a rest. Default 1: evenly spaced. */
  burst?: number;
}

/** The settings of a limit; at least one of `concurrency`, `rate` and `gauge`. `null` is none. */
export interface LimitSettings {
  /** How many permits there are, from 0 on; 0 closes the limit for now. */
  concurrency?: number | null;
  /** How many tokens there are in a period. */
  rate?: Rate | null;
  /** How long each permit rests after its release; needs `concurrency`. */
  gap?: Duration | null;
  /** How long a permit rests after a lease that its holder did not settle; needs `concurrency`. */
  quarantine?: Duration;
  /** Where the server counts work that it does not run; see the reference of gauges. */
  gauge?: Record<string, unknown> | null;
}

/** How a pool hands out its resources. */
export interface PoolSettings {
  /** How long a resource rests whose holder was lost. Default none. */
  quarantine?: Duration;
  /** How long a resource rests after every use. Default none. */
  cooldown?: Duration;
  /** How often one resource is granted in a period. */
  rate?: Rate | null;
  /** After how many grants a resource is banned, from 1 on; null is never. */
  maxUses?: number | null;
  /** The free resource that is handed out: the one whose last use is longest ago (`lru`), or any. Default `lru`. */
  pick?: "lru" | "random";
}

/** The settings of a queue: the defaults of its jobs, its bound and its shares. */
export interface QueueSettings {
  /** At most 16. `{payload.FIELD}` in the name of a limit is filled in from the payload. */
  needs?: readonly Need[];
  /** Default 20 attempts with exponential waits. */
  retry?: number | RetryOptions | null;
  /** The longest time of one run. */
  timeout?: Duration | null;
  /** How long finished jobs are kept. Default 1 h, 7 days if they failed. */
  retain?: Duration | null;
  /** Pushes beyond so many waiting jobs are refused as `queue_full`. */
  maxWaiting?: number | null;
  /** How many turns each group gets, 1 to 1,000. */
  shares?: Record<string, number>;
  /** How long a job waits after its worker was lost. Default 2 s, doubled for each further loss. */
  lostDelay?: Duration | null;
  /** Whether lists of the dashboard show a line of each payload. Default true. */
  showPayload?: boolean;
}

/** A resource that is added to a pool. `D` is the type of its data. */
export interface NewResource<D = unknown> {
  /** 1 to 256 bytes. */
  id: string;
  /** Shown to its holder alone: any JSON of at most 64 KiB. */
  data?: D;
  /** Words by which a need asks for it, at most 16. */
  tags?: readonly string[];
  /** How many leases may hold it at once. Default 1. */
  slots?: number;
}

/** How long something rests: for a time, until a moment, or without end. */
export type Until = { for: Duration } | { until: Moment };

/** A larger set is sent as lines: the server takes any number of lines, and of an array 1,000 items and 8 MiB. */
const ITEMS_MAX = 1000;
const LARGE = 2 * 1024 * 1024;

/** Sends a whole set, whose items are JSON already. */
export async function putSet<T>(
  transport: Transport,
  path: string,
  query: Record<string, unknown>,
  items: readonly string[],
  signal?: AbortSignal,
): Promise<T> {
  const whole = `[${items.join(",")}]`;
  const bodyLines = items.length > ITEMS_MAX || whole.length >= LARGE;
  const body = bodyLines ? items.join("\n") : whole;
  return await transport.json({ method: "PUT", path, query, body, bodyLines, signal });
}

const rate: Reader = (value, name) => {
  if (typeof value === "string") {
    const found = /^(\d+)\/(.+)$/.exec(value.trim());
    if (!found) wrong(name, `is ${shown(value)}; write it as "10/1s" or "100/5m"`);
    const per = /^\d/.test(found[2] as string) ? found[2] : `1${found[2]}`;
    return { count: Number(found[1]), per: as.duration(per, name) };
  }
  return readOptions(value as object, RATE, name);
};
const RATE = shape({ count: as.whole(1), per: as.duration, burst: as.whole(1) });
const LIMIT = shape({
  concurrency: as.orNull(as.whole(0)),
  rate: as.orNull(rate),
  gap: as.orNull(as.duration),
  quarantine: as.duration,
  gauge: as.any,
});
const POOL = shape({
  quarantine: as.duration,
  cooldown: as.duration,
  rate: as.orNull(rate),
  maxUses: as.orNull(as.whole(1)),
  pick: as.oneOf("lru", "random"),
});
const QUEUE = shape({
  needs: needsJson,
  retry: as.orNull(retryJson),
  timeout: as.orNull(as.duration),
  retain: as.orNull(as.duration),
  maxWaiting: as.orNull(as.whole(0)),
  shares: as.any,
  lostDelay: as.orNull(as.duration),
  showPayload: as.flag,
});
const RESOURCE = shape({ id: as.text, data: as.any, tags: as.texts, slots: as.whole(1) });
const RESOURCE_CHANGES = shape({ data: as.any, tags: as.texts, slots: as.whole(1) });
/** How long schedules rest, too. */
export const UNTIL = shape({ for: as.duration, until: as.moment });
const OBSERVED = shape({ external: as.whole(0), for: as.duration });
/** Options of each sync of a whole set. */
export const SYNC = shape({ force: as.flag, version: as.whole(0), signal: as.signal });

/** Things of one kind that have a name and settings. `T` is what the server shows of one. */
class Named<T, S> {
  /** @internal */
  constructor(
    protected readonly transport: Transport,
    protected readonly kind: string,
    private readonly shape: Shape,
  ) {}

  /** Makes a call about one of them; `below` are words and names in turn. */
  protected call<A>(
    verb: string,
    method: Call["method"],
    name: string,
    below: readonly string[],
    options: Abortable | undefined,
    body?: object,
  ): Promise<A> {
    const path = [this.kind, name, ...below];
    return this.transport.call(`${this.kind}.${verb}`, method, path, options, body && (() => encode(body, "settings")));
  }

  /** Sets what is given, and leaves the rest as it is; makes what is not there. */
  async set(name: string, settings: S, options?: Abortable): Promise<T> {
    const read = readOptions(settings as object, this.shape, `${this.kind}.set`);
    const send = (method: Call["method"], body?: object) =>
      this.call<T & Partial<Limit>>("set", method, name, [], options, body);
    const put = (refused: { status?: number }) => {
      if (refused.status !== 404) throw refused;
      return send("PUT", read);
    };
    const patch = () => send("PATCH", read).catch(put);
    // It looks first: the trail has each refused change, so a refused patch would stand there beside each thing that
    // is made.
    return await send("GET").then(
      // A limit without settings of its own shows those of its template, or none while it is only in use.
      (shown) => (shown.template || (shown.concurrency === null && !shown.rate) ? send("PUT", read) : patch()),
      // A token that may not look may change all the same.
      (refused) => (refused.status === 403 ? patch() : put(refused)),
    );
  }

  /** Shows one. @throws `NotFound` */
  get(name: string, options?: Abortable): Promise<T> {
    return this.call("get", "GET", name, [], options);
  }

  /** All, by name. */
  list(options?: Abortable): AsyncIterable<T> {
    return listOf(this.transport, this.kind, {}, signalOf(options, `${this.kind}.list`).signal);
  }

  /** Deletes one. @throws `NotFound`, or `Conflict` if it is in use. */
  async delete(name: string, options?: Abortable): Promise<void> {
    await this.call("delete", "DELETE", name, [], options);
  }
}

/** Limits: permits, rates and gaps. */
export class Limits extends Named<Limit, LimitSettings> {
  /** @internal */
  constructor(transport: Transport) {
    super(transport, "limits", LIMIT);
  }

  /** Grants nothing before a moment; the later one of two pauses holds. */
  async pause(name: string, until: Until, options?: Abortable): Promise<Limit> {
    return await this.call("pause", "POST", name, ["pause"], options, readOptions(until, UNTIL, "limits.pause"));
  }

  /** Ends a pause. */
  resume(name: string, options?: Abortable): Promise<Limit> {
    return this.call("resume", "POST", name, ["resume"], options);
  }

  /** Says how many permits work takes that Tenure does not run, until the next observation or for a time. */
  async observe(name: string, observed: { external: number; for?: Duration }, options?: Abortable): Promise<Limit> {
    const read = readOptions(observed, OBSERVED, "limits.observe");
    return await this.call("observe", "POST", name, ["observe"], options, read);
  }
}

/** Queues. */
export class Queues extends Named<Queue, QueueSettings> {
  /** @internal */
  constructor(transport: Transport) {
    super(transport, "queues", QUEUE);
  }

  /** Grants no job of it; running ones go on, and pushes are taken. Without a time, until `resume`. */
  async pause(name: string, until?: Until, options?: Abortable): Promise<Queue> {
    const read = until && readOptions(until, UNTIL, "queues.pause");
    return await this.call("pause", "POST", name, ["pause"], options, read);
  }

  /** Ends a pause. */
  resume(name: string, options?: Abortable): Promise<Queue> {
    return this.call("resume", "POST", name, ["resume"], options);
  }
}

/** Pools and their resources. */
export class Pools extends Named<Pool, PoolSettings> {
  /** @internal */
  constructor(transport: Transport) {
    super(transport, "pools", POOL);
  }

  /**
   * Makes the pool have exactly these resources. Absent ones retire when they are free; leases, rests
   * and bans stay. An empty set, or one that retires more than half, is refused without `force`.
   */
  async sync(
    name: string,
    resources: Iterable<NewResource>,
    options?: { force?: boolean; version?: number } & Abortable,
  ): Promise<Synced> {
    const { signal, ...query } = readOptions(options, SYNC, "pools.sync") as { signal?: AbortSignal };
    const written = [...as.items(resources, "the resources of pools.sync")].map((each) =>
      encode(readOptions(each, RESOURCE, "pools.sync"), "resources"),
    );
    return await putSet(this.transport, `pools/${part(name)}/resources`, query, written, signal);
  }

  /** Adds a resource, or updates its data, tags and slots. */
  async add(name: string, resource: NewResource, options?: Abortable): Promise<Resource> {
    return await this.call("add", "POST", name, ["resources"], options, readOptions(resource, RESOURCE, "pools.add"));
  }

  /** Changes data, tags or slots of a resource. */
  async change(name: string, id: string, changes: Omit<NewResource, "id">, options?: Abortable): Promise<Resource> {
    const read = readOptions(changes, RESOURCE_CHANGES, "pools.change");
    return await this.call("change", "PATCH", name, ["resources", id], options, read);
  }

  /** The resources of a pool. Their data is hidden. */
  resources(name: string, options?: Abortable): AsyncIterable<Resource> {
    return listOf(this.transport, `pools/${part(name)}/resources`, {}, signalOf(options, "pools.resources").signal);
  }

  /** One resource. Its data is hidden. @throws `NotFound` */
  resource(name: string, id: string, options?: Abortable): Promise<Resource> {
    return this.call("resource", "GET", name, ["resources", id], options);
  }

  /** Takes a resource out of the pool, once it is free. */
  async remove(name: string, id: string, options?: Abortable): Promise<void> {
    await this.call("remove", "DELETE", name, ["resources", id], options);
  }

  /** Lets a resource rest. */
  async cool(name: string, id: string, until: Until, options?: Abortable): Promise<Resource> {
    const read = readOptions(until, UNTIL, "pools.cool");
    return await this.call("cool", "POST", name, ["resources", id, "cool"], options, read);
  }

  /** Hands a resource out no more. */
  ban(name: string, id: string, reason: string, options?: Abortable): Promise<Resource> {
    return this.call("ban", "POST", name, ["resources", id, "ban"], options, { reason });
  }

  /** Makes a resource available again. It ends no lease. */
  restore(name: string, id: string, options?: Abortable): Promise<Resource> {
    return this.call("restore", "POST", name, ["resources", id, "restore"], options);
  }
}
