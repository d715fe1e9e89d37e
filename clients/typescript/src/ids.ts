import { randomFillSync } from "node:crypto";
import { hostname } from "node:os";

/** Digits and letters without i, l, o and u, as in the ids that a server makes. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const pool = Buffer.allocUnsafe(4096);
let used = pool.length;

function random(letters: number): string {
  if (used + letters > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  let text = "";
  for (let end = used + letters; used < end; used++) text += ALPHABET[(pool[used] as number) & 31];
  return text;
}

/** A new id: 45 bits of the time in milliseconds, and 80 random ones. */
export function newId(kind: "job" | "request" | "test"): string {
  let time = Date.now();
  let text = "";
  for (let n = 0; n < 9; n++) {
    text = (ALPHABET[time % 32] as string) + text;
    time = Math.floor(time / 32);
  }
  return `${kind}_${text}${random(16)}`;
}

/**
 * The id of a worker: `HOST:PID:RANDOM`. Lists of holders show it, so it begins with what people
 * know a process by; it ends at random, so that it is never used again.
 */
export function workerId(): string {
  const host =
    hostname()
      .replace(/[^A-Za-z0-9._-]/g, "")
      .slice(0, 64) || "worker";
  return `${host}:${process.pid}:${random(12)}`;
}

/** A holder as people know it: host and pid, or the name that it was given. */
export function holderShown(holder: string): string {
  return /^(.*:\d+):[0-9a-hjkmnp-tv-z]{12}$/s.exec(holder)?.[1] ?? holder;
}
