/** Takes the log lines of a client and its workers. `console` is one, and so are pino and winston. */
export interface Logger {
  /** Ends of runs, starts and drains. */
  info(line: string): void;
  /** Failed runs, lost leases, outages. */
  warn(line: string): void;
  /** What needs a look: outcomes that may be lost, handlers that cannot be stopped. */
  error(line: string): void;
}

const nothing = () => {};

/** Takes no line. */
export const SILENT: Logger = { info: nothing, warn: nothing, error: nothing };

/** Warnings and errors on stderr, and the lines of `info` where TENURE_LOG is INFO or DEBUG. */
export const TO_STDERR: Logger = {
  info: (line) => {
    if (/^(info|debug)$/i.test(process.env["TENURE_LOG"] ?? "")) console.error(`tenure: ${line}`);
  },
  warn: (line) => console.error(`tenure: ${line}`),
  error: (line) => console.error(`tenure: ${line}`),
};

/** A logger that cannot fail: an outcome must not be lost, nor a process end, for a line. */
export function unfailing(logger: Logger): Logger {
  if (logger === SILENT || logger === TO_STDERR) return logger;
  const safe = (level: keyof Logger) => (line: string) => {
    const failed = () => TO_STDERR[level](line);
    try {
      const written: unknown = logger[level](line);
      // It may be an async function, whose rejection nobody would take.
      if (written instanceof Promise) written.catch(failed);
    } catch {
      failed();
    }
  };
  return { info: safe("info"), warn: safe("warn"), error: safe("error") };
}
