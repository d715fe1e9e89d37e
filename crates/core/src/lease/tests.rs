//! Reading the views of leases. Nothing here grants one.

use super::*;

#[test]
fn reasons_of_another_release_are_read_and_their_kind_is_kept() {
    let text = r#"{"id":"a","state":"blocked","summary":"s","mood":1,"reasons":[
        {"kind":"limit","name":"l","in_use":1,"capacity":1,"holders":[]},
        {"kind":"moon_phase","detail":"wait for the full moon","face":{"a":[1]}},
        {"kind":"rate"}]}"#;
    let explained: Explained = serde_json::from_str(text).unwrap();
    let kinds: Vec<_> = explained.reasons.iter().map(|why| why.kind.clone()).collect();
    let other = ReasonKind::Other("moon_phase".to_owned());
    assert_eq!(kinds, [ReasonKind::Limit, other, ReasonKind::Rate]);
    assert_eq!(explained.reasons[1].detail, "wait for the full moon");
    assert_eq!(explained.reasons[2].detail, "");
    let again = serde_json::to_string(&explained).unwrap();
    assert!(again.contains(r#""kind":"moon_phase""#), "{again}");
    assert_eq!(serde_json::from_str::<Explained>(&again).unwrap(), explained);
    // A kind is always a word.
    assert!(serde_json::from_str::<Reason>(r#"{"kind":1}"#).is_err());
}

#[test]
fn a_settle_that_was_refused_with_a_new_code_is_still_refused() {
    for (code, known) in [("lease_lost", Some(Code::LeaseLost)), ("moonstruck", None)] {
        let text = format!(r#"{{"lease":"l","ok":false,"code":"{code}"}}"#);
        let settled: SettledLease = serde_json::from_str(&text).unwrap();
        assert_eq!((settled.ok, settled.code), (false, known));
    }
}

#[test]
fn follow_up_jobs_are_read_back_with_their_settle() {
    let text = r#"{"lease":"l","ok":true,"pushed":[{"id":"a","queue":"q",
        "state":"ready","run_at":"2026-12-01T09:55:00.000000Z","result":{"n":1},
        "created_at":"2026-12-01T09:55:00.000000Z","duplicate":true}]}"#;
    let settled: SettledLease = serde_json::from_str(text).unwrap();
    let pushed = &settled.pushed[0];
    assert!(pushed.duplicate);
    assert_eq!(pushed.job.result.as_ref().map(Json::text), Some(r#"{"n":1}"#));
}
