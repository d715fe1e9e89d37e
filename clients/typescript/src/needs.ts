import { wrong } from "./errors.js";
import type { Need as WireNeed } from "./generated.js";
import { as, readOptions, shape } from "./options.js";
import { shown } from "./text.js";

/** Permits and rate tokens of a limit. */
export interface LimitNeed {
  /** The limit, `family` or `family:key`. */
  limit: string;
  /** How many permits are held, from 1 on. Default 1. */
  weight?: number;
  /** How many rate tokens are taken, from 0 on. Default 1. */
  cost?: number;
}

/** Resources of a pool. */
export interface PoolNeed {
  /** The pool. */
  pool: string;
  /** Only resources with this tag. */
  tag?: string;
  /** The id of the resource that is taken if it is free. */
  prefer?: string;
  /** The id of the only resource that will do. */
  id?: string;
  /** How many different resources, from 1 on. Default 1. */
  count?: number;
}

/**
 * What a job or a lease holds while it lives. As text: `"limit:NAME"`, `"limit:NAME,weight=2,cost=5"`,
 * `"pool:NAME"`, `"pool:NAME#TAG"`.
 */
export type Need = `limit:${string}` | `pool:${string}` | LimitNeed | PoolNeed;

const LIMIT = shape({ limit: as.text, weight: as.whole(1), cost: as.whole(0) });
const POOL = shape({ pool: as.text, tag: as.text, prefer: as.text, id: as.text, count: as.whole(1) });

/** Reads needs as the server reads them. */
export function needsJson(needs: unknown, name = "needs"): WireNeed[] {
  if (!Array.isArray(needs)) wrong(name, `must be an array such as ["limit:site:example.com"], not ${shown(needs)}`);
  return (needs as unknown[]).map((need, n) => needJson(need, `${name}[${n}]`));
}

function needJson(need: unknown, name: string): WireNeed {
  if (typeof need === "string") return fromText(need, name);
  if (typeof need !== "object" || need === null) wrong(name, `must be text or an object, not ${shown(need)}`);
  if ("limit" in need) return readOptions(need, LIMIT, name) as unknown as WireNeed;
  if ("pool" in need) return readOptions(need, POOL, name) as unknown as WireNeed;
  return wrong(name, 'must have "limit" or "pool"');
}

function fromText(text: string, name: string): WireNeed {
  const colon = text.indexOf(":");
  const kind = text.slice(0, colon);
  const [first = "", ...rest] = text.slice(colon + 1).split(",");
  if ((kind !== "limit" && kind !== "pool") || first === "") {
    wrong(name, `is ${shown(text)}; a need is text such as "limit:NAME" or "pool:NAME#TAG"`);
  }
  const need: Record<string, unknown> = {};
  const [pool = "", tag] = kind === "pool" ? first.split("#") : [first];
  need[kind] = pool;
  if (tag !== undefined) need["tag"] = tag;
  for (const each of rest) {
    const [key = "", value = ""] = each.split("=");
    need[key] = key === "weight" || key === "cost" || key === "count" ? Number(value) : value;
  }
  return readOptions(need, kind === "limit" ? LIMIT : POOL, name) as unknown as WireNeed;
}

/** Needs in a message. */
export function describeNeeds(needs: WireNeed[]): string {
  return needs
    .map((need) => {
      if (!("limit" in need)) return `a resource of pool "${need.pool}"`;
      return need.limit.startsWith("lock:") ? `lock "${need.limit.slice(5)}"` : `limit "${need.limit}"`;
    })
    .join(" and ");
}
