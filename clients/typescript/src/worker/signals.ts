/** A worker that ends at a signal. */
export interface Stoppable {
  /** Drains; a second time ends at once. */
  stopBySignal(): void;
}

const SIGNALS = ["SIGTERM", "SIGINT"] as const;
const workers = new Set<Stoppable>();

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
