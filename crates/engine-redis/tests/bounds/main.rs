//! No call does more than a bounded amount of work, however much there is: what is left is done by further
//! calls. Counted in commands and in what was moved, since time says little on a machine that others use.

mod portions;
mod schedule_sets;
mod world;

use tenure_core::job::{Need, NewJob};
use tenure_core::names::{Group, Tag};
use tenure_core::requests::{DeletePool, GetPool, Lease, ListLeases, Page, PutPool};
use tenure_core::settings::PoolSettings;
use tenure_core::time::{Moment, Span};
use tenure_engine::Clock;
use tenure_testkit::redis::wanted;

use self::world::{LITTLE, MANY, MUCH, STEPS, World, cancel_one, job, ns, of, pool, queue, site};

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_limit_moves_nobody_who_stands_aside() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.limit("big:x", 10).await;
    world.limit("site:*", 1).await;
    world.push((0..MANY).map(|n| job("q", n, vec![of("big:x", 5), site(n)])).collect()).await;
    world.limit("big:x", 1).await;
    let (leased, work) = world.take("q", 1).await;
    assert!(leased.is_empty() && work.calls >= 5, "they are put aside by several calls: {work:?}");
    let aside = "dm:lbig:x";
    assert_eq!(world.size(aside), MANY);
    // It still fits none of them: they are tried in this call and by ticks, and stand aside again.
    let work = world.limit("big:x", 2).await;
    assert!(work.commands < LITTLE && world.size(aside) >= MANY - STEPS, "{work:?}");
    let (ticks, most) = world.settle().await;
    assert!(ticks >= (MANY / STEPS) as u64 && most < LITTLE, "{ticks} ticks, {most} commands");
    assert_eq!(world.size(aside), MANY);
    // Now it fits all, and changes again while they are tried.
    for weight in [10, 11, 12] {
        let work = world.limit("big:x", weight).await;
        assert!(work.commands < LITTLE && world.size(aside) >= MANY - 3 * STEPS, "{work:?}");
    }
    world.is_whole().await;
    world.settle().await;
    assert_eq!(world.size(aside), 0);
    let (leased, _) = world.take("q", 10).await;
    assert_eq!(leased.len(), 2, "two of weight 5 fit into 12");
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_pool_costs_the_same_however_many_doors_it_has() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    let settings = PoolSettings::default();
    world.ok(PutPool { pool: pool(), settings }).await;
    let tagged = |n: usize| Need::Pool {
        pool: pool(),
        tag: Tag::parse(&format!("t{n}")).ok(),
        prefer: None,
        id: None,
        count: 1,
    };
    world.push((0..MANY).map(|n| job("q", n, vec![tagged(n)])).collect()).await;
    assert!(world.take("q", 1).await.0.is_empty(), "no resource is there");
    assert_eq!(world.size("pd:accounts"), MANY, "each stands at a door of its own");
    let settings = PoolSettings { cooldown: Span::from_s(1), ..settings };
    let (_, work) = world.cost(PutPool { pool: pool(), settings }).await;
    assert!(work.commands < LITTLE && world.size("pend") <= STEPS, "{work:?}");
    let (shown, work) = world.cost(GetPool { pool: pool() }).await;
    assert!(shown.waiting == MANY as u64 && work.commands < LITTLE, "{work:?}");
    world.is_whole().await;
    let (ticks, most) = world.settle().await;
    assert!(ticks >= (MANY / STEPS) as u64 && most < MUCH, "{ticks} ticks, {most} commands");
    // Without the pool they never fit, with it they wait for a resource again.
    let (_, work) = world.cost(DeletePool { pool: pool() }).await;
    assert!(work.commands < LITTLE, "{work:?}");
    world.settle().await;
    assert_eq!(world.size("dm:paccounts\0tt7"), 0, "one is few: it lies in its door's own record");
    let (_, work) = world.cost(PutPool { pool: pool(), settings }).await;
    assert!(work.commands < LITTLE, "{work:?}");
    let (_, most) = world.settle().await;
    assert!(most < MUCH, "{most} commands");
    assert_eq!(world.ok(GetPool { pool: pool() }).await.waiting, MANY as u64);
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_over_many_queues_at_a_door_costs_a_step_for_each() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.limit("one", 1).await;
    let own = |n: usize| format!("q{n}");
    world.push((0..MANY).map(|n| job(&own(n), n, vec![of("one", 1)])).collect()).await;
    let (held, _) = world.take(&own(0), 1).await;
    assert_eq!(held.len(), 1);
    for first in (1..MANY).step_by(20) {
        let last = MANY.min(first + 20);
        let mut lease = Lease::jobs((first..last).map(|n| queue(&own(n))).collect(), 1);
        lease.worker.id = tenure_core::names::WorkerId::parse("w").ok();
        assert!(world.ok(lease).await.leases.is_empty());
    }
    world.settle().await;
    assert_eq!(world.size("ds:lone"), MANY - 1, "all but the first stand there");
    world.succeed(&held).await;
    let (ticks, most) = world.settle().await;
    assert!(ticks >= (MANY / STEPS) as u64 && most < 600, "{ticks} ticks, {most} commands");
    // One has it after another; a call looks at some queues behind the last, and a tick goes on with it.
    for n in [700, 3, 1_400] {
        let (leased, work) = world.take(&own(n), 1).await;
        assert!(work.commands < MUCH * work.calls, "{work:?}");
        world.succeed(&leased).await;
        let (ticks, most) = world.settle().await;
        assert!(ticks > 1 && most < 600, "{ticks} ticks, {most} commands");
    }
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_that_are_out_stand_with_their_bundle_a_step_each() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.limit("api", MANY as u32).await;
    world.limit("site:*", 1).await;
    // Two for each site: of each the first runs, and the second stands at the site's door.
    let both = |n: usize| job("q", n, vec![of("api", 1), site(n % MANY)]);
    world.push((0..2 * MANY).map(both).collect()).await;
    let mut running = Vec::new();
    while running.len() < MANY {
        let (leased, work) = world.take("q", 500).await;
        assert!(work.commands < MUCH * work.calls, "{work:?}");
        running.extend(leased);
    }
    world.limit("api", MANY as u32 + 1).await;
    assert!(world.take("q", 1).await.0.is_empty(), "no site is free");
    // All sites become free and nobody asks: each opens its second, which is out for it.
    world.succeed(&running).await;
    world.settle().await;
    // Then one takes the last of the limit that all need, and the others stand at its door.
    world.limit("api", 1).await;
    let (leased, work) = world.take("q", 2).await;
    assert!(leased.len() == 1 && work.commands < LITTLE * 20, "{work:?}");
    let (ticks, most) = world.settle().await;
    assert!(ticks >= (MANY / STEPS / 2) as u64 && most < 1_000, "{ticks} ticks, {most} commands");
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_clock_that_stepped_back_cuts_is_cut_by_several_calls() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.limit("site:*", 1).await;
    world.push((0..MANY).map(|n| job("q", n, vec![site(n)])).collect()).await;
    let mut held = 0;
    while held < MANY {
        held += world.take("q", 1_000).await.0.len();
    }
    let back = Moment::from_us(world.clock.now().us() - Span::from_s(3_600).us());
    world.server.must(&["SET", "tenure:{default}now", &back.us().to_string()]);
    world.server.must(&["CONFIG", "RESETSTAT"]);
    assert!(world.engine.testing_tick(&ns()).await.expect("it ticks"), "not all was cut");
    let first = world.work().commands;
    assert!(first < 2 * MUCH, "{first} commands");
    world.clock.step_back(Span::from_s(3_600));
    world.set().await;
    let page = Page { max: 1_000, cursor: None };
    let shown = world.ok(ListLeases { page, ..ListLeases::default() }).await.items;
    assert_eq!(shown.len(), 1_000);
    let most = back.plus(Span::from_s(30));
    assert!(shown.iter().all(|lease| lease.expires_at <= most), "one lives longer than its ttl");
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_of_a_line_costs_the_same_however_many_left_it_before() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    let some = |from: usize, n: usize| (from..from + n).map(|n| job("q", n, Vec::new())).collect();
    world.push(some(0, MANY)).await;
    // The newest first: the first of the line is the last of it.
    world.cancel(MANY - 1).await;
    let (done, work) = world.cost(cancel_one()).await;
    assert!(done.done == 1 && work.commands < LITTLE, "{work:?}");
    world.is_whole().await;
    // Who stands behind a gap is found by a few looks.
    world.push(some(MANY, MANY)).await;
    world.cancel(MANY - 1).await;
    world.push(some(2 * MANY, 3)).await;
    let (first, work) = world.take("q", 1).await;
    assert!(first.len() == 1 && work.commands < LITTLE, "{work:?}");
    world.is_whole().await;
    let (next, _) = world.take("q", 5).await;
    assert_eq!(next.len(), 3);
    world.is_whole().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_audits_come_in_short_pages() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    world.limit("site:*", 1).await;
    world.push((0..MANY).map(|n| job(&format!("q{}", n % 300), n, vec![site(n)])).collect()).await;
    for n in 0..10 {
        world.take(&format!("q{n}"), 10).await;
    }
    let page = Page { max: 1_000, cursor: None };
    let limits = tenure_core::requests::ListLimits { page: page.clone() };
    let (listed, work) = world.cost(limits).await;
    assert!(!listed.items.is_empty() && work.commands < 1_000 * work.calls, "{work:?}");
    let queues = tenure_core::requests::ListQueues { page };
    let (listed, work) = world.cost(queues).await;
    assert!(listed.items.len() >= 300 && work.commands < 1_000 * work.calls, "{work:?}");
    let work = world.is_whole().await;
    assert!(work.calls > 20 && work.commands < 400 * work.calls, "{work:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_with_one_job_each_are_forgotten_in_portions() {
    if !wanted() {
        return;
    }
    let world = World::new().await;
    let grouped = |n: usize| NewJob {
        group: Some(Group::parse(&format!("g{n}")).expect("a group")),
        ..job("q", n, Vec::new())
    };
    world.push((0..=MANY).map(grouped).collect()).await;
    let mut leases = Vec::new();
    for most in [1_000, MANY - 1_000] {
        let (some, work) = world.take("q", most).await;
        assert!(work.commands < MUCH * work.calls, "{work:?}");
        leases.extend(some);
    }
    assert_eq!(leases.len(), MANY);
    world.succeed(&leases).await;
    let groups = || {
        let key = |part| format!("tenure:{{default}}gn:{part}");
        let len = |part| world.server.must(&["HLEN", &key(part)]).text().parse::<usize>();
        (0..256).map(|part| len(part).expect("a number")).sum::<usize>()
    };
    assert!(groups() > MANY, "one still waits: the turns of the others count");
    let (last, _) = world.take("q", 1).await;
    world.succeed(&last).await;
    assert!(groups() > MANY / 2, "no call forgets them all");
    let (ticks, most) = world.settle().await;
    assert_eq!(groups(), 0, "after {ticks} ticks");
    assert!(ticks > 1 && most < MUCH, "{most} commands in one of {ticks} ticks");
    world.is_whole().await;
}
