import { type Address, isSafe, readAddress } from "./addresses.js";
import { now } from "./clock.js";
import { findServers } from "./discovery.js";
import { Unreachable } from "./errors.js";
import type { Logger } from "./log.js";
import { type Plain, shownAddress } from "./settings.js";

/** A server that could not be reached is not followed to for this long. */
const AVOID_MS = 30_000;
/** Codes that a server answers before anything happened: another one may serve. */
const SERVES_NOT = new Set(["draining", "not_owner", "store_unavailable"]);

/**
 * Decides which of several servers the next call goes to.
 *
 * A client stays with the server that works. One that cannot be reached, or answers that it does not
 * serve, is left for the next of the list. A server that forwarded a call names the leader of the
 * store; a client that knows several servers goes to the leader from then on.
 */
export class Servers {
  readonly shown: string;
  #settings: Plain;
  #logger: Logger;
  #listed: readonly Address[];
  #at: Address | undefined;
  #wayBack: Address | undefined;
  #avoided = new Map<string, number>();
  #looking: Promise<Address> | undefined;

  constructor(settings: Plain, logger: Logger) {
    this.#settings = settings;
    this.#logger = logger;
    this.#listed = settings.addresses;
    this.#at = settings.addresses[0];
    this.shown = shownAddress(settings);
  }

  /** Whether there may be another server to go to. */
  get several(): boolean {
    return this.#settings.store !== undefined || this.#listed.length > 1;
  }

  /** Where the next call goes; undefined if the servers must be looked up first. */
  get at(): Address | undefined {
    return this.#at;
  }

  /** Where the next call goes, looked up if need be. */
  current(): Address | Promise<Address> {
    if (this.#at) return this.#at;
    this.#looking ??= this.#lookUp().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookUp(): Promise<Address> {
    const store = this.#settings.store;
    if (!store) throw new Unreachable("unreachable", "there is no address of a server");
    const found = await findServers(store);
    // A user who may write to the Redis must not get a token in clear.
    const usable = found.filter((each) => this.#mayCall(each));
    const first = usable[0];
    if (!first) {
      const urls = found.map((each) => each.url).join(", ");
      throw new Unreachable(
        "unreachable",
        `${store.shown} names ${urls} in clear, and this client is set up for TLS, so it sends nothing there`,
        {
          hint: "start the servers with `tenure serve --tls-cert …`",
        },
      );
    }
    for (const each of usable) {
      if (!this.#listed.some((other) => other.url === each.url)) {
        this.#logger.info(`found the server ${each.url} in ${store.shown}`);
      }
    }
    this.#listed = usable;
    this.#at = first;
    return first;
  }

  #mayCall(found: Address): boolean {
    const { ca, cert, store } = this.#settings;
    if (ca !== undefined || cert !== undefined) return found.tls;
    return isSafe(found) || !store?.tls;
  }

  /** Notes that a server could not be reached, or its answer was lost. */
  lost(address: Address): void {
    const moment = now();
    for (const [url, until] of this.#avoided) if (until <= moment) this.#avoided.delete(url);
    this.#avoided.set(address.url, moment + AVOID_MS);
    this.#leave(address);
  }

  /** Notes the answer of a server, and the leader that it named. */
  answered(address: Address, status: number, code: string | undefined, leader: string | undefined): void {
    if (status >= 400 && (SERVES_NOT.has(code ?? "") || (status >= 502 && status <= 504 && code === undefined))) {
      this.#leave(address);
    } else if (leader !== undefined && status < 500) {
      this.#follow(address, leader);
    }
  }

  #leave(address: Address): void {
    if (address.url !== this.#at?.url) return;
    const place = this.#listed.findIndex((each) => each.url === address.url);
    if (place < 0) {
      this.#at = this.#wayBack ?? this.#listed[0];
      return;
    }
    const next = this.#listed[place + 1];
    this.#at = next ?? (this.#settings.store ? undefined : this.#listed[0]);
  }

  #follow(address: Address, named: string): void {
    // A single address may be that of a balancer, whose servers nobody else can reach.
    if (!this.several || address.url !== this.#at?.url) return;
    let leader: Address;
    try {
      leader = readAddress(named);
    } catch {
      return;
    }
    if (leader.url === address.url || this.#isWeaker(address, leader)) return;
    if ((this.#avoided.get(leader.url) ?? 0) > now()) return;
    if (this.#listed.some((each) => each.url === address.url)) this.#wayBack = address;
    this.#at = leader;
  }

  /** Whether calls would be less safe there than where this client was sent. */
  #isWeaker(address: Address, leader: Address): boolean {
    if (leader.tls) return false;
    if (this.#settings.store && !this.#mayCall(leader)) return true;
    return address.tls || (this.#settings.secret && this.#listed.some((each) => each.tls));
  }
}
