import { sleep } from "./backoff.js";
import { refuse, TenureError } from "./errors.js";
import type { Logger } from "./log.js";
import { type Abortable, as, readOptions, type Shape, shape } from "./options.js";
import { type Schedules, TIMING, type Timing } from "./schedules.js";
import { checkTask, type Task } from "./task.js";

const PAUSE_MS = 2000;

/** What a schedule of a task says beside its timing. */
export interface ScheduleEntry<In> extends Omit<Timing, "cron" | "every"> {
  /** The payload of each job. */
  payload?: In;
  /** The id of the schedule, 1 to 200 bytes. Default `OWNER.TASK`. */
  id?: string;
}

const ENTRY: Shape = shape({ ...TIMING, payload: as.any, id: as.text });
const WHEN: Shape = shape(TIMING);
const SYNC = shape({ force: as.flag, signal: as.signal });

/** The schedules that a client states. */
export class Timetable {
  #schedules: Schedules;
  #owner: string | undefined;
  #logger: Logger;
  #stated = new Map<string, { task: Task<never, unknown>; payload: never; timing: Timing }>();

  constructor(schedules: Schedules, owner: string | undefined, logger: Logger) {
    this.#schedules = schedules;
    this.#owner = owner;
    this.#logger = logger;
  }

  add(task: Task<never, unknown>, when: string | object, entry: ScheduleEntry<never> | undefined): void {
    checkTask(task, this.#schedules.transport, "the task of schedule");
    const call = `schedule of task "${task.name}"`;
    if (this.#owner === undefined) {
      refuse(
        `the ${call} needs an owner: a sync deletes schedules of the same owner that are stated no more`,
        'name the program: new Tenure({ owner: "shop" })',
      );
    }
    const { id: given, payload, ...rest } = entry ?? {};
    readOptions(entry, ENTRY, call);
    const timing: Timing = { ...(typeof when === "string" ? { cron: when } : (when as Timing)), ...rest };
    readOptions(typeof when === "string" ? {} : when, WHEN, call);
    if ((timing.cron === undefined) === (timing.every === undefined)) {
      refuse(`the ${call} needs a cron expression such as "0 9 * * *", or { every: "15m" }`);
    }
    const id = given ?? `${this.#owner}.${task.name}`;
    if (this.#stated.has(id)) {
      refuse(`two schedules have the id "${id}"`, "give one of them another id");
    }
    this.#stated.set(id, { task, payload: payload as never, timing });
  }

  /** Syncs what is stated, as soon as the server answers. A client that states none leaves all alone. */
  async sync(options?: { force?: boolean } & Abortable): Promise<void> {
    const { signal, ...query } = readOptions(options, SYNC, "syncSchedules") as { force?: boolean } & Abortable;
    if (this.#stated.size === 0 && !query.force) return;
    const items: object[] = [];
    for (const [id, { task, payload, timing }] of this.#stated) {
      items.push({ id, ...readOptions(timing, WHEN, "schedule"), job: await task.scheduledJob(payload) });
    }
    for (;;) {
      try {
        const changed = await this.#schedules.putSet(this.#owner as string, items, query, signal);
        const { added, updated, deleted } = changed;
        if (added + updated + deleted > 0) {
          this.#logger.info(`schedules of "${this.#owner}": ${added} added, ${updated} updated, ${deleted} deleted`);
        }
        return;
      } catch (refused) {
        if (!(refused instanceof TenureError) || !refused.retryable) throw refused;
        this.#logger.warn(`the schedules are not synced yet: ${refused.message}`);
        await sleep(PAUSE_MS, signal);
      }
    }
  }
}
