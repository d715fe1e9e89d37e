//! Events in their order, and their readers.

use tenure_core::events::{BlockedOn, Event, EventFilter, EventId, EventType, GapWhy};
use tenure_core::job::OnConflict;
use tenure_core::lease::{Later, Verdict};
use tenure_core::names::Namespace;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::{PoolSettings, QueueSettings};

use crate::bench::Bench;
use crate::calls::events::*;
use crate::calls::flows::*;
use crate::calls::schedules::{every_from, schedule};
use crate::words::*;

pub(crate) async fn every_change_of_a_job_is_an_event_in_order(b: &mut Bench) {
    let mark = b.mark().await;
    b.push(job("q").id("a").delay(s(5)).retry(retry(3, 3, fixed(s(2))))).await;
    b.pass(s(5)).await;
    let lease = b.take("q").await;
    b.settle(failed(&lease)).await;
    b.pass(s(2)).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    let expected = [
        "job.pushed a",
        "job.ready a why due",
        "job.granted a attempt 1",
        "job.retrying a attempt 1 error it broke",
        "job.ready a why due",
        "job.granted a attempt 2",
        "job.succeeded a attempt 2",
    ];
    assert_eq!(b.heard(mark).await, expected);
    let events = b.since(mark).await;
    let granted = &events[5].happened;
    assert_eq!((granted.at, granted.about.queue.as_ref()), (b.now(), Some(&queue("q"))));
    assert_eq!(granted.about.lease, lease.lease);
    assert_eq!(granted.about.fence, Some(lease.fence));
    assert_eq!(granted.about.holder.as_deref(), Some(lease.holder.as_str()));
    assert_eq!(events[6].happened.about.lease, lease.lease);
    assert_eq!(events[3].happened.about.run_at, Some(events[4].happened.at));
    let numbers: Vec<u64> = events.iter().map(|event| event.id.number).collect();
    let first = mark.number + 1;
    assert_eq!(numbers, (first..first + 7).collect::<Vec<_>>(), "without holes");
}

pub(crate) async fn each_end_of_a_lease_has_its_event(b: &mut Bench) {
    b.push_all(jobs("q", "j", 7)).await;
    let leases = b.take_all("q", 7).await;
    let ids: Vec<String> = leases.iter().map(|lease| job_of(lease).to_owned()).collect();
    let mark = b.mark().await;
    b.settle(succeeded(&leases[0])).await;
    b.settle(failed_for_good(&leases[1])).await;
    b.settle(failed_until(&leases[2], s(600))).await;
    b.settle(snoozed(&leases[3], s(600))).await;
    b.settle(released(&leases[4])).await;
    b.cancel(&ids[5]).await;
    // A second cancel changes nothing.
    b.cancel(&ids[5]).await;
    b.settle(released(&leases[5])).await;
    b.ok(ForceLease { lease: id_of(&leases[6]) }).await;
    let lines = [
        format!("job.succeeded {} attempt 1", ids[0]),
        format!("job.failed {} attempt 1 error it broke", ids[1]),
        format!("job.retrying {} attempt 1 error it broke", ids[2]),
        format!("job.snoozed {} attempt 1", ids[3]),
        format!("job.released {} attempt 1", ids[4]),
        format!("job.cancel_requested {}", ids[5]),
        format!("job.cancelled {} attempt 1", ids[5]),
        format!("job.lost {} attempt 1", ids[6]),
    ];
    assert_eq!(b.heard(mark).await, lines);
    // The job that was asked to stop has two events.
    let with_ask = leases[..6].iter().chain(&leases[5..]);
    for (event, lease) in b.since(mark).await.iter().zip(with_ask) {
        assert_eq!(event.happened.about.lease, lease.lease, "{event:?}");
    }
}

pub(crate) async fn a_lost_lease_is_told_with_its_error(b: &mut Bench) {
    b.push(job("q").id("a").timeout(s(600))).await;
    b.granted(b.ask("q").ttl(s(5))).await;
    let mark = b.mark().await;
    b.pass(s(6)).await;
    let events = b.since(mark).await;
    let lost = &events[0].happened;
    assert_eq!((events.len(), lost.kind, lost.about.attempt), (1, EventType::JobLost, Some(1)));
    assert!(lost.about.error.is_some() && lost.about.run_at > Some(lost.at), "{lost:?}");
}

pub(crate) async fn what_becomes_of_a_waiting_job_is_told(b: &mut Bench) {
    let mark = b.mark().await;
    b.push_all(["a", "b", "c"].map(|id| job("q").id(id).delay(s(600))).to_vec()).await;
    b.push(job("q").id("e").expires(b.now().plus(s(5)))).await;
    b.ok(RunJobNow { job: job_ref("a") }).await;
    let patch = PatchJob { priority: Patch::Set(3), ..crate::patch::patch("b") };
    b.ok(patch).await;
    b.cancel("b").await;
    b.ok(RetryJob { job: job_ref("b"), finished_at: None }).await;
    b.ok(DeleteJob { job: job_ref("c") }).await;
    b.cancel("a").await;
    b.ok(DeleteJob { job: job_ref("a") }).await;
    b.pass(s(6)).await;
    let lines = [
        "job.pushed a",
        "job.pushed b",
        "job.pushed c",
        "job.pushed e",
        "job.ready a why run_now",
        "job.changed b",
        "job.cancelled b",
        "job.ready b why retry",
        "job.deleted c",
        "job.cancelled a",
        "job.deleted a",
        "job.cancelled e error expired",
    ];
    assert_eq!(b.heard(mark).await, lines);
}

pub(crate) async fn a_repeat_and_a_refused_call_make_no_event(b: &mut Bench) {
    b.push(job("q").id("a").unique(unique("k", OnConflict::Keep))).await;
    b.set_limit("l", cap(1)).await;
    b.set_queue("q", QueueSettings { max_waiting: Some(1), ..QueueSettings::default() }).await;
    let mark = b.mark().await;
    // The same job, another holder of its key, the same settings.
    b.push(job("q").id("a")).await;
    b.push(job("q").id("other").unique(unique("k", OnConflict::Keep))).await;
    b.set_limit("l", cap(1)).await;
    b.set_queue("q", QueueSettings { max_waiting: Some(1), ..QueueSettings::default() }).await;
    b.no_push(Code::QueueFull, job("q").id("b")).await;
    b.no_push(Code::UnknownLimit, job("r").id("c").needs([need("nobody")])).await;
    b.refused(Code::JobNotFound, CancelJob { job: job_ref("nobody") }).await;
    b.ok(ResumeLimit { limit: limit("l") }).await;
    b.ok(ResumeQueue { queue: queue("q") }).await;
    assert_eq!(b.heard(mark).await, [""; 0]);
    // A repeated lease call grants nothing more, and a repeated settle ends nothing.
    let ask = b.ask("q").request("r1");
    let lease = b.granted(ask.clone()).await;
    b.granted(ask).await;
    b.settle(succeeded(&lease)).await;
    b.settle(succeeded(&lease)).await;
    assert_eq!(b.heard(mark).await, ["job.granted a attempt 1", "job.succeeded a attempt 1"]);
}

pub(crate) async fn a_replaced_job_is_told_as_replaced(b: &mut Bench) {
    let new = || job("q").id("a").unique(unique("k", OnConflict::Replace));
    b.push(new().delay(s(60))).await;
    let mark = b.mark().await;
    b.push(job("q").unique(unique("k", OnConflict::Replace)).delay(s(30))).await;
    assert_eq!(b.heard(mark).await, ["job.replaced a"]);
}

pub(crate) async fn a_head_that_lacks_a_need_is_told_once(b: &mut Bench) {
    b.set_limit("l", cap(1)).await;
    let held = b.hold([need("l")]).await;
    let mark = b.mark().await;
    b.push_all(["a", "b"].map(|id| job("q").id(id).needs([need("l")])).to_vec()).await;
    for _ in 0..3 {
        b.none("q").await;
    }
    let blocked = EventFilter { limit: Some(limit("l")), ..EventFilter::default() };
    let of_a = b.ok(reading(mark, blocked.clone())).await.items;
    assert_eq!(of_a.iter().map(line).collect::<Vec<_>>(), ["job.blocked a"]);
    assert_eq!(of_a[0].happened.about.on, Some(BlockedOn::Limit(limit("l"))));
    b.settle(released(&held)).await;
    b.take_job("q", "a").await;
    b.none("q").await;
    let all = b.ok(reading(mark, blocked)).await.items;
    assert_eq!(all.iter().map(line).collect::<Vec<_>>(), ["job.blocked a", "job.blocked b"]);
}

pub(crate) async fn leases_without_a_job_are_told(b: &mut Bench) {
    b.set_limit("l", cap(2)).await;
    let mark = b.mark().await;
    let held = b.hold([need("l")]).await;
    b.settle(released(&held)).await;
    let lost = b.hold([need("l")]).await;
    b.ok(ForceLease { lease: id_of(&lost) }).await;
    let lines = ["lease.granted", "lease.ended released", "lease.granted", "lease.ended lost"];
    assert_eq!(b.heard(mark).await, lines);
    let events = b.since(mark).await;
    for (event, lease) in events.iter().zip([&held, &held, &lost, &lost]) {
        let about = &event.happened.about;
        assert_eq!((&about.lease, about.fence), (&lease.lease, Some(lease.fence)), "{event:?}");
        assert_eq!(about.holder.as_deref(), Some(lease.holder.as_str()));
    }
}

pub(crate) async fn settings_that_change_are_told(b: &mut Bench) {
    let mark = b.mark().await;
    b.set_limit("l", cap(1)).await;
    b.set_limit("l", cap(2)).await;
    b.ok(PauseLimit { limit: limit("l"), until: Later::For(s(60)) }).await;
    b.ok(ResumeLimit { limit: limit("l") }).await;
    b.ok(ObserveLimit { limit: limit("l"), external: 3, hold: Some(s(5)) }).await;
    b.ok(DeleteLimit { limit: limit("l") }).await;
    b.set_queue("q", QueueSettings::default()).await;
    b.ok(PauseQueue { queue: queue("q"), until: None }).await;
    b.ok(ResumeQueue { queue: queue("q") }).await;
    b.ok(DeleteQueue { queue: queue("q") }).await;
    let lines = [
        "limit.changed l",
        "limit.changed l",
        "limit.paused l",
        "limit.resumed l",
        "limit.observed l external 3",
        "limit.deleted l",
        "queue.changed q",
        "queue.paused q",
        "queue.resumed q",
        "queue.deleted q",
    ];
    assert_eq!(b.heard(mark).await, lines);
    let events = b.since(mark).await;
    let until = |at: usize| events[at].happened.about.until;
    assert_eq!(until(2), Some(b.now().plus(s(60))));
    assert_eq!((until(4), until(7)), (Some(b.now().plus(s(5))), None));
}

pub(crate) async fn what_happens_to_resources_is_told(b: &mut Bench) {
    let mark = b.mark().await;
    let settings = PoolSettings { quarantine: s(60), ..plain_pool() };
    b.ok(PutPool { pool: pool("p"), settings }).await;
    let resources = vec![thing("a"), thing("b"), thing("c")];
    let sync =
        |resources| SyncResources { pool: pool("p"), resources, meant: Meant::Yes, version: None };
    b.ok(sync(resources)).await;
    b.ok(sync(vec![thing("a"), thing("b")])).await;
    let (pool_name, id) = (pool("p"), |id: &str| resource(id));
    let until = Later::For(s(5));
    b.ok(CoolResource { pool: pool_name.clone(), resource: id("a"), until }).await;
    b.ok(RestoreResource { pool: pool_name.clone(), resource: id("a") }).await;
    let held = b.hold([only("p", "a")]).await;
    let verdict = Verdict::Ban { reason: Some("captcha".to_owned()) };
    b.settle(released(&held).verdict("p", "a", verdict)).await;
    let held = b.hold([only("p", "b")]).await;
    b.ok(ForceLease { lease: id_of(&held) }).await;
    b.ok(DeletePool { pool: pool_name }).await;
    let expected = [
        "pool.changed p",
        "pool.synced p",
        "resource.retired p c",
        "pool.synced p",
        "resource.cooling p a",
        "resource.restored p a",
        "lease.granted",
        "resource.banned p a why captcha",
        "lease.ended released",
        "lease.granted",
        "resource.cooling p b",
        "lease.ended lost",
        "pool.deleted p",
    ];
    let told = b.heard(mark).await;
    let told: Vec<&str> = told.iter().map(|line| without_reason(line)).collect();
    assert_eq!(told, expected);
}

/// The reason of a rest is a sentence, which is compared elsewhere.
fn without_reason(line: &str) -> &str {
    if line.starts_with("resource.cooling") {
        line.split(" why ").next().unwrap_or(line)
    } else {
        line
    }
}

pub(crate) async fn what_happens_to_schedules_is_told(b: &mut Bench) {
    let mark = b.mark().await;
    let mut set = every_from(s(60), b.now().plus(s(10)));
    set.timing.ends_at = Some(b.now().plus(s(140)));
    let start = b.put("news", set).await.next_at.expect("a moment");
    b.leap_to(start).await;
    // Its job waits, so the next occurrence is skipped.
    b.leap_to(start.plus(s(60))).await;
    let id = schedule("news");
    let until = Some(Later::For(s(5)));
    b.ok(PauseSchedule { schedule: id.clone(), until }).await;
    b.ok(ResumeSchedule { schedule: id.clone() }).await;
    b.leap_to(start.plus(s(120))).await;
    b.ok(DeleteSchedule { schedule: id }).await;
    let told = b.heard(mark).await;
    let job = crate::calls::schedules::job_at("news", start);
    let lines = [
        "schedule.changed news".to_owned(),
        format!("job.pushed {job}"),
        format!("schedule.fired {job}"),
        "schedule.skipped news why overlap n 1".to_owned(),
        "schedule.paused news".to_owned(),
        "schedule.resumed news".to_owned(),
        "schedule.skipped news why overlap n 1".to_owned(),
        "schedule.ended news".to_owned(),
        "schedule.deleted news".to_owned(),
    ];
    assert_eq!(told, lines);
    let events = b.since(mark).await;
    assert_eq!(events[1].happened.about.schedule, Some(schedule("news")));
    assert_eq!(events[2].happened.about.moment, Some(start));
    assert_eq!(events[3].happened.about.moment, Some(start.plus(s(60))));
}

pub(crate) async fn jobs_of_a_flow_are_told_until_it_is_finished(b: &mut Bench) {
    let mark = b.mark().await;
    b.push(job("q").id("p").in_flow("f")).await;
    b.push(job("q").id("c").after(["p"])).await;
    let lease = b.take_job("q", "p").await;
    b.settle(succeeded(&lease)).await;
    let lease = b.take_job("q", "c").await;
    b.settle(failed_for_good(&lease)).await;
    b.told().await;
    let lines = [
        "job.pushed p",
        "job.pushed c",
        "job.granted p attempt 1",
        "job.succeeded p attempt 1",
        "job.ready c why parents",
        "job.granted c attempt 1",
        "job.failed c attempt 1 error it broke",
        "flow.finished f",
    ];
    assert_eq!(b.heard(mark).await, lines);
    let filter = EventFilter { flow: Some(flow("f")), ..EventFilter::default() };
    let of_flow = b.ok(reading(mark, filter)).await.items;
    assert_eq!(of_flow.len(), lines.len(), "each of them carries its flow");
    let counts = of_flow[7].happened.about.counts.expect("a finished flow has counts");
    assert_eq!((counts.unfinished, counts.succeeded, counts.failed), (0, 1, 1));
}

pub(crate) async fn a_child_of_a_failed_parent_is_told_as_cancelled(b: &mut Bench) {
    b.push_all(vec![job("q").id("p"), job("q").id("c").after(["p"])]).await;
    let lease = b.take_job("q", "p").await;
    let mark = b.mark().await;
    b.settle(failed_for_good(&lease)).await;
    b.push(job("q").id("late").after(["p"])).await;
    let lines = [
        "job.failed p attempt 1 error it broke",
        "job.cancelled c error parent_failed",
        "job.pushed late",
        "job.cancelled late error parent_failed",
    ];
    assert_eq!(b.heard(mark).await, lines);
}

pub(crate) async fn a_follow_up_is_told_before_the_end_of_its_job(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let lease = b.take("q").await;
    let mark = b.mark().await;
    b.settle(succeeded(&lease).pushing(job("q").id("b"))).await;
    assert_eq!(b.heard(mark).await, ["job.pushed b", "job.succeeded a attempt 1"]);
}

pub(crate) async fn a_reader_that_comes_back_misses_nothing(b: &mut Bench) {
    b.push(job("other")).await;
    let mark = b.mark().await;
    b.push_all(jobs("q", "j", 5)).await;
    let all = b.since(mark).await;
    let mut read = Vec::new();
    let mut next = mark;
    for _ in 0..5 {
        let page = b.ok(ReadEvents { max: 1, ..reading(next, EventFilter::default()) }).await;
        assert_eq!(page.gap, None);
        next = page.next;
        read.extend(page.items);
    }
    assert_eq!(read, all);
    assert_eq!(next, all[4].id);
    if !b.reopen().await {
        return;
    }
    let read = b.ok(reading(mark, EventFilter::default())).await;
    match read.gap {
        None => assert_eq!(read.items[..5], all, "the same events have the same ids"),
        // A store that does not sync each answer cannot know that it has lost nothing.
        Some(gap) => {
            assert_eq!((gap.after, gap.why), (mark, GapWhy::Restarted));
            let lines = |events: &[Event]| events.iter().map(line).collect::<Vec<_>>();
            assert_eq!(lines(&read.items[1..6]), lines(&all));
        }
    }
    b.push(job("q").id("after")).await;
    assert_eq!(b.heard(read.next).await, ["job.pushed after"]);
}

pub(crate) async fn an_id_that_this_stream_never_had_is_answered_with_a_gap(b: &mut Bench) {
    let mark = b.mark().await;
    b.push(job("q").id("a")).await;
    let all = b.since(mark).await;
    let EventId { life, number } = all[0].id;
    for after in [EventId { life: life + 1, number: 1 }, EventId { life, number: number + 1_000 }] {
        let read = b.ok(reading(after, EventFilter::default())).await;
        let gap = read.gap.expect("an id that is not of this stream");
        assert_eq!((gap.after, gap.why), (after, GapWhy::Restarted));
        let kept = ReadEvents { since: EventsSince::First, max: 1_000, ..ReadEvents::default() };
        let kept = b.ok(kept).await;
        assert_eq!((read.items, read.next), (kept.items.clone(), kept.next));
        assert_eq!(Some(gap.first), kept.items.first().map(|event| event.id));
    }
}

pub(crate) async fn a_filter_that_matches_nothing_moves_the_reader_on(b: &mut Bench) {
    let mark = b.mark().await;
    b.push_all(jobs("q", "j", 3)).await;
    let read = b.ok(reading(mark, only_types(&[EventType::FlowFinished]))).await;
    assert!(read.items.is_empty() && read.gap.is_none(), "{read:?}");
    assert_eq!(read.next, b.mark().await);
}

pub(crate) async fn events_are_read_by_what_they_are_about(b: &mut Bench) {
    let mark = b.mark().await;
    b.push(job("q").id("a")).await;
    b.push(job("r").id("b")).await;
    b.set_limit("l", cap(1)).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease)).await;
    let lines = async |filter: EventFilter| {
        let read = b.ok(reading(mark, filter)).await;
        read.items.iter().map(line).collect::<Vec<_>>()
    };
    let of_job = EventFilter { job: Some(job_id("b")), ..EventFilter::default() };
    assert_eq!(lines(of_job).await, ["job.pushed b"]);
    let of_queue = EventFilter { queue: Some(queue("q")), ..EventFilter::default() };
    let expected = ["job.pushed a", "job.granted a attempt 1", "job.succeeded a attempt 1"];
    assert_eq!(lines(of_queue.clone()).await, expected);
    let types = vec![EventType::JobPushed, EventType::LimitChanged];
    let of_types = EventFilter { types: types.clone(), ..EventFilter::default() };
    assert_eq!(lines(of_types).await, ["job.pushed a", "job.pushed b", "limit.changed l"]);
    assert_eq!(lines(EventFilter { types, ..of_queue }).await, ["job.pushed a"]);
}

pub(crate) async fn who_waits_for_events_gets_the_next(b: &mut Bench) {
    let mark = b.mark().await;
    let waiting = b.reads(mark, s(60));
    let other = b.start(ReadEvents {
        wait: s(60),
        ..reading(mark, EventFilter { queue: Some(queue("other")), ..EventFilter::default() })
    });
    b.push(job("q").id("a")).await;
    let read = waiting.answer().await;
    assert_eq!(read.items.iter().map(line).collect::<Vec<_>>(), ["job.pushed a"]);
    assert!(!other.is_answered(), "nothing happened there yet");
    b.push(job("other").id("b")).await;
    let read = other.answer().await;
    assert_eq!(read.items.iter().map(line).collect::<Vec<_>>(), ["job.pushed b"]);
}

pub(crate) async fn a_wait_for_events_that_is_over_answers_none(b: &mut Bench) {
    b.push(job("q").id("a")).await;
    let mark = b.mark().await;
    let waiting = b.reads(mark, s(5));
    // The call may not have arrived yet when time begins to pass.
    b.eventually("the wait is over", async || {
        b.pass(s(1)).await;
        waiting.is_answered()
    })
    .await;
    let read = waiting.answer().await;
    assert!(read.items.is_empty() && read.gap.is_none(), "{read:?}");
    assert_eq!(read.next, mark);
}

pub(crate) async fn a_draining_engine_answers_readers_of_events(b: &mut Bench) {
    let mark = b.mark().await;
    let waiting = b.reads(mark, s(60));
    b.engine().drain();
    let read = waiting.answer().await;
    assert_eq!((read.items.len(), read.next), (0, mark));
}

pub(crate) async fn nothing_of_what_jobs_carry_is_ever_in_an_event(b: &mut Bench) {
    let mark = b.mark().await;
    let secret = "\"hush-hush\"";
    b.set_pool("p", plain_pool(), vec![thing("a").data(secret)]).await;
    let new = job("q").id("a").payload(secret).label("l", "hush-hush").needs([any_of("p")]);
    b.push(new).await;
    let lease = b.take("q").await;
    let result = Some(json(secret));
    b.settle(ending(&lease, tenure_core::lease::Ending::Succeeded { result }).reporting(secret))
        .await;
    let read = b.ok(reading(mark, EventFilter::default())).await;
    let text = serde_json::to_string(&read).expect("events are written as JSON");
    assert!(read.items.len() >= 4 && !text.contains("hush"), "{text}");
}

pub(crate) async fn namespaces_have_streams_of_their_own(b: &mut Bench) {
    let mark = b.mark().await;
    let other = Namespace::parse("other").expect("a name");
    let push = Push { jobs: vec![job("q").id("a")], answer: PushAnswer::Ids };
    b.call_in(&other, push).await.expect("a push");
    assert_eq!(b.heard(mark).await, [""; 0]);
    let first = ReadEvents { since: EventsSince::First, ..ReadEvents::default() };
    let read = b.call_in(&other, first).await.expect("a page");
    assert_eq!(read.items.iter().map(line).collect::<Vec<_>>(), ["job.pushed a"]);
}

pub(crate) async fn totals_show_the_stream(b: &mut Bench) {
    let stats = b.ok(GetStats).await;
    assert_eq!((stats.events, stats.flows), (EventStats::default(), 0));
    b.push(job("q").id("a").in_flow("f")).await;
    let stats = b.ok(GetStats).await;
    let first = ReadEvents { since: EventsSince::First, ..ReadEvents::default() };
    let read = b.ok(first).await;
    assert_eq!(stats.events.first, read.items.first().map(|event| event.id));
    assert_eq!(stats.events.last, Some(read.next));
    assert!(stats.events.bytes > 0 && stats.flows == 1, "{stats:?}");
}
