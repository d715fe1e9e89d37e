// A master: keeps the pool like the table of accounts. Run two, so that one may be down.

import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import pg from "pg";
import { type Duration, Tenure, TenureError } from "tenure";

// One statement, so that the rows and their version are of the same moment.
const ROWS = `
  SELECT v.version, a.id, a.token, a.tags
  FROM accounts_version AS v LEFT JOIN accounts AS a ON a.enabled
  ORDER BY a.id
`;

const { quarantine } = parseArgs({ options: { quarantine: { type: "string", default: "4s" } } }).values;
const t = new Tenure();
const database = new pg.Client(process.env["DATABASE_URL"]);

/** Makes the pool like the table; returns what changed, or why nothing did. */
async function sync(): Promise<string> {
  const { rows } = await database.query(ROWS);
  const version = Number(rows[0].version);
  const accounts = rows
    .filter((row) => row.id !== null)
    .map(({ id, token, tags }) => ({ id, data: { token }, tags: tags.match(/[^, ]+/g) ?? [] }));
  try {
    const { added, retired, retiring } = await t.pools.sync("accounts", accounts, { version });
    const changes = Object.entries({ added, retired, retiring }).filter(([, count]) => count > 0);
    return changes.map(([what, count]) => `${count} ${what}`).join(", ");
  } catch (error) {
    const code = error instanceof TenureError && error.code;
    if (code === "stale_sync") return `${code}: the pool is newer than version ${version}, and stays as it is`;
    // It looks like a query that failed. If it is meant: sync(…, { force: true }).
    if (code === "empty_set" || code === "retires_most")
      return `${code}: the query found ${accounts.length} accounts; the pool stays as it is`;
    throw error;
  }
}

await database.connect();
await t.pools.set("accounts", { quarantine: quarantine as Duration });
for (let last = ""; ; await sleep(250)) {
  const outcome = await sync();
  if (outcome && outcome !== last) console.log(outcome);
  last = outcome;
}
