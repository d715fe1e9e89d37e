//! Adds missing ids to the text of a body, so that a call can be sent twice and is executed once.
//!
//! The module knows the places of ids and nothing else of a body. A malformed body stays unchanged, and the leader
//! refuses it.

use std::ops::Range;

use bytes::Bytes;
use tenure::ids::{job_id, request_id};
use tenure_core::json::{Document, Kind, Node};
use tenure_core::requests::{Effect, Spec};

/// A body that may be sent several times.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The text, with ids.
    pub body: Bytes,
    /// A retry does nothing that the first attempt has done.
    pub repeatable: bool,
}

/// The body of an operation, ready to be sent.
pub(crate) fn prepared(spec: &Spec, body: Bytes) -> Prepared {
    let always = matches!(spec.effect, Some(Effect::Reads | Effect::Sets));
    let filled = match spec.name {
        "push" => filled(&body, |root, missing| match root.kind() {
            Kind::Array => root.items().for_each(|job| missing.job(job)),
            _ => missing.job(root),
        }),
        "lease" => filled(&body, |root, missing| missing.request(root)),
        "settle" => filled(&body, |root, missing| {
            let items = root.member("settle").into_iter().flat_map(Node::items);
            for job in items.filter_map(|item| item.member("push")).flat_map(Node::items) {
                missing.job(job);
            }
            // A settle with a lease call that lacks an id is refused, so no id is added.
        }),
        "run_schedule_now" if body.trim_ascii().is_empty() => {
            Some(format!("{{{}}}", member("id", job_id().as_str())).into_bytes())
        }
        "run_schedule_now" => filled(&body, |root, missing| missing.job(root)),
        // The engine recognises a retry by the end that it undoes.
        "retry_job" => {
            let of_an_end = Document::parse(&body).is_ok_and(|body| {
                body.root().member("finished_at").is_some_and(|at| !at.is_null())
            });
            return Prepared { body, repeatable: of_an_end };
        }
        _ => return Prepared { body, repeatable: always },
    };
    Prepared { body: filled.map_or(body, Bytes::from), repeatable: true }
}

/// The same for a job on a line of its own.
pub(crate) fn line(job: &[u8]) -> Option<Vec<u8>> {
    filled(job, |root, missing| missing.job(root))
}

/// A text with its missing ids; `None`: no id is missing, or the text is no JSON.
fn filled<'t>(
    text: &'t [u8],
    look: impl for<'d> FnOnce(Node<'d>, &mut Missing),
) -> Option<Vec<u8>> {
    let document: Document<'t> = Document::parse(text).ok()?;
    let mut missing = Missing(Vec::new());
    look(document.root(), &mut missing);
    if missing.0.is_empty() {
        return None;
    }
    let added: usize = missing.0.iter().map(|(_, id)| id.len()).sum();
    let mut whole = Vec::with_capacity(text.len() + added);
    let mut done = 0;
    for (place, id) in missing.0 {
        whole.extend_from_slice(&text[done..place.start]);
        whole.extend_from_slice(id.as_bytes());
        done = place.end;
    }
    whole.extend_from_slice(&text[done..]);
    Some(whole)
}

fn member(name: &str, id: &str) -> String {
    // The ids that are made here have letters, digits and `_` only.
    format!("\"{name}\":\"{id}\"")
}

/// Ids, and the part of the text that each replaces, in the order of the text.
struct Missing(Vec<(Range<usize>, String)>);

impl Missing {
    fn job(&mut self, job: Node<'_>) {
        self.add(job, "id", || job_id().as_str().to_owned());
    }

    fn request(&mut self, call: Node<'_>) {
        self.add(call, "request_id", || request_id().as_str().to_owned());
    }

    /// Adds a member to an object, unless it has one. `null` counts as absent, and a key may not stand twice.
    fn add(&mut self, object: Node<'_>, name: &str, id: impl FnOnce() -> String) {
        if object.kind() != Kind::Object {
            return;
        }
        match object.member(name) {
            Some(there) if there.is_null() => self.0.push((there.span(), format!("\"{}\"", id()))),
            Some(_) => {}
            None => {
                let inside = object.span().start + 1;
                let comma = if object.members().next().is_some() { "," } else { "" };
                self.0.push((inside..inside, member(name, &id()) + comma));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::decode::{self, Decode};
    use tenure_core::requests::{
        ListJobs, Operation, Push, RetryJob, RetryJobs, RunScheduleNow, Settle,
    };

    use super::*;

    fn sent(spec: &Spec, body: &str) -> (String, bool) {
        let Prepared { body, repeatable } = prepared(spec, Bytes::from(body.to_owned()));
        (String::from_utf8(body.to_vec()).unwrap(), repeatable)
    }

    #[test]
    fn every_job_of_a_push_gets_the_id_that_it_lacks() {
        for (body, ids) in [
            (r#"{}"#, vec![None]),
            (r#"  { "queue":"q" }"#, vec![None]),
            (r#"{"id":null,"queue":"q"}"#, vec![None]),
            (r#"{"queue":"q","id":"mine"}"#, vec![Some("mine")]),
            (
                r#"[{"id":"a"},{},{"payload":{"id":1}}, {"queue":"q","id": null}]"#,
                vec![Some("a"), None, None, None],
            ),
        ] {
            let (text, repeatable) = sent(&Push::SPEC, body);
            let jobs = decode::push(text.as_bytes()).unwrap();
            let before = decode::push(body.as_bytes()).unwrap();
            assert!(repeatable, "{text}");
            assert_eq!(jobs.len(), ids.len(), "{text}");
            for ((job, before), id) in jobs.into_iter().zip(before).zip(ids) {
                let made = job.id.clone().unwrap();
                match id {
                    Some(id) => assert_eq!(made.as_str(), id),
                    None => assert!(made.as_str().starts_with("job_"), "{text}"),
                }
                let mut same = job;
                same.id = before.id.clone();
                assert_eq!(same, before, "{text}");
            }
        }
    }

    #[test]
    fn a_settle_gets_ids_for_its_jobs_and_none_for_its_lease_call() {
        let body = r#"{"settle":[{"lease":"l","outcome":"succeeded","push":[{},{"id":"b"}]},
            {"lease":"m","outcome":"released"}],"lease":{"queues":["q"]}}"#;
        let (text, _) = sent(&Settle::SPEC, body);
        // The call must have an id, and is refused without.
        assert!(decode::settle(text.as_bytes()).is_err());
        let text = text.replace("{\"queues\"", "{\"request_id\":\"r\",\"queues\"");
        let settle: Settle = decode::settle(text.as_bytes()).unwrap();
        let pushed: Vec<_> = settle.settle[0].push.iter().map(|job| job.id.clone()).collect();
        assert!(pushed[0].is_some() && pushed[1].as_ref().is_some_and(|id| id.as_str() == "b"));
    }

    #[test]
    fn what_cannot_be_read_stays_as_it_came() {
        for body in ["", "{", "7", r#"[7,"x"]"#, r#"{"id":"a","id":"b"}"#, "[[]]", "\u{feff}{}"] {
            assert_eq!(sent(&Push::SPEC, body).0, body);
            assert_eq!(line(body.as_bytes()), None, "{body}");
        }
        assert_eq!(prepared(&Push::SPEC, Bytes::from_static(b"\xff")).body, &b"\xff"[..]);
    }

    #[test]
    fn only_what_is_done_once_is_sent_twice() {
        for (spec, body, repeatable) in [
            (&RetryJob::SPEC, "", false),
            (&RetryJob::SPEC, r#"{"finished_at":"2026-01-01T00:00:00Z"}"#, true),
            (&RetryJobs::SPEC, "{}", false),
            (&ListJobs::SPEC, "", true),
            (&RunScheduleNow::SPEC, "", true),
            (&RunScheduleNow::SPEC, "{}", true),
        ] {
            let (text, may) = sent(spec, body);
            assert_eq!(may, repeatable, "{} {body}", spec.name);
            if spec.name == "run_schedule_now" {
                let run = RunScheduleNow::of(&["s"], text.as_bytes()).unwrap();
                assert!(run.id.is_some(), "{text}");
            }
        }
    }
}
