import { uptime } from "node:os";

// `hrtime` has one origin for all threads of a process, which `performance.now` has not. On Linux it
// stands still while the machine sleeps, and a lease does not. So the time that was slept is added;
// the heartbeat thread looks twice a second, and shares what it finds with the main thread.
let slept = new Float64Array(new SharedArrayBuffer(8));
let awake = 0;
let running = 0;

/** Shares the time that was slept with another thread. */
export function sleptTime(): SharedArrayBuffer {
  return slept.buffer as SharedArrayBuffer;
}

/** Takes the time that was slept from the buffer of another thread. */
export function shareSleptTime(buffer: SharedArrayBuffer): void {
  slept = new Float64Array(buffer);
}

function hrtimeMs(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1000 + nanos / 1e6;
}

/** Milliseconds of a clock that never goes back, goes on while the machine sleeps, and is one for all threads. */
export function now(): number {
  return hrtimeMs() + (slept[0] as number);
}

/** Looks whether the machine slept since the last look. */
export function lookForSleep(): void {
  const up = uptime() * 1000;
  const counted = hrtimeMs();
  if (awake > 0) {
    const missed = up - awake - (counted - running);
    // The two clocks differ by their resolutions.
    if (missed > 1000) slept[0] = (slept[0] as number) + missed;
  }
  awake = up;
  running = counted;
}
