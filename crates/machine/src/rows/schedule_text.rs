//! A schedule as text: the value of its row, and its form in memory while no step changes it.
//!
//! Nearly all of a million schedules rest, and a resting schedule lacks most of the possible values: a pause, a moved
//! occurrence, a plan, jobs that it made. So bits at the front mark the values that follow, and no other value is
//! written. In memory, values that a start computes again follow those of the row.

use std::collections::VecDeque;

use crate::rows::text_codec::{TextReader, TextWriter};
use crate::state::Schedule;
use tenure_core::job::{JobState, Labels, Need, Retry};
use tenure_core::names::{Group, JobId, Owner, QueueName, ScheduleId};
use tenure_core::schedule::{
    CatchUp, LastEnded, LastFired, Overlap, PlannedMoment, ScheduledJob, TimingSpec,
};
use tenure_core::secret::Json;
use tenure_core::time::Moment;

/// A longer job has a row of its own: otherwise each occurrence would write it again.
const JOB_WITH_ROW_MAX: usize = 512;

/// The values that a text has; common ones first.
struct Present(u64);

impl Present {
    /// The bits, in the order of these values.
    fn of(values: &[bool]) -> Self {
        let bits = values.iter().enumerate().map(|(at, is)| u64::from(*is) << at);
        Present(bits.sum())
    }
    /// Takes the next bit: true if that value is present.
    fn take(&mut self) -> bool {
        let bit = self.0 & 1 != 0;
        self.0 >>= 1;
        bit
    }
    /// True if all bits were taken. A remaining bit stands for a value that this release does not know.
    fn is_over(&self) -> bool {
        self.0 == 0
    }
    /// Reads the value of the next bit, if it is present; `None`: it cannot be read.
    fn value<T>(&mut self, read: impl FnOnce() -> Option<T>) -> Option<Option<T>> {
        if self.take() { read().map(Some) } else { Some(None) }
    }
}

impl Schedule {
    /// True if its job has a row of its own.
    pub(crate) fn has_job_row(&self) -> bool {
        self.job.len() > JOB_WITH_ROW_MAX
    }

    /// The text of its row.
    pub(crate) fn row(&self) -> String {
        let job = if self.has_job_row() { 0 } else { self.job.len() };
        let mut w = TextWriter::with_capacity(96 + job);
        self.write_row(&mut w, !self.has_job_row());
        w.finish()
    }

    /// A schedule from its row, without a plan: it asks for one at once.
    pub(crate) fn of_row(id: ScheduleId, value: &str) -> Option<Schedule> {
        let r = &mut TextReader::new(value);
        let read = Schedule::read_row(id, r)?;
        r.is_at_end().then_some(read)
    }

    fn write_row(&self, w: &mut TextWriter, with_job: bool) {
        let TimingSpec { cron, zone, every, starts_at, ends_at, jitter } = &self.timing;
        let counts = [self.fired, self.skipped, self.missed];
        let present = Present::of(&[
            self.owner.is_some(),
            every.is_some(),
            starts_at.is_some(),
            self.cursor != self.created_at,
            self.decided != Moment::ZERO,
            counts != [0; 3],
            self.last.is_some(),
            self.last_made.is_some(),
            self.last_ended.is_some(),
            self.last_succeeded_at.is_some(),
            cron.is_some(),
            zone.is_some(),
            self.era != self.version,
            self.changed_at != self.created_at,
            ends_at.is_some(),
            jitter.us() != 0,
            self.moved.is_some(),
            self.paused_until.is_some(),
            !with_job,
        ]);
        w.u64(present.0);
        w.u64(self.overlap as u64 | (self.catch_up as u64) << 2);
        w.u64(u64::from(self.catch_up_max));
        w.u64(self.version);
        w.moment(self.created_at);
        write_some(w, self.owner.as_ref(), |w, owner| w.text(owner.as_str()));
        write_some(w, *every, TextWriter::span);
        write_some(w, *starts_at, TextWriter::moment);
        write_some(w, Some(self.cursor).filter(|at| *at != self.created_at), TextWriter::moment);
        write_some(w, Some(self.decided).filter(|at| *at != Moment::ZERO), TextWriter::moment);
        write_some(w, Some(counts).filter(|counts| *counts != [0; 3]), |w, counts| {
            counts.into_iter().for_each(|count| w.u64(count));
        });
        write_some(w, self.last.as_ref(), |w, last| {
            w.moment(last.at);
            w.text(last.job.as_str());
        });
        write_some(w, self.last_made.as_ref(), |w, job| w.text(job.as_str()));
        write_some(w, self.last_ended.as_ref(), |w, ended| {
            w.text(ended.job.as_str());
            w.u64(ended.state as u64);
            w.moment(ended.finished_at);
        });
        write_some(w, self.last_succeeded_at, TextWriter::moment);
        write_some(w, cron.as_ref(), |w, cron| w.text(cron));
        write_some(w, zone.as_ref(), |w, zone| w.text(zone));
        write_some(w, Some(self.era).filter(|era| *era != self.version), TextWriter::u64);
        let changed_at = Some(self.changed_at).filter(|at| *at != self.created_at);
        write_some(w, changed_at, TextWriter::moment);
        write_some(w, *ends_at, TextWriter::moment);
        write_some(w, Some(*jitter).filter(|jitter| jitter.us() != 0), TextWriter::span);
        write_some(w, self.moved, TextWriter::moment);
        write_some(w, self.paused_until, TextWriter::moment);
        if with_job {
            w.text(&self.job);
        }
    }

    fn read_row(id: ScheduleId, r: &mut TextReader<'_>) -> Option<Schedule> {
        let mut present = Present(r.u64()?);
        let kinds = r.u64()?;
        let mut s = Schedule::shell(id);
        s.shell = false;
        s.overlap = match kinds & 3 {
            0 => Overlap::Skip,
            1 => Overlap::Queue,
            2 => Overlap::Allow,
            _ => return None,
        };
        s.catch_up = match kinds >> 2 {
            0 => CatchUp::None,
            1 => CatchUp::Last,
            2 => CatchUp::All,
            _ => return None,
        };
        s.catch_up_max = r.u32()?;
        s.version = r.u64()?;
        s.created_at = r.moment()?;
        s.owner = present.value(|| Owner::known(r.text()?).ok())?;
        s.timing.every = present.value(|| r.span())?;
        s.timing.starts_at = present.value(|| r.moment())?;
        s.cursor = present.value(|| r.moment())?.unwrap_or(s.created_at);
        s.decided = present.value(|| r.moment())?.unwrap_or_default();
        if present.take() {
            (s.fired, s.skipped, s.missed) = (r.u64()?, r.u64()?, r.u64()?);
        }
        s.last = present.value(|| Some(LastFired { at: r.moment()?, job: job_id(r)? }))?;
        s.last_made = present.value(|| job_id(r))?;
        s.last_ended = present.value(|| {
            let job = job_id(r)?;
            let state = *JobState::ALL.get(usize::try_from(r.u64()?).ok()?)?;
            Some(LastEnded { job, state, finished_at: r.moment()? })
        })?;
        s.last_succeeded_at = present.value(|| r.moment())?;
        s.timing.cron = present.value(|| r.text().map(str::to_owned))?;
        s.timing.zone = present.value(|| r.text().map(str::to_owned))?;
        s.era = present.value(|| r.u64())?.unwrap_or(s.version);
        s.changed_at = present.value(|| r.moment())?.unwrap_or(s.created_at);
        s.timing.ends_at = present.value(|| r.moment())?;
        s.timing.jitter = present.value(|| r.span())?.unwrap_or_default();
        s.moved = present.value(|| r.moment())?;
        s.paused_until = present.value(|| r.moment())?;
        let has_job_row = present.take();
        if !has_job_row {
            s.job = r.text()?.into();
        }
        present.is_over().then_some(s)
    }

    // ---- In memory ----

    /// The whole schedule as text. It begins with the id, by which the indexes compare it.
    pub(crate) fn packed(&self) -> Box<str> {
        let mut w = TextWriter::with_capacity(self.id.as_str().len() + self.job.len() + 128);
        w.text(self.id.as_str());
        self.write_row(&mut w, true);
        let present = Present::of(&[
            self.place.is_some(),
            self.unfinished != 0,
            self.shell,
            self.wanted_at.is_some(),
            self.awaits_job,
            self.planned_all,
            !self.plan.is_empty(),
        ]);
        w.u64(present.0);
        write_some(&mut w, self.place, TextWriter::moment);
        write_some(&mut w, Some(self.unfinished).filter(|count| *count != 0), TextWriter::u64);
        write_some(&mut w, self.wanted_at, TextWriter::moment);
        write_some(&mut w, Some(&self.plan).filter(|plan| !plan.is_empty()), write_plan);
        // A copy: an allocator may leave a shrunk text in its place, with its former capacity.
        Box::from(w.finish().as_str())
    }

    pub(crate) fn unpacked(text: &str) -> Option<Self> {
        let r = &mut TextReader::new(text);
        let id = ScheduleId::known(r.text()?).ok()?;
        let mut s = Schedule::read_row(id, r)?;
        let mut present = Present(r.u64()?);
        s.place = present.value(|| r.moment())?;
        s.unfinished = present.value(|| r.u64())?.unwrap_or_default();
        s.shell = present.take();
        s.wanted_at = present.value(|| r.moment())?;
        s.awaits_job = present.take();
        s.planned_all = present.take();
        s.plan = present.value(|| read_plan(r))?.unwrap_or_default();
        (present.is_over() && r.is_at_end()).then_some(s)
    }

    /// The id in a packed text.
    pub(crate) fn id_of_packed(text: &str) -> Option<&str> {
        TextReader::new(text).text()
    }
}

fn write_some<T>(w: &mut TextWriter, value: Option<T>, write: impl FnOnce(&mut TextWriter, T)) {
    if let Some(value) = value {
        write(w, value);
    }
}

fn job_id(r: &mut TextReader<'_>) -> Option<JobId> {
    JobId::known(r.text()?).ok()
}

/// Each occurrence by its distance from the one before, and its due time by the distance from it.
fn write_plan(w: &mut TextWriter, plan: &VecDeque<PlannedMoment>) {
    w.u64(plan.len() as u64);
    let mut before = 0;
    for PlannedMoment { moment, due, passed } in plan {
        // Wrapping, since a plan that is not ascending must reach the audit, which reports it.
        w.u64(moment.us().wrapping_sub(before));
        w.u64(due.us().wrapping_sub(moment.us()));
        w.u64(*passed);
        before = moment.us();
    }
}

fn read_plan(r: &mut TextReader<'_>) -> Option<VecDeque<PlannedMoment>> {
    let len = r.u64()?;
    let mut before = 0u64;
    let mut next = || {
        let moment = before.wrapping_add(r.u64()?);
        let due = moment.wrapping_add(r.u64()?);
        before = moment;
        let (moment, due) = (Moment::from_us(moment), Moment::from_us(due));
        Some(PlannedMoment { moment, due, passed: r.u64()? })
    };
    (0..len).map(|_| next()).collect()
}

/// The job of each occurrence of a schedule, without values at their defaults.
pub(crate) fn job_text(job: &ScheduledJob) -> Box<str> {
    let ScheduledJob { queue, kind, payload, priority, group, needs, retry, .. } = job;
    let payload_text = payload.as_ref().map(Json::text);
    let shown = payload_text.filter(|_| payload.as_ref().is_some_and(|json| !json.is_null()));
    let mut w = TextWriter::with_capacity(32 + payload_text.map_or(0, str::len));
    let present = Present::of(&[
        shown.is_some(),
        !kind.is_empty(),
        *priority != 0,
        group.is_some(),
        needs.is_some(),
        retry.is_some(),
        job.timeout.is_some(),
        job.retain.is_some(),
        job.expires_in.is_some(),
        !job.labels.is_empty(),
        payload.is_none(),
    ]);
    w.u64(present.0);
    w.text(queue.as_str());
    write_some(&mut w, shown, TextWriter::text);
    write_some(&mut w, Some(kind).filter(|kind| !kind.is_empty()), |w, kind| w.text(kind));
    write_some(&mut w, Some(*priority).filter(|priority| *priority != 0), |w, priority| {
        w.u64(u64::from(priority as u8));
    });
    write_some(&mut w, group.as_ref(), |w, group| w.text(group.as_str()));
    write_some(&mut w, needs.as_ref(), write_json);
    write_some(&mut w, retry.as_ref(), write_json);
    write_some(&mut w, job.timeout, TextWriter::span);
    write_some(&mut w, job.retain, TextWriter::span);
    write_some(&mut w, job.expires_in, TextWriter::span);
    let labels = Some(&job.labels).filter(|labels| !labels.is_empty());
    write_some(&mut w, labels, write_json);
    w.finish().into_boxed_str()
}

/// The job of such a text; `None` if it is not one of [`job_text`].
pub(crate) fn job_of_text(text: &str) -> Option<ScheduledJob> {
    let r = &mut TextReader::new(text);
    let mut present = Present(r.u64()?);
    let mut job = ScheduledJob::new(QueueName::known(r.text()?).ok()?);
    if let Some(payload) = present.value(|| Json::parse(r.text()?))? {
        job.payload = Some(payload);
    }
    job.kind = present.value(|| r.text().map(str::to_owned))?.unwrap_or_default();
    job.priority = present.value(|| u8::try_from(r.u64()?).ok())?.unwrap_or_default() as i8;
    job.group = present.value(|| Group::known(r.text()?).ok())?;
    job.needs = present.value(|| read_json::<Vec<Need>>(r))?;
    job.retry = present.value(|| read_json::<Retry>(r))?;
    job.timeout = present.value(|| r.span())?;
    job.retain = present.value(|| r.span())?;
    job.expires_in = present.value(|| r.span())?;
    job.labels = present.value(|| read_json::<Labels>(r))?.unwrap_or_default();
    if present.take() {
        job.payload = None;
    }
    (present.is_over() && r.is_at_end()).then_some(job)
}

/// Writes a value that few schedules have. It is read when an occurrence fires, and not at a start.
fn write_json(w: &mut TextWriter, value: &impl serde::Serialize) {
    // Needs, retries and labels are plain numbers and texts, so writing JSON cannot fail.
    w.text(&serde_json::to_string(value).unwrap_or_default());
}

fn read_json<T: serde::de::DeserializeOwned>(r: &mut TextReader<'_>) -> Option<T> {
    serde_json::from_str(r.text()?).ok()
}

#[cfg(test)]
mod tests;
