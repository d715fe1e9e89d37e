import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { Server } from "./servers.js";

test("the generated types are those of the server's /openapi.json", async () => {
  const server = await Server.start();
  const run = promisify(execFile)(process.execPath, ["scripts/generate-types.mjs", "--check", server.url]);
  await assert.doesNotReject(run, "make them anew: node scripts/generate-types.mjs http://127.0.0.1:7171");
});
