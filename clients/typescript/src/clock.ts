import { uptime } from "node:os";

// `hrtime` has one origin for all threads of a process, which `performance.now` has not. On Linux it
// stands still while the machine sleeps, and a lease does not. So the time that was slept is added; the
// heartbeat threads look twice a second. All threads share what they find, and how far the two clocks were
// apart at the last look: a sleep is counted once, however many clients there are.
let slept = new Float64Array(new SharedArrayBuffer(16));
let apart = new BigInt64Array(slept.buffer, 8);
apart[0] = apartNow();

/** Shares the time that was slept with another thread. */
export function sleptTime(): SharedArrayBuffer {
  return slept.buffer as SharedArrayBuffer;
}

/** Takes the time that was slept from the buffer of another thread. */
export function shareSleptTime(buffer: SharedArrayBuffer): void {
  slept = new Float64Array(buffer);
  apart = new BigInt64Array(buffer, 8);
}

function hrtimeMs(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1000 + nanos / 1e6;
}

/** Milliseconds of a clock that never goes back, goes on while the machine sleeps, and is one for all threads. */
export function now(): number {
  return hrtimeMs() + (slept[0] as number);
}

function apartNow(): bigint {
  return BigInt(Math.round(uptime() * 1000 - hrtimeMs()));
}

/** Looks whether the machine slept since the last look of any thread. */
export function lookForSleep(): void {
  const before = Atomics.load(apart, 0);
  const after = apartNow();
  // Of several threads that see the same sleep, the first one counts it.
  if (Atomics.compareExchange(apart, 0, before, after) !== before) return;
  const missed = Number(after - before);
  // The two clocks differ by their resolutions.
  if (missed > 1000) slept[0] = (slept[0] as number) + missed;
}
