// A Nest app whose handler takes a second, and notes what happens.
import "reflect-metadata";
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Injectable, Module, type OnModuleDestroy } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { TaskHandler, TenureModule } from "tenure/nest";

const note = (line: string) => appendFileSync(process.env["JOURNAL"] as string, `${line}\n`);

@Injectable()
class Database implements OnModuleDestroy {
  isOpen = true;
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
    note(`begins ${month}`);
    await sleep(1000);
    note(`ends ${this.database.isOpen}`);
    return this.database.isOpen;
  }
}
@Module({ imports: [DatabaseModule], providers: [Reports] })
class ReportsModule {}

@Module({ imports: [ReportsModule, TenureModule.forRoot({ worker: { drain: "10s" } })] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ["error", "warn"] });
app.enableShutdownHooks();
note("started");
