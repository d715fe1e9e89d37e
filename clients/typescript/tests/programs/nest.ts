// A Nest app whose handler takes a second, and notes what happens.
import "reflect-metadata";
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Injectable, Module, type OnApplicationBootstrap, type OnModuleDestroy } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { TaskHandler, TenureModule } from "tenure/nest";

const note = (line: string) => appendFileSync(process.env["JOURNAL"] as string, `${line}\n`);

@Injectable()
class Database implements OnApplicationBootstrap, OnModuleDestroy {
  isOpen = false;
  async onApplicationBootstrap() {
    await sleep(500);
    this.isOpen = true;
  }
  onModuleDestroy() {
    this.isOpen = false;
    note("closed");
  }
}
@Module({ providers: [Database], exports: [Database] })
class DatabaseModule {}

@Injectable()
class Reports {
  constructor(private readonly database: Database) {}

  @TaskHandler("reports")
  async render(month: string): Promise<boolean> {
    note(`begins ${month} ${this.database.isOpen}`);
    await sleep(1000);
    note(`ends ${this.database.isOpen}`);
    return this.database.isOpen;
  }
}

@Injectable()
class AtRoot implements OnModuleDestroy {
  onModuleDestroy() {
    note("closed");
  }
}
@Module({
  imports: [TenureModule.forRoot({ worker: { drain: "10s" } }), DatabaseModule],
  providers: [Reports, AtRoot],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ["error", "warn"] });
app.enableShutdownHooks();
