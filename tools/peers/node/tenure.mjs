// Tenure's package for Node, over HTTP to a `tenure serve` at the port.
import { Tenure } from 'tenure';
import { Tally, dueInUs, nowUs, oneByOne, payload, readCall, ready, report, steady } from './gauge.mjs';

const call = readCall();
const t = new Tenure({ url: `http://127.0.0.1:${call.port}` });
let tally;
const task = t.task('bench', {}, (data) => tally.handle(data));

function* payloads() {
  for (let n = 0; n < call.jobs; n++) yield payload(n, nowUs());
}

async function later() {
  const begin = nowUs();
  const jobs = [];
  for (let n = 0; n < call.jobs; n++) {
    const due = begin + dueInUs(call, n);
    // Moments of a `Date` are whole milliseconds of the wall clock.
    const now = nowUs();
    const delay = Math.round((due - now) / 1000);
    const runAt = new Date(Date.now() + delay);
    jobs.push(task.push(payload(n, now + delay * 1000), { runAt }));
  }
  await Promise.all(jobs);
  report({ jobs: call.jobs, seconds: (nowUs() - begin) / 1e6 });
}

async function work() {
  tally = new Tally(call.jobs, call.role === 'listen');
  const worker = t.work([task], { concurrency: call.concurrency });
  if (call.role === 'listen') ready();
  await tally.done();
  // Settles what has ended.
  await worker.stop();
  const { jobs } = await t.stats();
  const ended = ['succeeded', 'failed', 'cancelled'];
  const left = Object.entries(jobs).reduce((sum, [state, n]) => (ended.includes(state) ? sum : sum + n), 0);
  report({ ...tally.figures(), left });
}

if (call.role === 'drain' || call.role === 'listen') {
  await work();
} else if (call.role === 'push') {
  const begin = nowUs();
  await task.pushMany(payloads());
  report({ jobs: call.jobs, seconds: (nowUs() - begin) / 1e6 });
} else if (call.role === 'push-single') {
  await oneByOne(call, (data) => task.push(data));
} else if (call.role === 'later') {
  await later();
} else if (call.role === 'steady') {
  await steady(call, (data) => task.push(data));
  report({});
} else throw new Error(`Tenure cannot do ${call.role}`);
process.exit(0);
