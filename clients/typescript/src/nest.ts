// A module of NestJS: a client, tasks whose handlers are methods of providers, and a worker for the life of the app.
//
// Its classes are made without decorators, which TypeScript alone compiles; Nest gets them from factories.

import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Inject,
  Logger,
  Module,
  SetMetadata,
} from "@nestjs/common";
import {
  ContextIdFactory,
  DiscoveryModule,
  DiscoveryService,
  MetadataScanner,
  ModuleRef,
  ModulesContainer,
} from "@nestjs/core";
import {
  type BatchItem,
  type BatchOptions,
  type ClientOptions,
  type Context,
  type Logger as Lines,
  type Task,
  type TaskOptions,
  Tenure,
  type Worker,
  type WorkerOptions,
  WrongOption,
} from "./index.js";

/** The options of the module. */
export interface TenureModuleOptions {
  /**
   * The client, or the options of one that ends with the app and logs to Nest's `Logger`. A client that is given is
   * not closed. Default a client that the variables TENURE_URL and so on describe.
   */
  client?: Tenure | ClientOptions;
  /**
   * Options of the worker, or `false` for none, in a process that only pushes. The worker starts when the app has
   * started, if there is a `@TaskHandler`, and logs to Nest's `Logger`. No signal ends it but the end of the app, which
   * lets jobs end within its `drain` (25 s); for signals call `app.enableShutdownHooks()`.
   */
  worker?: Omit<WorkerOptions, "signals"> | false;
}

/** A decorator of methods that are such functions. */
export type HandlerDecorator<F> = <M extends F>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<M>,
) => void;

const HANDLER = Symbol("tenure:handler");
interface Marked {
  readonly name: string;
  readonly options: object;
}

/**
 * Makes a method of a provider or controller the handler of a task with a schema: it takes the payload, and the
 * `Context` of the run. Its provider may be request-scoped: each run then has its own, whose `REQUEST` is the `Context`.
 */
export function TaskHandler<In, Out, RIn, ROut = RIn>(
  name: string,
  options: TaskOptions<In, Out, RIn, ROut> & {
    schema: NonNullable<TaskOptions<In, Out, RIn, ROut>["schema"]>;
    batch?: undefined;
  },
): HandlerDecorator<(payload: Out, ctx: Context) => RIn | Promise<RIn>>;
/** Makes a method the handler of a task with a schema, which takes several jobs at once. */
export function TaskHandler<In, Out, RIn, ROut = RIn>(
  name: string,
  options: TaskOptions<In, Out, RIn, ROut> & {
    schema: NonNullable<TaskOptions<In, Out, RIn, ROut>["schema"]>;
    batch: BatchOptions;
  },
): HandlerDecorator<(items: readonly BatchItem<Out>[]) => readonly (RIn | Error)[] | Promise<readonly (RIn | Error)[]>>;
/** Makes a method the handler of a task without a schema: the payload is what the method says, unchecked. */
export function TaskHandler<P, R, ROut = R>(
  name: string,
  options?: TaskOptions<P, P, R, ROut> & { schema?: undefined; batch?: BatchOptions },
): HandlerDecorator<(given: never, ctx: Context) => unknown>;
export function TaskHandler(name: string, options: object = {}): HandlerDecorator<never> {
  return SetMetadata(HANDLER, { name, options } satisfies Marked);
}

/** Injects the client. So does the type `Tenure` of a parameter. */
export function InjectTenure(): ParameterDecorator & PropertyDecorator {
  return Inject(Tenure);
}

/** Injects the task of this name, for pushes. Its module imports `TenureModule.forFeature(name)`. */
export function InjectTask(name: string): ParameterDecorator & PropertyDecorator {
  return Inject(getTaskToken(name));
}

/** The token by which `InjectTask` asks for a task, for tests and factories. */
export function getTaskToken(name: string): string {
  return `tenure:task:${name}`;
}

type AnyTask = Task<never, unknown>;
type Wrapper = ReturnType<DiscoveryService["getProviders"]>[number];

/** The tasks of an app, one for each `@TaskHandler`. */
class Tasks {
  readonly #found = new Map<string, { task: AnyTask; wrapper: Wrapper }>();
  readonly #read = new Set<Wrapper>();

  constructor(
    readonly tenure: Tenure,
    readonly discovery: DiscoveryService,
    readonly scanner: MetadataScanner,
    readonly moduleRef: ModuleRef,
  ) {}

  all(): AnyTask[] {
    // Most classes are known before their instances; the class of a factory's provider is known afterwards.
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      const isMade = wrapper.isFactory || wrapper.metatype === null;
      const prototype = isMade
        ? wrapper.instance && Object.getPrototypeOf(wrapper.instance)
        : wrapper.metatype?.prototype;
      if (!prototype || wrapper.isAlias || this.#read.has(wrapper)) continue;
      this.#read.add(wrapper);
      for (const method of this.scanner.getAllMethodNames(prototype)) {
        const marked: Marked | undefined = Reflect.getMetadata(HANDLER, prototype[method]);
        if (marked) this.#add(marked, wrapper, method);
      }
    }
    return [...this.#found.values()].map(({ task }) => task);
  }

  get(name: string): AnyTask {
    this.all();
    const found = this.#found.get(name);
    if (found) return found.task;
    throw new WrongOption("wrong_option", `no provider of this app has a method with @TaskHandler("${name}")`, {
      hint: `those that are there: ${[...this.#found.keys()].map((each) => `"${each}"`).join(", ") || "none"}`,
    });
  }

  #add({ name, options }: Marked, wrapper: Wrapper, method: string): void {
    const other = this.#found.get(name)?.wrapper;
    if (other) {
      throw new WrongOption(
        "wrong_option",
        `two providers have a method with @TaskHandler("${name}"): ${String(other.name)} and ${String(wrapper.name)}`,
        { hint: "if it is one class in two modules, let one module provide and export it" },
      );
    }
    const handler = async (given: never, ctx: Context) => {
      const provider = await this.#instance(wrapper, ctx ?? given);
      return await provider[method](given, ctx);
    };
    this.#found.set(name, { task: this.tenure.task(name, options, handler), wrapper });
  }

  /** The provider of a run. `run` is its context, or the items of its batch. */
  // biome-ignore lint/suspicious/noExplicitAny: a class of the program
  #instance(wrapper: Wrapper, run: unknown): any {
    if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) return wrapper.instance;
    const id = ContextIdFactory.create();
    this.moduleRef.registerRequestByContextId(run, id);
    return this.moduleRef.resolve(wrapper.token, id, { strict: false });
  }
}

/** The worker of an app; any provider may inject it. */
export class TenureWorker {
  /** Undefined before the app has started, and without tasks. Its `done` rejects if the server refused it. */
  worker: Worker | undefined;
  readonly #tasks: Tasks;
  readonly #options: TenureModuleOptions;

  /** @internal */
  constructor(tasks: Tasks, options: TenureModuleOptions) {
    this.#tasks = tasks;
    this.#options = options;
  }

  /** @internal */
  start(): void {
    const tasks = this.#tasks.all();
    const { worker } = this.#options;
    if (worker === false || tasks.length === 0) return;
    this.worker = this.#tasks.tenure.work(tasks, { logger: linesOf(new Logger("Tenure")), ...worker, signals: false });
  }

  /** @internal */
  async stop(): Promise<void> {
    // Its error is in the log, and must not keep the app from closing.
    await this.worker?.stop().catch(() => {});
  }

  /** @internal */
  close(): void {
    const { tenure } = this.#tasks;
    if (tenure !== this.#options.client) tenure.close();
  }
}

function linesOf(logger: Logger): Lines {
  return {
    info: (line) => logger.log(line),
    warn: (line) => logger.warn(line),
    error: (line) => logger.error(line),
  };
}

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<TenureModuleOptions>({
  moduleName: "Tenure",
})
  .setClassMethodName("forRoot")
  .setFactoryMethodName("createTenureOptions")
  .build();

/** The client and the tasks, for all modules. */
class TenureCoreModule extends ConfigurableModuleClass {}
Module({
  imports: [DiscoveryModule],
  providers: [
    {
      provide: Tenure,
      useFactory: ({ client }: TenureModuleOptions) =>
        client instanceof Tenure ? client : new Tenure({ logger: linesOf(new Logger("Tenure")), ...client }),
      inject: [MODULE_OPTIONS_TOKEN],
    },
    {
      provide: Tasks,
      useFactory: (...parts: ConstructorParameters<typeof Tasks>) => new Tasks(...parts),
      inject: [Tenure, DiscoveryService, MetadataScanner, ModuleRef],
    },
    {
      provide: TenureWorker,
      useFactory: (tasks: Tasks, options: TenureModuleOptions) => new TenureWorker(tasks, options),
      inject: [Tasks, MODULE_OPTIONS_TOKEN],
    },
  ],
  exports: [Tenure, Tasks, TenureWorker],
})(TenureCoreModule);

class TenureFeatureModule {}
Module({})(TenureFeatureModule);

/** The options of `TenureModule.forRootAsync`: `useFactory` with `inject`, `useClass` or `useExisting`. */
export type TenureModuleAsyncOptions = ConfigurableModuleAsyncOptions<TenureModuleOptions, "createTenureOptions">;

/** Gives an app a client, tasks and a worker. */
// biome-ignore lint/complexity/noStaticOnlyClass: Nest names modules by their classes
export class TenureModule {
  /** The client and the worker of the app; its root module imports it once. The client is there for all modules. */
  static forRoot(options: TenureModuleOptions = {}): DynamicModule {
    return root(TenureCoreModule.forRoot(options));
  }

  /** The same with options that need other providers, such as a `ConfigService`. */
  static forRootAsync(options: TenureModuleAsyncOptions): DynamicModule {
    return root(TenureCoreModule.forRootAsync(options));
  }

  /**
   * Makes tasks injectable in the module that imports it.
   *
   * @throws `WrongOption` when the app starts, if no provider has such a `@TaskHandler`.
   */
  static forFeature(...names: string[]): DynamicModule {
    const providers = names.map((name) => ({
      provide: getTaskToken(name),
      useFactory: (tasks: Tasks) => tasks.get(name),
      inject: [Tasks],
    }));
    return { module: TenureFeatureModule, providers, exports: providers };
  }
}
Module({})(TenureModule);

function root(core: DynamicModule): DynamicModule {
  return {
    module: TenureModule,
    imports: [{ ...core, global: true }],
    providers: [
      {
        provide: Symbol("tenure:hooks"),
        useFactory: (worker: TenureWorker, modules: ModulesContainer) => {
          // Nest ends modules by their distance from the root, the nearest first, and starts them the other way round.
          // The worker ends before all that its handlers may use.
          for (const each of modules.values()) if (each.metatype === TenureModule) each.distance = 0;
          return {
            onApplicationBootstrap: () => worker.start(),
            onModuleDestroy: () => worker.stop(),
            onApplicationShutdown: () => worker.close(),
          };
        },
        inject: [TenureWorker, ModulesContainer],
      },
    ],
  };
}
