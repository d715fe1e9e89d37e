#!/usr/bin/env node
// Writes docs/reference/typescript-api.md from the declarations and comments of the package.
//
//   node scripts/generate-reference.mjs [--check] [--out FILE]
//
// With --check nothing is written; the exit code is 1 if the page in the tree differs. The declarations are those that
// users get, formatted by biome: then a statement ends where its brackets do. TypeDoc reads no TypeScript 7.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values: options } = parseArgs({ options: { check: { type: "boolean" }, out: { type: "string" } } });
const page = options.out ?? resolve(root, "../../docs/reference/typescript-api.md");

/** What `tenure` exports, in the order of the page. The other modules have a section each. */
const SECTIONS = {
  "The client": ["Tenure", "ClientOptions", "Token", "Logger", "Abortable", "Duration", "DurationUnit", "Moment"],
  Jobs: ["Job", "Pushed", "ResultOptions", "JobChanges", "JobQuery", "PushedMany", "PushManyOptions"],
  "Fields of a job": [
    ["SharedJobOptions", "JobOptions", "TaskPushOptions", "JobSpec", "RetryOptions", "BackoffOptions", "UniqueOptions"],
    ["Need", "LimitNeed", "PoolNeed"],
  ].flat(),
  "Tasks and workers": [
    ["Task", "TaskOptions", "Handler", "BatchOptions", "BatchHandler", "BatchItem", "Pushable", "Context"],
    ["Worker", "WorkerOptions"],
  ].flat(),
  "How a run ends": ["Outcome", "Snooze", "RetryIn", "Final", "Released"],
  "Why a run stops": ["Stopped", "Cancelled", "TimedOut", "Draining", "LeaseLost"],
  "Locks and leases": ["Lease", "LeaseOptions"],
  "Limits, pools and queues": [
    ["Limits", "LimitSettings", "Rate", "RateOptions", "Pools", "PoolSettings", "NewResource", "Until"],
    ["Queues", "QueueSettings"],
  ].flat(),
  "Schedules and flows": [
    ["Schedules", "ScheduleSettings", "ScheduleItem", "ScheduledJobOptions", "ScheduleEntry", "Timing", "SyncOptions"],
    ["Flows"],
  ].flat(),
  Events: ["TenureEvent", "EventGap", "EventOptions"],
  "Traces and reports of errors": ["Instrumentation", "PushCall", "RunEnd"],
  Codecs: ["Codec", "ValuePlace"],
  Errors: [
    ["TenureError", "ErrorFields", "ErrorCode", "ClientCode", "WrongOption", "NotJson", "SchemaMismatch"],
    ["SchemaIssue", "Invalid", "NotFound", "Conflict", "NotPermitted", "Busy", "Unreachable", "OutcomeUnknown"],
    ["UnexpectedAnswer", "NotGranted", "NotFinished", "JobFailed", "JobCancelled", "CodecError"],
  ].flat(),
  "Schemas and the version": ["StandardSchema", "StandardResult", "StandardIssue", "InputOf", "OutputOf", "VERSION"],
};

const HEAD = `# TypeScript API

This page is made from the declarations and comments of [the package](../../clients/typescript/README.md);
[the guide](../guides/typescript.md) shows how its parts go together. \`api.…\` are the types of the [HTTP API](http.md), which
\`import type { api } from "tenure"\` brings.`;

/** Splits the lines of a file, or of a class, into statements with their comments. */
function statements(lines) {
  const all = [];
  let comment = [];
  for (let n = 0; n < lines.length; n++) {
    if (lines[n].startsWith("/**")) {
      const first = n;
      while (!lines[n].endsWith("*/")) n++;
      comment = lines.slice(first, n + 1);
      continue;
    }
    const first = n;
    const end = /^(export |declare |abstract )*(class|interface) /.test(lines[n]) ? "}" : ";";
    for (let depth = 0; ; n++) {
      for (const each of lines[n]) depth += "{([".includes(each) ? 1 : "})]".includes(each) ? -1 : 0;
      if (depth === 0 && lines[n].endsWith(end)) break;
    }
    all.push({ comment, lines: lines.slice(first, n + 1) });
    comment = [];
  }
  return all;
}

/** A comment as Markdown. */
function prose(comment) {
  const text = comment.map((line) => line.replace(/^\s*(\/\*\*|\*\/|\*)\s?|\s*\*\/$/g, "")).join("\n");
  const [said, ...tags] = `\n${text}`.split(/(?=@(?:throws|param|returns)\b)/);
  const paragraphs = said.split(/\n\s*\n/);
  for (const tag of tags) {
    const [, name, rest] = /^@(\w+)\s+(.*)$/s.exec(tag);
    if (name === "param") paragraphs.push(rest.replace(/^(\w+)\s+/, "`$1`: "));
    else paragraphs.push(`${name === "throws" ? "Throws" : "Returns"} ${rest}`);
  }
  return paragraphs.map((each) => each.trim().replaceAll(/\s*\n\s*/g, " ")).filter((each) => each !== "");
}

const code = (lines) => `\`\`\`ts\n${lines.join("\n")}\n\`\`\``;

/** A class: its fields in one block, then each method under a heading of its own; overloads share one. */
function classOf({ comment, lines }) {
  const members = lines.length === 1 ? [] : statements(lines.slice(1, -1).map((line) => line.slice(2)));
  const methodOf = ({ lines: [first] }) => /^(?!constructor)[[\].\w]+(?=[<(])/.exec(first)?.[0];
  const fields = members.filter((each) => !methodOf(each) && each.lines[0] !== "#private;");
  const block = fields.flatMap((each) => [...each.comment, ...each.lines]).map((line) => `  ${line}`);
  const head = lines[0].replace("export declare ", "");
  const parts = [...prose(comment), code(block.length > 0 ? [head, ...block, "}"] : [head.replace(/ \{\}?$/, "")])];
  let before = "";
  for (const member of members) {
    const name = methodOf(member);
    if (name === undefined) continue;
    if (name !== before) parts.push(`#### ${name.replaceAll(/[[\]]/g, "")}`);
    before = name;
    parts.push(code(member.lines), ...prose(member.comment));
  }
  return parts;
}

/** What each name of a module stands for, and the names in their order. */
function moduleOf(folder, entry) {
  const found = new Map();
  for (const [, names, from] of readFileSync(join(folder, entry), "utf8").matchAll(
    /^export (?:type )?\{([^}]+)\} from "(.+?)\.js";/gm,
  )) {
    const file = join(folder, entry, "..", `${from}.d.ts`);
    const text = readFileSync(file, "utf8").replaceAll(/\{@link (\w+)\}/g, "`$1`");
    // Types of the HTTP API are named as users import them.
    const api = /^import type \{([^}]+)\} from "[./]+\/generated\.js";/m.exec(text)?.[1] ?? "";
    const aliases = api.split(",").map((each) => each.trim().split(" as "));
    const all = statements(text.split("\n").filter((line) => line !== ""));
    for (const name of names.split(",").map((each) => each.trim().replace("type ", ""))) {
      if (name === "") continue;
      const statement = all.find(({ lines }) =>
        new RegExp(`^export (declare )?(abstract )?(class|interface|type|function|const) ${name}\\b`).test(lines[0]),
      );
      if (!statement) throw new Error(`${file} does not declare ${name}`);
      const named = statement.lines.map((line) =>
        /^\s*(\/?\*)/.test(line)
          ? line
          : aliases.reduce(
              (to, [from, as = from]) =>
                as ? to.replaceAll(new RegExp(`(?<![.\\w])${as}\\b`, "g"), `api.${from}`) : to,
              line,
            ),
      );
      found.set(name, { comment: statement.comment, lines: named });
    }
  }
  return found;
}

function section(title, names, declared) {
  const parts = [`## ${title}`];
  for (const name of names) {
    const statement = declared.get(name);
    if (!statement) throw new Error(`the package exports no ${name}; take it out of SECTIONS`);
    parts.push(`### ${name}`);
    if (/ class /.test(statement.lines[0])) parts.push(...classOf(statement));
    else
      parts.push(
        ...prose(statement.comment),
        code([statement.lines[0].replace(/^export (declare )?/, ""), ...statement.lines.slice(1)]),
      );
  }
  return parts;
}

function make() {
  const folder = mkdtempSync(join(tmpdir(), "tenure-reference-"));
  const run = (program, args, cwd) => execFileSync(`${root}node_modules/.bin/${program}`, args, { cwd, stdio: "pipe" });
  try {
    run("tsc", ["-p", "tsconfig.json", "--emitDeclarationOnly", "--stripInternal", "--outDir", folder], root);
    writeFileSync(join(folder, "biome.json"), '{ "formatter": { "indentStyle": "space", "lineWidth": 100 } }');
    run("biome", ["format", "--write", "--log-level=error", "."], folder);
    const parts = [HEAD];
    const { exports } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
    for (const [path, { types }] of Object.entries(exports)) {
      if (types === undefined) continue;
      const declared = moduleOf(folder, types.replace("./dist/", ""));
      const sections = path === "." ? SECTIONS : { [`The module \`tenure${path.slice(1)}\``]: [...declared.keys()] };
      const missing = [...declared.keys()].filter((name) => !Object.values(sections).flat().includes(name));
      if (missing.length > 0) throw new Error(`SECTIONS lacks ${missing.join(", ")}`);
      for (const [title, names] of Object.entries(sections)) parts.push(...section(title, names, declared));
    }
    return `${parts.join("\n\n")}\n`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const made = make();
if (!options.check) {
  writeFileSync(page, made);
} else if (made !== readFileSync(page, "utf8")) {
  console.error(`${page} is not what the package declares; make it again: node scripts/generate-reference.mjs`);
  process.exit(1);
}
