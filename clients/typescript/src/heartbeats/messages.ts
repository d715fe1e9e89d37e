import type { Incoming, Outgoing } from "../sender.js";
import type { Plain } from "../settings.js";
import type { StopReason } from "./holdings.js";

/** The start data of the heartbeat thread. */
export interface Start {
  readonly settings: Plain;
  readonly words: SharedArrayBuffer;
  readonly records: SharedArrayBuffer;
  readonly slept: SharedArrayBuffer;
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
  /** Whether calls are made by the main thread, with the `fetch` that the user gave. */
  readonly relays: boolean;
}

/** From the main thread to the heartbeat thread. */
export type ToThread =
  /** A new lease needs something before the thread looks by itself. */
  | { readonly look: true }
  | { readonly progress: string; readonly slot: number; readonly generation: number }
  | { readonly token: string | undefined }
  | { readonly heard: number; readonly generation: number }
  | {
      readonly relayed: number;
      readonly answer?: Omit<Incoming, "header"> & { owner: string | undefined; retryAfter: string | undefined };
      readonly fault?: { why: string; sent: boolean };
    };

/** From the heartbeat thread to the main thread. */
export type FromThread =
  | { readonly started: true }
  | { readonly stop: StopReason; readonly slot: number; readonly generation: number }
  | { readonly reported: string; readonly slot: number; readonly generation: number }
  | { readonly wantsToken: true }
  | { readonly warns: string }
  | { readonly relay: number; readonly request: Omit<Outgoing, "signal"> };
