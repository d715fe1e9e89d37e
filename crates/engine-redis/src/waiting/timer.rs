//! The due moments of one namespace: when the next tick is to be, and the task that makes it.
//!
//! Time is the server's. One process of all has the claim and ticks at the due moment, the others a
//! little later, in case it is gone. Every tick says what is due next; every other answer may say
//! that something is due sooner.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tenure_core::bounds::PULSE_US;
use tenure_engine::schedules::zone_data;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::alarm::alarm;
use super::space::Space;
use crate::by_itself;
use crate::call::Caller;
use crate::decode::{Maybe, TickReply, WantedReply};
use crate::encode::{TickArgs, pack};
use crate::function::TICK;
use crate::gauges;
use crate::options::Time;
use crate::schedules::{MomentsDue, do_asked};
use crate::shared::Shared;

/// Who has not the claim ticks so much after the due moment.
const SECOND_TO: Duration = Duration::from_millis(50);
/// Who has the claim ticks so often while somebody waits, or something is due soon.
const CLAIM_EVERY: Duration = Duration::from_millis(300);
/// The others tick so often while somebody waits here.
const PULSE: Duration = Duration::from_micros(PULSE_US);
/// After the first call of a namespace its first tick waits so long: most commands are over by then.
const FIRST_AFTER: Duration = Duration::from_millis(100);
/// Between two ticks at least so much, unless one was not enough.
const APART: Duration = Duration::from_micros(200);
/// A parcel that was sent before a tick comes within so long after its answer, or is lost.
const COMES_WITHIN: Duration = Duration::from_millis(50);
/// So many ticks at once where one was not enough; then a pause.
const AT_ONCE_MAX: u32 = 64;
/// Pauses after ticks that failed: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A sample of the server's clock counts for so long as the best one.
const SAMPLE_FOR: Duration = Duration::from_secs(2);
/// A jump of the server's clock beyond this is believed at once.
const JUMP_US: u64 = 1_000_000;

/// When the server's clock showed what.
#[derive(Clone, Copy)]
struct Sample {
    /// When it was read here, at the earliest: when the call left that was answered with it.
    at: Instant,
    /// What it showed, in µs.
    us: u64,
    /// When it was taken for the best.
    since: Instant,
}

impl Sample {
    /// The latest that the server's clock can show at a moment.
    fn at(&self, moment: Instant) -> u64 {
        self.us.saturating_add(moment.saturating_duration_since(self.at).as_micros() as u64)
    }
    /// When a call is to leave so that the server's clock shows this, and no less, when it comes: the call that was
    /// answered with the sample was on its way as long as any.
    fn instant(&self, us: u64) -> Instant {
        match us.checked_sub(self.us) {
            // What is years ahead is looked at again before.
            Some(ahead) => self.at + Duration::from_micros(ahead).min(Duration::from_secs(86_400)),
            None => self.at,
        }
    }
}

#[derive(Default)]
struct TimerState {
    sample: Option<Sample>,
    /// The next due moment, in the server's µs.
    due: Option<u64>,
    /// The soonest that was told since the last tick began: the tick may not know of it.
    told: Option<u64>,
    /// This process ticks at due moments.
    claim: bool,
    /// A tick is to be made then in any case.
    look_at: Option<Instant>,
    ticked: Option<Instant>,
    /// No tick before this.
    not_before: Option<Instant>,
    at_once: u32,
    failures: u32,
    behind: Option<u64>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Timer {
    state: Mutex<TimerState>,
    changed: Notify,
}

impl Timer {
    fn lock(&self) -> MutexGuard<'_, TimerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer of a call that left at `sent` showed the server's clock, and perhaps something that is due
    /// sooner.
    pub(crate) fn heard(&self, us: u64, due: Option<u64>, sent: Instant) {
        let mut state = self.lock();
        if us > 0 {
            state.sample = Some(match state.sample {
                // The call that was on its way for the shortest time tells the clock best.
                Some(best)
                    if best.since.elapsed() < SAMPLE_FOR
                        && best.at(sent) <= us
                        && us - best.at(sent) < JUMP_US =>
                {
                    best
                }
                _ => Sample { at: sent, us, since: sent },
            });
        }
        drop(state);
        if let Some(due) = due {
            self.sooner(due);
        }
    }

    /// Something is due sooner than was known.
    pub(crate) fn sooner(&self, due: u64) {
        let mut state = self.lock();
        state.told = Some(state.told.map_or(due, |told| told.min(due)));
        if state.due.is_none_or(|known| due < known) {
            state.due = Some(due);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Another process ticked, and this is what is due next.
    pub(crate) fn told(&self, due: Option<u64>) {
        self.lock().due = due;
        self.changed.notify_one();
    }

    /// What is due is not known for sure any more: tick soon.
    pub(crate) fn look(&self) {
        self.lock().look_at = Some(Instant::now());
        self.changed.notify_one();
    }

    /// Somebody waits who did not before: who ticked lately goes on from there, and else ticks at once.
    pub(crate) fn somebody_waits(&self) {
        self.changed.notify_one();
    }

    /// What the server's clock shows now, at the latest, in µs; `None` before the first answer.
    pub(crate) fn clock(&self) -> Option<u64> {
        self.lock().sample.map(|sample| sample.at(Instant::now()))
    }

    /// The next due moment that is known, in the server's µs.
    pub(crate) fn due(&self) -> Option<u64> {
        self.lock().due
    }

    /// By how much the server's clock is behind what was seen, in µs.
    pub(crate) fn behind(&self) -> Option<u64> {
        self.lock().behind
    }

    /// When the next tick is to be; `waits` says whether somebody waits here, or reads gauges.
    fn next(&self, waits: bool) -> Option<Instant> {
        let state = self.lock();
        let now = Instant::now();
        let late = if state.claim { Duration::ZERO } else { SECOND_TO };
        let due = state.due.map(|due| match &state.sample {
            Some(sample) => sample.instant(due) + late,
            None => now,
        });
        let soon = due.is_some_and(|due| due < now + PULSE);
        let often = if state.claim { CLAIM_EVERY } else { PULSE };
        let pulse = (waits || state.claim && soon)
            .then(|| state.ticked.map_or(now, |ticked| ticked + often));
        let next = [due, pulse, state.look_at].into_iter().flatten().min()?;
        Some(state.not_before.map_or(next, |bound| next.max(bound)))
    }

    /// By a test's clock: whether a tick is due.
    fn is_due_by(&self, us: u64) -> bool {
        let state = self.lock();
        state.due.is_some_and(|due| due <= us)
    }

    /// A tick begins: who asks for a look from now on wants another.
    fn begin(&self) {
        let mut state = self.lock();
        state.look_at = None;
        state.told = None;
    }

    /// A tick was answered.
    fn ticked(&self, due: Option<u64>, reply: &TickReply) {
        let mut state = self.lock();
        let now = Instant::now();
        state.due = [due, state.told].into_iter().flatten().min();
        state.claim = reply.claim;
        state.ticked = Some(now);
        state.failures = 0;
        let Maybe(behind) = reply.behind;
        state.behind = behind;
        state.at_once = if reply.more { state.at_once + 1 } else { 0 };
        let at_once = reply.more && !state.at_once.is_multiple_of(AT_ONCE_MAX);
        state.not_before = (!at_once).then(|| now + APART);
        if reply.more {
            state.look_at = Some(now);
        }
    }

    fn failed(&self) {
        let mut state = self.lock();
        let pause = (PAUSE_MIN * 2u32.saturating_pow(state.failures.min(8))).min(PAUSE_MAX);
        state.failures = state.failures.saturating_add(1);
        state.not_before = Some(Instant::now() + pause);
        state.look_at = Some(Instant::now() + pause);
    }
}

/// One tick; whether something is due still.
pub(crate) async fn tick(caller: &Caller) -> Result<bool, tenure_engine::CallError> {
    let alone = caller.shared.time != Time::Server;
    let _ticking = if alone { Some(caller.space.ticking.lock().await) } else { None };
    let timer = &caller.space.timer;
    timer.begin();
    let kn = &caller.knows();
    let sight = caller.space.sight.tell(caller.shared.watch());
    let read = caller.space.parcels.read();
    let waiters = caller.space.waiting();
    let readers = &caller.shared.gauge_readers.names();
    let (proc, zones) = (&caller.shared.proc, zone_data());
    let args = TickArgs { proc, waiters, readers, read, kn, sight, zones };
    match caller.ask::<TickReply>(TICK, pack(&args)).await {
        Ok(answered) => {
            let reply = answered.reply;
            timer.ticked(answered.due, &reply);
            if let Some(sent) = reply.sent.0 {
                heard_sent(caller, sent);
            }
            let more = reply.more;
            heard_asked(caller, reply).await?;
            Ok(more)
        }
        Err(why) => {
            timer.failed();
            Err(why.into())
        }
    }
}

/// Does what a tick asks of a calendar, and has moments of schedules decided: beside the ticks, which must not wait for
/// it, unless a test moves the clock.
async fn heard_asked(caller: &Caller, reply: TickReply) -> Result<(), tenure_engine::CallError> {
    let wanted: Vec<_> = reply.wanted.0.unwrap_or_default();
    let asked = MomentsDue {
        wanted: wanted.into_iter().map(WantedReply::read).collect(),
        fires: reply.fires,
    };
    caller.space.gauges.store(reply.gauges, Ordering::Release);
    if caller.shared.time != Time::Server {
        if reply.reads {
            gauges::claim(caller).await?;
        }
        return do_asked(caller, asked).await;
    }
    if reply.reads {
        claim_beside(caller);
    }
    let notes = (reply.schedules || reply.gauges) && caller.space.is_to_be_noted(by_itself::EVERY);
    if asked.is_nothing() && !notes || caller.space.asked.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    let its = caller.clone();
    caller.shared.runtime.spawn(async move {
        if notes {
            by_itself::note(&its).await;
        }
        if let Err(why) = do_asked(&its, asked).await {
            // Moments stay due, and a tick asks again within a second.
            tracing::debug!(%why, "schedules could not be planned or fired");
        }
        its.space.asked.store(false, Ordering::Release);
    });
    Ok(())
}

/// Claims gauges beside the ticks, and beside what takes long of schedules.
fn claim_beside(caller: &Caller) {
    if caller.space.claims.swap(true, Ordering::AcqRel) {
        return;
    }
    let its = caller.clone();
    caller.shared.runtime.spawn(async move {
        if let Err(why) = gauges::claim(&its).await {
            // They stay due, and a tick tells of them again within a second.
            tracing::debug!(%why, "gauges could not be claimed");
        }
        its.space.claims.store(false, Ordering::Release);
    });
}

/// The store has sent so many parcels to this process. What is on its way comes within a moment; for what does not,
/// whoever waits here asks again.
fn heard_sent(caller: &Caller, sent: u64) {
    let parcels = &caller.space.parcels;
    if !parcels.misses(sent) || caller.shared.time != Time::Server {
        return;
    }
    let space = caller.space.clone();
    caller.shared.runtime.spawn(async move {
        sleep(COMES_WITHIN).await;
        if space.parcels.gives_up(sent) {
            space.stir();
        }
    });
}

/// Whether this process is to be known as one that reads gauges of this namespace: it says so with its ticks.
fn reads_here(shared: &Shared, space: &Space) -> bool {
    space.gauges.load(Ordering::Acquire) && shared.gauge_readers.are_there()
}

/// Ticks for a namespace as long as the engine lives and the namespace is in use.
pub(crate) async fn keep_time(
    shared: Weak<Shared>,
    space: Arc<Space>,
    mut closing: watch::Receiver<bool>,
) {
    space.timer.lock().look_at = Some(Instant::now() + FIRST_AFTER);
    loop {
        let Some(engine) = shared.upgrade() else { return };
        let next = match engine.time {
            Time::Server => space.timer.next(space.waiting() > 0 || reads_here(&engine, &space)),
            Time::Testing if space.timer.is_due_by(engine.moved().us()) => Some(Instant::now()),
            Time::Testing | Time::TestingByHand => None,
        };
        let idle = engine.idle_at();
        if next.is_some_and(|next| next <= Instant::now()) {
            let caller = Caller { shared: engine, space: space.clone() };
            caller.shared.signals.follow(&caller.shared, &space);
            // A tick that failed is tried again; callers see the same fault in their own calls.
            let done = tokio::select! {
                done = tick(&caller) => done,
                _ = closing.changed() => return,
            };
            if done.is_err() && caller.shared.time != Time::Server {
                tokio::time::sleep(PAUSE_MIN).await;
            }
            continue;
        }
        drop(engine);
        let until = async {
            match next {
                Some(next) => alarm(next).await,
                None => sleep_until(idle).await,
            }
        };
        tokio::select! {
            () = until => {
                if next.is_none()
                    && let Some(engine) = shared.upgrade()
                    && engine.forget_if_idle(&space)
                {
                    return;
                }
            }
            () = space.timer.changed.notified() => {}
            _ = closing.changed() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_800_000_000_000_000;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }
    fn reply(claim: bool, more: bool) -> TickReply {
        TickReply { more, claim, ..TickReply::default() }
    }
    /// A timer that ticked just now at the server's `US`, and what is due by it.
    fn ticked(due: Option<u64>, claim: bool) -> (Timer, Instant) {
        let (timer, now) = (Timer::default(), Instant::now());
        timer.begin();
        timer.heard(US, None, now);
        timer.ticked(due, &reply(claim, false));
        (timer, now)
    }
    /// Whether a moment is so far behind `from`, give or take what a slow machine takes.
    fn is_about(at: Option<Instant>, from: Instant, after: Duration) -> bool {
        at.is_some_and(|at| at >= from + after && at < from + after + ms(40))
    }

    #[test]
    fn who_has_the_claim_ticks_when_it_is_due_and_the_others_a_little_later() {
        for (claim, late) in [(true, ms(0)), (false, SECOND_TO)] {
            let (timer, now) = ticked(Some(US + 10_000_000), claim);
            assert!(is_about(timer.next(false), now, ms(10_000) + late), "{claim}");
        }
        let (timer, _) = ticked(None, true);
        assert_eq!(timer.next(false), None, "nothing is due, nobody waits");
    }

    #[test]
    fn who_waits_makes_it_tick_once_a_second() {
        let (timer, now) = ticked(None, false);
        assert!(is_about(timer.next(true), now, PULSE));
        let (timer, now) = ticked(None, true);
        assert!(is_about(timer.next(true), now, CLAIM_EVERY));
    }

    #[test]
    fn what_is_told_while_a_tick_is_on_its_way_is_not_forgotten() {
        let (timer, _) = ticked(Some(US + 9), true);
        timer.begin();
        timer.heard(US, Some(US + 5), Instant::now());
        timer.ticked(Some(US + 7), &reply(true, false));
        assert_eq!(timer.due(), Some(US + 5));
        timer.begin();
        timer.ticked(Some(US + 7), &reply(true, false));
        assert_eq!(timer.due(), Some(US + 7), "this tick knew of it");
        timer.told(None);
        assert_eq!(timer.due(), None, "another process did it");
    }

    #[test]
    fn a_tick_that_was_not_enough_is_followed_at_once_and_not_for_ever() {
        let (timer, now) = ticked(Some(US), true);
        let mut at_once = 0;
        while at_once < 2 * AT_ONCE_MAX {
            timer.begin();
            timer.ticked(Some(US), &reply(true, true));
            if timer.lock().not_before.is_some() {
                break;
            }
            assert!(timer.next(false).is_some_and(|next| next <= Instant::now() + ms(1)));
            at_once += 1;
        }
        assert_eq!(at_once + 1, AT_ONCE_MAX);
        assert!(timer.next(false).is_some_and(|next| next > now));
    }

    #[test]
    fn a_tick_that_failed_is_tried_again_later_and_later() {
        let (timer, now) = ticked(Some(US), true);
        timer.failed();
        assert!(timer.next(true).is_some_and(|next| next >= now + PAUSE_MIN));
        for _ in 0..40 {
            timer.failed();
        }
        let next = timer.next(true);
        assert!(next.is_some_and(|next| next <= Instant::now() + PAUSE_MAX));
    }

    #[test]
    fn the_quickest_answer_tells_the_clock_and_a_jump_is_believed() {
        let (timer, now) = ticked(Some(US + 1_000_000), true);
        // This one was 20 ms longer on its way: it says nothing better.
        timer.heard(US + 120_000, None, now + ms(100));
        assert!(is_about(
            timer.next(false).map(|_| timer.lock().sample.expect("one").at),
            now,
            ms(0)
        ));
        timer.heard(US + 100_000_000, None, now + ms(200));
        let sample = timer.lock().sample.expect("one");
        assert_eq!(sample.at(now + ms(201)), US + 100_001_000);
        timer.heard(US + 100_199_000, None, now + ms(400));
        assert_eq!(timer.lock().sample.expect("one").us, US + 100_199_000, "it was quicker");
        timer.heard(US, None, now + ms(500));
        assert_eq!(timer.lock().sample.expect("one").us, US, "it stepped back");
    }
}
