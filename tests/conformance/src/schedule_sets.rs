//! The whole set of schedules of an owner.

use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::schedule::SyncedSchedules;

use crate::bench::Bench;
use crate::calls::schedules::*;
use crate::words::*;

pub(crate) async fn a_sync_adds_updates_deletes_and_leaves_state_alone(b: &mut Bench) {
    let start = tenure_core::moments::round_up(b.now().plus(s(30)));
    let one = || every_from(s(60), start);
    let done = b.sync_of("mine", vec![("a", one()), ("b", one()), ("c", one())]).await;
    assert_eq!(done, SyncedSchedules { added: 3, ..Default::default() });
    b.leap_to(start).await;
    b.ok(PauseSchedule { schedule: schedule("b"), until: None }).await;
    let changed = one().making(|job| job.kind = "other".to_owned());
    let set = vec![("a", one()), ("b", changed), ("d", one())];
    let done = b.sync_of("mine", set).await;
    assert_eq!(done, SyncedSchedules { added: 1, updated: 1, unchanged: 1, deleted: 1 });
    b.refused(Code::ScheduleNotFound, GetSchedule { schedule: schedule("c") }).await;
    let b_now = b.schedule("b").await;
    assert!(b_now.paused);
    assert_eq!((b_now.fired, b_now.settings.job.kind.as_str()), (1, "other"));
    assert_eq!(b.schedule("a").await.fired, 1);
    assert_eq!(b.schedule("d").await.settings.owner, Some(owner("mine")));
}

pub(crate) async fn a_set_that_is_probably_not_meant_is_refused(b: &mut Bench) {
    let all = || ["a", "b", "c"].map(|id| (id, every(s(60)))).to_vec();
    b.sync_of("mine", all()).await;
    b.refused(Code::EmptySet, sync_of("mine", Vec::new())).await;
    b.refused(Code::RetiresMost, sync_of("mine", all()[..1].to_vec())).await;
    b.ok(SyncSchedules { version: Some(7), ..sync_of("mine", all()) }).await;
    let older = SyncSchedules { version: Some(6), ..sync_of("mine", all()) };
    b.refused(Code::StaleSync, older).await;
    let meant = SyncSchedules { meant: Meant::Yes, ..sync_of("mine", Vec::new()) };
    assert_eq!(b.ok(meant).await.deleted, 3);
}

pub(crate) async fn an_id_of_another_owner_refuses_the_whole_set(b: &mut Bench) {
    b.put("theirs", every(s(60)).of("other")).await;
    b.put("nobodys", every(s(60))).await;
    for id in ["theirs", "nobodys"] {
        let set = sync_of("mine", vec![("a", every(s(60))), (id, every(s(60)))]);
        let no = b.refused(Code::OtherOwner, set).await;
        assert_eq!(no.index, Some(1), "{id}");
    }
    b.refused(Code::ScheduleNotFound, GetSchedule { schedule: schedule("a") }).await;
}

pub(crate) async fn one_bad_item_refuses_the_whole_set(b: &mut Bench) {
    for (set, code) in [
        (cron("61 * * * *", "UTC"), Code::InvalidField),
        (cron("* * * * *", "Nowhere"), Code::UnknownZone),
        (every(s(60)).making(|job| job.needs = Some(vec![need("none")])), Code::UnknownLimit),
    ] {
        let no = b.refused(code, sync_of("mine", vec![("a", every(s(60))), ("bad", set)])).await;
        assert_eq!(no.index, Some(1));
    }
    let listed = b.ok(ListSchedules::default()).await;
    assert!(listed.items.is_empty(), "{listed:?}");
}

pub(crate) async fn ten_thousand_intervals_are_spread_over_their_period(b: &mut Bench) {
    let ids: Vec<String> = (0..10_000).map(|n| format!("s{n}")).collect();
    for part in ids.chunks(1_000) {
        let set = part.iter().map(|id| (id.as_str(), every(hours(1)))).collect();
        b.ok(SyncSchedules { meant: Meant::Yes, ..sync_of(&format!("o{}", part[0]), set) }).await;
    }
    let mut minutes = [0u32; 60];
    let mut page = Page { max: 1_000, cursor: None };
    loop {
        let listed = b.ok(ListSchedules { page, ..ListSchedules::default() }).await;
        for one in &listed.items {
            let at = one.next_at.expect("a moment").us() / 60_000_000 % 60;
            minutes[at as usize] += 1;
        }
        let Some(next) = listed.next else { break };
        page = Page { max: 1_000, cursor: Some(next) };
    }
    assert_eq!(minutes.iter().sum::<u32>(), 10_000);
    // 167 a minute on average; a fair spread stays well within half and twice as many.
    assert!(minutes.iter().all(|n| (80..330).contains(n)), "{minutes:?}");
}
