//! The sentence of each cause, and summaries of several.

use super::*;

#[test]
fn every_cause_has_one_sentence() {
    let n = || "n".to_owned();
    let at = Moment::ZERO;
    let start = "1970-01-01T00:00:00.000000Z";
    let tag = || Wanted::Tag("t".to_owned());
    for (cause, kind, said) in [
        (WaitCause::scheduled(0, at), ReasonKind::Scheduled, format!("it may run at {start}")),
        (
            WaitCause::scheduled(1, at),
            ReasonKind::Scheduled,
            "its holder died, so it waits and runs alone".to_owned(),
        ),
        (
            WaitCause::scheduled(2, at),
            ReasonKind::Scheduled,
            "its holders died 2 times in a row, so it waits and runs alone".to_owned(),
        ),
        (
            WaitCause::queue_paused(n(), None),
            ReasonKind::QueuePaused,
            "queue \"n\" is paused until it is resumed".to_owned(),
        ),
        (
            WaitCause::queue_paused(n(), Some(at)),
            ReasonKind::QueuePaused,
            format!("queue \"n\" is paused until {start}"),
        ),
        (
            WaitCause::Behind { name: n(), ahead: 1 },
            ReasonKind::Behind,
            "1 job of queue \"n\" goes first".to_owned(),
        ),
        (
            WaitCause::workers_full(n(), 1),
            ReasonKind::WorkersFull,
            "the one worker that asks for queue \"n\" is busy: let it run more at once, or start another"
                .to_owned(),
        ),
        (
            WaitCause::workers_full(n(), 2),
            ReasonKind::WorkersFull,
            "all 2 workers that ask for queue \"n\" are busy: let them run more at once, or start more"
                .to_owned(),
        ),
        (
            WaitCause::limit_taken(n(), 1, 2, 1),
            ReasonKind::Limit,
            "1 of 2 permits of \"n\" is in use".to_owned(),
        ),
        (
            WaitCause::limit_taken(n(), 3, 4, 2),
            ReasonKind::Limit,
            "3 of 4 permits of \"n\" are in use, and it needs 2".to_owned(),
        ),
        (
            WaitCause::limit_taken(n(), 0, 0, 1),
            ReasonKind::Limit,
            "the limit \"n\" is closed: its concurrency is 0".to_owned(),
        ),
        (
            WaitCause::LimitForgotten { name: n(), until: at },
            ReasonKind::Limit,
            format!(
                "the store may have forgotten its last writes, and so who holds \"n\": nothing of it \
                 is granted before {start}, when each lease that was forgotten is over"
            ),
        ),
        (
            WaitCause::PoolForgotten { name: n(), until: at },
            ReasonKind::Pool,
            WaitCause::LimitForgotten { name: n(), until: at }.to_string(),
        ),
        (
            WaitCause::External { name: n(), taken: 2 },
            ReasonKind::External,
            "2 permits of \"n\" are taken by work outside".to_owned(),
        ),
        (
            WaitCause::pool_taken(n(), tag(), 3, 2),
            ReasonKind::Pool,
            "it needs 3 of pool \"n\" with the tag \"t\", which has 2".to_owned(),
        ),
        (
            WaitCause::pool_taken(n(), Wanted::Any, 1, 2),
            ReasonKind::Pool,
            "no resource of pool \"n\" is free (2 there)".to_owned(),
        ),
        (
            WaitCause::reserved(n(), 1, Some("j".to_owned()), at),
            ReasonKind::Reserved,
            format!("1 of \"n\" is kept for job \"j\", which waited longer, since {start}"),
        ),
        (
            WaitCause::reserved(n(), 2, None, at),
            ReasonKind::Reserved,
            format!("2 of \"n\" are kept for a caller, which waited longer, since {start}"),
        ),
        (
            WaitCause::LimitUnset { name: n() },
            ReasonKind::NeverFits,
            "the limit \"n\" is not set any more".to_owned(),
        ),
    ] {
        let reason = Reason::from(cause);
        assert_eq!((reason.kind, reason.detail), (kind, said));
    }
}

#[test]
fn a_summary_is_one_sentence() {
    let reason = || Reason::from(WaitCause::HolderDied);
    let of = |reasons: &[Reason]| summary(JobState::Ready, reasons, None);
    assert_eq!(of(&[]), "the next worker that asks gets it");
    assert_eq!(of(&[reason()]), "its holder died, so it waits and runs alone");
    let two = "its holder died, so it waits and runs alone (and 1 more reason)";
    assert_eq!(of(&[reason(), reason()]), two);
    let finished = summary(JobState::Failed, &[], None);
    assert_eq!(finished, "it is finished, and waits for nothing");
    let lease = RunningLease {
        lease: "L".to_owned(),
        holder: "w".to_owned(),
        since: Moment::ZERO,
        expires_at: Moment::ZERO,
    };
    let running = summary(JobState::Running, &[], Some(&lease));
    assert_eq!(running, "\"w\" holds it since 1970-01-01T00:00:00.000000Z");
}
