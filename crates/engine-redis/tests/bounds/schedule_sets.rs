//! A set of schedules from outside, of any size: compared and applied in portions, whole or not at all, and only what
//! differs is written.

use tenure_core::names::{Owner, QueueName, ScheduleId};
use tenure_core::refusal::Code;
use tenure_core::requests::{
    DeleteSchedule, GetSchedule, ListSchedules, Meant, Page, PutSchedule, SyncSchedules,
};
use tenure_core::schedule::{
    CatchUp, Overlap, ScheduleSettings, ScheduledJob, SyncedSchedules, TimingSpec,
};
use tenure_core::secret::Json;
use tenure_core::time::Span;
use tenure_engine::{CallError, EngineExt};
use tenure_testkit::redis::wanted;

use super::world::{MANY, World, ns};

type Set = Vec<(ScheduleId, ScheduleSettings)>;

fn id(n: usize) -> ScheduleId {
    ScheduleId::parse(&format!("s{n:05}")).expect("an id")
}

fn settings(owner: &str, payload: &str) -> ScheduleSettings {
    let mut job = ScheduledJob::new(QueueName::parse("q").expect("a name"));
    job.payload = Some(Json::from(payload));
    ScheduleSettings {
        owner: Owner::parse(owner).ok(),
        timing: TimingSpec { every: Some(Span::from_s(3_600)), ..TimingSpec::default() },
        overlap: Overlap::default(),
        catch_up: CatchUp::default(),
        catch_up_max: 100,
        job,
    }
}

/// In no order.
fn set(from: usize, to: usize, payload: &str) -> Set {
    let mut set: Set = (from..to).map(|n| (id(n), settings("o", payload))).collect();
    set.reverse();
    set.rotate_left(100);
    set
}

fn sync(schedules: Set) -> SyncSchedules {
    let owner = Owner::parse("o").expect("an owner");
    SyncSchedules { owner, schedules, meant: Meant::Ask, version: None }
}

fn counts(added: u64, updated: u64, unchanged: u64, deleted: u64) -> SyncedSchedules {
    SyncedSchedules { added, updated, unchanged, deleted }
}

impl World {
    /// The payload of each that is there.
    async fn payloads(&self) -> Vec<(ScheduleId, String)> {
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = Page { max: 1_000, cursor };
            let owner = Owner::parse("o").ok();
            let listed = self.ok(ListSchedules { owner, full: true, page }).await;
            let each = listed.items.into_iter();
            found.extend(each.map(|one| {
                let payload = one.settings.job.payload.expect("a full list has payloads");
                (one.id, payload.text().trim_matches('"').to_owned())
            }));
            cursor = listed.next;
            if cursor.is_none() {
                return found;
            }
        }
    }

    /// Rows that were changed in the server since it was started.
    fn changes(&self) -> u64 {
        let info = self.server.ask(&["INFO", "persistence"]).expect("statistics");
        let mut of =
            info.lines().filter_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
        of.next().and_then(|n| n.trim().parse().ok()).expect("a number")
    }

    async fn refused(&self, request: SyncSchedules) -> tenure_core::refusal::Refusal {
        match self.engine.run(&ns(), request).await {
            Err(CallError::Refused(no)) => no,
            other => panic!("it is to be refused: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_set_of_schedules_takes_its_place_in_portions() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    let (done, work) = world.cost(sync(set(0, MANY, "one"))).await;
    assert_eq!(done, counts(MANY as u64, 0, 0, 0));
    assert!(work.calls as usize > 2 * MANY / 256, "compared and applied in portions: {work:?}");
    world.is_whole().await;

    // What does not change is not written.
    let before = world.changes();
    assert_eq!(world.ok(sync(set(0, MANY, "one"))).await, counts(0, 0, MANY as u64, 0));
    let wrote = world.changes() - before;
    assert!(wrote <= 25, "{wrote} changes for nothing");

    let mut changed = set(5, MANY + 7, "one");
    changed
        .iter_mut()
        .filter(|(id, _)| id.as_str() < "s00015")
        .for_each(|(_, its)| *its = settings("o", "two"));
    assert_eq!(world.ok(sync(changed)).await, counts(7, 10, MANY as u64 - 15, 5));
    let found = world.payloads().await;
    assert_eq!(found.len(), MANY + 2);
    assert!(found.iter().all(|(id, payload)| (payload == "two") == (id.as_str() < "s00015")));
    world.is_whole().await;

    // A few in place of many, if that is meant.
    let few = sync(set(0, 300, "one"));
    assert_eq!(world.refused(few.clone()).await.code, Code::RetiresMost);
    assert_eq!(world.refused(sync(Vec::new())).await.code, Code::EmptySet);
    assert_eq!(world.payloads().await.len(), MANY + 2, "nothing was changed");
    let done = world.ok(SyncSchedules { meant: Meant::Yes, ..few }).await;
    assert_eq!((done.added, done.deleted), (5, MANY as u64 - 293));
    assert_eq!(world.payloads().await.len(), 300);
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_item_of_a_large_set_refuses_all_and_is_named() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world
        .ok(PutSchedule {
            schedule: id(900),
            settings: Box::new(settings("other", "its")),
            plan: None,
        })
        .await;
    let set = set(0, 1_000, "one");
    let place = set.iter().position(|(one, _)| *one == id(900));
    let no = world.refused(sync(set)).await;
    assert_eq!((no.code, no.index), (Code::OtherOwner, place));
    assert!(world.payloads().await.is_empty());
    // What was sent is forgotten a minute later.
    world.clock.advance(Span::from_s(61));
    world.set().await;
    world.settle().await;
    let left = world.server.must(&["KEYS", "tenure:{default}s[xvy]:*"]);
    assert!(left.list().is_empty(), "{left:?}");
    world.is_whole().await;
}

/// Nobody ticks here but the test: so what is left when its caller is gone stays so.
#[tokio::test(flavor = "multi_thread")]
async fn a_set_whose_caller_is_gone_is_applied_whole_and_before_later_calls() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    let last = MANY - 1;
    world.ok(sync(set(0, MANY, "old"))).await;
    let payload = async |n: usize| {
        let found = world.ok(GetSchedule { schedule: id(n) }).await;
        found.settings.job.payload.expect("it is shown").text().to_owned()
    };
    let mut rounds = 0;
    // How far the call comes before it is gone is chance: until it is caught in the middle.
    let new = loop {
        rounds += 1;
        assert!(rounds < 50, "a call was never caught in the middle");
        let word = format!("new {rounds}");
        let (engine, new) = (world.engine.clone(), sync(set(1, MANY, &word)));
        let calling = tokio::spawn(async move { engine.run(&ns(), new).await });
        while payload(1).await != format!("{word:?}") {
            assert!(!calling.is_finished() || payload(1).await == format!("{word:?}"), "no word");
        }
        calling.abort();
        let is_gone = calling.await.is_err_and(|why| why.is_cancelled());
        if is_gone && payload(last).await != format!("{word:?}") {
            break word;
        }
    };

    // What the set says of a schedule comes before what a call says that came later.
    let put =
        PutSchedule { schedule: id(last), settings: Box::new(settings("o", "mine")), plan: None };
    assert!(!world.ok(put).await.created);
    world.ok(DeleteSchedule { schedule: id(last - 1) }).await;
    // The next set of this owner waits for this one.
    let next = world.ok(sync(set(1, MANY + 1, &new))).await;
    assert_eq!(next, counts(2, 1, MANY as u64 - 3, 0));
    world.settle().await;
    let found = world.payloads().await;
    assert_eq!(found.len(), MANY);
    assert!(found.iter().all(|(_, payload)| *payload == new));
    world.is_whole().await;
}
