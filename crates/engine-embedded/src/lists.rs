//! Jobs that match a filter: listed newest first, or cancelled or retried together.
//!
//! Rows are looked at one after the other. A list looks at no more than 10,000 in one call, and
//! says where to go on; calls on many go on until they have enough, on a thread that delays nobody.

use rusqlite::{Connection, params};
use tenure_core::bounds::{LIST_SCAN_MAX, PAGE_BYTES_FULL};
use tenure_core::job::{JobState, JobView, shown_bytes};
use tenure_core::names::Namespace;
use tenure_core::requests::{BulkChange, DoneMany, JobFilter, ListJobs, Listed};
use tenure_engine::{CallError, Fault};
use tenure_machine::{Command, Done, Seq, StoredJob};

use crate::batch::Answer;
use crate::inbox::Ask;
use crate::rows::{self, JOBS, JobRow, STORED, is_damage, or_none};
use crate::shared::Shared;

/// A filter as rows are compared with it.
struct Sieve {
    filter: JobFilter,
    /// States as rows hold them; both of `ready` and `blocked` are `ready` there.
    states: Vec<i64>,
}

impl Sieve {
    fn new(filter: JobFilter) -> Self {
        let in_row = |state: &JobState| match state {
            JobState::Blocked => rows::state_number(JobState::Ready),
            state => rows::state_number(*state),
        };
        let states = filter.states.iter().map(in_row).collect();
        Sieve { filter, states }
    }

    /// Only failed and cancelled jobs are meant: these have an index of their own.
    fn is_unwell(&self) -> bool {
        let least = rows::state_number(JobState::Failed);
        !self.states.is_empty() && self.states.iter().all(|state| *state >= least)
    }

    /// Whether the row, with the columns of [`STORED`], matches.
    fn lets(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
        if !self.states.is_empty() && !self.states.contains(&row.get(3)?) {
            return Ok(false);
        }
        if let Some(queue) = &self.filter.queue
            && row.get_ref(rows::QUEUE)?.as_str()? != queue.as_str()
        {
            return Ok(false);
        }
        if let Some(kind) = &self.filter.kind
            && row.get_ref(2)?.as_str()? != kind
        {
            return Ok(false);
        }
        let Some((key, value)) = &self.filter.label else { return Ok(true) };
        Ok(rows::labels(row, 6)?.get(key) == Some(value))
    }

    /// Whether ready and blocked have to be told apart.
    fn tells_waiting_apart(&self) -> bool {
        let has = |state| self.filter.states.contains(&state);
        has(JobState::Ready) != has(JobState::Blocked)
    }

    /// Whether a waiting job in this state is meant.
    fn lets_waiting(&self, state: JobState) -> bool {
        self.filter.states.is_empty() || self.filter.states.contains(&state)
    }
}

/// What a look at rows found.
struct Looked<T> {
    found: Vec<T>,
    /// The last row that was looked at, unless there is none after it.
    last: Option<Seq>,
    /// It ended since what was found has as many bytes as a page may have.
    is_full: bool,
}

/// Looks at rows below `before`, newest first, until `max` match, `scan` were looked at, or what was
/// found fills a page: `take` says how many bytes each brings. A row that cannot be read is left out: the
/// others are shown.
fn look<T>(
    conn: &Connection,
    namespace: &Namespace,
    sieve: &Sieve,
    before: Seq,
    (max, scan): (usize, usize),
    mut take: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<Option<(T, usize)>>,
) -> rusqlite::Result<Looked<T>> {
    let unwell = if sieve.is_unwell() { "AND state >= 6" } else { "" };
    let sql = format!(
        "SELECT {STORED} FROM {JOBS}
         WHERE life.seq < ?1 AND ns = ?2 {unwell} ORDER BY life.seq DESC"
    );
    let mut all = conn.prepare_cached(&sql)?;
    let mut before = i64::try_from(before.get()).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    let mut last = None;
    let (mut looked, mut bytes) = (0, 0);
    loop {
        let mut rows = all.query(params![before, namespace.as_str()])?;
        let broken = loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(Looked { found, last: None, is_full: false }),
                Err(why) if is_damage(&why) => break last,
                Err(why) => return Err(why),
            };
            // There is a row after the last one that counts, so there is a next page.
            if found.len() == max || looked == scan || bytes >= PAGE_BYTES_FULL {
                return Ok(Looked { found, last, is_full: bytes >= PAGE_BYTES_FULL });
            }
            looked += 1;
            last = Some(rows::seq(row, 0)?);
            if or_none(sieve.lets(row))?.unwrap_or(false)
                && let Some((one, its)) = take(row)?
            {
                found.push(one);
                bytes += its;
            }
        };
        // Behind the row that cannot be read.
        let from = broken.map_or(before, rows::number_of);
        let mut next = conn.prepare_cached("SELECT max(seq) FROM life WHERE seq < ?1")?;
        let skipped: Option<i64> = or_none(next.query_row([from], |row| row.get(0)))?.flatten();
        let Some(skipped) = skipped else {
            return Ok(Looked { found, last: None, is_full: false });
        };
        (before, last) = (skipped, Some(rows::seq_of(skipped)));
    }
}

/// A page of jobs.
pub(crate) async fn list(
    shared: &Shared,
    namespace: &Namespace,
    list: ListJobs,
) -> Result<Listed<JobView>, CallError> {
    let mut before = list.page.row()?.map_or(Seq::MAX, Seq::new);
    let ListJobs { filter, page, full } = list;
    let mut left = LIST_SCAN_MAX;
    let mut items = Vec::new();
    loop {
        let sieve = Sieve::new(filter.clone());
        let ns = namespace.clone();
        let wanted = page.max - items.len();
        let (looked, sieve) = shared
            .read(move |conn| {
                let bounds = (wanted, left);
                let looked = look(conn, &ns, &sieve, before, bounds, |row| {
                    let Some(mut row) = rows::stored(row, full)? else { return Ok(None) };
                    let job = &mut row.job;
                    job.errors = rows::errors(conn, job.seq)?;
                    let texts = [&job.payload, &job.result, &job.progress].map(Option::as_ref);
                    let bytes = shown_bytes(texts, &job.errors, &job.labels);
                    Ok(Some((row, bytes)))
                })?;
                Ok((looked, sieve))
            })
            .await?;
        let Looked { found, last, is_full } = looked;
        let some = found.len();
        add(shared, namespace, &sieve, found, &mut items).await?;
        let Some(last) = last else {
            return Ok(Listed { items, next: None, partial: false });
        };
        // A page that is full and shows none at all, since each was in the other of ready and
        // blocked, goes on.
        if items.len() == page.max || is_full && !items.is_empty() {
            return Ok(Listed { items, next: Some(last.to_string()), partial: false });
        }
        // Rows that matched but were, at a closer look, in the other of ready and blocked are
        // counted as looked at, so that this ends.
        if some < wanted {
            return Ok(Listed { items, next: Some(last.to_string()), partial: true });
        }
        left = left.saturating_sub(some);
        if left == 0 {
            return Ok(Listed { items, next: Some(last.to_string()), partial: true });
        }
        before = last;
    }
}

/// Adds the views of rows; ready and blocked are told apart by the lines.
async fn add(
    shared: &Shared,
    namespace: &Namespace,
    sieve: &Sieve,
    found: Vec<JobRow>,
    items: &mut Vec<JobView>,
) -> Result<(), CallError> {
    let shown = |row| crate::show::shown_row(shared, namespace, row);
    let found: Vec<StoredJob> = found.into_iter().map(shown).collect();
    let waiting = found.iter().filter(|job| job.state == JobState::Ready).map(|job| job.seq);
    let mut states = states_of(shared, namespace, waiting.collect()).await?.into_iter();
    for job in found {
        let mut state = job.state;
        if state == JobState::Ready {
            // One that moved on since is shown as its row had it.
            if states.next() == Some(Some(JobState::Blocked)) {
                state = JobState::Blocked;
            }
            if sieve.tells_waiting_apart() && !sieve.lets_waiting(state) {
                continue;
            }
        }
        // What cannot be shown at all was noted.
        items.extend(job.view(state));
    }
    Ok(())
}

async fn states_of(
    shared: &Shared,
    namespace: &Namespace,
    seqs: Vec<Seq>,
) -> Result<Vec<Option<JobState>>, CallError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let ask = Ask::Command(Box::new(Command::StatesOf(seqs)));
    match shared.ask(namespace, ask).await? {
        Answer::Done(Done::States(states)) => Ok(states),
        _ => Err(Fault::Broken("states were asked for and not answered".to_owned()).into()),
    }
}

/// Cancels or retries up to `max` jobs that match.
pub(crate) async fn many(
    shared: &Shared,
    namespace: &Namespace,
    change: BulkChange,
    mut filter: JobFilter,
    max: usize,
) -> Result<DoneMany, CallError> {
    change.narrow(&mut filter);
    let mut done = 0u64;
    let mut before = Seq::MAX;
    while !filter.states.is_empty() {
        let sieve = Sieve::new(filter.clone());
        let ns = namespace.clone();
        let wanted = max - done as usize;
        let (looked, sieve) = shared
            .read(move |conn| {
                let bounds = (wanted, LIST_SCAN_MAX);
                let looked = look(conn, &ns, &sieve, before, bounds, |row| {
                    let read = || Ok((rows::seq(row, 0)?, rows::state_of(row.get(3)?)?));
                    Ok(or_none(read())?.map(|job| (job, 0)))
                })?;
                Ok((looked, sieve))
            })
            .await?;
        let mut seqs: Vec<Seq> = looked.found.iter().map(|(seq, _)| *seq).collect();
        if sieve.tells_waiting_apart() {
            let states = states_of(shared, namespace, seqs.clone()).await?;
            let is_meant = |state: &Option<JobState>| state.is_some_and(|s| sieve.lets_waiting(s));
            let kept = seqs.iter().zip(&states).filter(|(_, state)| is_meant(state));
            seqs = kept.map(|(seq, _)| *seq).collect();
        }
        if !seqs.is_empty() {
            let command = match change {
                BulkChange::Cancel => Command::CancelMany(seqs),
                BulkChange::Retry => Command::RetryMany(seqs),
            };
            match shared.ask(namespace, Ask::Command(Box::new(command))).await? {
                Answer::Done(Done::Many(n)) => done += n,
                _ => return Err(Fault::Broken("many were not answered".to_owned()).into()),
            }
        }
        let Some(last) = looked.last else { break };
        if done >= max as u64 {
            return Ok(DoneMany { done, more: true });
        }
        before = last;
    }
    Ok(DoneMany { done, more: false })
}
