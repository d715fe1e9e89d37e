// Of the tests of many files, writes the failed ones and a line for the whole.
import { inspect } from "node:util";

export default async function* report(events) {
  let passed = 0;
  let failed = 0;
  for await (const { type, data } of events) {
    if (type === "test:pass") passed++;
    if (type === "test:stderr" || type === "test:stdout") yield data.message;
    if (type !== "test:fail") continue;
    failed++;
    yield `FAILED ${data.file ?? ""}: ${data.name}\n${inspect(data.details.error.cause ?? data.details.error, { depth: 5 })}\n`;
  }
  yield `${passed} passed, ${failed} failed\n`;
}
