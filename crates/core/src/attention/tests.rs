use serde_json::{Value, json};

use super::*;
use crate::requests::{FailureGroup, ScheduleStats};

const NOW: Moment = Moment::from_us(1_800_000_000_000_000);

fn ago(s: u64) -> Moment {
    NOW.minus(Span::from_s(s))
}

/// A view in the form of the API: the values of a table row over those that all views share.
fn view<T: serde::de::DeserializeOwned>(all: Value, said: Value) -> T {
    let mut view = all;
    for (key, value) in said.as_object().unwrap() {
        view[key] = value.clone();
    }
    serde_json::from_value(view).unwrap()
}

fn queue(said: Value) -> QueueView {
    let counts = json!({"ready": 0, "blocked": 0, "scheduled": 0, "dependent": 0, "running": 0});
    let mut view: QueueView =
        view(json!({"name": "crawl", "paused": false, "workers": 0, "counts": counts}), json!({}));
    for (key, value) in said.as_object().unwrap() {
        let n = || value.as_u64().unwrap();
        match key.as_str() {
            "ready" => view.counts.ready = n(),
            "blocked" => view.counts.blocked = n(),
            "scheduled" => view.counts.scheduled = n(),
            "running" => view.counts.running = n(),
            "workers" => view.workers = n(),
            "oldest" => view.oldest_ready_at = Some(ago(n())),
            "paused" => view.paused = true,
            "until" => view.paused_until = Some(NOW.plus(Span::from_s(n()))),
            "most" => view.settings.max_waiting = Some(n() as u32),
            other => panic!("{other}"),
        }
    }
    view
}

fn limit(said: Value) -> LimitView {
    let all = json!({"name": "site:x", "in_use": 0, "external": 0, "waiting": 0, "over_limit": 0,
        "holders": []});
    view(all, said)
}

fn pool(said: Value) -> PoolView {
    let all = json!({"name": "accounts", "available": 0, "leased": 0, "cooling": 0, "banned": 0,
        "waiting": 0});
    view(all, said)
}

fn holders(s: &[u64]) -> Value {
    let one = |s: &u64| json!({"lease": "l", "holder": "w", "since": ago(*s)});
    s.iter().map(one).collect()
}

/// Replies in which everything is empty that a table row does not set.
#[derive(Default)]
struct Told {
    stats: Stats,
    queues: Vec<QueueView>,
    limits: Vec<LimitView>,
    pools: Vec<PoolView>,
    schedules: Vec<ScheduleView>,
    failures: Failures,
    watched_s: Option<u64>,
}

impl Told {
    fn findings(&self) -> Vec<Finding> {
        let since = |_: &Subject| self.watched_s.map(ago);
        findings(&AttentionReplies {
            now: NOW,
            stats: &self.stats,
            queues: &self.queues,
            limits: &self.limits,
            pools: &self.pools,
            schedules: &self.schedules,
            failures: &self.failures,
            since: &since,
        })
    }

    /// Severity, sentence and fix of each finding, as a line.
    fn said(&self) -> Vec<String> {
        let line =
            |one: Finding| format!("{}: {}; {}", one.severity.as_str(), one.sentence, one.fix);
        self.findings().into_iter().map(line).collect()
    }
}

fn says(told: &Told, expected: &[&str], row: &dyn fmt::Debug) {
    assert_eq!(told.said(), expected, "{row:?}");
}

#[test]
fn a_queue_needs_attention_where_its_jobs_wait_for_a_person() {
    let worker = "start a worker: tenure work crawl -- CMD";
    let more = "start more workers, or see what they do: tenure workers";
    let resume = "resume it: tenure queue resume crawl";
    for (said, watched_s, expected) in [
        (json!({}), None, vec![]),
        (json!({"scheduled": 5}), None, vec![]),
        (json!({"ready": 5, "workers": 1, "oldest": 299}), None, vec![]),
        // All its slots are busy, so it does not ask.
        (json!({"ready": 5, "running": 1, "oldest": 299}), None, vec![]),
        (json!({"blocked": 5, "workers": 1}), None, vec![]),
        (
            json!({"ready": 300, "blocked": 1012, "oldest": 250}),
            None,
            vec![format!("stuck: queue 'crawl' has no worker: 1,312 wait, the oldest ready for 4m10s; {worker}")],
        ),
        (
            json!({"blocked": 1}),
            Some(240),
            vec![format!("stuck: queue 'crawl' has no worker since 4m0s: 1 waits; {worker}")],
        ),
        (
            json!({"ready": 1, "workers": 2, "oldest": 300}),
            None,
            vec![format!("look: the oldest ready job of queue 'crawl' has waited for 5m0s: 1 is ready; {more}")],
        ),
        (json!({"paused": true}), None, vec![]),
        (
            json!({"paused": true, "ready": 2, "oldest": 900}),
            None,
            vec![format!("note: queue 'crawl' is paused until it is resumed: 2 wait; {resume}")],
        ),
        (
            json!({"paused": true, "until": 60, "ready": 2}),
            None,
            vec![format!(
                "note: queue 'crawl' is paused until {}: 2 wait; {resume}",
                NOW.plus(Span::from_s(60))
            )],
        ),
        (json!({"scheduled": 9, "most": 10}), None, vec![]),
        (
            json!({"scheduled": 10, "most": 10}),
            None,
            vec!["look: queue 'crawl' is full (10): pushes are refused; start more workers, or raise it: \
                  tenure queue set crawl --max-waiting N"
                .to_owned()],
        ),
    ] {
        let told = Told { queues: vec![queue(said.clone())], watched_s, ..Told::default() };
        assert_eq!(told.said(), expected, "{said}");
    }
}

#[test]
fn a_full_limit_needs_attention_only_if_stalled_or_watched() {
    let full =
        "look: limit 'site:x' has been full for 12m0s: 4,120 wait; look at it: tenure limit site:x";
    let many: Vec<u64> = vec![720; HOLDERS_SHOWN];
    for (said, watched_s, expected) in [
        (json!({"concurrency": 2, "in_use": 2}), Some(720), vec![]),
        (json!({"concurrency": 2, "in_use": 1, "waiting": 4120}), Some(720), vec![]),
        (json!({"concurrency": 2, "in_use": 2, "waiting": 4120}), None, vec![]),
        (json!({"concurrency": 2, "in_use": 2, "waiting": 4120}), Some(299), vec![]),
        (json!({"concurrency": 2, "in_use": 2, "waiting": 4120}), Some(720), vec![full]),
        (
            json!({"concurrency": 2, "in_use": 1, "external": 1, "waiting": 4120}),
            Some(720),
            vec![full],
        ),
        // The last grant was 12 minutes ago.
        (
            json!({"concurrency": 2, "in_use": 2, "waiting": 4120, "holders": holders(&[9000, 720])}),
            None,
            vec![full],
        ),
        (
            json!({"concurrency": 2, "in_use": 2, "waiting": 4120, "holders": holders(&[9000, 7])}),
            None,
            vec![],
        ),
        // Later grants than those shown may exist, or a place that is taken without a grant.
        (
            json!({"concurrency": 20, "in_use": 20, "waiting": 4120, "holders": holders(&many)}),
            None,
            vec![],
        ),
        (
            json!({"concurrency": 2, "in_use": 2, "resting": 1, "waiting": 9, "holders": holders(&[720])}),
            None,
            vec![],
        ),
        (json!({"concurrency": 0}), None, vec![]),
        (
            json!({"concurrency": 0, "waiting": 1}),
            None,
            vec![
                "stuck: limit 'site:x' is closed (its concurrency is 0): 1 waits; open it: tenure limit set \
                  site:x --concurrency 1",
            ],
        ),
        (json!({"rate": {"count": 1, "per": "1s", "burst": 1}, "waiting": 9}), Some(720), vec![]),
    ] {
        let told = Told { limits: vec![limit(said.clone())], watched_s, ..Told::default() };
        says(&told, &expected, &said);
    }
}

#[test]
fn a_gauge_that_cannot_be_read_needs_attention() {
    for (reading, expected) in [
        (json!(null), vec![]),
        (json!({"asked_at": ago(600), "sum": 3, "external": 1}), vec![]),
        (
            json!({"failed_at": ago(200), "error": "connection refused"}),
            vec![
                "look: the gauge of limit 'site:x' could not be read 3m20s ago: connection refused; look at \
                  it: tenure limit site:x",
            ],
        ),
    ] {
        let gauge = json!({"url": "http://h/x", "count": ["/n"], "every": "10s", "lag": "5s", "stale": "30s",
            "on_stale": "keep", "reading": reading});
        let limits = vec![limit(json!({"concurrency": 2, "gauge": gauge}))];
        says(&Told { limits, ..Told::default() }, &expected, &reading);
    }
}

#[test]
fn a_pool_needs_attention_if_nothing_comes_back_soon() {
    let look = "look at it: tenure pool accounts";
    for (said, watched_s, expected) in [
        (json!({"banned": 5}), Some(720), vec![]),
        (json!({"available": 1, "banned": 5, "waiting": 12}), Some(720), vec![]),
        (json!({"leased": 3, "waiting": 12}), None, vec![]),
        (
            json!({"waiting": 12}),
            None,
            vec!["stuck: pool 'accounts' has no resources: 12 wait; add some: tenure pool add accounts ID".to_owned()],
        ),
        (
            json!({"banned": 5, "waiting": 12}),
            None,
            vec!["stuck: all 5 resources of pool 'accounts' are banned: 12 wait; restore what is well again: \
                  tenure pool restore accounts ID"
                .to_owned()],
        ),
        (
            json!({"banned": 1, "waiting": 1}),
            None,
            vec!["stuck: the only resource of pool 'accounts' is banned: 1 waits; restore what is well again: \
                  tenure pool restore accounts ID"
                .to_owned()],
        ),
        (
            json!({"banned": 1, "cooling": 2, "waiting": 12}),
            None,
            vec![format!("look: pool 'accounts' has nothing free (2 cooling, 1 banned): 12 wait; {look}")],
        ),
        (
            json!({"leased": 3, "waiting": 12}),
            Some(300),
            vec![format!("look: pool 'accounts' has had nothing free for 5m0s (3 in use): 12 wait; {look}")],
        ),
    ] {
        let told = Told { pools: vec![pool(said.clone())], watched_s, ..Told::default() };
        assert_eq!(told.said(), expected, "{said}");
    }
}

#[test]
fn failures_are_reported_once_a_queue_with_the_commonest_error() {
    let group = |queue: &str, kind: &str, error: &str, count: u64| FailureGroup {
        queue: QueueName::parse(queue).unwrap(),
        kind: kind.to_owned(),
        error: error.to_owned(),
        count,
        first_at: ago(60),
        last_at: ago(6),
        job: JobId::parse("j").unwrap(),
    };
    let items = vec![
        group("a", "k", "http #", 1_030),
        group("b", "", "", 1),
        group("a", "", "refused", 10),
        group("c d", "", "gone", 2),
    ];
    let told = Told { failures: Failures { items, partial: false }, ..Told::default() };
    let expected = [
        "look: queue 'a': 1,040 jobs failed in the last hour, 1,030 with \"http #\"; see the errors: tenure \
         failures --queue a",
        "look: queue 'b': 1 job failed in the last hour; see the errors: tenure failures --queue b",
        "look: queue 'c d': 2 jobs failed in the last hour with \"gone\"; see the errors: tenure failures \
         --queue 'c d'",
    ];
    says(&told, &expected, &());
}

#[test]
fn failures_of_at_most_a_tenth_or_an_unknown_share_are_notes() {
    let day = Span::from_s(86_400);
    for (failed, succeeded, retain, severity) in [
        (1, 0, None, AttentionSeverity::Look),
        (1, 8, None, AttentionSeverity::Look),
        (1, 9, None, AttentionSeverity::Note),
        (101, 900, None, AttentionSeverity::Look),
        (100, 900, None, AttentionSeverity::Note),
        (1, 0, Some(day), AttentionSeverity::Look),
        // Succeeded jobs are forgotten sooner than failed ones.
        (1, 0, Some(Span::ZERO), AttentionSeverity::Note),
        (9, 0, Some(Span::from_s(3_599)), AttentionSeverity::Note),
        (9, 0, Some(Span::from_s(3_600)), AttentionSeverity::Look),
    ] {
        let mut crawl = queue(json!({}));
        crawl.settings.retain = retain;
        let items = vec![FailureGroup {
            queue: crawl.name.clone(),
            kind: String::new(),
            error: String::new(),
            count: failed,
            first_at: ago(60),
            last_at: ago(6),
            job: JobId::parse("j").unwrap(),
        }];
        let states = [(JobState::Succeeded, succeeded)].into();
        let stats = Stats { queues: [(crawl.name.clone(), states)].into(), ..Stats::default() };
        let failures = Failures { items, partial: false };
        let told = Told { stats, queues: vec![crawl], failures, ..Told::default() };
        let found: Vec<_> = told.findings().iter().map(|one| one.severity).collect();
        assert_eq!(found, [severity], "{failed} of {succeeded}, kept for {retain:?}");
    }
    assert!(AttentionSeverity::Stuck > AttentionSeverity::Look);
    assert!(AttentionSeverity::Look > AttentionSeverity::Note);
    let severities = [AttentionSeverity::Note, AttentionSeverity::Look, AttentionSeverity::Stuck];
    assert_eq!(severities.map(AttentionSeverity::needs_somebody), [false, true, true]);
}

#[test]
fn a_schedule_needs_attention_if_late_or_its_last_job_failed() {
    let due = |s| {
        let schedules = ScheduleStats { count: 9, paused: 0, due: 3, oldest_due_at: Some(ago(s)) };
        Told { stats: Stats { schedules, ..Stats::default() }, ..Told::default() }
    };
    says(&due(299), &[], &299);
    says(
        &due(300),
        &[
            "look: 3 schedules have moments that did not fire, the oldest due for 5m0s; see which: tenure schedule",
        ],
        &300,
    );
    let schedule = |state: &str| -> ScheduleView {
        let ended = json!({"job": "news@1", "state": state, "finished_at": ago(60)});
        serde_json::from_value(json!({
            "id": "news", "every": "1h", "catch_up_max": 1, "job": {"queue": "q", "payload": 1},
            "last_ended": ended, "created_at": ago(90), "changed_at": ago(90),
        }))
        .unwrap()
    };
    let told = |state| Told { schedules: vec![schedule(state)], ..Told::default() };
    let of_many = |well: usize| {
        let mut schedules = vec![schedule("failed")];
        schedules.resize_with(1 + well, || schedule("succeeded"));
        Told { schedules, ..Told::default() }.findings()[0].severity
    };
    assert_eq!(of_many(8), AttentionSeverity::Look);
    assert_eq!(of_many(9), AttentionSeverity::Note);
    says(&told("succeeded"), &[], &"succeeded");
    says(
        &told("failed"),
        &[
            "look: the last job of schedule 'news' failed 1m0s ago: 'news@1'; look at it: tenure job news@1",
        ],
        &"failed",
    );
}

#[test]
fn what_is_stuck_comes_first_and_a_program_reads_kind_and_name() {
    let mut paused = queue(json!({"paused": true, "until": 60, "ready": 2}));
    paused.name = QueueName::parse("a").unwrap();
    let told = Told {
        queues: vec![paused, queue(json!({"ready": 1}))],
        limits: vec![limit(json!({"concurrency": 0, "waiting": 1}))],
        ..Told::default()
    };
    let found = told.findings();
    let subjects: Vec<String> = found.iter().map(|one| one.subject.to_string()).collect();
    assert_eq!(subjects, ["queue 'crawl'", "limit 'site:x'", "queue 'a'"]);
    assert_eq!(
        serde_json::to_value(&found[1]).unwrap(),
        json!({
            "severity": "stuck",
            "subject": {"kind": "limit", "name": "site:x"},
            "sentence": "limit 'site:x' is closed (its concurrency is 0): 1 waits",
            "fix": "open it: tenure limit set site:x --concurrency 1",
        })
    );
}

#[test]
fn a_subject_is_watched_since_its_first_look_after_a_pause() {
    let (subject, mut watched) =
        (Subject::Limit(LimitName::parse("site:x").unwrap()), WatchedSubjects::default());
    let mut look = |in_use: u64, s: u64| {
        let limits = [limit(json!({"concurrency": 2, "in_use": in_use}))];
        let told = Told::default();
        watched.look(&AttentionReplies {
            now: NOW.plus(Span::from_s(s)),
            stats: &told.stats,
            queues: &[],
            limits: &limits,
            pools: &[],
            schedules: &[],
            failures: &told.failures,
            since: &never_watched,
        });
        watched.since(&subject).map(|since| since.since(NOW).us() / 1_000_000)
    };
    let seen = [look(2, 0), look(3, 60), look(1, 61), look(2, 70), look(2, 90)];
    assert_eq!(seen, [Some(0), Some(0), None, Some(70), Some(70)]);
}

#[test]
fn nothing_is_found_where_all_is_well() {
    says(&Told::default(), &[], &());
}
