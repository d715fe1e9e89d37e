// What every measured Node program shares: the same as the crate `peers-gauge` does for Rust.

/** Microseconds on a clock that all processes of this machine share and nobody sets. */
export const nowUs = () => Number(process.hrtime.bigint() / 1000n);

/** How a program is called: PROGRAM ROLE PORT [--name value]… */
export function readCall() {
  const [role, port, ...rest] = process.argv.slice(2);
  const call = { role, port: Number(port), jobs: 1000, concurrency: 100, rate: 500, spread: 10, flight: 16, way: '' };
  for (let i = 0; i < rest.length; i += 2) {
    const name = rest[i].slice(2);
    call[name] = name === 'way' ? rest[i + 1] : Number(rest[i + 1]);
  }
  return call;
}

/** In how many microseconds the job `n` of `later` is due. */
export const dueInUs = (call, n) => 1_000_000 + Math.floor((n * call.spread * 1_000_000) / call.jobs);

/** About 100 bytes as JSON. */
export const payload = (n, t) => ({ n, t, k: 'free', pad: 'x'.repeat(48) });

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Pushes each job by a call of its own, `flight` calls at once, and reports how long it took. */
export async function oneByOne(call, push) {
  const begin = nowUs();
  let n = 0;
  const one = async () => {
    while (n < call.jobs) await push(payload(n++, nowUs()));
  };
  await Promise.all(Array.from({ length: call.flight }, one));
  report({ jobs: call.jobs, seconds: (nowUs() - begin) / 1e6 });
}

/** Makes `rate` pushes a second; none waits for the one before. */
export async function steady(call, push) {
  const begin = nowUs();
  const pushed = [];
  for (let n = 0; n < call.jobs; ) {
    const due = Math.min(call.jobs, Math.floor(((nowUs() - begin) * call.rate) / 1e6) + 1);
    for (; n < due; n++) pushed.push(push(payload(n, nowUs())));
    await sleep(1);
  }
  await Promise.all(pushed);
}

/** Counts handled jobs up to a number. */
export class Tally {
  constructor(wanted, timed = false) {
    this.wanted = wanted;
    this.timed = timed;
    this.handled = 0;
    this.late = [];
    this.full = new Promise((resolve) => (this.resolve = resolve));
  }
  handle(data) {
    const now = nowUs();
    this.begin ??= now;
    if (this.timed) this.late.push(now - data.t);
    if (++this.handled === this.wanted) this.stop();
  }
  stop() {
    this.end = nowUs();
    this.resolve();
  }
  /** Until all were handled, or nothing was for a minute. */
  async done() {
    let before = this.handled;
    const watch = setInterval(() => {
      if (this.handled === before) {
        this.gaveUp = true;
        this.stop();
      }
      before = this.handled;
    }, 60_000);
    await this.full;
    clearInterval(watch);
  }
  figures() {
    const figures = { jobs: this.handled, seconds: (this.end - this.begin) / 1e6 };
    if (this.gaveUp) figures.gave_up = true;
    if (this.late.length > 0) {
      this.late.sort((a, b) => a - b);
      const at = (part) => this.late[Math.round((this.late.length - 1) * part)] / 1e3;
      Object.assign(figures, { min_ms: at(0), p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1) });
    }
    return figures;
  }
}

/** Says that work may come. */
export const ready = () => console.log('ready');

/** Prints these figures, and what the process cost. */
export function report(figures) {
  const { user, system } = process.cpuUsage();
  figures.cpu_s = (user + system) / 1e6;
  figures.rss_bytes = process.resourceUsage().maxRSS * 1024;
  console.log(JSON.stringify(figures));
}
