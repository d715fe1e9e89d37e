//! Rates: bursts, spacing, costs, corrections, tokens without a lease.

use tenure_core::job::JobState;
use tenure_core::lease::ReasonKind;
use tenure_core::refusal::Code;
use tenure_core::requests::*;
use tenure_core::settings::LimitSettings;
use tenure_core::time::{Moment, Span};

use crate::bench::Bench;
use crate::words::*;

/// Takes tokens one by one until no more are granted; returns how many there were.
async fn drain(b: &Bench, name: &str) -> usize {
    for taken in 0..1_000 {
        if b.ok(b.ask_needs([need(name)]).ttl(s(0))).await.leases.is_empty() {
            return taken;
        }
    }
    panic!("{name:?} has no end");
}

pub(crate) async fn without_a_burst_grants_are_evenly_spaced(b: &mut Bench) {
    b.set_limit("r", rate(2, s(1), 1)).await;
    b.pass(s(10)).await;
    for _ in 0..4 {
        b.hold([need("r")]).await;
        b.denied([need("r")]).await;
        b.pass(ms(490)).await;
        b.denied([need("r")]).await;
        b.pass(ms(10)).await;
    }
}

pub(crate) async fn a_burst_goes_at_once_after_a_rest(b: &mut Bench) {
    b.set_limit("r", rate(1, s(1), 3)).await;
    for _ in 0..2 {
        assert_eq!(drain(b, "r").await, 3);
        b.pass(ms(990)).await;
        assert_eq!(drain(b, "r").await, 0);
        b.pass(ms(10)).await;
        assert_eq!(drain(b, "r").await, 1);
        b.pass(s(20)).await;
    }
}

pub(crate) async fn in_no_span_are_more_granted_than_stated(b: &mut Bench) {
    let (count, per, burst) = (3, s(1), 2);
    b.set_limit("r", rate(count, per, burst)).await;
    let mut granted: Vec<Moment> = vec![];
    for step in 0..100 {
        for _ in 0..drain(b, "r").await {
            granted.push(b.now());
        }
        // Uneven steps, and a rest in the middle after which a burst may go.
        b.pass(ms(if step == 50 { 3_000 } else { 37 + (step * 29) % 61 })).await;
    }
    for (first, from) in granted.iter().enumerate() {
        for (last, to) in granted.iter().enumerate().skip(first) {
            // The shortest span that has both in it is a microsecond longer than their distance.
            let span = to.since(*from).us() + 1;
            let most = u64::from(burst) + (span * u64::from(count)).div_ceil(per.us()) - 1;
            let were = (last - first + 1) as u64;
            assert!(were <= most, "{were} in {span} µs, at most {most}");
        }
    }
    let span = b.now().since(granted[0]).us();
    let least = (span - s(3).us()) * u64::from(count) / per.us() - 3;
    assert!(granted.len() as u64 >= least, "the rate is given out: {} of {least}", granted.len());
}

pub(crate) async fn a_cost_is_so_many_tokens(b: &mut Bench) {
    b.set_limit("r", rate(1, s(1), 5)).await;
    b.hold([costing("r", 3)]).await;
    b.denied([costing("r", 3)]).await;
    b.hold([costing("r", 2)]).await;
    b.denied([need("r")]).await;
    b.pass(ms(2_900)).await;
    b.denied([costing("r", 3)]).await;
    b.pass(ms(200)).await;
    b.hold([costing("r", 3)]).await;
}

pub(crate) async fn a_cost_of_nothing_takes_nothing(b: &mut Bench) {
    b.set_limit("r", rate(1, hours(1), 1)).await;
    b.hold([costing("r", 0)]).await;
    b.hold([costing("r", 0)]).await;
    b.hold([need("r")]).await;
    b.denied([need("r")]).await;
}

pub(crate) async fn tokens_do_not_return_with_a_release(b: &mut Bench) {
    b.set_limit("r", rate(1, s(10), 1)).await;
    b.push(job("q").id("a").needs([need("r")])).await;
    let lease = b.take("q").await;
    b.settle(released(&lease)).await;
    b.none("q").await;
    b.is("a", JobState::Blocked).await;
    b.pass(ms(10_100)).await;
    b.take_job("q", "a").await;
}

pub(crate) async fn a_refill_wakes_the_first_of_the_line(b: &mut Bench) {
    b.set_limit("r", rate(1, s(10), 1)).await;
    b.hold([need("r")]).await;
    b.push(job("q").id("a").needs([need("r")])).await;
    let waiting = b.waiting(b.ask("q").wait(s(60))).await;
    b.pass(ms(9_900)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(200)).await;
    assert_eq!(job_of(&waiting.lease().await), "a");
}

pub(crate) async fn a_changed_rate_keeps_what_was_consumed(b: &mut Bench) {
    b.set_limit("slow", rate(1, s(60), 1)).await;
    b.hold([need("slow")]).await;
    b.set_limit("slow", rate(1, s(5), 1)).await;
    b.denied([need("slow")]).await;
    b.pass(ms(4_900)).await;
    b.denied([need("slow")]).await;
    b.pass(ms(200)).await;
    b.hold([need("slow")]).await;

    b.set_limit("wide", rate(1, s(10), 1)).await;
    b.hold([need("wide")]).await;
    b.set_limit("wide", rate(1, s(10), 3)).await;
    assert_eq!(drain(b, "wide").await, 2, "one of three was consumed");
}

pub(crate) async fn putting_the_same_rate_again_refills_nothing(b: &mut Bench) {
    b.set_limit("r", rate(1, s(10), 2)).await;
    assert_eq!(drain(b, "r").await, 2);
    b.set_limit("r", rate(1, s(10), 2)).await;
    assert_eq!(drain(b, "r").await, 0);
}

pub(crate) async fn a_faster_rate_wakes_who_waits(b: &mut Bench) {
    b.set_limit("r", rate(1, hours(1), 1)).await;
    b.hold([need("r")]).await;
    let waiting = b.ask_needs([need("r")]).wait(s(60));
    let waiting = b.waiting_at("r", 1, waiting).await;
    b.set_limit("r", rate(1, s(5), 1)).await;
    b.pass(s(4)).await;
    assert!(!waiting.is_answered());
    b.pass(ms(1_200)).await;
    waiting.lease().await;
}

pub(crate) async fn what_was_spent_more_makes_the_next_wait(b: &mut Bench) {
    b.set_limit("r", rate(1, s(1), 10)).await;
    b.push(job("q").needs([costing("r", 2)])).await;
    let lease = b.take("q").await;
    b.settle(succeeded(&lease).spent("r", 15)).await;
    b.pass(ms(5_900)).await;
    b.denied([need("r")]).await;
    b.pass(ms(200)).await;
    b.hold([need("r")]).await;
    b.denied([need("r")]).await;
}

pub(crate) async fn what_was_spent_less_is_given_back(b: &mut Bench) {
    b.set_limit("r", rate(1, s(1), 10)).await;
    b.push(job("q").needs([costing("r", 10)])).await;
    let lease = b.take("q").await;
    assert_eq!(drain(b, "r").await, 0);
    b.settle(succeeded(&lease).spent("r", 3)).await;
    assert_eq!(drain(b, "r").await, 7);
}

pub(crate) async fn a_correction_wakes_who_waits(b: &mut Bench) {
    b.set_limit("r", rate(1, hours(1), 2)).await;
    b.push(job("q").needs([costing("r", 2)])).await;
    let lease = b.take("q").await;
    let waiting = b.ask_needs([need("r")]).wait(s(60));
    let waiting = b.waiting_at("r", 1, waiting).await;
    b.settle(failed(&lease).spent("r", 0)).await;
    waiting.lease().await;
}

pub(crate) async fn a_correction_never_adds_to_the_burst(b: &mut Bench) {
    b.set_limit("r", rate(1, s(1), 3)).await;
    b.push(job("q").needs([costing("r", 3)])).await;
    let lease = b.take("q").await;
    b.pass(s(10)).await;
    b.settle(succeeded(&lease).spent("r", 0)).await;
    assert_eq!(drain(b, "r").await, 3);
}

pub(crate) async fn a_token_leaves_no_lease(b: &mut Bench) {
    b.set_limit("r", rate(1, s(10), 1)).await;
    let before = b.hold([need("lock:x")]).await.fence;
    let token = b.granted(b.ask_needs([need("r")]).ttl(s(0))).await;
    assert_eq!((token.lease, token.limits), (None, vec![limit("r")]));
    assert!(token.fence > before);
    assert_eq!(b.ok(ListLeases::default()).await.items.len(), 1, "the lock");
    let next = b.now().plus(s(10));
    let empty = b.not_granted(b.ask_needs([need("r")]).ttl(s(0))).await;
    assert_eq!(empty.next_at, Some(next));
    let reason = empty.reasons.iter().find(|why| why.kind == ReasonKind::Rate);
    assert_eq!(reason.expect("the rate is named").earliest, Some(next));
}

pub(crate) async fn a_token_is_waited_for(b: &mut Bench) {
    b.set_limit("r", rate(1, s(10), 1)).await;
    assert_eq!(drain(b, "r").await, 1);
    let call = b.ask_needs([need("r")]).ttl(s(0)).wait(s(60));
    let waiting = b.waiting_at("r", 1, call).await;
    b.pass(s(11)).await;
    assert_eq!(waiting.lease().await.lease, None);
    assert_eq!(drain(b, "r").await, 0);
}

pub(crate) async fn only_rates_are_taken_without_a_lease(b: &mut Bench) {
    b.set_limit("r", rate(1, s(10), 1)).await;
    b.set_limit("cap", cap(1)).await;
    let both = LimitSettings { concurrency: Some(1), ..rate(1, s(10), 1) };
    b.set_limit("both", both).await;
    b.set_pool("p", plain_pool(), vec![thing("a")]).await;
    b.push(job("q")).await;
    let no_ttl = Span::ZERO;
    let calls = [
        b.ask_needs([need("cap")]),
        b.ask_needs([need("r"), need("lock:x")]),
        b.ask_needs([need("both")]),
        b.ask_needs([any_of("p")]),
        b.ask("q"),
    ];
    for call in calls {
        let no = b.refused(Code::InvalidField, call.ttl(no_ttl)).await;
        assert_eq!(no.pointer.as_deref(), Some("/ttl"), "{no}");
    }
    assert_eq!(drain(b, "r").await, 1, "a refused call changed nothing");
    b.in_use("cap", 0).await;
    b.take("q").await;
}

pub(crate) async fn several_rates_are_taken_together(b: &mut Bench) {
    b.set_limit("fast", rate(10, s(1), 10)).await;
    b.set_limit("slow", rate(1, s(10), 1)).await;
    b.granted(b.ask_needs([need("fast"), need("slow")]).ttl(s(0))).await;
    b.not_granted(b.ask_needs([need("fast"), need("slow")]).ttl(s(0))).await;
    assert_eq!(drain(b, "fast").await, 9, "all or nothing");
}
