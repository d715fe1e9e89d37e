// bee-queue, as its documentation recommends it: no events for a queue that nobody listens to, jobs
// not kept in memory, finished ones removed, bulk by saveAll.
import BeeQueue from 'bee-queue';
import { Tally, dueInUs, nowUs, oneByOne, payload, readCall, ready, report, steady } from './gauge.mjs';

const call = readCall();
const works = call.role === 'drain' || call.role === 'listen';
const queue = new BeeQueue('bench', {
  redis: { host: '127.0.0.1', port: call.port },
  isWorker: works,
  getEvents: false,
  sendEvents: false,
  storeJobs: false,
  removeOnSuccess: true,
  activateDelayedJobs: works,
  // A worker looks for due jobs when one becomes due, and never sooner than so long after the last.
  delayedDebounce: 1,
});
await queue.ready();

async function saveAll(jobs) {
  const errors = await queue.saveAll(jobs);
  if (errors.size > 0) throw [...errors.values()][0];
}

if (call.role === 'push') {
  const begin = nowUs();
  for (let n = 0; n < call.jobs; n += 1000) {
    const size = Math.min(1000, call.jobs - n);
    await saveAll(Array.from({ length: size }, (_, i) => queue.createJob(payload(n + i, nowUs()))));
  }
  report({ jobs: call.jobs, seconds: (nowUs() - begin) / 1e6 });
} else if (call.role === 'push-single') {
  await oneByOne(call, (data) => queue.createJob(data).save());
} else if (call.role === 'later') {
  const begin = nowUs();
  const jobs = [];
  for (let n = 0; n < call.jobs; n++) {
    const wanted = begin + dueInUs(call, n);
    // Moments are whole milliseconds of the wall clock.
    const now = nowUs();
    const wall = Date.now();
    const delay = Math.round((wanted - now) / 1000);
    jobs.push(queue.createJob(payload(n, now + delay * 1000)).delayUntil(wall + delay));
  }
  await saveAll(jobs);
  report({ jobs: call.jobs, seconds: (nowUs() - begin) / 1e6 });
} else if (call.role === 'steady') {
  await steady(call, (data) => queue.createJob(data).save());
  report({});
} else if (works) {
  const tally = new Tally(call.jobs, call.role === 'listen');
  queue.process(call.concurrency, async (job) => tally.handle(job.data));
  if (call.role === 'listen') ready();
  await tally.done();
  // Its close() waits for what runs; the rest of the last outcomes is on its way.
  let left = 1;
  for (let look = 0; look < 100 && left > 0; look++) {
    const health = await queue.checkHealth();
    left = health.waiting + health.active + health.delayed;
  }
  report({ ...tally.figures(), left });
} else throw new Error(`bee-queue cannot do ${call.role}`);
await queue.close();
process.exit(0);
