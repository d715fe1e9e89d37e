//! Prints results as tables: for a terminal, and for the documentation.

use crate::results::{Results, Row};

struct Table {
    title: &'static str,
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

const NONE: &str = "–";

/// A rate in few digits: the third is mostly noise.
fn rate(row: &Row, name: &str) -> String {
    let short = |value: f64| match value {
        v if v >= 9_950.0 => format!("{:.0}k", v / 1e3),
        v if v >= 1_000.0 => format!("{:.1}k", v / 1e3),
        v => format!("{v:.0}"),
    };
    match row.spread(name) {
        Some((low, middle, high)) if high > low => {
            format!("{} [{}-{}]", short(middle), short(low), short(high))
        }
        Some((_, middle, _)) => short(middle),
        None => NONE.to_owned(),
    }
}

fn number(row: &Row, name: &str, digits: usize) -> String {
    row.middle(name).map_or_else(|| NONE.to_owned(), |value| format!("{value:.digits$}"))
}

fn parts(row: &Row, names: &[String]) -> String {
    let short = |value: f64| match value.abs() {
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    let parts: Option<Vec<String>> = names.iter().map(|name| row.middle(name).map(short)).collect();
    parts.map_or_else(|| NONE.to_owned(), |parts| parts.join(" / "))
}

fn late(row: &Row, what: &str) -> String {
    parts(row, &["p50", "p99", "max"].map(|part| format!("{what}_{part}_ms")))
}

fn tables(results: &Results) -> Vec<Table> {
    let has = |row: &&Row, name: &str| row.figures.contains_key(name);
    let name = |row: &Row| format!("{} {}", row.title, row.version).trim_end().to_owned();
    // A row for each system that has one of these figures: its name, then its cells.
    let rows = |names: &[&str], cells: &dyn Fn(&Row) -> Vec<String>| -> Vec<Vec<String>> {
        let of = results.rows.iter().filter(|row| names.iter().any(|name| has(row, name)));
        of.map(|row| [vec![name(row)], cells(row)].concat()).collect()
    };
    let mut tables = vec![
        Table {
            title: "Throughput and cost",
            head: vec![
                "system",
                "bulk push, jobs/s",
                "drain, jobs/s",
                "Redis CPU, s per 100,000 (push + drain)",
                "client CPU, s per 100,000 (push + drain)",
                "bytes per waiting job",
                "worker RSS, MB",
            ],
            rows: rows(&["push_per_s"], &|row| {
                vec![
                    rate(row, "push_per_s"),
                    rate(row, "drain_per_s"),
                    format!(
                        "{} + {}",
                        number(row, "redis_push_cpu_s", 2),
                        number(row, "redis_drain_cpu_s", 2)
                    ),
                    format!(
                        "{} + {}",
                        number(row, "client_push_cpu_s", 2),
                        number(row, "worker_cpu_s", 2)
                    ),
                    number(row, "bytes_per_job", 0),
                    number(row, "worker_rss_mb", 0),
                ]
            }),
        },
        Table {
            title: "One job a push",
            head: vec![
                "system",
                "one caller, jobs/s",
                "64 callers, jobs/s",
                "Redis CPU, s per 100,000 (one caller, 64 callers)",
            ],
            rows: rows(&["single_one_per_s"], &|row| {
                vec![
                    rate(row, "single_one_per_s"),
                    rate(row, "single_64_per_s"),
                    format!(
                        "{}, {}",
                        number(row, "single_one_cpu_s", 1),
                        number(row, "single_64_cpu_s", 1)
                    ),
                ]
            }),
        },
        Table {
            title: "Latency and punctuality, ms (p50 / p99 / max)",
            head: vec![
                "system",
                "push to handler at 500 jobs/s",
                "Redis CPU meanwhile, s per 100,000",
                "lateness of delayed jobs",
            ],
            rows: rows(&["latency_p50_ms", "delayed_p50_ms"], &|row| {
                vec![late(row, "latency"), number(row, "latency_cpu_s", 1), late(row, "delayed")]
            }),
        },
        Table {
            title: "Limits",
            head: vec![
                "system",
                "jobs/s over keys of one at a time",
                "overlaps",
                "bytes per waiting job",
                "jobs/s with three needs",
                "1,000 free jobs alone, s",
                "behind 1,000 blocked ones, s",
            ],
            rows: rows(&["keyed_per_s", "alone_s"], &|row| {
                vec![
                    rate(row, "keyed_per_s"),
                    number(row, "keyed_overlaps", 0),
                    number(row, "keyed_bytes_per_job", 0),
                    rate(row, "three_per_s"),
                    number(row, "alone_s", 3),
                    number(row, "behind_s", 3),
                ]
            }),
        },
        Table {
            title: "Python workers",
            head: vec![
                "system",
                "no-ops, jobs/s",
                "waits of 5 ms, jobs/s",
                "worker CPU, s per 1,000 no-ops",
                "Redis CPU, s per 1,000 no-ops",
                "push to handler at 50 jobs/s, ms (p50 / p99 / max)",
            ],
            rows: rows(&["noop_per_s", "io_per_s", "quiet_p50_ms"], &|row| {
                vec![
                    rate(row, "noop_per_s"),
                    rate(row, "io_per_s"),
                    number(row, "noop_cpu_s", 2),
                    number(row, "noop_redis_cpu_s", 2),
                    late(row, "quiet"),
                ]
            }),
        },
        Table {
            title: "Longest call",
            head: vec!["system", "ms of Redis (bulk, lifecycle, keyed, three)"],
            rows: rows(&["longest_call_ms"], &|row| {
                let longest = row.spread("longest_call_ms").map(|(_, _, longest)| longest);
                vec![longest.map_or_else(|| NONE.to_owned(), |ms| format!("{ms:.0}"))]
            }),
        },
        Table {
            title: "Push, lease and settle at batch 100, 16 calls in flight, over a backlog",
            head: vec!["system", "lifecycles/s", "Redis CPU, s per 100,000"],
            rows: rows(&["lifecycle_per_s"], &|row| {
                vec![rate(row, "lifecycle_per_s"), number(row, "lifecycle_cpu_s", 2)]
            }),
        },
    ];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn about(results: &Results) -> Vec<String> {
    let mut lines = vec![
        format!("{}; {}.", results.date, results.machine),
        format!(
            "Redis {}, {}; Node {}; {}. {} round(s){}; medians, [min-max].",
            results.redis,
            if results.aof { "appendonly, everysec" } else { "no persistence" },
            results.node,
            results.rustc,
            results.rounds,
            if results.quick { ", quick: a fifth of the jobs" } else { "" },
        ),
    ];
    if results.busy_before >= 0.1 {
        lines.push(format!(
            "The machine was shared: others kept {:.1} cores busy before the run began. Read these \
             figures side by side, not by themselves.",
            results.busy_before
        ));
    }
    lines
}

fn remarks(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &results.rows {
        if !row.note.is_empty() {
            lines.push(format!("{}: {}", row.title, row.note));
        }
        for skipped in &row.skipped {
            lines.push(format!("{}: not measured: {skipped}", row.title));
        }
    }
    lines
}

/// Markdown, as `docs/benchmarks.md` has it between its markers.
pub fn docs(results: &Results) -> String {
    let mut text = String::new();
    for line in about(results) {
        text.push_str(&format!("{line}\n"));
    }
    for table in tables(results) {
        text.push_str(&format!("\n### {}\n\n", table.title));
        text.push_str(&format!("| {} |\n", table.head.join(" | ")));
        text.push_str(&format!("|{}\n", " --- |".repeat(table.head.len())));
        for row in table.rows {
            text.push_str(&format!("| {} |\n", row.join(" | ")));
        }
    }
    text.push('\n');
    for line in remarks(results) {
        text.push_str(&format!("- {line}\n"));
    }
    text
}

/// The tables for a terminal, turned where there are many figures.
pub fn text(results: &Results) -> String {
    let mut text = about(results).join("\n");
    text.push('\n');
    for table in tables(results) {
        text.push_str(&format!("\n{}\n", table.title));
        // A header above a row of figures would be too wide: one figure per line, one column per
        // system.
        let names: Vec<String> = table
            .rows
            .iter()
            .map(|row| row.first().cloned().unwrap_or_default().replace('`', ""))
            .collect();
        let left = table.head.iter().map(|head| head.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        for (line, head) in table.head.iter().enumerate() {
            text.push_str(&format!("  {head:<left$}"));
            for ((row, width), name) in table.rows.iter().zip(&widths).zip(&names) {
                let cell = if line == 0 { name } else { &row[line] };
                text.push_str(&format!("  {cell:>width$}"));
            }
            text.push('\n');
        }
    }
    text.push('\n');
    for line in remarks(results) {
        text.push_str(&format!("{line}\n"));
    }
    text
}
