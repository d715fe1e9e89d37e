// A plugin of Fastify: a client, a worker from `ready` to `close`, and answers for errors of calls.

import type { FastifyInstance, FastifyPluginAsync } from "fastify";
import {
  Busy,
  type ClientOptions,
  Conflict,
  NotFinished,
  NotFound,
  NotGranted,
  type SchemaIssue,
  SchemaMismatch,
  type Task,
  Tenure,
  TenureError,
  type Worker,
  type WorkerOptions,
} from "./index.js";

declare module "fastify" {
  interface FastifyInstance {
    /** The client that the plugin of `tenure/fastify` was given, or made. */
    tenure: Tenure;
  }
}

/** The options of the plugin. */
export interface TenurePluginOptions {
  /**
   * The client, or the options of one that ends with the app and logs to `app.log`. A client that is given is not
   * closed. Default a client that the variables TENURE_URL and so on describe.
   */
  client?: Tenure | ClientOptions;
  /** The tasks that this process runs, made by the same client. The worker starts when the app is ready. Default none. */
  tasks?: readonly Task<never, unknown>[];
  /**
   * Options of that worker. It logs to `app.log`, and no signal ends it but `app.close()`, which lets jobs end within
   * its `drain` (25 s).
   */
  worker?: Omit<WorkerOptions, "signals">;
  /** Whether a `TenureError` of a route is answered as `problemOf` says. Default true. */
  errors?: boolean;
}

/** An answer to a request whose call of Tenure failed: the body is a problem of RFC 9457. */
export interface ProblemAnswer {
  /** The HTTP status. */
  readonly status: number;
  /** For the header `Retry-After`, in seconds; absent unless another try makes sense. */
  readonly retryAfter?: number;
  /** For `application/problem+json`. */
  readonly body: {
    readonly status: number;
    readonly title: string;
    /** The code of the error, unless it is the program's own fault. */
    readonly code?: string;
    readonly detail?: string;
    /** What a schema found. */
    readonly issues?: readonly SchemaIssue[];
  };
}

const RETRY_AFTER_S = 5;

/**
 * The answer for an error; undefined if it is no `TenureError`. It shows neither addresses nor hints.
 *
 * 404 `NotFound`, 409 `Conflict`, 422 `SchemaMismatch`, 504 `NotFinished`; 503 with `Retry-After` where the same call
 * may succeed later, and for a lock that was not granted in time. All others, such as a refused token, are 500.
 */
export function problemOf(error: unknown): ProblemAnswer | undefined {
  if (!(error instanceof TenureError)) return undefined;
  const { code, detail } = error;
  if (error instanceof NotFound) return answer(404, "Not Found", { code, detail });
  if (error instanceof Conflict) return answer(409, "Conflict", { code, detail });
  if (error instanceof SchemaMismatch) {
    return answer(422, "Unprocessable Content", { code, detail, issues: error.issues });
  }
  if (error instanceof NotFinished) return answer(504, "Gateway Timeout", { code, detail: "it has not ended yet" });
  if (error.retryable || error instanceof Busy || error instanceof NotGranted) {
    const retryAfter = error.retryAfter === undefined ? RETRY_AFTER_S : Math.ceil(error.retryAfter / 1000);
    return { ...answer(503, "Service Unavailable", { code, detail: "try again later" }), retryAfter };
  }
  return answer(500, "Internal Server Error", {});
}

function answer(status: number, title: string, rest: Omit<ProblemAnswer["body"], "status" | "title">): ProblemAnswer {
  return { status, body: { status, title, ...rest } };
}

async function plugin(app: FastifyInstance, options: TenurePluginOptions): Promise<void> {
  const { client, tasks, worker: settings, errors } = options;
  const tenure = client instanceof Tenure ? client : new Tenure({ logger: app.log, ...client });
  app.decorate("tenure", tenure);
  let worker: Worker | undefined;
  if (tasks !== undefined) {
    app.addHook("onReady", async () => {
      worker = tenure.work(tasks, { logger: app.log, ...settings, signals: false });
    });
  }
  // The drain begins before the server closes, which an idle connection can hold up for long, and ends before the
  // plugins close that were registered earlier: handlers may use them.
  app.addHook("preClose", async () => void worker?.stop());
  app.addHook("onClose", async () => {
    // An error of the worker is in the log, and must not keep the app from closing.
    await worker?.done.catch(() => {});
    if (tenure !== client) tenure.close();
  });
  if (errors === false) return;
  app.setErrorHandler((error, request, reply) => {
    const problem = problemOf(error);
    // Then it is a matter of the error handler before this one.
    if (problem === undefined) throw error;
    const { status, retryAfter, body } = problem;
    request.log[status >= 500 ? "error" : "info"]({ err: error }, (error as Error).message);
    if (retryAfter !== undefined) reply.header("retry-after", retryAfter);
    return reply.code(status).type("application/problem+json").send(body);
  });
}

/**
 * Gives an app a client as `app.tenure`, runs a worker if it has `tasks`, and answers errors of calls.
 *
 * @throws `WrongOption` at `ready`
 */
const tenurePlugin: FastifyPluginAsync<TenurePluginOptions> = Object.assign(plugin, {
  // As `fastify-plugin` does it: what is decorated here counts for the app, and not for a context of its own.
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "tenure",
  [Symbol.for("plugin-meta")]: { name: "tenure", fastify: "5.x" },
});
export default tenurePlugin;
