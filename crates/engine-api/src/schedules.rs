//! The calendar work of an engine around schedules: checks timings, computes plans, and shows the next
//! occurrences. The rules themselves know no calendar.

use tenure_calendar::Timing;
pub use tenure_calendar::zone_data;
use tenure_core::bounds::NEXT_SHOWN;
use tenure_core::moments::first_cursor;
use tenure_core::names::ScheduleId;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{PatchSchedule, PutSchedule, SyncSchedules};
use tenure_core::schedule::{
    FirstPlan, NextBasis, Plan, PlanWanted, ScheduleSettings, ScheduleView, TimingSpec, keeps,
};
use tenure_core::time::Moment;

/// Checks the timing of a schedule that is put, and computes its first occurrences at `now`, the engine's time as far
/// as this process knows it.
///
/// # Errors
/// The expression or the zone is not valid.
pub fn prepare_put(put: &mut PutSchedule, now: Moment) -> Result<(), Refusal> {
    put.plan = first_plan(&put.schedule, &put.settings, None, now)?.map(Box::new);
    Ok(())
}

/// The same for a patch of a schedule with these present settings. Returns the new settings.
///
/// # Errors
/// As [`prepare_put`], and the refusals of [`PatchSchedule::applied`].
pub fn prepare_patch(
    patch: &mut PatchSchedule,
    old: &ScheduleSettings,
    now: Moment,
) -> Result<ScheduleSettings, Refusal> {
    let settings = patch.clone().applied(old)?;
    patch.plan = first_plan(&patch.schedule, &settings, old.timing.starts_at, now)?.map(Box::new);
    Ok(settings)
}

/// Checks the timings of a set.
///
/// # Errors
/// The first invalid expression or zone, with its place in the set.
pub fn check_set(sync: &SyncSchedules) -> Result<(), Refusal> {
    for (index, (id, settings)) in sync.schedules.iter().enumerate() {
        Timing::of(&settings.timing, id.as_str()).map_err(|no| no.item(index))?;
    }
    Ok(())
}

/// The first occurrences of a cron expression; none of an interval, which is arithmetic.
fn first_plan(
    id: &ScheduleId,
    settings: &ScheduleSettings,
    started_at: Option<Moment>,
    now: Moment,
) -> Result<Option<FirstPlan>, Refusal> {
    let timing = Timing::of(&settings.timing, id.as_str())?;
    if settings.timing.cron.is_none() {
        return Ok(None);
    }
    let from = first_cursor(settings.timing.starts_at, started_at, now);
    let planned = timing.plan(from, now, keeps(settings.catch_up, settings.catch_up_max));
    Ok(Some(FirstPlan {
        timing: settings.timing.clone(),
        from,
        moments: planned.moments,
        last: planned.last,
        data: zone_data().to_owned(),
    }))
}

/// Adds to the refusal of a timing that never fires the reason that leaves no room for an occurrence.
pub fn never_fires(no: Refusal, id: &ScheduleId, timing: &TimingSpec, now: Moment) -> Refusal {
    if no.code != Code::NeverFires {
        return no;
    }
    let why = Timing::of(timing, id.as_str()).and_then(|timing| timing.first_after(now));
    why.err().unwrap_or(no)
}

/// The plan that a schedule asked for, computed at `now`, the engine's time.
pub fn plan(wanted: PlanWanted, now: Moment) -> Plan {
    let PlanWanted { schedule, version, timing, after, keeps } = wanted;
    // Another release may read a timing that this process cannot: the plan stays empty, and is asked for again.
    let planned = Timing::of(&timing, schedule.as_str()).ok();
    let planned = planned.map(|timing| timing.plan(after, now, keeps)).unwrap_or_default();
    let (moments, last) = (planned.moments, planned.last);
    Plan { schedule, version, after, moments, last, data: zone_data().to_owned() }
}

/// Adds the next occurrences to an engine's view of a schedule: five of them, or only `next_at` in a list.
pub fn show_next(view: &mut ScheduleView, basis: &NextBasis, whole: bool) {
    let next =
        next_moments(&view.id, &view.settings.timing, basis, if whole { NEXT_SHOWN } else { 1 });
    view.next_at = next.first().copied();
    view.next = whole.then_some(next);
}

fn next_moments(
    id: &ScheduleId,
    timing: &TimingSpec,
    basis: &NextBasis,
    count: usize,
) -> Vec<Moment> {
    if basis.is_endless_pause {
        return Vec::new();
    }
    let mut timing = timing.clone();
    if timing.every.is_some() {
        timing.starts_at = basis.anchor.or(timing.starts_at);
    }
    let within = |moment: &Moment| timing.ends_at.is_none_or(|end| *moment <= end);
    let moved = basis.moved.filter(|moved| *moved > basis.after);
    let (first, after) = match moved {
        Some(moved) if !within(&moved) => return Vec::new(),
        Some(moved) => (Some(moved), moved),
        None => (None, basis.after),
    };
    let Ok(computed) = Timing::of(&timing, id.as_str()) else { return Vec::new() };
    first.into_iter().chain(computed.moments_after(after)).take(count).collect()
}
