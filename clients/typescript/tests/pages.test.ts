// The pages about this package, run as they stand: each program compiles, ends well, and writes what the page says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { blocks, matches, PageShell, runPrograms } from "./pages.js";
import { freePort } from "./servers.js";

test("docs/start/typescript.md can be followed literally", async () => {
  const page = blocks("docs/start/typescript.md");
  assert.ok(page.filter(({ kind }) => kind === "sh").length >= 10);
  const shell = new PageShell(await freePort());
  try {
    await shell.follow(page);
  } finally {
    shell.close();
  }
});

test("docs/start/typescript.zh-CN.md has the programs, commands and output of the English page", () => {
  assert.deepEqual(blocks("docs/start/typescript.zh-CN.md"), blocks("docs/start/typescript.md"));
});

// Of docs/guides/encrypted-payloads.md.
process.env["MAIL_KEYS"] = `1:${"AQEB".repeat(10)}AQE=`;

for (const page of ["docs/guides/typescript.md", "docs/guides/encrypted-payloads.md", "docs/coming-from/bullmq.md"]) {
  test(`the programs of ${page} compile, run and write what it says`, () => runPrograms(page));
}

test("a page that says something else is found", async () => {
  const shell = new PageShell(await freePort());
  try {
    const say = { kind: "sh", code: "echo hello ann\n", file: "" };
    await shell.follow([say, { kind: "text", code: "hello …\n", file: "" }]);
    await assert.rejects(shell.follow([say, { kind: "text", code: "hello bob\n", file: "" }]), /and not\nhello bob/);
    await assert.rejects(shell.follow([{ ...say, code: "false\n" }]), /exit code 1/);
  } finally {
    shell.close();
  }
});

test("expected lines match in order, with free spaces and ellipses", () => {
  assert.ok(matches("hello ann\n", "note\nhello ann\n"));
  assert.ok(!matches("hello ann\nhello bob\n", "hello bob\nhello ann\n"));
  assert.ok(matches("state  cancelled\n", "state     cancelled\n"));
  assert.ok(matches("…\nat …x.js:6:15\n", "hello\n    at /a/x.js:6:15\n"));
  assert.ok(!matches("hello\n", "hello ann\n"));
});
