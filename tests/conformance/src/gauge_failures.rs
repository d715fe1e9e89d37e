//! A gauge that cannot be read: the value that counts, the next reader, and the view of the limit.

use tenure_core::gauge::{Gauge, OnStale};
use tenure_core::lease::ReasonKind;

use crate::bench::Bench;
use crate::calls::gauges::*;
use crate::words::*;

pub(crate) async fn a_gauge_that_cannot_be_read_keeps_its_last_value_until_it_is_stale_then_holds_or_keeps(
    b: &mut Bench,
) {
    let Some(mut reader) = b.reader() else { return };
    for (name, on_stale) in [("keep", OnStale::Keep), ("hold", OnStale::Hold)] {
        b.set_gauge(name, 4, Gauge { on_stale, ..counting() }).await;
        let jobs = (0..5).map(|n| job(name).id(&format!("{name}{n}")).needs([need(name)]));
        b.push_all(jobs.collect()).await;
        b.none(name).await;
        let read_at = b.now();
        reader.read(b, sum(1)).await;
        let long = || b.ask(name).ttl(hours(1));
        b.granted(long()).await;
        b.pass(s(2)).await;
        let failing_since = b.now();
        b.pass_reading(&mut reader, s(18), &unreadable()).await;
        // No reading is fresh, and the last one is not stale yet.
        b.granted(long()).await;
        let view = b.limit(name).await;
        let read = reading_of(&view);
        assert_eq!((read.asked_at, read.sum, view.external), (Some(read_at), Some(1), 1));
        assert!(read.failed_at.is_some_and(|at| at > failing_since), "the last failure");
        assert_eq!(read.error.as_deref(), Some("http status 503"));
        b.pass_reading(&mut reader, s(12), &unreadable()).await;
        match on_stale {
            OnStale::Keep => {
                b.granted(long()).await;
                b.none(name).await;
            }
            OnStale::Hold => {
                b.none(name).await;
                let reason = b.waits_for(&format!("{name}2"), ReasonKind::External).await;
                let since = failing_since.to_string();
                let said = reason.detail;
                assert!(said.contains(&since) && said.contains("http status 503"), "{said}");
            }
        }
        b.pass_reading(&mut reader, s(3), &sum(0)).await;
        let read = reading_of(&b.limit(name).await);
        assert_eq!((read.failed_at, read.error), (None, None), "it is read again");
        b.granted(long()).await;
        // So that the limit is neither held nor wanted, and not read.
        b.set_limit(name, cap(4)).await;
    }
}

pub(crate) async fn while_a_stale_reading_is_kept_a_rest_lasts_its_lag(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 1, counting()).await;
    b.push_all((0..3).map(|n| job("q").id(&format!("j{n}")).needs([need("l")])).collect()).await;
    b.none("q").await;
    reader.read(b, sum(0)).await;
    let first = b.granted(b.ask("q").ttl(hours(1))).await;
    b.pass_reading(&mut reader, s(20), &unreadable()).await;
    b.settle(succeeded(&first)).await;
    b.none("q").await;
    // Not stale yet: only a reading frees the permit, however long ago its lease ended.
    b.pass_reading(&mut reader, s(9), &unreadable()).await;
    b.in_use("l", 1).await;
    b.pass_reading(&mut reader, s(2), &unreadable()).await;
    let second = b.granted(b.ask("q").ttl(hours(1))).await;
    b.settle(succeeded(&second)).await;
    b.none("q").await;
    b.pass_reading(&mut reader, s(9), &unreadable()).await;
    b.in_use("l", 1).await;
    b.pass_reading(&mut reader, s(2), &unreadable()).await;
    b.take_job("q", "j2").await;
}

pub(crate) async fn without_a_process_that_reads_the_reading_ages(b: &mut Bench) {
    let Some(mut reader) = b.reader() else { return };
    b.set_gauge("l", 3, Gauge { on_stale: OnStale::Hold, ..counting() }).await;
    b.push_all((0..3).map(|n| job("q").id(&format!("j{n}")).needs([need("l")])).collect()).await;
    b.none("q").await;
    reader.read(b, sum(0)).await;
    b.granted(b.ask("q").ttl(hours(1))).await;
    drop(reader);
    b.pass(s(20)).await;
    b.granted(b.ask("q").ttl(hours(1))).await;
    assert!(reading_of(&b.limit("l").await).error.is_some_and(|why| why.contains("no process")));
    b.pass(s(15)).await;
    b.none("q").await;
    let mut reader = b.reader().expect("it kept gauges before");
    b.pass(s(3)).await;
    reader.read(b, sum(0)).await;
    b.take_job("q", "j2").await;
}

pub(crate) async fn who_cannot_read_leaves_it_to_another(b: &mut Bench) {
    let (Some(mut bad), Some(mut good)) = (b.reader(), b.reader()) else { return };
    b.set_gauge("l", 1, counting()).await;
    let held = |b: &Bench| b.granted(b.ask("q").ttl(hours(1)));
    b.push(job("q").id("j0").needs([need("l")])).await;
    b.none("q").await;
    let mut failures = 0;
    for _ in 0..60 {
        if let Some(claim) = bad.try_claim() {
            b.read(&claim, unreadable()).await;
            failures += 1;
        }
        if let Some(claim) = good.try_claim() {
            b.read(&claim, sum(0)).await;
        }
        if failures == 2 {
            break;
        }
        b.pass(ms(500)).await;
    }
    assert_eq!(failures, 2, "each of two is asked in turn");
    let _held = held(b).await;
    let mut read = 0;
    for _ in 0..56 {
        b.pass(ms(500)).await;
        bad.no_claim();
        if let Some(claim) = good.try_claim() {
            b.read(&claim, sum(0)).await;
            read += 1;
        }
    }
    assert!(read >= 12, "the other one reads on: {read}");
    // It gets a new chance.
    let mut asked = false;
    for _ in 0..20 {
        b.pass(ms(500)).await;
        if let Some(claim) = good.try_claim() {
            b.read(&claim, sum(0)).await;
        }
        if let Some(claim) = bad.try_claim() {
            b.read(&claim, sum(0)).await;
            asked = true;
        }
    }
    assert!(asked, "after 30 s it is asked again");
    // As the only reader it is still asked, whatever it did.
    drop(good);
    for _ in 0..3 {
        b.pass(s(2)).await;
        bad.read(b, unreadable()).await;
    }
}
