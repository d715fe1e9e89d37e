use proptest::prelude::*;
use std::sync::Arc;

use tenure_core::access::TokenName;
use tenure_core::events::{About, EventType};
use tenure_core::job::Outcome;
use tenure_core::time::Moment;

use super::*;

fn named(namespace: &str) -> Namespace {
    Namespace::parse(namespace).unwrap()
}

fn pushed(id: &str) -> JobChange {
    let content = JobContent {
        kind: "fetch".to_owned(),
        payload: Json::from("a page"),
        labels: Labels::from([("site".to_owned(), "größe".to_owned())]),
        traceparent: TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            .ok(),
    };
    JobChange {
        new: Some(Arc::new((Namespace::main(), JobId::parse(id).unwrap(), content))),
        queue: QueueName::parse("crawl").ok(),
        flow: FlowName::parse("f").ok(),
        state: Some(JobState::Ready),
        shape: Some(Arc::from([1, 2, 3].as_slice())),
        life: Some(vec![9; 24]),
        ..JobChange::default()
    }
}

/// Every field of every part at least once, and every option in all its forms.
fn everything() -> Changes {
    let end = |id: &str, result| JobEnd {
        namespace: named("other"),
        id: JobId::parse(id).unwrap(),
        shape: Arc::from([4].as_slice()),
        until: Moment::MAX,
        bytes: u32::MAX,
        result,
    };
    let kept = KeptUntil { namespace: Namespace::main(), until: Moment::from_us(5), bytes: 6 };
    let patch = |traceparent| ContentPatch {
        kind: Some("k".to_owned()),
        payload: Some(Json::null()),
        labels: Some(Labels::new()),
        traceparent,
    };
    let nothing = JobChange::default;
    let jobs = [
        (1, pushed("a")),
        (2, pushed("b")),
        (9, JobChange { end: Some(end("b", Some(Json::from(1)))), ..pushed("c") }),
        (10, JobChange { end: Some(end("d", None)), error: Some(None), ..nothing() }),
        (11, JobChange { patch: Some(Box::new(patch(Some(None)))), ..nothing() }),
        (12, JobChange { patch: Some(Box::new(patch(None))), kept: Some(kept), ..nothing() }),
        (13, JobChange { revived: true, progress: Some(None), ..nothing() }),
        (14, JobChange { progress: Some(Some(Json::from("half"))), ..nothing() }),
        (15, JobChange { error: Some(Some("no".to_owned())), ..nothing() }),
        (u64::MAX, JobChange { deleted: true, ..nothing() }),
    ];
    let error =
        JobError { attempt: 3, at: Moment::ZERO, error: "e".to_owned(), outcome: Outcome::Lost };
    let row = |kind, key: &str| RowKey { namespace: named("other"), kind, key: key.to_owned() };
    let key = (named("n"), PoolName::parse("p").unwrap(), ResourceId::parse("r").unwrap());
    let gone = (named("n"), PoolName::parse("p").unwrap(), ResourceId::parse("s").unwrap());
    let happened = Happened {
        at: Moment::from_us(8),
        kind: EventType::JobPushed,
        about: About { job: JobId::parse("a").ok(), ..About::default() },
    };
    let new = NewEvents { life: u64::MAX, first: 1, events: vec![happened] };
    let numbers = r#"{"fence":3,"arrival":200,"used":4,"last":1800000000000000}"#.to_owned();
    // A key of a seal makes it another format.
    let other = Kind::ALL.into_iter().filter(|kind| *kind != Kind::SealKey);
    let other = other.map(|kind| (row(kind, "k"), Some(kind.as_str().to_owned())));
    let other = other.chain([(row(Kind::Meta, ""), Some(numbers))]);
    Changes {
        rows: Rows {
            jobs: jobs.map(|(seq, change)| (Seq::new(seq), change)).into(),
            errors: vec![(Seq::new(1), error)],
            other: other.collect(),
            childless: vec![(Namespace::main(), Seq::new(4))],
            data: [(key, Some(Json::from("secret"))), (gone, None)].into(),
        },
        events: BatchEvents { ended: vec![named("gone")], new: [(Namespace::main(), new)].into() },
        last_seq: Seq::new(77),
    }
}

#[test]
fn all_that_a_batch_may_hold_is_read_as_it_was_written() {
    let mut all = everything();
    all.rows.other.extend(Kind::ALL.map(|kind| {
        (RowKey { namespace: Namespace::main(), kind, key: "dropped".to_owned() }, None)
    }));
    assert_eq!(Changes::decode(&all.encode()), Some(all));
    assert_eq!(Changes::decode(&Changes::default().encode()), Some(Changes::default()));
}

#[test]
fn bytes_that_are_cut_or_go_on_are_none() {
    let bytes = everything().encode();
    for cut in 0..bytes.len() {
        assert_eq!(Changes::decode(&bytes[..cut]), None, "{cut} of {} bytes", bytes.len());
    }
    assert_eq!(Changes::decode(&[bytes, vec![0]].concat()), None);
}

#[test]
fn what_jobs_share_is_written_once() {
    let one = Changes { rows: Rows::default(), ..Changes::default() };
    let with = |n: u64| {
        let jobs = (0..n).map(|n| (Seq::new(n + 1), pushed(&format!("{n:04}")))).collect();
        Changes { rows: Rows { jobs, ..Rows::default() }, ..one.clone() }.encode().len()
    };
    let content = 5 + 10 + 7 + 8 + 57 + 24 + 20;
    assert!(with(2) - with(1) <= content, "{} bytes a job", with(2) - with(1));
}

#[test]
fn the_numbers_of_a_namespace_are_encoded_small_and_exactly() {
    let bytes = |text: &str| {
        let key = RowKey { namespace: Namespace::main(), kind: Kind::Meta, key: String::new() };
        let other = [(key, Some(text.to_owned()))].into();
        let rows = Rows { other, ..Rows::default() };
        let changes = Changes { rows, ..Changes::default() };
        let bytes = changes.encode();
        assert_eq!(Changes::decode(&bytes), Some(changes));
        bytes.len()
    };
    let whole = r#"{"fence":3,"arrival":200,"used":4,"last":1800000000000000}"#;
    assert!(bytes(whole) < 32);
    // Texts of an earlier or later release.
    for other in ["{}", "", &whole.replace(',', ", "), &whole.replace('}', ",\"more\":1}")] {
        assert!(bytes(other) > other.len());
    }
}

/// This release reads journals of earlier ones: a change of the layout raises its number and this text.
#[test]
fn the_layout_is_that_of_its_number() {
    let hex: String = everything().encode().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((CHANGES_FORMAT, hex.as_str()), (1, include_str!("format_1.txt").trim_end()));
}

#[test]
fn earlier_releases_do_not_read_sealed_contents() {
    let mut changes = everything();
    assert_eq!(changes.format(), CHANGES_FORMAT);
    let key = RowKey { namespace: Namespace::main(), kind: Kind::SealKey, key: "k".to_owned() };
    changes.rows.other.insert(key, Some(String::new()));
    assert_eq!(changes.format(), SEALED_CHANGES_FORMAT);
    assert_eq!(Changes::decode(&changes.encode()), Some(changes));
}

#[test]
fn earlier_releases_do_not_read_names_of_callers() {
    let mut changes = everything();
    for new in changes.events.new.values_mut() {
        new.events.iter_mut().for_each(|event| event.about.by = TokenName::known("ann"));
    }
    assert_eq!(changes.format(), NAMED_CHANGES_FORMAT);
    assert_eq!(Changes::decode(&changes.encode()), Some(changes));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Changes::decode(&bytes);
    }

    #[test]
    fn no_changed_byte_makes_it_panic(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = everything().encode();
        let at = at.index(bytes.len());
        bytes[at] = to;
        let _ = Changes::decode(&bytes);
    }
}
