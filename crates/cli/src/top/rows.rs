//! The rows of each view: their texts, as wide as the terminal, the view that each opens, and its mark.

use tenure_console::output::clock::sentence;
use tenure_console::output::printable;
use tenure_console::output::prose::wrapped;
use tenure_console::output::table::{CUT, Table, when};
use tenure_console::standing::NamespaceReplies;
use tenure_core::attention::{AttentionSeverity, Finding, Subject, is_empty, is_full};
use tenure_core::count::grouped;
use tenure_core::time::Moment;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::top::asked::{Content, JobRow};
use crate::top::view::View;

/// Rows of each table of the overview; a filter shows more.
const ROWS: usize = 8;
const FILTERED_ROWS: usize = 50;

/// How a row is marked, beside its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    Plain,
    /// The head of a table.
    Head,
    /// Less important than the data: notes, and `…` before the first answer.
    Dim,
    /// Something to look at.
    Look,
    /// Something that is stuck.
    Stuck,
}

/// One line of the screen.
#[derive(Clone, Debug)]
pub struct ScreenRow {
    /// The thing that the row shows, the same after a refresh; `None` if the row cannot be selected.
    pub key: Option<String>,
    pub text: String,
    pub tone: Tone,
    /// The view that Enter opens.
    pub opens: Option<View>,
    /// What to do about it, shown in the last line while the row is selected.
    pub fix: Option<String>,
}

impl ScreenRow {
    fn of(text: impl Into<String>, tone: Tone) -> Self {
        ScreenRow { key: None, text: text.into(), tone, opens: None, fix: None }
    }
}

/// A row of a table whose columns do not have their widths yet.
struct TableRow {
    key: String,
    cells: Vec<String>,
    opens: Option<View>,
}

/// All rows of the content that have the text of the filter. `now` is when the content was requested.
pub fn of(
    content: Option<&Content>,
    findings: &[Finding],
    filter: &str,
    now: Moment,
    width: usize,
) -> Vec<ScreenRow> {
    match content {
        None => vec![ScreenRow::of("…", Tone::Dim)],
        Some(Content::Overview(replies)) => overview(replies, findings, filter, width),
        Some(Content::Jobs(jobs)) => of_jobs(jobs, filter, now, width),
        Some(Content::Explained(text)) => explained(text, width),
    }
}

fn overview(
    replies: &NamespaceReplies,
    findings: &[Finding],
    filter: &str,
    width: usize,
) -> Vec<ScreenRow> {
    let mut rows = attention(findings, filter, width);
    let mut add = |head: &[&str], numbers: &[&str], all: Vec<TableRow>, nothing: &str| {
        rows.push(ScreenRow::of("", Tone::Plain));
        rows.extend(table(head, numbers, all, nothing, filter, width));
    };
    add(
        &["QUEUE", "READY", "BLOCKED", "SCHEDULED", "RUNNING", "WORKERS", "OLDEST READY"],
        &["READY", "BLOCKED", "SCHEDULED", "RUNNING", "WORKERS"],
        queues(replies),
        "no queues",
    );
    add(
        &["LIMIT", "IN USE", "OF", "WAITING", "STATE"],
        &["IN USE", "OF", "WAITING"],
        limits(replies),
        "no limits",
    );
    add(
        &["POOL", "FREE", "IN USE", "COOLING", "BANNED", "WAITING"],
        &["FREE", "IN USE", "COOLING", "BANNED", "WAITING"],
        pools(replies),
        "no pools",
    );
    add(
        &["WORKER", "LEASES", "SEEN", "VERSION", "QUEUES"],
        &["LEASES"],
        workers(replies),
        "no worker has asked for a job within the last minute",
    );
    rows
}

/// Sentences are longer than cells, so these rows are no table; a sentence that does not fit is cut at its end.
fn attention(findings: &[Finding], filter: &str, width: usize) -> Vec<ScreenRow> {
    let row = |one: &Finding| {
        let text = printable(&format!("{:<5}  {}", one.severity.as_str(), sentence(&one.sentence)));
        ScreenRow {
            key: Some(format!("attention {} {}", one.subject, one.fix)),
            text: cut_end(&text, width),
            tone: match one.severity {
                AttentionSeverity::Stuck => Tone::Stuck,
                AttentionSeverity::Look => Tone::Look,
                AttentionSeverity::Note => Tone::Plain,
            },
            opens: match &one.subject {
                Subject::Queue(name) => Some(View::Queue(name.clone())),
                Subject::Limit(name) => Some(View::Limit(name.clone())),
                Subject::Pool(name) => Some(View::Pool(name.clone())),
                Subject::Schedule(_) | Subject::Schedules => None,
            },
            fix: Some(one.fix.clone()),
        }
    };
    let fits = |one: &&Finding| filter.is_empty() || one.sentence.contains(filter);
    let found = findings.iter().filter(fits).count();
    let most = if filter.is_empty() { ROWS } else { FILTERED_ROWS };
    let mut rows = vec![ScreenRow::of("ATTENTION", Tone::Head)];
    rows.extend(findings.iter().filter(fits).take(most).map(row));
    let nothing = "nothing needs attention";
    rows.extend(note(findings.len(), found, most, nothing, filter));
    rows
}

/// A text, cut at its end to this width.
fn cut_end(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    text.chars().take_while(fits).chain([CUT]).collect()
}

/// The note below a table that shows no rows, or not all of them.
fn note(all: usize, found: usize, most: usize, nothing: &str, filter: &str) -> Option<ScreenRow> {
    let text = match (all, found) {
        (0, _) => nothing.to_owned(),
        (_, 0) => format!("none of {} has '{filter}'", grouped(all as u64)),
        (_, found) if found > most => {
            format!("and {} more; / finds", grouped((found - most) as u64))
        }
        _ => return None,
    };
    Some(ScreenRow::of(printable(&text), Tone::Dim))
}

fn queues(replies: &NamespaceReplies) -> Vec<TableRow> {
    let mut queues: Vec<_> = replies.queues.items.iter().collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.counts.ready + queue.counts.blocked));
    let row = |queue: &&tenure_core::settings::QueueView| {
        let counts = &queue.counts;
        let mut oldest = queue.oldest_ready_at.map(|at| when(at, replies.now)).unwrap_or_default();
        if queue.paused {
            oldest = format!("paused {oldest}").trim_end().to_owned();
        }
        let numbers = [
            counts.ready,
            counts.blocked,
            counts.scheduled + counts.dependent,
            counts.running,
            queue.workers,
        ];
        let cells = std::iter::once(queue.name.to_string())
            .chain(numbers.map(grouped))
            .chain([oldest])
            .collect();
        TableRow {
            key: format!("queue {}", queue.name),
            cells,
            opens: Some(View::Queue(queue.name.clone())),
        }
    };
    queues.iter().map(row).collect()
}

fn limits(replies: &NamespaceReplies) -> Vec<TableRow> {
    let mut limits: Vec<_> = replies.limits.items.iter().collect();
    limits.sort_by_key(|limit| std::cmp::Reverse((limit.waiting, limit.in_use)));
    let row = |limit: &&tenure_core::settings::LimitView| {
        let state = match limit.settings.concurrency {
            Some(0) => "closed",
            _ if limit.paused_until.is_some_and(|until| until > replies.now) => "paused",
            _ if is_full(limit) => "full",
            _ => "",
        };
        let cells = vec![
            limit.name.to_string(),
            grouped(limit.in_use + limit.external),
            limit.settings.concurrency.map_or("-".to_owned(), |cap| grouped(u64::from(cap))),
            grouped(limit.waiting),
            state.to_owned(),
        ];
        TableRow {
            key: format!("limit {}", limit.name),
            cells,
            opens: Some(View::Limit(limit.name.clone())),
        }
    };
    limits.iter().map(row).collect()
}

fn pools(replies: &NamespaceReplies) -> Vec<TableRow> {
    let mut pools: Vec<_> = replies.pools.items.iter().collect();
    pools.sort_by_key(|pool| (!is_empty(pool), std::cmp::Reverse(pool.waiting)));
    let row = |pool: &&tenure_core::settings::PoolView| {
        let numbers = [pool.available, pool.leased, pool.cooling, pool.banned, pool.waiting];
        TableRow {
            key: format!("pool {}", pool.name),
            cells: std::iter::once(pool.name.to_string()).chain(numbers.map(grouped)).collect(),
            opens: Some(View::Pool(pool.name.clone())),
        }
    };
    pools.iter().map(row).collect()
}

fn workers(replies: &NamespaceReplies) -> Vec<TableRow> {
    let mut workers: Vec<_> = replies.workers.items.iter().collect();
    workers.sort_by_key(|worker| std::cmp::Reverse(worker.leases));
    let row = |worker: &&tenure_core::requests::WorkerView| {
        let place = match (&worker.host, worker.pid) {
            (Some(host), Some(pid)) => format!("{host}:{pid}"),
            _ => tenure::ids::holder_shown(worker.id.as_str()).to_owned(),
        };
        let queues: Vec<&str> = worker.queues.iter().map(|queue| queue.as_str()).collect();
        let cells = vec![
            place,
            grouped(worker.leases),
            when(worker.last_seen_at, replies.now),
            worker.version.clone().unwrap_or_default(),
            queues.join(" "),
        ];
        TableRow {
            key: format!("worker {}", worker.id),
            cells,
            opens: Some(View::Worker(worker.id.clone())),
        }
    };
    workers.iter().map(row).collect()
}

fn of_jobs(jobs: &[JobRow], filter: &str, now: Moment, width: usize) -> Vec<ScreenRow> {
    let row = |(at, job): (usize, &JobRow)| {
        let name = job.job.as_ref().map_or("(a caller)".to_owned(), ToString::to_string);
        let holder = job.holder.as_deref().map(tenure::ids::holder_shown).unwrap_or_default();
        let since = job.since.map(|at| when(at, now)).unwrap_or_default();
        let key = match &job.job {
            Some(job) => format!("job {job} {}", job_part(holder)),
            None => format!("caller {at}"),
        };
        TableRow {
            key,
            cells: vec![name, job.state.clone(), holder.to_owned(), since],
            opens: job.job.clone().map(View::Job),
        }
    };
    let rows = jobs.iter().enumerate().map(row).collect();
    let head = ["JOB", "STATE", "HOLDER", "SINCE"];
    let mut text = table(&head, &[], rows, "nothing", filter, width);
    if filter.is_empty() && jobs.len() >= FILTERED_ROWS {
        text.push(ScreenRow::of("these are the first", Tone::Dim));
    }
    text
}

/// A job may be held and stand in a line at the same time.
fn job_part(holder: &str) -> &'static str {
    if holder.is_empty() { "waits" } else { "held" }
}

fn explained(text: &str, width: usize) -> Vec<ScreenRow> {
    // Each line can be selected, which is how a long explanation is scrolled.
    let fitted = |(at, line): (usize, &str)| {
        let words = line.trim_start();
        let margin = &line[..line.len() - words.len()];
        wrapped(&printable(words), width.saturating_sub(margin.len() + 2), "  ")
            .lines()
            .enumerate()
            .map(|(part, line)| ScreenRow {
                key: (part == 0).then(|| format!("line {at}")),
                ..ScreenRow::of(format!("{margin}{line}"), Tone::Plain)
            })
            .collect::<Vec<_>>()
    };
    text.lines().enumerate().flat_map(fitted).collect()
}

/// The head, the rows that the filter lets through, and how many more there are.
fn table(
    head: &[&str],
    numbers: &[&str],
    all: Vec<TableRow>,
    nothing: &str,
    filter: &str,
    width: usize,
) -> Vec<ScreenRow> {
    let (count, most) = (all.len(), if filter.is_empty() { ROWS } else { FILTERED_ROWS });
    let fits =
        |row: &TableRow| filter.is_empty() || row.cells.iter().any(|cell| cell.contains(filter));
    let matching: Vec<TableRow> = all.into_iter().filter(fits).collect();
    let found = matching.len();
    // A view of its own shows its whole list.
    let most = if head.first() == Some(&"JOB") { usize::MAX } else { most };
    let shown: Vec<TableRow> = matching.into_iter().take(most).collect();
    let mut made = Table::new(head).numbers(numbers);
    for row in &shown {
        made.row(row.cells.iter().cloned());
    }
    let text = made.render_within(Some(width), head[0]);
    let mut lines = text.lines().map(str::to_owned);
    let mut rows = vec![ScreenRow::of(lines.next().unwrap_or_default(), Tone::Head)];
    rows.extend(shown.into_iter().zip(lines).map(|(row, text)| ScreenRow {
        key: Some(row.key),
        text,
        tone: Tone::Plain,
        opens: row.opens,
        fix: None,
    }));
    rows.extend(note(count, found, most, nothing, filter));
    rows
}
