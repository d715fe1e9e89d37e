//! Writes rows with SQL: a batch is one transaction.
//!
//! It writes the given rows and reads only the number of a job's errors. The common steps
//! of a job's life (granted, ended) touch only the small row of its life, and no more columns of
//! it, and so no more indexes, than they must.

use rusqlite::{CachedStatement, Connection, params};
use tenure_core::bounds::ERRORS_KEPT;
use tenure_core::job::{JobError, JobState};
use tenure_core::names::FlowName;
use tenure_core::secret::Json;
use tenure_core::trace::TraceParent;
use tenure_journal::{BadEntry, JournalEntry, Position};
use tenure_machine::rows::{Class, DataKey, JobChange, Kind, RowKey, Rows};
use tenure_machine::{Changes, Seq, child_key};

use crate::bodies::Bodies;
use crate::journal::changes_body;
use crate::sqlite::rows::{labels_text, moment_number, number_of, outcome_number, state_number};
use crate::sqlite::sums::{JobSum, JobText, LifeSum, data_sum, error_sum, row_sum};
use crate::sqlite::write::commit::{self, Numbers};
use crate::sqlite::write::streams::StreamWriter;
use crate::sqlite::write::written::{Written, changes_life};

/// The class of an end as a row holds it.
pub(crate) fn class_number(class: Class) -> i64 {
    match class {
        Class::Failed => 0,
        Class::Ended => 1,
    }
}

/// Reasons why entries of a journal were not written. Nothing of them was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("entry {number} of the journal cannot be applied: {why}")]
    Entry { number: u64, why: BadEntry },
    #[error(transparent)]
    Store(#[from] rusqlite::Error),
}

/// The statements of one connection.
pub(crate) struct Writer<'c> {
    /// The numbers of the last commit.
    numbers: Numbers,
    streams: StreamWriter<'c>,
    begin: CachedStatement<'c>,
    commit: CachedStatement<'c>,
    rollback: CachedStatement<'c>,
    insert_job: CachedStatement<'c>,
    insert_life: CachedStatement<'c>,
    live: CachedStatement<'c>,
    end: CachedStatement<'c>,
    change_job: CachedStatement<'c>,
    change_life: CachedStatement<'c>,
    revive: CachedStatement<'c>,
    relive: CachedStatement<'c>,
    keep: CachedStatement<'c>,
    delete_children: CachedStatement<'c>,
    delete_job: CachedStatement<'c>,
    delete_life: CachedStatement<'c>,
    last_error: CachedStatement<'c>,
    add_error: CachedStatement<'c>,
    cut_errors: CachedStatement<'c>,
    delete_errors: CachedStatement<'c>,
    put_row: CachedStatement<'c>,
    delete_row: CachedStatement<'c>,
    put_data: CachedStatement<'c>,
    delete_data: CachedStatement<'c>,
    put_fact: CachedStatement<'c>,
}

impl<'c> Writer<'c> {
    /// `numbers` are those of the store.
    pub(crate) fn new(
        conn: &'c Connection,
        numbers: Numbers,
        events_bytes: u64,
    ) -> rusqlite::Result<Self> {
        let sql = |text: &str| conn.prepare_cached(text);
        Ok(Writer {
            numbers,
            streams: StreamWriter::new(conn, events_bytes)?,
            begin: sql("BEGIN IMMEDIATE")?,
            commit: sql("COMMIT")?,
            rollback: sql("ROLLBACK")?,
            insert_job: sql(
                "INSERT INTO job(seq, id, queue, kind, shape, labels, sum, payload_sum, payload, flow,
                                 trace)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?,
            insert_life: sql(
                "INSERT INTO life(seq, ns, state, until, class, bytes, life, sum, error, error_sum,
                                  progress, progress_sum, result, result_sum)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?,
            live: sql("UPDATE life SET state = ?2, life = ?3, sum = ?4 WHERE seq = ?1")?,
            end: sql("UPDATE life SET state = ?2, life = ?3, until = ?4, class = ?5, bytes = ?6,
                                result = ?7, error = iif(?8, ?9, error), sum = ?10,
                                result_sum = ?11, error_sum = iif(?8, ?12, error_sum)
                 WHERE seq = ?1")?,
            // A damaged row stays damaged: a new checksum would make it look intact.
            change_job: sql("UPDATE job SET kind = coalesce(?2, kind),
                                payload = coalesce(?3, payload), labels = iif(?4, ?5, labels),
                                shape = coalesce(?6, shape), trace = iif(?8, ?9, trace),
                                payload_sum = coalesce(?7, payload_sum),
                                sum = iif(sum = row_sum('job', seq, (SELECT ns FROM life
                                                            WHERE life.seq = job.seq),
                                                        id, queue, kind, shape, labels),
                                          row_sum('job', seq, (SELECT ns FROM life
                                                      WHERE life.seq = job.seq),
                                                  id, queue, coalesce(?2, kind),
                                                  coalesce(?6, shape), iif(?4, ?5, labels)),
                                          sum)
                 WHERE seq = ?1")?,
            change_life: sql("UPDATE life SET error = iif(?2, ?3, error),
                                progress = iif(?4, ?5, progress),
                                error_sum = iif(?2, ?6, error_sum),
                                progress_sum = iif(?4, ?7, progress_sum)
                 WHERE seq = ?1")?,
            relive: sql("UPDATE life SET life = ?2,
                                sum = row_sum('life', seq, state, until, class, bytes, ?2)
                 WHERE seq = ?1")?,
            revive: sql("UPDATE life SET until = NULL, class = NULL, bytes = NULL, result = NULL,
                                result_sum = NULL
                 WHERE seq = ?1")?,
            keep: sql("UPDATE life SET until = ?2, bytes = ?3,
                                sum = row_sum('life', seq, state, ?2, class, ?3, life)
                 WHERE seq = ?1 AND until IS NOT NULL")?,
            delete_children: sql("DELETE FROM row
                 WHERE ns = ?1 AND kind = ?2 AND key BETWEEN ?3 AND ?4")?,
            delete_job: sql("DELETE FROM job WHERE seq = ?1")?,
            delete_life: sql("DELETE FROM life WHERE seq = ?1")?,
            last_error: sql("SELECT coalesce(max(n), 0) FROM job_error WHERE seq = ?1")?,
            add_error: sql("INSERT INTO job_error(seq, n, attempt, at, error, lost, sum)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")?,
            cut_errors: sql("DELETE FROM job_error WHERE seq = ?1 AND n <= ?2")?,
            delete_errors: sql("DELETE FROM job_error WHERE seq = ?1")?,
            put_row: sql("INSERT INTO row(ns, kind, key, value, sum) VALUES(?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET value = excluded.value, sum = excluded.sum")?,
            delete_row: sql("DELETE FROM row WHERE ns = ?1 AND kind = ?2 AND key = ?3")?,
            put_data: sql(
                "INSERT INTO resource_data(ns, pool, id, data, sum) VALUES(?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET data = excluded.data, sum = excluded.sum",
            )?,
            delete_data: sql("DELETE FROM resource_data WHERE ns = ?1 AND pool = ?2 AND id = ?3")?,
            put_fact: sql("INSERT INTO store(key, value) VALUES(?1, ?2)
                 ON CONFLICT DO UPDATE SET value = excluded.value")?,
        })
    }

    /// The numbers of the last commit.
    pub(crate) fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Sets the bytes that the events of a namespace may take, from the next batch on.
    pub(crate) fn keep_events(&mut self, bytes: u64) {
        self.streams.keep(bytes);
    }

    /// Writes all batches in one transaction, or nothing. The checksum of its entry in the journal is written with each
    /// batch. After an error the rows may be durable or not, unless it says that there is no room: then
    /// nothing was written, and the same rows may be written again.
    pub(crate) fn write(&mut self, all: &[(&Changes, Option<u64>)]) -> rusqlite::Result<()> {
        let next = |before: Numbers, (changes, entry): &(&Changes, Option<u64>)| {
            before.next(changes.last_seq, *entry)
        };
        let numbers = all.iter().fold(self.numbers, next);
        self.in_one_step(numbers, |writer| {
            all.iter().try_for_each(|(changes, _)| writer.write_changes(changes))
        })
    }

    /// Writes the entries of a journal that follow the store's last one, all in one transaction. Entries that were
    /// applied before are skipped, so that the same ones may be applied again. Keeps the bodies of jobs that wait then.
    pub(crate) fn apply(
        &mut self,
        entries: &[JournalEntry],
        bodies: &Bodies,
    ) -> Result<(), ApplyError> {
        let mut numbers = self.numbers;
        let mut all = Vec::with_capacity(entries.len());
        for entry in entries {
            let Position { number, sum } = entry.position();
            if number < numbers.commit || entry.position() == numbers.position() {
                continue;
            }
            let bad = |why| ApplyError::Entry { number, why };
            if number == numbers.commit {
                return Err(bad(BadEntry::OtherPast { before: number }));
            }
            entry.follows(numbers.position()).map_err(bad)?;
            let (body, format) = changes_body(entry).map_err(bad)?;
            let changes = Changes::decode(body);
            let changes = changes.ok_or(bad(BadEntry::Body { format }))?;
            numbers = numbers.next(changes.last_seq, Some(sum));
            all.push(changes);
        }
        if all.is_empty() {
            return Ok(());
        }
        let write =
            |writer: &mut Self| all.iter().try_for_each(|changes| writer.write_changes(changes));
        self.in_one_step(numbers, write)?;
        for changes in all {
            Written::of(&changes.rows).put_bodies(bodies);
        }
        Ok(())
    }

    /// Writes the rows of a snapshot into a store that has none of them yet, and then has these numbers.
    pub(crate) fn write_restored(
        &mut self,
        parts: &[Changes],
        numbers: Numbers,
    ) -> rusqlite::Result<()> {
        let write =
            |writer: &mut Self| parts.iter().try_for_each(|changes| writer.write_changes(changes));
        self.in_one_step(numbers, write)
    }

    fn in_one_step(
        &mut self,
        numbers: Numbers,
        write: impl FnOnce(&mut Self) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        self.begin.execute([])?;
        let done = write(self).and_then(|()| {
            self.put_fact.execute([commit::KEY, &numbers.text()])?;
            self.commit.execute([]).map(drop)
        });
        match done {
            Ok(()) => self.numbers = numbers,
            // The transaction may already be rolled back; the first error is the one that matters.
            Err(_) => drop(self.rollback.execute([])),
        }
        done
    }

    fn write_changes(&mut self, changes: &Changes) -> rusqlite::Result<()> {
        self.write_rows(&changes.rows)?;
        self.streams.write(&changes.events)
    }

    fn write_rows(&mut self, rows: &Rows) -> rusqlite::Result<()> {
        let Rows { jobs, errors, other, childless, data } = rows;
        for (seq, error) in errors {
            if !jobs.get(seq).is_some_and(|change| change.deleted) {
                self.write_error(*seq, error)?;
            }
        }
        for (seq, change) in jobs {
            self.write_job(*seq, change)?;
        }
        for (key, value) in other {
            self.write_row(key, value.as_deref())?;
        }
        for (namespace, parent) in childless {
            let (first, last) = (child_key(*parent, Seq::new(0)), child_key(*parent, Seq::MAX));
            let kind = Kind::Edge.as_str();
            self.delete_children.execute([namespace.as_str(), kind, &first, &last])?;
        }
        for (key, value) in data {
            self.write_data(key, value.as_ref())?;
        }
        Ok(())
    }

    fn write_job(&mut self, seq: Seq, change: &JobChange) -> rusqlite::Result<()> {
        let number = number_of(seq);
        if change.deleted {
            if change.new.is_none() {
                self.delete_job.execute([number])?;
                self.delete_life.execute([number])?;
                self.delete_errors.execute([number])?;
            }
            return Ok(());
        }
        if change.new.is_some() {
            return self.write_new(seq, change);
        }
        let job = change.patch.is_some() || change.shape.is_some();
        if job {
            self.change_job(number, change)?;
        }
        if changes_life(change) {
            self.change_life(number, change)?;
        }
        if change.revived {
            self.revive.execute([number])?;
        }
        if let Some(kept) = &change.kept {
            let (until, bytes) = (moment_number(kept.until), i64::from(kept.bytes));
            self.keep.execute(params![number, until, bytes])?;
        }
        let Some(life) = &change.life else { return Ok(()) };
        let Some(state) = change.state else {
            self.relive.execute(params![number, life])?;
            return Ok(());
        };
        let state_in_row = state_number(state);
        let lives = LifeSum {
            seq: number,
            state: state_in_row,
            until: None,
            class: None,
            bytes: None,
            life,
        };
        match &change.end {
            Some(end) => {
                let class = class_number(Class::of(state));
                let until = moment_number(end.until);
                let error = change.error.as_ref();
                let (error_text, result) =
                    (error.and_then(Option::as_deref), end.result.as_ref().map(Json::text));
                let ended = LifeSum {
                    until: Some(until),
                    class: Some(class),
                    bytes: Some(i64::from(end.bytes)),
                    ..lives
                };
                self.end.execute(params![
                    number,
                    state_in_row,
                    life,
                    until,
                    class,
                    end.bytes,
                    result,
                    error.is_some(),
                    error_text,
                    ended.sum(),
                    text_sum(JobText::Result, number, result),
                    text_sum(JobText::Error, number, error_text),
                ])?;
            }
            None => {
                self.live.execute(params![number, state_in_row, life, lives.sum()])?;
            }
        }
        Ok(())
    }

    fn write_new(&mut self, seq: Seq, change: &JobChange) -> rusqlite::Result<()> {
        let JobChange { new, queue, flow, state, shape, life, end, error, progress, .. } = change;
        let (Some(new), Some(queue), Some(shape)) = (new, queue, shape) else { return Ok(()) };
        let (namespace, id, content) = &**new;
        let state = state.unwrap_or(JobState::Ready);
        let (error, progress) = (error.as_ref(), progress.as_ref());
        let (error, progress) = (error.and_then(Option::as_ref), progress.and_then(Option::as_ref));
        let number = number_of(seq);
        let (labels, payload) = (labels_text(&content.labels), content.payload.text());
        let job = JobSum {
            seq: number,
            namespace: namespace.as_str(),
            id: id.as_str(),
            queue: queue.as_str(),
            kind: &content.kind,
            shape,
            labels: labels.as_deref(),
        };
        self.insert_job.execute(params![
            number,
            job.id,
            job.queue,
            job.kind,
            job.shape,
            job.labels,
            job.sum(),
            JobText::Payload.sum(number, payload.as_bytes()),
            payload,
            flow.as_ref().map(FlowName::as_str),
            content.traceparent.as_ref().map(TraceParent::as_str),
        ])?;
        let ended = end.as_ref();
        let life = life.as_deref().unwrap_or_default();
        let lives = LifeSum {
            seq: number,
            state: state_number(state),
            until: ended.map(|end| moment_number(end.until)),
            class: ended.map(|_| class_number(Class::of(state))),
            bytes: ended.map(|end| i64::from(end.bytes)),
            life,
        };
        let result = ended.and_then(|end| end.result.as_ref()).map(Json::text);
        let progress_text = progress.map(Json::text);
        self.insert_life.execute(params![
            number,
            job.namespace,
            lives.state,
            lives.until,
            lives.class,
            lives.bytes,
            lives.life,
            lives.sum(),
            error,
            text_sum(JobText::Error, number, error.map(String::as_str)),
            progress_text,
            text_sum(JobText::Progress, number, progress_text),
            result,
            text_sum(JobText::Result, number, result),
        ])?;
        Ok(())
    }

    fn change_job(&mut self, number: i64, change: &JobChange) -> rusqlite::Result<()> {
        let patch = change.patch.as_deref();
        let labels = patch.and_then(|patch| patch.labels.as_ref());
        let payload = patch.and_then(|patch| patch.payload.as_ref()).map(Json::text);
        let trace = patch.and_then(|patch| patch.traceparent.as_ref());
        self.change_job.execute(params![
            number,
            patch.and_then(|patch| patch.kind.as_deref()),
            payload,
            labels.is_some(),
            labels.and_then(labels_text),
            change.shape.as_deref(),
            text_sum(JobText::Payload, number, payload),
            trace.is_some(),
            trace.and_then(Option::as_ref).map(TraceParent::as_str),
        ])?;
        Ok(())
    }

    fn change_life(&mut self, number: i64, change: &JobChange) -> rusqlite::Result<()> {
        let error = change.error.as_ref().filter(|_| change.end.is_none());
        let progress = change.progress.as_ref();
        let error_text = error.and_then(Option::as_deref);
        let progress_text = progress.and_then(Option::as_ref).map(Json::text);
        self.change_life.execute(params![
            number,
            error.is_some(),
            error_text,
            progress.is_some(),
            progress_text,
            text_sum(JobText::Error, number, error_text),
            text_sum(JobText::Progress, number, progress_text),
        ])?;
        Ok(())
    }

    /// Adds an error of a job; the last 20 are kept.
    fn write_error(&mut self, seq: Seq, error: &JobError) -> rusqlite::Result<()> {
        let number = number_of(seq);
        let last: i64 = self.last_error.query_row([number], |row| row.get(0))?;
        let n = last + 1;
        let (at, outcome) = (moment_number(error.at), outcome_number(error.outcome));
        let attempt = i64::from(error.attempt);
        let sum = error_sum((number, n), attempt, at, &error.error, outcome);
        self.add_error.execute(params![number, n, attempt, at, error.error, outcome, sum])?;
        let oldest = n - ERRORS_KEPT as i64;
        if oldest > 0 {
            self.cut_errors.execute([number, oldest])?;
        }
        Ok(())
    }

    fn write_row(&mut self, key: &RowKey, value: Option<&str>) -> rusqlite::Result<()> {
        let RowKey { namespace, kind, key } = key;
        match value {
            Some(value) => {
                let sum = row_sum(namespace.as_str(), kind.as_str(), key, value);
                let (namespace, kind) = (namespace.as_str(), kind.as_str());
                self.put_row.execute(params![namespace, kind, key, value, sum])?
            }
            None => self.delete_row.execute([namespace.as_str(), kind.as_str(), key])?,
        };
        Ok(())
    }

    fn write_data(&mut self, key: &DataKey, data: Option<&Json>) -> rusqlite::Result<()> {
        let (namespace, pool, id) = (key.0.as_str(), key.1.as_str(), key.2.as_str());
        match data {
            Some(data) => {
                let sum = data_sum(namespace, pool, id, data.text());
                self.put_data.execute(params![namespace, pool, id, data.text(), sum])?
            }
            None => self.delete_data.execute([namespace, pool, id])?,
        };
        Ok(())
    }
}

fn text_sum(column: JobText, seq: i64, text: Option<&str>) -> Option<i64> {
    text.map(|text| column.sum(seq, text.as_bytes()))
}
