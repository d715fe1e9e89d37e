//! The workloads: their steps, their order, and the figures of each.

use std::path::Path;
use std::time::Duration;

use crate::Failed;
use crate::program::Program;
use crate::results::Row;
use crate::server::{Server, Used};
use crate::systems::System;

/// The order of the measurements; the first part in rounds, one system after the other.
pub const WORKLOADS: &[&str] = &[
    "bulk",
    "single",
    "lifecycle",
    "keyed",
    "three",
    "blocked",
    "noop",
    "io",
    "latency",
    "delayed",
    "quiet",
];
/// One round is enough for these: they take long, and their percentiles are of many jobs.
pub const ONCE: &[&str] = &["latency", "delayed", "quiet"];

const LONG: Duration = Duration::from_secs(300);

/// The sizes of the workloads.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Jobs of the workload `bulk`.
    pub bulk: u64,
    /// Jobs over keys, and the number of keys.
    pub keyed: (u64, u64),
    /// Seconds of `latency` and of `lifecycle`.
    pub seconds: (u64, u64),
    /// Jobs of the workload `delayed`.
    pub delayed: u64,
    /// Jobs of Python workers: no-ops, and jobs that wait for 5 ms.
    pub python: (u64, u64),
}

impl Size {
    /// The sizes for the table.
    pub const FULL: Size = Size {
        bulk: 100_000,
        keyed: (20_000, 1_000),
        seconds: (10, 5),
        delayed: 2_000,
        python: (20_000, 4_000),
    };
    /// Small sizes, to check that everything works.
    pub const QUICK: Size = Size {
        bulk: 20_000,
        keyed: (4_000, 200),
        seconds: (3, 2),
        delayed: 400,
        python: (4_000, 800),
    };
}

/// The setting in which workloads are measured.
pub struct Measure<'a> {
    pub redis: &'a Path,
    pub aof: bool,
    pub size: Size,
}

fn options(list: &[(&str, u64)]) -> Vec<String> {
    list.iter().flat_map(|(name, value)| [format!("--{name}"), value.to_string()]).collect()
}

/// Processor time of the server in front between two readings, if there is one.
fn served(before: &Used, after: &Used) -> Option<f64> {
    Some(after.front_cpu_s? - before.front_cpu_s?)
}

impl Measure<'_> {
    fn server(&self, program: &Program) -> Result<Server, Failed> {
        let mut server = Server::start(self.redis, self.aof)?;
        if let Some((front, executable)) = &program.front {
            server.put_in_front(*front, executable)?;
        }
        Ok(server)
    }

    /// One measurement of a workload, on a server of its own.
    pub fn run(
        &self,
        workload: &str,
        system: &System,
        program: &Program,
        row: &mut Row,
    ) -> Result<(), Failed> {
        match workload {
            "bulk" => self.bulk(system, program, row),
            "lifecycle" => self.lifecycle(program, row),
            "single" => self.single(program, row),
            "keyed" => self.keyed("keyed", system, program, row),
            "three" => self.keyed("three", system, program, row),
            "blocked" => self.blocked(program, row),
            "latency" => self.latency(system, program, row),
            "delayed" => self.delayed(system, program, row),
            "noop" => self.python("noop", "push", self.size.python.0, system, program, row),
            "io" => self.python("io", "push-io", self.size.python.1, system, program, row),
            "quiet" => self.quiet(system, program, row),
            other => Err(format!("no workload is called {other}").into()),
        }
    }

    /// Jobs are pushed in bulk, then one worker process handles them all.
    fn bulk(&self, system: &System, program: &Program, row: &mut Row) -> Result<(), Failed> {
        let jobs = self.size.bulk;
        let part = |n: u64| 100_000.0 / n as f64;
        let mut server = self.server(program)?;
        let before = server.used()?;
        let pushed = program.run("push", &server, &options(&[("jobs", jobs)]), LONG)?;
        let full = server.used()?;
        let pushing = served(&before, &full);
        let mut per_s = jobs as f64 / pushed.need("seconds")?;
        if !system.push_too.is_empty() {
            let mut list = options(&[("jobs", jobs)]);
            list.extend(["--way".to_owned(), system.push_too.to_owned()]);
            let too = program.run("push", &self.server(program)?, &list, LONG)?;
            per_s = per_s.max(jobs as f64 / too.need("seconds")?);
        }
        row.add("push_per_s", per_s);
        row.add_of_redis(
            "bytes_per_job",
            full.memory.saturating_sub(before.memory) as f64 / jobs as f64,
        );
        let push_cpu = (full.cpu_s - before.cpu_s) * part(jobs);
        row.add_of_redis("redis_push_cpu_s", push_cpu);
        row.add_some("client_push_cpu_s", pushed.get("cpu_s").map(|cpu| cpu * part(jobs)));

        let drained = system.drain_max.min(jobs);
        if drained < jobs {
            server = self.server(program)?;
            program.run("push", &server, &options(&[("jobs", drained)]), LONG)?;
        }
        let full = server.used()?;
        let list = [("jobs", drained), ("concurrency", system.concurrency)];
        let worked = program.run("drain", &server, &options(&list), LONG)?;
        let empty = server.used()?;
        if worked.gave_up() {
            return Err(format!(
                "drain: only {} of {drained} jobs were handled",
                worked.need("jobs")?
            )
            .into());
        }
        if worked.get("left").is_some_and(|left| left > 0.0) {
            return Err(format!("drain: {} jobs are left", worked.need("left")?).into());
        }
        if worked.get("settled").is_some_and(|settled| settled < drained as f64) {
            return Err(format!("drain: only {} jobs were settled", worked.need("settled")?).into());
        }
        row.add_of_redis("longest_call_ms", server.longest_ms()? as f64);
        row.add("drain_per_s", drained as f64 / worked.need("seconds")?);
        let drain_cpu = (empty.cpu_s - full.cpu_s) * part(drained);
        row.add_of_redis("redis_drain_cpu_s", drain_cpu);
        row.add_of_redis("redis_cpu_s", push_cpu + drain_cpu);
        row.add_some("serve_push_cpu_s", pushing.map(|cpu| cpu * part(jobs)));
        let serving = served(&full, &empty);
        row.add_some("serve_drain_cpu_s", serving.map(|cpu| cpu * part(drained)));
        row.add_some("worker_cpu_s", worked.get("cpu_s").map(|cpu| cpu * part(drained)));
        row.add_some("worker_rss_mb", worked.get("rss_bytes").map(|bytes| bytes / 1e6));
        Ok(())
    }

    /// Push, lease and settle in batches of 100, 16 calls in flight, over a backlog.
    fn lifecycle(&self, program: &Program, row: &mut Row) -> Result<(), Failed> {
        let mut server = self.server(program)?;
        program.run("push", &server, &options(&[("jobs", self.size.bulk)]), LONG)?;
        let before = server.used()?;
        let list = [("batch", 100), ("flight", 16), ("seconds", self.size.seconds.1)];
        let lived = program.run("lifecycle", &server, &options(&list), LONG)?;
        let after = server.used()?;
        let jobs = lived.need("jobs")?;
        row.add_of_redis("longest_call_ms", server.longest_ms()? as f64);
        row.add("lifecycle_per_s", jobs / lived.need("seconds")?);
        row.add_of_redis(
            "lifecycle_cpu_s",
            (after.cpu_s - before.cpu_s) * 100_000.0 / jobs.max(1.0),
        );
        Ok(())
    }

    /// Each job is pushed by a call of its own, by one caller and by 64.
    fn single(&self, program: &Program, row: &mut Row) -> Result<(), Failed> {
        let jobs = self.size.bulk / 10;
        for (callers, flight) in [("one", 1), ("64", 64)] {
            let mut server = self.server(program)?;
            let before = server.used()?;
            let list = options(&[("jobs", jobs), ("flight", flight)]);
            let pushed = program.run("push-single", &server, &list, LONG)?;
            let after = server.used()?;
            row.add(&format!("single_{callers}_per_s"), jobs as f64 / pushed.need("seconds")?);
            let cpu = (after.cpu_s - before.cpu_s) * 100_000.0 / jobs as f64;
            row.add_of_redis(&format!("single_{callers}_cpu_s"), cpu);
        }
        Ok(())
    }

    /// Many keys, with one job at a time per key; `three`: each job also needs a shared permit and a resource.
    fn keyed(
        &self,
        name: &str,
        system: &System,
        program: &Program,
        row: &mut Row,
    ) -> Result<(), Failed> {
        let (jobs, keys) = self.size.keyed;
        let mut server = self.server(program)?;
        let list = [("jobs", jobs), ("keys", keys), ("concurrency", system.concurrency)];
        let before = server.used()?;
        program.run(&format!("push-{name}"), &server, &options(&list), LONG)?;
        let full = server.used()?;
        let worked = program.run("drain-keyed", &server, &options(&list), LONG)?;
        if worked.gave_up() {
            return Err(format!(
                "{name}: only {} of {jobs} jobs were handled",
                worked.need("jobs")?
            )
            .into());
        }
        row.add_of_redis("longest_call_ms", server.longest_ms()? as f64);
        row.add(&format!("{name}_per_s"), jobs as f64 / worked.need("seconds")?);
        row.add(&format!("{name}_overlaps"), worked.get("overlaps").unwrap_or(0.0));
        row.add_of_redis(
            &format!("{name}_bytes_per_job"),
            full.memory.saturating_sub(before.memory) as f64 / jobs as f64,
        );
        Ok(())
    }

    /// A thousand free jobs, alone and behind a thousand blocked ones.
    fn blocked(&self, program: &Program, row: &mut Row) -> Result<(), Failed> {
        let list = options(&[("jobs", 1_000)]);
        for (name, behind) in [("alone_s", false), ("behind_s", true)] {
            let server = self.server(program)?;
            if behind {
                program.run("push-blocked", &server, &list, LONG)?;
            }
            program.run("push-free", &server, &list, LONG)?;
            let worked = program.run("drain-free", &server, &list, LONG)?;
            if worked.gave_up() {
                let jobs = worked.need("jobs")?;
                return Err(format!("blocked: only {jobs} of 1000 free jobs were handled").into());
            }
            row.add(name, worked.need("seconds")?);
        }
        Ok(())
    }

    /// A Python worker handles jobs that are there already.
    fn python(
        &self,
        name: &str,
        push: &str,
        jobs: u64,
        system: &System,
        program: &Program,
        row: &mut Row,
    ) -> Result<(), Failed> {
        let jobs = jobs.min(system.drain_max);
        let mut server = self.server(program)?;
        program.run(push, &server, &options(&[("jobs", jobs)]), LONG)?;
        let full = server.used()?;
        let list = options(&[("jobs", jobs), ("concurrency", system.concurrency)]);
        let worked = program.run("drain", &server, &list, LONG)?;
        let empty = server.used()?;
        if worked.gave_up() || worked.need("left")? > 0.0 {
            let (done, left) = (worked.need("jobs")?, worked.need("left")?);
            return Err(
                format!("{name}: {done} of {jobs} jobs were handled, {left} are left").into()
            );
        }
        let part = 1_000.0 / jobs as f64;
        row.add(&format!("{name}_per_s"), jobs as f64 / worked.need("seconds")?);
        row.add(&format!("{name}_redis_cpu_s"), (empty.cpu_s - full.cpu_s) * part);
        row.add_some(&format!("{name}_cpu_s"), worked.get("cpu_s").map(|cpu| cpu * part));
        Ok(())
    }

    /// 50 pushes a second, and a Python worker without other work.
    fn quiet(&self, system: &System, program: &Program, row: &mut Row) -> Result<(), Failed> {
        let jobs = 50 * self.size.seconds.0;
        let server = self.server(program)?;
        let list = options(&[("jobs", jobs), ("rate", 50), ("concurrency", system.concurrency)]);
        let mut worker = program.start("listen", &server, &list, LONG)?;
        worker.ready()?;
        program.run("steady", &server, &list, LONG)?;
        self.late(worker.figures()?, jobs, "quiet", row)
    }

    /// 500 pushes a second, and a worker without other work.
    fn latency(&self, system: &System, program: &Program, row: &mut Row) -> Result<(), Failed> {
        let jobs = 500 * self.size.seconds.0;
        let mut server = self.server(program)?;
        let mut list = options(&[("jobs", jobs), ("rate", 500), ("concurrency", 100)]);
        if system.one_program {
            list.extend(options(&[("one-program", 1)]));
        }
        let mut worker = program.start("listen", &server, &list, LONG)?;
        worker.ready()?;
        if !system.one_program {
            // Its first call is under way.
            std::thread::sleep(Duration::from_millis(500));
        }
        let before = server.used()?;
        if !system.one_program {
            program.run("steady", &server, &list, LONG)?;
        }
        let figures = worker.figures()?;
        let after = server.used()?;
        let part = 100_000.0 / jobs as f64;
        row.add_of_redis("latency_cpu_s", (after.cpu_s - before.cpu_s) * part);
        let serving = served(&before, &after);
        row.add_some("latency_serve_cpu_s", serving.map(|cpu| cpu * part));
        self.late(figures, jobs, "latency", row)
    }

    /// Jobs that are due over ten seconds, and a worker without other work.
    fn delayed(&self, system: &System, program: &Program, row: &mut Row) -> Result<(), Failed> {
        let jobs = self.size.delayed.min(system.delayed_max);
        let spread = if self.size.delayed < 2_000 { 2 } else { 10 };
        let server = self.server(program)?;
        let list = options(&[("jobs", jobs), ("spread", spread), ("concurrency", 100)]);
        let mut worker = program.start("listen", &server, &list, LONG)?;
        worker.ready()?;
        std::thread::sleep(Duration::from_millis(500));
        program.run("later", &server, &list, LONG)?;
        self.late(worker.figures()?, jobs, "delayed", row)
    }

    fn late(
        &self,
        figures: crate::program::Figures,
        jobs: u64,
        name: &str,
        row: &mut Row,
    ) -> Result<(), Failed> {
        if figures.gave_up() {
            return Err(
                format!("{name}: only {} of {jobs} jobs came", figures.need("jobs")?).into()
            );
        }
        for part in ["min", "p50", "p99", "max"] {
            row.add(&format!("{name}_{part}_ms"), figures.need(&format!("{part}_ms"))?);
        }
        Ok(())
    }
}
