use tenure_core::events::{About, EventType};
use tenure_core::names::{PoolName, ResourceId};
use tenure_core::time::Moment;
use tenure_machine::Seq;
use tenure_machine::rows::DataKey;

use super::keys::MARK;
use super::*;

const OLD: &str = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=";
const NEW: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn keys(lines: &[&str]) -> Seal {
    Seal::read(&lines.join("\n")).unwrap()
}

fn data(id: &str) -> DataKey {
    (Namespace::main(), PoolName::parse("p").unwrap(), ResourceId::parse(id).unwrap())
}

fn row(kind: Kind, key: &str) -> RowKey {
    RowKey { namespace: Namespace::main(), kind, key: key.to_owned() }
}

/// A text, sealed for the data of a resource.
fn sealed(seal: &Seal, key: &DataKey, text: &str) -> Json {
    let mut rows = Rows { data: [(key.clone(), Some(Json::from(text)))].into(), ..Rows::default() };
    seal.rows(&mut rows);
    rows.data.remove(key).flatten().unwrap()
}

#[test]
fn a_sealed_text_opens_in_its_place_alone() {
    let seal = keys(&[OLD]);
    let key = data("a");
    let there = sealed(&seal, &key, "hunter2");
    assert!(!there.text().contains("hunter2"));
    assert_ne!(there, sealed(&seal, &key, "hunter2"), "equal texts do not look equal");
    assert_eq!(seal.open_json(&ContentPlace::Data(&key), there.clone()), Ok(Json::from("hunter2")));
    let (other, namespace) = (data("b"), Namespace::parse("n").unwrap());
    let moved = (namespace.clone(), key.1.clone(), key.2.clone());
    let (schedule, same) = (row(Kind::Schedule, "a"), row(Kind::ScheduledJob, "a"));
    let seq = Seq::new(1);
    for place in [
        ContentPlace::Data(&other),
        ContentPlace::Data(&moved),
        ContentPlace::Row(&schedule),
        ContentPlace::Row(&same),
        ContentPlace::Event(&namespace, "a", Moment::ZERO),
        ContentPlace::Payload(seq),
        ContentPlace::Result(seq),
        ContentPlace::Progress(seq),
        ContentPlace::Error(seq),
        ContentPlace::PastError(seq, 1, Moment::ZERO),
    ] {
        assert_eq!(seal.open_json(&place, there.clone()), Err(Unopened));
    }
    let text = there.text();
    // Behind the name of the key: with an unknown one it is a text of a caller.
    for at in MARK.len() + 10..text.len() - 1 {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = Json::parse(std::str::from_utf8(&bytes).unwrap()).unwrap();
        assert_eq!(seal.open_json(&ContentPlace::Data(&key), changed), Err(Unopened), "byte {at}");
    }
}

#[test]
fn all_places_differ() {
    let (a, ns) = (data("a"), Namespace::main());
    let (row, seq) = (row(Kind::Schedule, "a"), Seq::new(1));
    let places = [
        ContentPlace::Data(&a),
        ContentPlace::Row(&row),
        ContentPlace::Event(&ns, "a", Moment::ZERO),
        ContentPlace::Event(&ns, "b", Moment::ZERO),
        ContentPlace::Payload(seq),
        ContentPlace::Payload(Seq::new(256)),
        ContentPlace::Result(seq),
        ContentPlace::Progress(seq),
        ContentPlace::Error(seq),
        ContentPlace::PastError(seq, 1, Moment::ZERO),
    ];
    let bytes: std::collections::BTreeSet<_> = places.iter().map(ContentPlace::bytes).collect();
    assert_eq!(bytes.len(), places.len());
}

#[test]
fn a_clear_text_is_opened_as_it_is() {
    let (seal, key) = (keys(&[OLD]), data("a"));
    for json in
        [Json::from("hunter2"), Json::null(), Json::from(7), Json::parse("{\"a\":1}").unwrap()]
    {
        assert_eq!(seal.open_json(&ContentPlace::Data(&key), json.clone()), Ok(json.clone()));
        assert_eq!(Seal::none().open_json(&ContentPlace::Data(&key), json.clone()), Ok(json));
    }
    assert_eq!(seal.open(&ContentPlace::Error(Seq::new(1)), "no").as_deref(), Ok("no"));
}

#[test]
fn the_first_key_seals_and_all_of_them_open() {
    let key = data("a");
    let (old, both, new) = (keys(&[OLD]), keys(&[NEW, "", "# before 2027", OLD]), keys(&[NEW]));
    let of_old = sealed(&old, &key, "hunter2");
    assert_eq!(
        both.open_json(&ContentPlace::Data(&key), of_old.clone()),
        Ok(Json::from("hunter2"))
    );
    let of_both = sealed(&both, &key, "hunter2");
    assert_eq!(old.open_json(&ContentPlace::Data(&key), of_both.clone()), Ok(of_both.clone()));
    assert_eq!(new.open_json(&ContentPlace::Data(&key), of_both), Ok(Json::from("hunter2")));

    // Both keys seal it again, for a store that has the new one alone.
    let name = |seal: &Seal| seal.sealing().unwrap().to_owned();
    let other = [(row(Kind::SealKey, &name(&old)), Some(String::new()))].into();
    let rows = Rows { data: [(key.clone(), Some(of_old))].into(), other, ..Rows::default() };
    let mut changes = Changes { rows, ..Changes::default() };
    assert_eq!(Seal::none().reseal(&mut changes.clone()), Err(Unopened));
    assert_eq!(new.reseal(&mut changes.clone()), Err(Unopened));
    assert_eq!(both.reseal(&mut changes), Ok(()));
    let named: Vec<_> = changes.rows.other.keys().map(|row| row.key.clone()).collect();
    assert_eq!(named, [name(&new)]);
    let there = changes.rows.data.remove(&key).flatten().unwrap();
    assert_eq!(new.open_json(&ContentPlace::Data(&key), there), Ok(Json::from("hunter2")));
}

#[test]
fn an_event_stays_where_its_error_does_not_open() {
    let (seal, namespace) = (keys(&[OLD]), Namespace::main());
    let about = About { error: Some("hunter2".to_owned()), ..About::default() };
    let mut events = [Happened { at: Moment::ZERO, kind: EventType::JobFailed, about }];
    seal.events(&namespace, &mut events);
    assert!(!events[0].about.error.as_ref().unwrap().contains("hunter2"));
    let mut opened = events.clone();
    assert!(seal.open_events(&namespace, &mut opened));
    assert_eq!(opened[0].about.error.as_deref(), Some("hunter2"));
    // It was moved to another event.
    events[0].at = Moment::from_us(1);
    assert!(!seal.open_events(&namespace, &mut events));
    assert_eq!(events[0].about.error.as_deref(), Some(UNREADABLE));
}

#[test]
fn no_key_is_ever_printed() {
    let seal = keys(&[OLD]);
    let printed = format!("{seal:?}");
    assert_eq!(printed, format!("Seal({:?})", Some(seal.sealing().unwrap())));
    assert!(!printed.contains("q83v"));
}
