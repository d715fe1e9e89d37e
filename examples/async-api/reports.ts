// The table of reports: all that is known.

// Node 22 has the same built in, as `node:sqlite`.
import { DatabaseSync } from "@photostructure/sqlite";
import type { Report } from "./registry.ts";

// Each statement is a transaction of its own. A writer waits for as long as a run may take: a process
// that was stopped in the middle of a write keeps the others out. Meanwhile the event loop stands
// still, and the heartbeats go on.
const db = new DatabaseSync(process.env["REPORTS_DB"] ?? "reports.db", { timeout: 60_000 });
// A worker that is stopped while it reads or waits does not keep others from writing.
db.exec("PRAGMA journal_mode = WAL");
db.exec(`
  CREATE TABLE IF NOT EXISTS reports (
    company TEXT PRIMARY KEY, report TEXT NOT NULL, fence INTEGER NOT NULL
  )
`);

const FIND = "SELECT report FROM reports WHERE company = ?";
// A worker that was taken for dead may wake up and store what it got long ago. Its fence is lower
// than that of the worker that holds the job now, so it changes nothing.
const STORE = `
  INSERT INTO reports (company, report, fence) VALUES (?, ?, ?)
  ON CONFLICT (company) DO UPDATE SET report = excluded.report, fence = excluded.fence
  WHERE reports.fence <= excluded.fence
`;

/** The report of a company, if it is known. */
export function find(company: string): Report | undefined {
  const row = db.prepare(FIND).get(company);
  return row && JSON.parse(row.report);
}

/** Stores a report. False: a newer holder of the same job has stored its own already. */
export function store(company: string, report: Report, fence: number): boolean {
  return db.prepare(STORE).run(company, JSON.stringify(report), fence).changes === 1;
}
