import { sleep } from "../backoff.js";

/** A worker that ends at a signal. */
export interface Stoppable {
  /** Drains; a second time ends at once. */
  stopBySignal(): void;
  /** Whether only handlers that do not stop are left of it. */
  isStuck: boolean;
  /** Gives back what such handlers run. */
  giveUp(): Promise<void>;
}

const SIGNALS = ["SIGTERM", "SIGINT"] as const;
const workers = new Set<Stoppable>();
let ending: Promise<unknown> | undefined;

function heard(): void {
  for (const each of workers) each.stopBySignal();
}

/** Lets a worker be ended by SIGTERM and SIGINT; one listener is for all workers of the process. */
export function listen(worker: Stoppable): void {
  if (workers.size === 0) for (const signal of SIGNALS) process.on(signal, heard);
  workers.add(worker);
}

/** Ends that. After the last worker, the signals end the process again, as they do by default. */
export function unlisten(worker: Stoppable): void {
  if (workers.delete(worker) && workers.size === 0) for (const signal of SIGNALS) process.off(signal, heard);
}

/** Whether every other worker that a signal ends has ended, or is stuck as well. */
export function onlyStuckLeft(): boolean {
  return [...workers].every((each) => each.isStuck);
}

/** Ends the process, after all that still runs in it is given back. */
export async function endProcess(): Promise<void> {
  ending ??= Promise.allSettled([...workers].map((each) => each.giveUp()));
  await ending;
  // The last line may be on its way to a pipe.
  await sleep(20);
  process.exit(1);
}
