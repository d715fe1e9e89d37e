// A collector: takes an account for as long as a session lives, gives it back, takes the next.
//
// node collector.js --site ws://127.0.0.1:PORT --name collector-1

import { parseArgs } from "node:util";
import { Tenure } from "tenure";
import { Session, SITE_FORGETS_AFTER } from "./session.ts";

const text = { type: "string", default: "" } as const;
const { site, name } = parseArgs({ options: { site: text, name: text } }).values;
const t = new Tenure();
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

/** Runs one session, with whichever account is free first. */
async function collect(): Promise<void> {
  // Waits in the line of the pool. An account that is given back wakes the first in it.
  await using lease = await t.lease(["pool:accounts"], { ttl: "2s", signal: stop.signal });
  const account = lease.resource<{ token: string }>("accounts");
  try {
    const session = new Session(site);
    await session.login(account.id, account.data.token, lease.fence, name);
    for (let pages = 4 + Math.floor(Math.random() * 17); pages > 0; pages--) {
      if (lease.lost || stop.signal.aborted) break;
      await session.page();
    }
    await session.logout();
  } catch (error) {
    console.log(`the session of ${account.id} ended: ${(error as Error).message}`);
    // The site may still count us as logged in: let it rest before the next login.
    lease.cool(account, SITE_FORGETS_AFTER);
  }
  if (lease.lost) console.log(`lease ${lease.id} was lost before its session ended`);
}

while (!stop.signal.aborted) {
  try {
    await collect();
  } catch (error) {
    // The wait for an account ends with the reason of the signal.
    if (error !== stop.signal.reason) throw error;
  }
}
