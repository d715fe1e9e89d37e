// The heartbeat thread: extends leases and watches the clock, whatever the main thread does.

import { writeSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { Address } from "../addresses.js";
import { lookForSleep, now, shareSleptTime } from "../clock.js";
import { SILENT } from "../log.js";
import { ConnectionLost, HttpSender, type Incoming, type Outgoing, type Sender } from "../sender.js";
import { TokenSource } from "../settings.js";
import { oneLine } from "../text.js";
import { Transport } from "../transport.js";
import { type Extended, type Held, Holdings, type Stop } from "./holdings.js";
import type { FromThread, Start, ToThread } from "./messages.js";
import { Records } from "./records.js";
import { Words } from "./words.js";

/** An extend that is not answered within this part of the ttl is sent again, and waited for twice as long. */
const TRY_FOR = 0.3;
const LONGEST_TRY_MS = 10_000;
/** The most leases in one call. */
const BATCH = 1000;
/** A timer does not count the time that the machine sleeps, so the clock is looked at this often. */
const LOOK_MS = 500;
const NEVER = Number.POSITIVE_INFINITY;
/** A main thread that has not taken in a loss after this long is blocked. */
const BLOCKED_MS = 1000;
/** The call itself is refused, so the same call again would be. */
const WRONG = new Set([400, 413, 422]);

const start = workerData as Start;
shareSleptTime(start.slept);
const port = parentPort as NonNullable<typeof parentPort>;
const tell = (message: FromThread) => port.postMessage(message);

const relayed = new Map<number, { resolve: (answer: Incoming) => void; reject: (fault: unknown) => void }>();
let relays = 0;

/** Sends by the main thread. */
const relay: Sender = {
  send: ({ signal: _, ...request }: Outgoing) =>
    new Promise((resolve, reject) => {
      const id = relays++;
      // It does nothing once there is an answer.
      setTimeout(() => {
        relayed.delete(id);
        reject(new ConnectionLost("no answer in time", { sent: true }));
      }, request.timeout);
      relayed.set(id, { resolve, reject });
      tell({ relay: id, request });
    }),
  close() {},
};

const fileTokens = start.tokenFile === undefined ? undefined : new TokenSource(undefined, start.tokenFile);
let token = start.token;
const tokens = fileTokens ?? {
  get(fresh = false) {
    if (fresh) tell({ wantsToken: true });
    return token;
  },
};

const transport = new Transport(
  start.settings,
  tokens,
  start.relays ? relay : new HttpSender(start.settings),
  SILENT,
  0,
);
const records = new Records(start.records);
const holdings = new Holdings(new Words(start.words));
/** Losses that the main thread has not taken in yet. */
const untold = new Map<string, NodeJS.Timeout>();
let timer: NodeJS.Timeout | undefined;
let timerAt = NEVER;

port.on("message", (message: ToThread) => {
  if ("look" in message) {
    schedule();
  } else if ("progress" in message) {
    holdings.adopt(records);
    holdings.report(message.slot, message.generation, message.progress);
    schedule();
  } else if ("heard" in message) {
    const key = `${message.heard}:${message.generation}`;
    clearTimeout(untold.get(key));
    untold.delete(key);
  } else if ("token" in message) {
    token = message.token;
  } else {
    const { answer, fault } = message;
    const waiting = relayed.get(message.relayed);
    relayed.delete(message.relayed);
    if (fault) waiting?.reject(new ConnectionLost(fault.why, fault));
    else if (answer) {
      const headers: Record<string, string | undefined> = {
        "tenure-owner": answer.owner,
        "retry-after": answer.retryAfter,
      };
      waiting?.resolve({ ...answer, header: (name) => headers[name] });
    }
  }
});
schedule();
tell({ started: true });
// Servers that must be looked up are known before the first heartbeat is due. A fault is one of that heartbeat, too.
Promise.resolve(transport.servers.current()).catch(() => {});

function schedule(): void {
  const moment = now();
  let wake: number;
  do {
    const at = holdings.next();
    wake = at === undefined ? NEVER : Math.min(at, moment + LOOK_MS);
    if (timerAt > moment) wake = Math.min(wake, timerAt);
    records.nextLook = wake;
    // A lease that was begun before this was written sent no message.
  } while (holdings.adopt(records));
  if (wake === timerAt) return;
  clearTimeout(timer);
  timerAt = wake;
  if (wake < NEVER) timer = setTimeout(tick, Math.max(1, wake - moment));
}

function tick(): void {
  timerAt = NEVER;
  lookForSleep();
  holdings.adopt(records);
  const moment = now();
  holdings.sweep(moment);
  announce(holdings.overdue(moment));
  const due = holdings.due(moment);
  for (let first = 0; first < due.length; first += BATCH) void extend(due.slice(first, first + BATCH));
  schedule();
}

async function extend(asked: Held[]): Promise<void> {
  const reports = asked.map((held) => held.progress);
  const sent = now();
  for (const held of asked) held.asked = sent;
  const goOn = () => {
    for (const held of asked) if (held.asked === sent) held.asked = 0;
    schedule();
  };
  const patience = Math.min(LONGEST_TRY_MS, ...asked.map((held) => TRY_FOR * held.ttl));
  let address: Address | undefined;
  // Its answer still counts: on a busy machine or a bad line each of them may take so long.
  const again = setTimeout(() => {
    // Where there are several servers, the next one is asked.
    if (address) transport.servers.lost(address);
    goOn();
  }, patience);
  try {
    const items = asked.map((held, n) =>
      reports[n] === undefined
        ? JSON.stringify(held.lease)
        : `{"lease":${JSON.stringify(held.lease)},"progress":${reports[n]}}`,
    );
    const body = `{"leases":[${items.join(",")}]}`;
    address = await transport.servers.current();
    const answer = await transport.once({ method: "POST", path: "leases/extend", body }, 2 * patience);
    if (answer.status >= 400) {
      holdings.failed(asked, sent, now());
      if (WRONG.has(answer.status) && reports.some((each) => each)) {
        // A report that is refused must not cost the leases their heartbeat.
        tell({
          warns: `a progress report was refused and is dropped: ${(answer.data as { detail?: string })?.detail}`,
        });
        forget(asked, reports);
      }
      return;
    }
    const stops = holdings.answered(asked, sent, now(), answer.data as Extended);
    forget(asked, reports);
    announce(stops);
  } catch {
    // Not told: the worker tells when its server cannot be reached. The next one is sent in time.
    holdings.failed(asked, sent, now());
  } finally {
    clearTimeout(again);
    goOn();
  }
}

function forget(asked: Held[], reports: (string | undefined)[]): void {
  for (const [n, held] of asked.entries()) {
    const progress = reports[n];
    if (progress === undefined || held.progress !== progress) continue;
    held.progress = undefined;
    tell({ reported: progress, slot: held.slot, generation: held.generation });
  }
}

function announce(stops: Stop[]): void {
  for (const [held, reason] of stops) {
    tell({ stop: reason, slot: held.slot, generation: held.generation });
    if (reason !== "lost") continue;
    const key = `${held.slot}:${held.generation}`;
    untold.set(
      key,
      setTimeout(() => {
        untold.delete(key);
        // The main thread cannot log: it is blocked.
        const line = `tenure: ${held.name}: the lease is lost while the event loop is blocked; its outcome will not be settled, and another worker may have it now`;
        try {
          writeSync(2, `${oneLine(line)}\n`);
        } catch {
          // Nobody reads stderr.
        }
      }, BLOCKED_MS),
    );
  }
}
