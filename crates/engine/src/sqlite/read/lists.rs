//! Jobs that match a filter, listed newest first.
//!
//! Looks at rows one after the other, on a thread that delays nobody. One call looks at no more than 10,000, and
//! says where to go on. Calls on many jobs look in the same way, see `many`.

use rusqlite::{Connection, params};
use tenure_core::bounds::{LIST_SCAN_MAX, PAGE_BYTES_FULL};
use tenure_core::job::{JobState, JobView, shown_bytes};
use tenure_core::names::{FlowName, Namespace};
use tenure_core::requests::{JobFilter, ListJobs, Listed};
use tenure_engine_api::{CallError, Fault};
use tenure_machine::{Command, Done, Seq, Stands, StoredJob, lets_origin_of_life, seen_in_life};

use crate::batch::Answer;
use crate::inbox::Ask;
use crate::seal::{ContentPlace, Seal};
use crate::shared::Shared;
use crate::sqlite::rows::{self, JOBS, JobRow, STORED, is_damage, or_none};

/// A filter in the form in which rows are compared with it.
pub(crate) struct Sieve {
    filter: JobFilter,
    /// Opens the errors that the filter compares.
    seal: Seal,
    /// States in the form of rows; `ready` and `blocked` are both `ready` there.
    states: Vec<i64>,
}

impl Sieve {
    pub(crate) fn new(filter: JobFilter, seal: &Seal) -> Self {
        let in_row = |state: &JobState| match state {
            JobState::Blocked => rows::state_number(JobState::Ready),
            state => rows::state_number(*state),
        };
        let states = filter.states.iter().map(in_row).collect();
        Sieve { filter, seal: seal.clone(), states }
    }

    /// True if the filter selects only failed and cancelled jobs: these have an index of their own.
    fn is_unwell(&self) -> bool {
        let least = rows::state_number(JobState::Failed);
        !self.states.is_empty() && self.states.iter().all(|state| *state >= least)
    }

    /// True if the row, with the columns of [`STORED`], matches.
    fn lets(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
        if !self.states.is_empty() && !self.states.contains(&row.get(3)?) {
            return Ok(false);
        }
        if let Some(queue) = &self.filter.queue
            && row.get_ref(rows::QUEUE)?.as_str()? != queue.as_str()
        {
            return Ok(false);
        }
        if self.filter.kind.is_some() && !self.filter.lets_kind(row.get_ref(2)?.as_str()?) {
            return Ok(false);
        }
        if self.filter.error.is_some() {
            let place = ContentPlace::Error(rows::seq(row, 0)?);
            let error = row.get_ref(rows::ERROR)?.as_str_or_null()?;
            // One that does not open matches nothing.
            let error = error.and_then(|error| self.seal.open(&place, error).ok());
            if !self.filter.lets_error(error.as_deref()) {
                return Ok(false);
            }
        }
        if self.filter.asks_for_end() {
            let life = seen_in_life(row.get_ref(rows::LIFE)?.as_blob()?);
            if !self.filter.lets_end(life.and_then(|life| life.finished_at)) {
                return Ok(false);
            }
        }
        if !lets_origin_of_life(&self.filter, row.get_ref(rows::LIFE)?.as_blob()?) {
            return Ok(false);
        }
        Ok(self.filter.label.is_none() || self.filter.lets_labels(&rows::labels(row, 6)?))
    }

    /// True if ready and blocked jobs must be distinguished.
    fn tells_waiting_apart(&self) -> bool {
        let has = |state| self.filter.states.contains(&state);
        has(JobState::Ready) != has(JobState::Blocked)
    }

    /// True if the filter selects a waiting job in this state.
    fn lets_waiting(&self, state: JobState) -> bool {
        self.filter.states.is_empty() || self.filter.states.contains(&state)
    }
}

/// The result of a look at rows.
pub(crate) struct Looked<T> {
    pub found: Vec<T>,
    /// The last row that was looked at; `None` if no row follows.
    pub last: Option<Seq>,
    /// Number of rows that were looked at.
    pub looked: usize,
    /// The look ended because its findings fill a page.
    is_full: bool,
}

/// The direction in which rows are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LookFrom {
    /// Those below this row number, newest first.
    Below(Seq),
    /// Those above it, oldest first.
    Above(Seq),
}

impl LookFrom {
    /// SQL parts: the comparison of a row number, the order, and the aggregate that finds the next readable number.
    fn sql(self) -> (&'static str, &'static str, &'static str) {
        match self {
            LookFrom::Below(_) => ("<", "DESC", "max"),
            LookFrom::Above(_) => (">", "ASC", "min"),
        }
    }

    pub(crate) fn seq(self) -> Seq {
        match self {
            LookFrom::Below(seq) | LookFrom::Above(seq) => seq,
        }
    }

    /// The same direction, from this row on.
    pub(crate) fn in_front_of(self, seq: Seq) -> LookFrom {
        match self {
            LookFrom::Below(_) => LookFrom::Below(seq.next()),
            LookFrom::Above(_) => LookFrom::Above(Seq::new(seq.get().saturating_sub(1))),
        }
    }

    /// The same direction, from beyond this row.
    pub(crate) fn at(self, seq: Seq) -> LookFrom {
        match self {
            LookFrom::Below(_) => LookFrom::Below(seq),
            LookFrom::Above(_) => LookFrom::Above(seq),
        }
    }
}

/// Looks at rows until `max` match, `scan` were looked at, or the findings fill a page: `take` returns the bytes that
/// each adds. An unreadable row is left out: the others are shown.
pub(crate) fn look<T>(
    conn: &Connection,
    namespace: &Namespace,
    sieve: &Sieve,
    from: LookFrom,
    (max, scan): (usize, usize),
    mut take: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<Option<(T, usize)>>,
) -> rusqlite::Result<Looked<T>> {
    let unwell = if sieve.is_unwell() { "AND state >= 6" } else { "" };
    let (compares, order, next) = from.sql();
    let sql = match &sieve.filter.flow {
        // Jobs of a flow have an index of their own.
        Some(_) => format!(
            "SELECT {STORED} FROM job INDEXED BY job_flow CROSS JOIN life ON life.seq = job.seq
             WHERE job.seq {compares} ?1 AND ns = ?2 AND flow = ?3 {unwell}
             ORDER BY job.seq {order}"
        ),
        None => format!(
            "SELECT {STORED} FROM {JOBS}
             WHERE life.seq {compares} ?1 AND ns = ?2 AND ?3 IS NULL {unwell}
             ORDER BY life.seq {order}"
        ),
    };
    let flow = sieve.filter.flow.as_ref().map(FlowName::as_str);
    let mut all = conn.prepare_cached(&sql)?;
    let mut before = i64::try_from(from.seq().get()).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    let mut last = None;
    let (mut looked, mut bytes) = (0, 0);
    loop {
        let mut rows = all.query(params![before, namespace.as_str(), flow])?;
        let broken = loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(Looked { found, last: None, looked, is_full: false }),
                Err(why) if is_damage(&why) => break last,
                Err(why) => return Err(why),
            };
            // A row follows the last one that counts, so there is a next page.
            if found.len() == max || looked == scan || bytes >= PAGE_BYTES_FULL {
                let is_full = bytes >= PAGE_BYTES_FULL;
                return Ok(Looked { found, last, looked, is_full });
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
        // Continues behind the unreadable row.
        let behind = broken.map_or(before, rows::number_of);
        let sql = format!("SELECT {next}(seq) FROM life WHERE seq {compares} ?1");
        let mut skip = conn.prepare_cached(&sql)?;
        let skipped: Option<i64> = or_none(skip.query_row([behind], |row| row.get(0)))?.flatten();
        let Some(skipped) = skipped else {
            return Ok(Looked { found, last: None, looked, is_full: false });
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
        let sieve = Sieve::new(filter.clone(), &shared.seal);
        let (ns, seal) = (namespace.clone(), shared.seal.clone());
        let wanted = page.max - items.len();
        let (looked, sieve) = shared
            .read(move |conn| {
                let bounds = (wanted, left);
                let looked = look(conn, &ns, &sieve, LookFrom::Below(before), bounds, |row| {
                    let Some(mut row) = rows::stored(row, full)? else { return Ok(None) };
                    row.job.errors = rows::errors(conn, row.job.seq)?;
                    let row = row.opened(&seal);
                    let job = &row.job;
                    let texts = [&job.payload, &job.result, &job.progress].map(Option::as_ref);
                    let bytes = shown_bytes(texts, &job.errors, &job.labels);
                    Ok(Some((row, bytes)))
                })?;
                Ok((looked, sieve))
            })
            .await?;
        let Looked { found, last, is_full, .. } = looked;
        let some = found.len();
        add(shared, namespace, &sieve, found, &mut items).await?;
        let Some(last) = last else {
            return Ok(Listed { items, next: None, partial: false });
        };
        // A full page without items goes on: each of its jobs was in the other state of ready and
        // blocked.
        if items.len() == page.max || is_full && !items.is_empty() {
            return Ok(Listed { items, next: Some(last.to_string()), partial: false });
        }
        // Rows that matched, and then turned out to be in the other state of ready and blocked,
        // count as looked at, so that this ends.
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

/// Adds the views of rows; the wait queues distinguish ready from blocked.
async fn add(
    shared: &Shared,
    namespace: &Namespace,
    sieve: &Sieve,
    found: Vec<JobRow>,
    items: &mut Vec<JobView>,
) -> Result<(), CallError> {
    let shown = |row: JobRow| row.noted(&shared.damage, namespace);
    let found: Vec<StoredJob> = found.into_iter().map(shown).collect();
    let waits = |job: &&StoredJob| matches!(job.state, JobState::Ready | JobState::Dependent);
    let waiting = found.iter().filter(waits).map(|job| job.seq);
    let mut known = stands_of(shared, namespace, waiting.collect()).await?.into_iter();
    for job in found {
        let stands = if waits(&&job) { known.next().flatten() } else { None };
        let waits_in_line = job.state == JobState::Ready;
        // A job that cannot be shown at all was already noted.
        let Some(view) = job.view(stands.unwrap_or_default()) else { continue };
        if !waits_in_line || !sieve.tells_waiting_apart() || sieve.lets_waiting(view.state) {
            items.push(view);
        }
    }
    Ok(())
}

/// The standing of these jobs; `None` for a job that does not wait.
pub(crate) async fn stands_of(
    shared: &Shared,
    namespace: &Namespace,
    seqs: Vec<Seq>,
) -> Result<Vec<Option<Stands>>, CallError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let ask = Ask::Command(Box::new(Command::StatesOf(seqs)));
    match shared.ask(namespace, ask).await? {
        Answer::Done(Done::States(states)) => Ok(states),
        _ => Err(Fault::Broken("states were asked for and not answered".to_owned()).into()),
    }
}
