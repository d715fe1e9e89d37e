// The notifier: `node notifier.js`, as many of them as you like.

// Node 22 has the same built in, as `node:sqlite`.
import { DatabaseSync } from "@photostructure/sqlite";
import { Tenure } from "tenure";

interface Reminder {
  meeting: string;
  who: string;
  starts: string;
}

const meetings = new DatabaseSync(process.env["MEETINGS_DB"] as string, { timeout: 60_000 });
const t = new Tenure();

/** Reminds one person of one meeting. The API pushes these jobs, with their retry policy. */
const remind = t.task("remind", { queue: "reminders" }, async ({ meeting, who, starts }: Reminder, ctx) => {
  const found = meetings.prepare("SELECT title, starts, people FROM meetings WHERE id = ?").get(meeting);
  // The meeting may have been moved or deleted since this job was granted for the first time: from
  // then on its key no longer reaches it.
  if (found?.starts !== starts || !JSON.parse(found.people).includes(who)) return "called off";
  const answer = await fetch(`${process.env["INBOX_URL"]}/messages`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "User-Agent": `notifier/${process.pid}`,
      // The same for each try by any notifier: the inbox refuses what it has.
      "Idempotency-Key": `meeting-${meeting}:${who}:${starts}`,
    },
    // `job` and `lost` are for the figures of the demo.
    body: JSON.stringify({ meeting, who, starts, title: found.title, job: ctx.job.id, lost: ctx.job.lost }),
    signal: ctx.signal,
  });
  if (answer.status === 409) return "was sent already";
  if (!answer.ok) throw new Error(`the inbox answered ${answer.status}`);
  // Here the inbox has the message, and Tenure learns it when this function has returned. If the
  // notifier dies in between, another one sends the message again, and the inbox refuses it.
  return "sent";
});

await t.work([remind], { concurrency: 8, ttl: "2s", logger: console }).done;
