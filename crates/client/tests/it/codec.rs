//! Codecs: what the store has of payloads, results and progress, and what opens them again.
#![cfg(feature = "testing")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure::core::job::JobState;
use tenure::tasks::{Handlers, Task, TaskError};
use tenure::testing::Sandbox;
use tenure::{
    CallError, Client, Codec, CodecError, Job, JobView, Json, NoValue, ParentView, SettleOutcome,
    ValuePart, ValuePlace,
};

type Bytes = Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>>;

/// A codec for tests: it hides a value from a reader of JSON, and from nobody else. Each byte is mixed with one of the key
/// and one of the place. Its bytes are those of the same codec in the tests of the other clients.
#[derive(Clone)]
struct Toy {
    name: &'static str,
    keys: BTreeMap<u8, &'static str>,
    newest: u8,
    read_only: bool,
}

const OLD: (u8, &str) = (1, "the first key");
const NEW: (u8, &str) = (2, "another key");
/// `clear()`, sealed for a job of the kind "send" in the queue "mail" with the second key.
const VECTOR: &str = r#"{"$sealed":"Am90NGxoJiwCZ2p+TQtkcGtxbiQ8anltKEM7fs+oUmxlZSckVTwoOD1xR2ZtZG5Dc39+cw13","codec":"toy","queue":"mail","kind":"send"}"#;

fn clear() -> Json {
    Json::parse(r#"{"to":"ann@example.com","wörter":[1,2.5,null,true]}"#).unwrap()
}

/// The first key seals, all of them open.
fn toy<const N: usize>(keys: [(u8, &'static str); N]) -> Toy {
    Toy { name: "toy", keys: keys.into(), newest: keys[0].0, read_only: false }
}

fn sum(clear: &[u8], place: &ValuePlace) -> u8 {
    clear.iter().chain(&place.associated_data()).fold(0, |sum, byte| byte.wrapping_add(sum))
}

fn mixed(data: &[u8], key: &str, place: &ValuePlace) -> Vec<u8> {
    let bound = place.associated_data();
    let with = key.bytes().cycle().zip(bound.iter().cycle());
    data.iter().zip(with).map(|(byte, (key, bound))| byte ^ key ^ bound).collect()
}

impl Codec for Toy {
    fn name(&self) -> &str {
        self.name
    }
    fn read_only(&self) -> bool {
        self.read_only
    }
    fn encode(&self, clear: &[u8], place: &ValuePlace) -> Bytes {
        if clear == br#""unsealable""# {
            return Err("no".into());
        }
        let data = [&[sum(clear, place)], clear].concat();
        Ok([vec![self.newest], mixed(&data, self.keys[&self.newest], place)].concat())
    }
    fn decode(&self, sealed: &[u8], place: &ValuePlace) -> Bytes {
        let (number, sealed) = sealed.split_first().ok_or("it is empty")?;
        let key = self.keys.get(number).ok_or_else(|| format!("there is no key {number} here"))?;
        let data = mixed(sealed, key, place);
        let (check, clear) = data.split_first().ok_or("it is empty")?;
        if *check != sum(clear, place) {
            return Err("the sum is wrong".into());
        }
        Ok(clear.to_vec())
    }
}

#[derive(Serialize, Deserialize)]
struct Mail {
    to: String,
}
impl Task for Mail {
    const KIND: &'static str = "send";
    const QUEUE: &'static str = "mail";
}
#[derive(Serialize, Deserialize)]
struct Report(String);
impl Task for Report {
    const KIND: &'static str = "report";
    const QUEUE: &'static str = "mail";
}

async fn send(mail: Mail, job: Job) -> Result<SettleOutcome, TaskError> {
    job.set_progress(Json::of(&json!({ "sent to": mail.to }))?).map_err(|no| no.detail)?;
    let done = SettleOutcome::succeeded_with(&json!({ "sent": mail.to }));
    Ok(if mail.to == "nobody" { done } else { done.then_task(&Report(mail.to)) })
}

async fn report(report: Report, job: Job) -> Result<String, TaskError> {
    let parents = job.parents().await?;
    let result = parents.into_iter().find_map(|parent| match parent {
        ParentView::Job(job) => job.result,
        ParentView::Flow { .. } => None,
    });
    Ok(result.map_or(report.0, |result| result.text().to_owned()))
}

fn handlers() -> Handlers {
    Handlers::new().on(send).on(report)
}

fn ann() -> Mail {
    Mail { to: "ann@example.com".to_owned() }
}

/// A store, a client of it with this codec, and one without.
fn store(codec: impl Codec) -> (Sandbox, Client, Client) {
    let sandbox = Sandbox::new().unwrap();
    let bare = sandbox.client();
    let sandbox = sandbox.codec(codec);
    let client = sandbox.client();
    (sandbox, client, bare)
}

/// All that the store has of a job.
async fn raw(bare: &Client, id: impl AsRef<str>) -> (JobView, String) {
    let view = bare.job(id).view().await.unwrap();
    let text = serde_json::to_string(&view).unwrap();
    (view, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_agree_on_the_form() {
    let place = ValuePlace::new(ValuePart::Payload, "mail", "send");
    let (_, client, _) = store(toy([NEW, OLD]));
    let sealed = client.sealed(clear(), &place).unwrap();
    let vector: Value = serde_json::from_str(VECTOR).unwrap();
    assert_eq!(sealed.read::<Value>().unwrap(), vector);
    let (_, other, _) = store(toy([OLD, NEW]));
    assert_eq!(other.unsealed(Json::parse(VECTOR).unwrap(), ValuePart::Payload).unwrap(), clear());
    assert!(other.unsealed(Json::parse(VECTOR).unwrap(), ValuePart::Result).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_never_sees_a_value() {
    let (sandbox, client, bare) = store(toy([NEW, OLD]));
    let pushed = client.push_task(&ann()).unwrap().await.unwrap();
    assert_eq!(sandbox.run_until_idle(&handlers()).await.unwrap().jobs, 2);
    let job = client.job(&pushed.id);
    assert_eq!(job.value::<Value>().await.unwrap(), json!({"sent": "ann@example.com"}));
    let shown = job.view().await.unwrap();
    assert_eq!(shown.payload.unwrap().read::<Mail>().unwrap().to, "ann@example.com");
    assert_eq!(shown.progress.unwrap().text(), r#"{"sent to":"ann@example.com"}"#);
    // The follow-up, too.
    for job in sandbox.pushed("mail").await.unwrap() {
        assert!(job.payload.unwrap().text().contains("ann@"));
        let (_, text) = raw(&bare, &job.id).await;
        assert!(!text.contains("ann@") && text.contains("$sealed"), "{text}");
    }
    let (_, text) = raw(&bare, &pushed.id).await;
    assert_eq!(text.matches("$sealed").count(), 3, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_a_push_is_sealed() {
    let (sandbox, client, bare) = store(toy([NEW]));
    let of = |queue: &str| client.push(queue).payload(&"secret").unwrap();
    of("mail").await.unwrap();
    client.push_all([of("mail"), client.flow("f").push("mail")]).await.unwrap();
    let hour = Duration::from_secs(3_600);
    let schedule =
        |id: &str| client.schedule(id).every(hour).push("mail").payload(&"secret").unwrap();
    schedule("s").set().await.unwrap();
    client.schedules_of("o").sync([schedule("o1")]).await.unwrap();
    for id in ["s", "o1"] {
        client.schedule(id).run_now().await.unwrap();
        let view = bare.schedule(id).view().await.unwrap();
        assert!(!serde_json::to_string(&view).unwrap().contains("secret"));
    }
    let clear = sandbox.pushed("mail").await.unwrap();
    let secret = Json::from("secret");
    assert_eq!(clear.iter().filter(|job| job.payload.as_ref() == Some(&secret)).count(), 4);
    assert_eq!(clear.len(), 5);
    for job in clear {
        assert!(!raw(&bare, &job.id).await.1.contains("secret"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_reads_the_results_of_parents() {
    let (sandbox, client, _) = store(toy([NEW]));
    let nobody = Mail { to: "nobody".to_owned() };
    client.push_task(&nobody).unwrap().id("parent").await.unwrap();
    let child = client.push_task(&Report(String::new())).unwrap().after("parent");
    let child = child.await.unwrap();
    sandbox.run_until_idle(&handlers()).await.unwrap();
    let read: String = client.job(&child.id).value().await.unwrap();
    assert_eq!(read, r#"{"sent":"nobody"}"#);
    assert!(format!("{:?}", client.job(&child.id).parents().await.unwrap()).contains("parent"));
}

#[tokio::test(flavor = "multi_thread")]
async fn clear_values_are_taken_as_they_are() {
    let (sandbox, client, bare) = store(toy([NEW]));
    bare.push_task(&ann()).unwrap().id("clear").await.unwrap();
    sandbox.run_until_idle(&handlers()).await.unwrap();
    assert_eq!(client.job("clear").view().await.unwrap().state, JobState::Succeeded);

    let read_only = Toy { read_only: true, ..toy([OLD, NEW]) };
    let reader = bare.clone().codec(read_only);
    reader.push_task(&ann()).unwrap().id("read").await.unwrap();
    assert!(raw(&bare, "read").await.1.contains("ann@"));
    sandbox.run_until_idle(&handlers()).await.unwrap();
    let result: Value = reader.job("read").value().await.unwrap();
    assert_eq!(result, json!({"sent": "ann@example.com"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_cannot_be_opened_is_a_final_failure() {
    let other = Toy { name: "other", ..toy([NEW]) };
    let cases: [(Option<Toy>, &str, &str); 4] = [
        (None, "no_codec", "sealed by the codec \"toy\", and this client has no codec"),
        (Some(other), "wrong_codec", "this client has \"other\""),
        (Some(toy([OLD])), "codec_failed", "there is no key 2 here"),
        (Some(toy([(2, "of somebody")])), "codec_failed", "the sum is wrong"),
    ];
    for (codec, code, words) in cases {
        let (sandbox, client, bare) = store(toy([NEW]));
        let reader = match codec {
            Some(codec) => bare.clone().codec(codec),
            None => bare.clone(),
        };
        client.push_task(&ann()).unwrap().id("done").await.unwrap();
        sandbox.run_until_idle(&handlers()).await.unwrap();
        let sealed = reader.job("done").value::<Value>().await.unwrap_err();
        let NoValue::Sealed { source, .. } = sealed else { panic!("{sealed:?}") };
        assert_eq!(source.code(), code);
        assert!(source.to_string().contains(words), "{source}");

        client.push_task(&ann()).unwrap().id("never").await.unwrap();
        let worker = reader.worker(["mail"]).until_idle();
        let run = async |job: Job| -> SettleOutcome { panic!("job {} must not run", job.id()) };
        worker.run(run).await.unwrap();
        let (view, _) = raw(&bare, "never").await;
        assert_eq!((view.state, view.attempt), (JobState::Failed, 1));
        assert!(view.error.as_ref().unwrap().contains(words), "{view:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_of_another_place_is_refused() {
    let (sandbox, client, bare) = store(toy([NEW]));
    client.push("other").payload(&ann()).unwrap().id("elsewhere").await.unwrap();
    let moved = raw(&bare, "elsewhere").await.0.payload.unwrap();
    bare.push("mail").kind("send").payload(&moved).unwrap().id("moved").await.unwrap();
    sandbox.run_until_idle(&handlers()).await.unwrap();
    let error = raw(&bare, "moved").await.0.error.unwrap();
    assert!(
        error.contains("for the kind \"\" in queue \"other\", and not for \"send\""),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_cannot_be_sealed_is_not_sent() {
    let (_, client, bare) = store(toy([NEW]));
    let no = client.push("mail").payload(&"unsealable").unwrap().await.unwrap_err();
    assert!(matches!(no, CallError::Fault(_)), "{no:?}");
    assert!(no.to_string().contains("the codec \"toy\" did not seal the payload: no"), "{no}");
    type Run = fn(&Job) -> SettleOutcome;
    let failing: [(&str, Run); 3] = [
        ("result", |_| SettleOutcome::succeeded_with(&"unsealable")),
        ("progress", |job| {
            job.set_progress("unsealable".into()).unwrap();
            SettleOutcome::succeeded()
        }),
        ("payload", |_| SettleOutcome::succeeded().then_task(&Report("unsealable".to_owned()))),
    ];
    for (part, run) in failing {
        let pushed = client.push("mail").await.unwrap();
        let worker = client.worker(["mail"]).until_idle();
        worker.run(move |job: Job| async move { run(&job) }).await.unwrap();
        let (view, _) = raw(&bare, &pushed.id).await;
        assert_eq!((view.state, view.attempt), (JobState::Failed, 1), "{part}");
        let error = view.error.unwrap();
        assert!(error.contains(&format!("did not seal the {part}: no")), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_gets_the_sealed_payload() {
    use tenure::{Execute, Executed};

    struct Looks;
    impl Execute for Looks {
        type Failure = std::io::Error;
        async fn execute(&self, job: Job) -> Executed<std::io::Error> {
            let why = job.sealed().map(CodecError::code);
            SettleOutcome::succeeded_with(&(why, job.payload_json().contains("$sealed"))).into()
        }
    }
    let (_, client, bare) = store(toy([NEW]));
    client.push_task(&ann()).unwrap().id("j").await.unwrap();
    bare.worker(["mail"]).until_idle().execute(Looks).await.unwrap();
    let read: (String, bool) = bare.job("j").value().await.unwrap();
    assert_eq!(read, ("no_codec".to_owned(), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn needs_from_a_sealed_payload_are_refused_with_advice() {
    let (_, client, _) = store(toy([NEW]));
    client.limit("site:*").concurrency(1).set().await.unwrap();
    let need = tenure::Need::limit("site:{payload.host}");
    client.queue("crawl").need(need).set().await.unwrap();
    let crawl = || client.push("crawl").payload(&json!({"host": "a"})).unwrap();
    for no in [
        crawl().await.map(drop),
        client.push_all([crawl()]).await.map(drop),
        client
            .schedule("s")
            .every(Duration::from_secs(3_600))
            .push("crawl")
            .payload(&json!({"host": "a"}))
            .unwrap()
            .set()
            .await
            .map(drop),
    ] {
        let Err(CallError::Refused(no)) = no else { panic!("{no:?}") };
        assert!(no.hint.starts_with("the payload is sealed"), "{no:?}");
    }
    crawl().need(tenure::Need::limit("site:a")).await.unwrap();
}
