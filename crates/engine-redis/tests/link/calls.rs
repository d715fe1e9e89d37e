//! What the tests call, and how they wait.

use std::time::Duration;

use tenure_engine_redis::link::{Address, Link, LinkError, LinkOptions, Overheard, Value};
use tenure_testkit::redis::RedisServer;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep, timeout};

/// How long anything may take on a slow machine.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A link with the defaults.
pub fn link(url: &str) -> Link {
    link_with(url, LinkOptions::default())
}

/// A link.
pub fn link_with(url: &str, options: LinkOptions) -> Link {
    let address = Address::parse(url).unwrap_or_else(|why| panic!("{url}: {why}"));
    Link::open(address, options).expect("a link opens without its server")
}

/// Calls the one function that every library has, by a key of the namespace.
pub async fn touch(link: &Link, namespace: &str) -> Result<(), LinkError> {
    let keys = [link.address().key(namespace, "m")];
    let answer = link.fcall(namespace, "fingerprint", &keys, &[] as &[&str]).await?;
    let fingerprint = Value::BulkString(link.library().fingerprint().as_bytes().to_vec());
    assert_eq!(answer, Value::Array(vec![fingerprint]));
    Ok(())
}

/// Calls until it works; answers how long that took. Panics with the last error at the deadline.
pub async fn until_it_works(link: &Link, namespace: &str) -> Duration {
    let begin = Instant::now();
    loop {
        match touch(link, namespace).await {
            Ok(()) => return begin.elapsed(),
            Err(why) if begin.elapsed() > DEADLINE => panic!("it never worked again: {why}"),
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Waits until a check holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < DEADLINE, "waited in vain: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// The next event.
pub async fn next(events: &mut Receiver<Overheard>) -> Overheard {
    timeout(DEADLINE, events.recv()).await.expect("an event in time").expect("it still listens")
}

/// The next message; gaps before it are passed over.
pub async fn next_message(events: &mut Receiver<Overheard>) -> Overheard {
    loop {
        match next(events).await {
            Overheard::Gap { .. } => {}
            message => return message,
        }
    }
}

/// A message.
pub fn message(channel: &str, text: &str) -> Overheard {
    Overheard::Message { channel: channel.to_owned(), payload: text.as_bytes().to_vec() }
}

/// Waits until somebody listens to the channel at the server.
pub async fn heard(server: &RedisServer, channel: &str) {
    until("somebody listens", || {
        let said = server.must(&["PUBSUB", "NUMSUB", channel]);
        said.list().get(1).is_some_and(|ears| ears.text() != "0")
    })
    .await;
}
