import type { Duration } from "./durations.js";
import { wrong } from "./errors.js";
import type { LeasedResource, LimitVerdict, ResourceVerdict } from "./generated.js";
import { as } from "./options.js";
import { secretsOf, without } from "./secrets.js";
import { shown, wellFormed } from "./text.js";

/** The first resource of a pool among those that are held. */
export function resourceOf<D>(resources: readonly LeasedResource[], pool: string): LeasedResource & { data: D } {
  const found = resources.find((each) => each.pool === pool);
  if (found) return found as LeasedResource & { data: D };
  return wrong(`the pool "${pool}"`, "is not held here", `put { pool: "${pool}" } into the needs`);
}

/** Verdicts on the limits and resources of a lease, which go with its settle. */
export class Verdicts {
  #resources: readonly LeasedResource[];
  #hidden: readonly LeasedResource[];
  #onResources = new Map<string, ResourceVerdict>();
  #onLimits = new Map<string, LimitVerdict>();
  #secrets: string[] | undefined;

  /** `hidden` are those whose data must not be shown. */
  constructor(resources: readonly LeasedResource[], hidden = resources) {
    this.#resources = resources;
    this.#hidden = hidden;
  }

  /** The strings of the resources' data that must not be shown. */
  get secrets(): string[] {
    this.#secrets ??= secretsOf(this.#hidden.map((each) => each.data));
    return this.#secrets;
  }

  spent(limit: string, tokens: number): void {
    this.#limit(limit)["spent"] = as.whole(0)(tokens, "spent");
  }

  pause(limit: string, time: Duration): void {
    this.#limit(limit)["pause"] = as.duration(time, "pause");
  }

  ban(resource: LeasedResource | string, reason: string): void {
    this.#judge(resource, {
      verdict: "ban",
      reason: wellFormed(without(as.text(reason, "reason of ban"), this.secrets)),
    });
  }

  cool(resource: LeasedResource | string, time: Duration): void {
    this.#judge(resource, { verdict: "cool", for: as.duration(time, "cool") });
  }

  #limit(limit: string): LimitVerdict {
    const name = as.text(limit, "the limit").replace(/^limit:/, "");
    let verdict = this.#onLimits.get(name);
    if (!verdict) {
      verdict = { limit: name };
      this.#onLimits.set(name, verdict);
    }
    return verdict;
  }

  #judge(resource: LeasedResource | string, verdict: Omit<ResourceVerdict, "pool" | "id">): void {
    const { pool, id } = typeof resource === "string" ? resourceOf(this.#resources, resource) : resource;
    if (typeof id !== "string") {
      wrong("the resource", `must be one of those that are held, or the name of a pool, not ${shown(resource)}`);
    }
    this.#onResources.set(`${pool}/${id}`, { pool, id, ...verdict });
  }

  /** The fields of a settle item, as JSON that begins with a comma; "" if nothing was said. */
  json(): string {
    let json = "";
    if (this.#onResources.size > 0) json += `,"resources":${JSON.stringify([...this.#onResources.values()])}`;
    if (this.#onLimits.size > 0) json += `,"limits":${JSON.stringify([...this.#onLimits.values()])}`;
    return json;
  }
}
