//! Measures Tenure beside other queues on Redis. `tools/peers/run` calls it.

mod install;
mod machine;
mod options;
mod program;
mod results;
mod server;
mod systems;
mod table;
mod workloads;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use install::{Folders, Installed, Ready};
use options::{Form, Options};
use results::{Results, Row};
use server::Server;
use systems::{SYSTEMS, System};
use workloads::{Measure, ONCE, Size, WORKLOADS};

/// The failure of any step.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, Failed> {
    let options = Options::read()?;
    if options.help {
        println!("{}", options::HELP);
        return Ok(ExitCode::SUCCESS);
    }
    if options.list {
        for system in SYSTEMS {
            println!("{:<18} {}: {}", system.name, system.title, system.can.join(", "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let results = match &options.from {
        Some(file) => serde_json::from_slice(&fs::read(file)?)?,
        None => measure(&options)?,
    };
    match options.form {
        Form::Text => print!("{}", table::text(&results)),
        Form::Docs => print!("{}", table::docs(&results)),
        Form::Json => println!("{}", serde_json::to_string_pretty(&results)?),
    }
    let measured = results.rows.iter().any(|row| !row.figures.is_empty());
    Ok(if measured { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(options: &Options) -> Result<Results, Failed> {
    check(options)?;
    let home = PathBuf::from(std::env::var_os("TENURE_PEERS_HOME").ok_or("call tools/peers/run")?);
    let work = home.join(".work");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(work.join("target"), PathBuf::from);
    fs::create_dir_all(&work)?;
    let folders = Folders { home, work, target };
    let redis = server::find(&folders.work)?;
    let version = Server::start(&redis, options.aof)?.version()?;

    let mut installed = Installed::default();
    let mut rows = Vec::new();
    for system in SYSTEMS.iter().filter(|system| options.wants_system(system.name)) {
        let mut row = Row {
            name: system.name.to_owned(),
            title: system.title.to_owned(),
            note: system.note.to_owned(),
            is_on_redis: system.is_on_redis(),
            ..Row::default()
        };
        let ready = match installed.install(&folders, system) {
            Ok(ready) => {
                row.version = ready.version.clone();
                Some(ready)
            }
            Err(why) => {
                eprintln!("{}: skipped: {why}", system.name);
                row.skipped.push(why.to_string());
                None
            }
        };
        rows.push((system, ready, row));
    }

    let size = if options.quick { Size::QUICK } else { Size::FULL };
    let measure = Measure { redis: &redis, aof: options.aof, size };
    let busy_before = machine::busy_cores();
    for workload in WORKLOADS.iter().filter(|workload| options.wants(workload)) {
        let rounds = if ONCE.contains(workload) { 1 } else { options.rounds };
        for round in 1..=rounds {
            for (system, ready, row) in &mut rows {
                let Some(ready) = ready else { continue };
                one(&measure, workload, (round, rounds), system, ready, row);
            }
        }
    }
    let results = Results {
        date: machine::date(),
        machine: machine::describe(),
        busy_before,
        redis: version,
        aof: options.aof,
        node: machine::version("node"),
        rustc: machine::version("rustc"),
        quick: options.quick,
        rounds: options.rounds,
        rows: rows.into_iter().map(|(_, _, row)| row).collect(),
    };
    fs::write(folders.work.join("last.json"), serde_json::to_vec_pretty(&results)?)?;
    Ok(results)
}

/// Unknown names are reported, and not skipped.
fn check(options: &Options) -> Result<(), Failed> {
    let known = |name: &String| SYSTEMS.iter().any(|system| system.name == name);
    if let Some(name) = options.only.iter().find(|name| !known(name)) {
        return Err(format!("no system is called {name}; see --list").into());
    }
    let known = |name: &String| WORKLOADS.contains(&name.as_str());
    if let Some(name) = options.workloads.iter().find(|name| !known(name)) {
        return Err(format!("no workload is called {name}; see --help").into());
    }
    Ok(())
}

/// One measurement. After a failure it is not retried in later rounds.
fn one(
    measure: &Measure<'_>,
    workload: &str,
    (round, rounds): (usize, usize),
    system: &System,
    ready: &Ready,
    row: &mut Row,
) {
    let failed = |row: &Row| row.skipped.iter().any(|why| why.starts_with(workload));
    if !system.can.contains(&workload) || failed(row) {
        return;
    }
    eprintln!("{workload} {round}/{rounds}: {}", system.name);
    if let Err(why) = measure.run(workload, system, &ready.program, row) {
        eprintln!("  {why}");
        row.skipped.push(format!("{workload}: {why}"));
    }
}
