// BullMQ, as its documentation recommends it for throughput: one worker with a concurrency, finished
// jobs removed.
import { Queue, Worker } from 'bullmq';
import { Tally, dueInUs, nowUs, oneByOne, payload, readCall, ready, report, steady } from './gauge.mjs';

const call = readCall();
const connection = { host: '127.0.0.1', port: call.port, maxRetriesPerRequest: null };
const options = { removeOnComplete: true };
const NAME = 'bench';

/** So many add() in flight: faster here than addBulk, since both pipeline and this one overlaps. */
const FLIGHT = 64;

async function push(queue) {
  if (call.way !== 'bulk') return oneByOne({ ...call, flight: FLIGHT }, (data) => queue.add('job', data, options));
  const begin = nowUs();
  for (let n = 0; n < call.jobs; n += 1000) {
    const size = Math.min(1000, call.jobs - n);
    const jobs = Array.from({ length: size }, (_, i) => ({ name: 'job', data: payload(n + i, nowUs()), opts: options }));
    await queue.addBulk(jobs);
  }
  report({ jobs: call.jobs, seconds: (nowUs() - begin) / 1e6 });
}

async function later(queue) {
  const begin = nowUs();
  const jobs = [];
  for (let n = 0; n < call.jobs; n++) {
    const due = begin + dueInUs(call, n);
    // Whole milliseconds, as delays are; the moment is that of the delay which is asked for.
    const now = nowUs();
    const delay = Math.round((due - now) / 1000);
    jobs.push(queue.add('job', payload(n, now + delay * 1000), { ...options, delay }));
  }
  await Promise.all(jobs);
  report({ jobs: call.jobs, seconds: (nowUs() - begin) / 1e6 });
}

async function work() {
  const tally = new Tally(call.jobs, call.role === 'listen');
  const worker = new Worker(NAME, async (job) => tally.handle(job.data), {
    connection,
    concurrency: call.concurrency,
    removeOnComplete: { count: 0 },
  });
  worker.on('error', (error) => console.error(error.message));
  if (call.role === 'listen') {
    await worker.waitUntilReady();
    ready();
  }
  await tally.done();
  await worker.close();
  const queue = new Queue(NAME, { connection });
  const left = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized');
  report({ ...tally.figures(), left: Object.values(left).reduce((a, b) => a + b, 0) });
  await queue.close();
}

if (call.role === 'drain' || call.role === 'listen') {
  await work();
} else {
  const queue = new Queue(NAME, { connection });
  await queue.waitUntilReady();
  if (call.role === 'push') await push(queue);
  else if (call.role === 'push-single') await oneByOne(call, (data) => queue.add('job', data, options));
  else if (call.role === 'later') await later(queue);
  else if (call.role === 'steady') {
    await steady(call, (data) => queue.add('job', data, options));
    report({});
  } else throw new Error(`BullMQ cannot do ${call.role}`);
  await queue.close();
}
process.exit(0);
