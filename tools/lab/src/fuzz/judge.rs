//! Judges an answer: names the fault in it, if it has one.

use serde_json::Value;
use tenure_core::refusal::Code;

use super::request::{Framing, Sent};
use super::wire::{FuzzHeard, Silence};

/// Codes of 503 that a healthy server may answer.
const MEANT: [Code; 3] = [Code::Overloaded, Code::StoreFull, Code::Draining];

/// The fault of an answer; `None` if it obeys the contract.
pub fn fault(sent: &Sent, heard: &Result<FuzzHeard, Silence>) -> Option<String> {
    let heard = match heard {
        Ok(heard) => heard,
        // A client that sends a wrong length may be cut off without an answer, once the time for it is over.
        Err(Silence::Closed | Silence::Late) if sent.framing == Framing::Cut => return None,
        Err(Silence::Closed) if sent.framing == Framing::Wrong => return None,
        Err(Silence::NotThere(why)) => return Some(format!("nobody listens: {why}")),
        Err(Silence::Late) => return Some("no answer in time".to_owned()),
        Err(Silence::Closed) => return Some("the connection was closed without an answer".into()),
        Err(Silence::NotHttp(what)) => return Some(format!("the answer is not HTTP: {what}")),
    };
    match heard.status {
        // A page of the dashboard, which the contract does not describe: all of them say what they may load. A fault of
        // the server counts here, too.
        200..=499 if heard.header("content-security-policy").is_some() => None,
        200..=299 => good(heard),
        400..=599 if sent.method == "HEAD" => None,
        400..=599 => problem(sent, heard),
        other => Some(format!("the status {other} is none of the contract")),
    }
}

fn good(heard: &FuzzHeard) -> Option<String> {
    if heard.body.is_empty() {
        return None;
    }
    let is_json = |text: &[u8]| serde_json::from_slice::<Value>(text).is_ok();
    let wrong = match heard.header("content-type") {
        Some("application/json") => !is_json(&heard.body),
        // The metrics, in the text form of Prometheus.
        Some(kind) if kind.starts_with("text/plain; version=") => {
            std::str::from_utf8(&heard.body).is_err()
        }
        Some("application/x-ndjson") => {
            let mut lines = heard.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            !lines.all(is_json)
        }
        Some("application/octet-stream") => !heard.body.starts_with(b"tenure backup "),
        other => return Some(format!("a good answer of type {other:?}")),
    };
    wrong.then(|| "a good answer that is not JSON".to_owned())
}

fn problem(sent: &Sent, heard: &FuzzHeard) -> Option<String> {
    let Ok(said) = serde_json::from_slice::<Value>(&heard.body) else {
        return Some(format!("status {} with a body that is not JSON", heard.status));
    };
    // Not ready is an answer, and not a problem.
    if said["code"].is_null() && sent.name.starts_with("GET /readyz") {
        return None;
    }
    if heard.header("content-type") != Some("application/problem+json") {
        return Some(format!("status {} that is not a problem document", heard.status));
    }
    let code = said["code"].as_str().unwrap_or_default();
    let Ok(known) = code.parse::<Code>() else {
        return Some(format!("status {} with the unknown code {code:?}", heard.status));
    };
    let says = |field: &str| said[field].as_str().is_some_and(|text| !text.is_empty());
    if let Some(field) = ["type", "title", "detail", "hint"].iter().find(|field| !says(field)) {
        return Some(format!("{code} without its {field}"));
    }
    // An error before there is a request has a status of its own.
    let is_parsers = known == Code::TooLarge && matches!(heard.status, 414 | 431);
    if said["status"] != heard.status || known.status() != heard.status && !is_parsers {
        return Some(format!("{code} with the status {}", heard.status));
    }
    if heard.status >= 500 && !MEANT.contains(&known) {
        return Some(format!("{code}: {}", said["detail"]));
    }
    let needs = match heard.status {
        429 | 503 => "retry-after",
        405 => "allow",
        401 => "www-authenticate",
        _ => return None,
    };
    heard.header(needs).is_none().then(|| format!("{code} without {needs}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(framing: Framing) -> Sent {
        let (name, method) = ("GET /v1/jobs".to_owned(), "GET".to_owned());
        Sent { name, method, bytes: Vec::new(), framing }
    }

    fn heard(status: u16, media: &str, body: &str) -> Result<FuzzHeard, Silence> {
        let headers = vec![("content-type".to_owned(), media.to_owned())];
        Ok(FuzzHeard { status, headers, body: body.as_bytes().to_vec() })
    }

    #[test]
    fn what_the_contract_does_not_allow_is_found() {
        let problem = |code: &str, status: u16| {
            let text = format!(
                r#"{{"type":"t","title":"t","status":{status},"code":"{code}","detail":"d","hint":"h"}}"#
            );
            heard(status, "application/problem+json", &text)
        };
        for (heard, is_well) in [
            (heard(200, "application/json", "{}"), true),
            (heard(200, "application/json", "{"), false),
            (heard(200, "text/plain", "{}"), false),
            (heard(200, "application/x-ndjson", "{}\n{}\n"), true),
            (heard(302, "application/json", ""), false),
            (problem("job_not_found", 404), true),
            (problem("job_not_found", 409), false),
            (problem("no_such_code", 404), false),
            (problem("overloaded", 503), false),
            (problem("internal", 500), false),
            (problem("outcome_unknown", 503), false),
            (heard(404, "application/json", "{}"), false),
            (heard(500, "application/problem+json", ""), false),
            (Err(Silence::Closed), false),
            (Err(Silence::Late), false),
        ] {
            let fault = fault(&sent(Framing::Length), &heard);
            assert_eq!(fault.is_none(), is_well, "{heard:?}: {fault:?}");
        }
        assert!(fault(&sent(Framing::Cut), &Err(Silence::Closed)).is_none());
    }
}
