// Two workers in one process. A handler of the first ignores its signal; one of the second ends by itself.
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Tenure } from "tenure";

const journal = process.env["JOURNAL"] as string;
const note = (...words: unknown[]) => appendFileSync(journal, `${words.join(" ")} ${process.pid} ${Date.now()}\n`);
const t = new Tenure();

const handler = (name: string) => async () => {
  note(name, "begin");
  while (!existsSync(`${journal}.${name}`)) await sleep(20);
  note(name, "end");
  return name;
};
const drain = (process.env["DRAIN"] ?? "0s") as "0s";
const first = t.work([t.task("first", {}, handler("first"))], { drain, ttl: "5s" });
const second = t.work([t.task("second", {}, handler("second"))], { drain: "30s", ttl: "5s" });
if (process.env["OWN"]) process.on("SIGTERM", () => void first.stop());
process.on("SIGUSR2", () => void first.stop());
note("ready");
await Promise.all([first.done, second.done]);
note("drained");
