// The worker: node worker.js

import { fetchReport, t } from "./tasks.ts";

await t.work([fetchReport], { concurrency: 6, ttl: "2s" }).done;
