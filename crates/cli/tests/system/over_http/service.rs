//! A service that answers as the table of answers says: the meaning of each answer, the content of a request, and the
//! values that nobody is shown.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use data_encoding::BASE64;
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::over_http::ours::{Tenure, until};
use crate::over_http::server::{Asked, Caller, Server};

/// The answer of the service to a job of this name, and the end of the job.
struct Row {
    id: &'static str,
    answer: fn(&mut Caller),
    state: &'static str,
    /// The result of a success, the error of a failure or a retry, null if the service is asked again.
    says: Value,
}

fn rows() -> Vec<Row> {
    let row = |id, answer: fn(&mut Caller), state, says| Row { id, answer, state, says };
    vec![
        row("json", |c| c.answer(200, &[], "{\"n\":1}"), "succeeded", json!({"n":1})),
        row("text", |c| c.answer(200, &[], "thank you"), "succeeded", json!("thank you")),
        row("empty", |c| c.answer(204, &[], ""), "succeeded", Value::Null),
        row("accepted", |c| c.answer(202, &[], "soon"), "scheduled", Value::Null),
        row("later", |c| c.answer(200, &[("retry-after", "600")], ""), "scheduled", Value::Null),
        row("busy", |c| c.answer(503, &[("retry-after", "600")], "x"), "scheduled", Value::Null),
        row(
            "outcome",
            |c| {
                let kind = [("content-type", "application/tenure-outcome+json")];
                c.answer(200, &kind, r#"{"outcome":"snoozed","for":"10m"}"#);
            },
            "scheduled",
            Value::Null,
        ),
        row(
            "bad",
            |c| c.answer(400, &[], "no such page"),
            "failed",
            json!("http 400: no such page"),
        ),
        row("gone", |c| c.answer(410, &[], ""), "failed", json!("http 410")),
        row("wrong", |c| c.answer(422, &[], "{}"), "failed", json!("http 422: {}")),
        row("deploy", |c| c.answer(404, &[], "nginx"), "scheduled", json!("http 404: nginx")),
        row("broken", |c| c.answer(500, &[], "oh\nno"), "scheduled", json!("http 500: oh no")),
        row("limited", |c| c.answer(429, &[], ""), "scheduled", json!("http 429")),
        row(
            "moved",
            |c| c.answer(301, &[("location", "http://me:geheim@127.0.0.1:1/")], ""),
            "scheduled",
            json!(
                "http 301, a redirect to http://•••@127.0.0.1:1/: it is not followed; give --http the address that it leads to"
            ),
        ),
        row(
            "long",
            |c| c.answer(200, &[], &"x".repeat(256 * 1024 + 1)),
            "scheduled",
            json!("http 200, and its answer is longer than 262144 bytes"),
        ),
        row(
            "endless",
            |c| {
                c.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
                for _ in 0..300 {
                    c.write(&"x".repeat(1024));
                }
            },
            "scheduled",
            json!("http 200, and its answer is longer than 262144 bytes"),
        ),
        row(
            "half",
            |c| c.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"n\":"),
            "scheduled",
            json!("http 200, and its answer breaks off; the service may have done the work"),
        ),
        row(
            "cut",
            |_| {},
            "scheduled",
            json!(
                "the connection was cut before an answer came (connection closed before message completed); the request may have been read"
            ),
        ),
        row(
            "hangs",
            |c| {
                c.stays(Duration::from_secs(60), || false);
            },
            "scheduled",
            json!("no whole answer within 2s; the request may have been read"),
        ),
        row(
            "drips",
            |c| {
                c.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"n\":");
                c.stays(Duration::from_secs(60), || false);
            },
            "scheduled",
            json!("no whole answer within 2s; the request may have been read"),
        ),
    ]
}

#[test]
fn each_answer_is_what_the_table_says() {
    let service = Server::start(|asked, caller| {
        let rows = rows();
        let row = rows.iter().find(|row| asked.header("tenure-job-id") == row.id).unwrap();
        (row.answer)(caller);
    });
    let tenure = Tenure::start();
    let retry = json!({"backoff":{"kind":"fixed","base":"1h"}});
    for row in rows() {
        tenure.push(&json!({"id":row.id,"queue":"q","payload":"geheim","retry":retry}));
    }
    let url = format!("http://{}/", service.at());
    let arguments = ["--http", &url, "-c", "8", "--until-empty", "--request-timeout", "2s"];
    let mut worker = tenure.worker(&arguments);
    assert!(worker.end().success(), "{}", worker.said());
    for row in rows() {
        let job = tenure.job(row.id);
        assert_eq!(job["state"], row.state, "{}: {job}", row.id);
        let said = if row.state == "succeeded" { &job["result"] } else { &job["error"] };
        assert_eq!(*said, row.says, "{}", row.id);
        assert!(!job["errors"].to_string().contains("geheim"), "{job}");
    }
    let at = |id: &str| tenure.job(id)["run_at"].as_str().unwrap().to_owned();
    assert!(at("accepted") < at("later"), "30 s come before 10 min");
    assert!(!worker.said().contains("geheim"), "{}", worker.said());
    // Nothing listens there: nothing was sent.
    drop(service);
    tenure.push(&json!({"id":"alone","queue":"q","retry":retry}));
    let mut worker = tenure.worker(&["--http", &url, "--until-empty"]);
    assert!(worker.end().success());
    let error = tenure.job("alone")["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("could not connect: "), "{error}");
}

#[test]
fn a_busy_service_pauses_limits_of_its_jobs() {
    let service = Server::start(|_, caller| {
        let headers = [("retry-after", "600"), ("tenure-pause", "site:a, other")];
        caller.answer(429, &headers, "");
    });
    let tenure = Tenure::start();
    tenure.ask("PUT /v1/limits/site:*", &json!({"concurrency":2}));
    tenure.push(&json!({"id":"a","queue":"q","needs":[{"limit":"site:a"}]}));
    let url = format!("http://{}/", service.at());
    let mut worker = tenure.worker(&["--http", &url, "--until-empty"]);
    assert!(worker.end().success(), "{}", worker.said());
    let job = tenure.job("a");
    assert_eq!((&job["state"], &job["attempt"]), (&json!("scheduled"), &json!(0)), "{job}");
    let limit = tenure.look("/v1/limits/site:a").1;
    assert!(limit["paused_until"].is_string(), "{limit}");
    let said = worker.said();
    assert!(said.contains("Tenure-Pause names \"other\", which its lease does not hold"), "{said}");
}

/// The right `webhook-signature`, computed from the bytes of the request.
fn signature(secret: &str, asked: &Asked) -> String {
    let key = BASE64.decode(secret.strip_prefix("whsec_").unwrap().as_bytes()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    for part in [asked.header("webhook-id"), ".", asked.header("webhook-timestamp"), "."] {
        mac.update(part.as_bytes());
    }
    mac.update(asked.body.as_bytes());
    format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()))
}

#[test]
fn a_request_is_signed_and_says_the_same_key_in_every_attempt() {
    const SECRETS: [&str; 2] =
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_Z2VoZWltZ2VoZWltZ2VoZWltZ2VoZWlt"];
    let seen = Arc::new(Mutex::new(Vec::<Asked>::new()));
    let into = seen.clone();
    let service = Server::start(move |asked, caller| {
        // As an echo would: what is secret must not come out of it.
        let (login, id) = (asked.header("authorization"), asked.header("webhook-id"));
        let echo = format!("{login} {id} {} {}", asked.line, asked.body);
        into.lock().unwrap().push(asked);
        caller.answer(500, &[], &echo);
    });
    let tenure = Tenure::start();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let retry = json!({"max_attempts":2,"backoff":{"kind":"fixed","base":"100ms"}});
    let push = |id: &str, timeout: Value| {
        let payload = json!({"to":"ann ☃"});
        let job = json!({"id":id,"queue":"q","kind":"a b","payload":payload,"retry":retry,"timeout":timeout});
        tenure.push(&job);
    };
    push("by file", json!("1h"));
    let address =
        file("address", &format!("http://me:geheim@{}/jobs?x=1&key=heimlich\n", service.at()));
    let secrets = file("secrets", &SECRETS.join("\n"));
    let address = format!("@{address}");
    let one = tenure.worker(&["--http", &address, "--secret-file", &secrets]);
    let failed = tenure.once("by%20file", "failed");
    assert_eq!(failed["attempt"], 2);
    let said = one.said();
    drop(one);
    push("by variable", Value::Null);
    let variables = [("TENURE_HTTP_SECRET", SECRETS[1])];
    let two = tenure.worker_with(&["--http", &address], &variables);
    tenure.once("by%20variable", "failed");
    let all = [said, two.said(), tenure.said(), failed["errors"].to_string()].concat();
    for secret in ["geheim", "heimlich", "bWU6Z2VoZWlt", "ann", SECRETS[0], SECRETS[1]] {
        assert!(!all.contains(secret), "{all}");
    }
    assert!(failed["error"].as_str().unwrap().starts_with("http 500: Basic ••• by%20file-"));

    let seen = seen.lock().unwrap().clone();
    let [first, second, third, _] = <[Asked; 4]>::try_from(seen).unwrap();
    for asked in [&first, &second, &third] {
        assert_eq!(asked.line, "POST /jobs?x=1&key=heimlich");
        assert_eq!(asked.body, "{\"to\":\"ann ☃\"}");
        assert_eq!(asked.header("content-type"), "application/json");
        assert_eq!(asked.header("authorization"), "Basic bWU6Z2VoZWlt");
        assert_eq!(asked.header("tenure-kind"), "a%20b");
        assert_eq!(asked.header("webhook-id"), asked.header("idempotency-key"));
        let sent: u64 = asked.header("webhook-timestamp").parse().unwrap();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        assert!(now - sent < 300, "{sent}");
    }
    let both = |asked: &Asked| SECRETS.map(|secret| signature(secret, asked)).join(" ");
    assert_eq!(first.header("webhook-signature"), both(&first));
    assert_eq!(second.header("webhook-signature"), both(&second));
    assert_eq!(third.header("webhook-signature"), signature(SECRETS[1], &third));
    let attempts = [first.header("tenure-attempt"), second.header("tenure-attempt")];
    assert_eq!(attempts, ["1", "2"]);
    assert_eq!(first.header("idempotency-key"), second.header("idempotency-key"));
    assert_ne!(first.header("idempotency-key"), third.header("idempotency-key"));
    let fence = |asked: &Asked| asked.header("tenure-fence").parse::<u64>().unwrap();
    assert!(fence(&first) < fence(&second));
    assert_ne!(first.header("tenure-lease"), second.header("tenure-lease"));
    assert!(first.header("tenure-deadline").ends_with('Z'));
    assert_eq!(third.header("tenure-deadline"), "");
}

#[test]
fn a_secret_that_cannot_be_used_is_wrong_usage_and_is_not_shown() {
    let tenure = Tenure::start();
    let url = ["--http", "http://127.0.0.1:1/"];
    let mut worker = tenure.worker_with(&url, &[("TENURE_HTTP_SECRET", "geheim")]);
    assert_eq!(worker.end().code(), Some(2));
    until("it says why", || worker.said().contains("the secret must be \"whsec_\""));
    assert!(!worker.said().contains("geheim"));
    let mut worker = tenure.worker(&["--http", "ftp://me:geheim@host"]);
    assert_eq!(worker.end().code(), Some(2));
    until("it says why", || worker.said().contains("--http: the address is of another scheme"));
    assert!(!worker.said().contains("geheim"));
}
