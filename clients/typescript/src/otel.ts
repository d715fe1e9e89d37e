// Traces by OpenTelemetry: names, kinds and attributes of its conventions for messaging systems, as the Rust client
// has them (https://opentelemetry.io/docs/specs/semconv/messaging/).

import {
  type Attributes,
  context,
  isSpanContextValid,
  type Context as OtelContext,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { type Context, type Instrumentation, type RunEnd, VERSION } from "./index.js";

/** How spans are made. */
export interface OtelOptions {
  /** Makes the spans. Default `trace.getTracer("tenure", VERSION)`, a tracer of the global provider. */
  tracer?: Tracer;
}

/**
 * Makes a span of each push, `tenure.push`, of each run, `tenure.run`, and of each call that settles runs,
 * `tenure.settle`, in one trace: the job carries the context of its push. No span holds a payload, a result or the message of an error.
 *
 * It takes the package `@opentelemetry/api`. Without an SDK that is set up it makes no span and changes nothing.
 */
export function otel(options: OtelOptions = {}): Instrumentation {
  const tracer = options.tracer ?? trace.getTracer("tenure", VERSION);
  const runs = new WeakMap<Context, SpanContext>();
  return {
    push: ({ queue, count }, send) => {
      const attributes = {
        "messaging.system": "tenure",
        "messaging.operation.type": "send",
        ...(queue !== undefined && { "messaging.destination.name": queue }),
        ...(count > 1 && { "messaging.batch.message_count": count }),
      };
      return tracer.startActiveSpan("tenure.push", { kind: SpanKind.PRODUCER, attributes }, async (span) => {
        try {
          return await send(traceparentOf(span));
        } catch (error) {
          failed(span, error);
          throw error;
        } finally {
          span.end();
        }
      });
    },
    run: async (ctx, handle) => {
      const pushed = contextOf(ctx.job.traceparent);
      const span = tracer.startSpan("tenure.run", { kind: SpanKind.CONSUMER, attributes: attributesOf(ctx) }, pushed);
      if (isSpanContextValid(span.spanContext())) runs.set(ctx, span.spanContext());
      const end = await context.with(trace.setSpan(pushed, span), () => handle(traceparentOf(span)));
      span.setAttribute("tenure.outcome", end.outcome);
      if (isFailure(end.outcome)) failed(span, end.error);
      span.end();
    },
    settle: async (settled, send) => {
      const attributes = {
        "messaging.system": "tenure",
        "messaging.operation.type": "settle",
        "messaging.batch.message_count": settled.length,
      };
      const links = settled.flatMap((ctx) => runs.get(ctx) ?? []).map((run) => ({ context: run }));
      // One run is the parent; several are links.
      const alone = settled.length === 1 ? links.pop() : undefined;
      const parent = alone ? trace.setSpanContext(ROOT_CONTEXT, alone.context) : ROOT_CONTEXT;
      const span = tracer.startSpan("tenure.settle", { kind: SpanKind.CLIENT, attributes, links }, parent);
      try {
        return await context.with(trace.setSpan(parent, span), send);
      } finally {
        span.end();
      }
    },
  };
}

function attributesOf({ job, attempt, fence }: Context): Attributes {
  return {
    "messaging.system": "tenure",
    "messaging.operation.type": "process",
    "messaging.destination.name": job.queue,
    "messaging.message.id": job.id,
    "tenure.kind": job.kind,
    "tenure.attempt": attempt,
    "tenure.fence": fence,
  };
}

/** Whether an outcome is an error; a handler that snoozes or gives its job back has chosen to. */
function isFailure(outcome: RunEnd["outcome"]): boolean {
  switch (outcome) {
    case "failed":
    case "lost":
      return true;
    case "succeeded":
    case "snoozed":
    case "released":
      return false;
  }
}

/** The name alone: a message may hold what a payload holds. */
function failed(span: Span, error: unknown): void {
  span.setStatus({ code: SpanStatusCode.ERROR, ...(error instanceof Error && { message: error.name }) });
}

/** The span in the form that a job carries; undefined if nothing is traced. */
function traceparentOf(span: Span): string | undefined {
  const own = span.spanContext();
  if (!isSpanContextValid(own)) return undefined;
  return `00-${own.traceId}-${own.spanId}-${own.traceFlags.toString(16).padStart(2, "0")}`;
}

/** The context of a push. The span that is current where a worker was started is no parent of its runs. */
function contextOf(traceparent: string | undefined): OtelContext {
  const [, traceId, spanId, flags] = traceparent?.split("-") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT;
  const span = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, span);
}
