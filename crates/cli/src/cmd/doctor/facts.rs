//! What the primaries say of themselves: asked once, kept as they said it.
//!
//! Nothing here judges. What a server refuses to tell is a fact as well.

use std::time::Duration;

use tenure_core::time::{Moment, Span};
use tenure_engine::{Clock, SystemClock};
use tenure_engine_redis::link::{Channels, Cmd, Endpoint, Link, LinkError, Value, cmd};
use tokio::time::timeout;

/// Nothing but a name: that it can be loaded is all that it is for.
const PROBE: &str = "#!lua name=tenure_doctor\nredis.register_function{function_name=\
                     'tenure_doctor', flags={'no-writes'}, callback=function() return 'ok' end}\n";
const PROBE_NAME: &str = "tenure_doctor";

/// What one primary says.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its host and port.
    pub server: String,
    /// `INFO everything`, or why it is not told.
    pub info: RedisReply,
    /// `CONFIG GET` of [`SETTINGS`], as names and values in lines, or why it is not told.
    pub settings: RedisReply,
    /// `CLUSTER INFO` of a node of a cluster.
    pub cluster: Option<RedisReply>,
    /// The node's own line of `CLUSTER NODES`; empty if it has none.
    pub myself: String,
    /// How functions are here.
    pub functions: Functions,
    /// How notifications are published and heard.
    pub channels: Channels,
    /// The channels of the namespace to which we may not publish, each with the server's reason.
    pub unpublished: Vec<(String, String)>,
    /// How far its clock is ahead of ours, in µs, beyond what the way there explains.
    pub ahead_us: i64,
}

/// Lines of `name:value`, or the refusal.
pub type RedisReply = Result<String, String>;

/// The settings that are asked for.
pub const SETTINGS: [&str; 3] =
    ["appendfsync", "no-appendfsync-on-rewrite", "min-replicas-to-write"];

/// Whether our function library is there, or could be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Functions {
    /// It is there, as this release has it.
    Loaded,
    /// It is not, and will be loaded when it is needed.
    Loadable,
    /// It is not, and may not be loaded; the server's reason.
    Refused(String),
}

/// The value of a line.
pub fn value<'a>(told: &'a RedisReply, name: &str) -> Option<&'a str> {
    let lines = told.as_ref().ok()?.lines();
    lines.filter_map(|line| line.split_once(':')).find(|(key, _)| *key == name).map(|(_, v)| v)
}

/// The number in a line.
pub fn number(told: &RedisReply, name: &str) -> Option<u64> {
    value(told, name)?.parse().ok()
}

/// Asks every primary. Fails if one cannot be reached; a refusal is no failure.
pub async fn gather(link: &Link, namespace: &str) -> Result<Vec<Facts>, LinkError> {
    let mut all = Vec::new();
    let channels = link.ask_channels(namespace).await;
    for (server, info) in told(link, cmd("INFO").arg("everything")).await? {
        let (info, settings) = (info?, Ok(String::new()));
        let (cluster, myself) = (None, String::new());
        let (functions, unpublished, ahead_us) = (Functions::Loadable, Vec::new(), 0);
        all.push(Facts {
            server,
            info,
            settings,
            cluster,
            myself,
            functions,
            channels,
            unpublished,
            ahead_us,
        });
    }
    settings(link, &mut all).await?;
    cluster(link, &mut all).await?;
    clock(link, &mut all).await?;
    functions(link, &mut all).await?;
    unpublished(link, namespace, &mut all).await?;
    Ok(all)
}

async fn settings(link: &Link, all: &mut [Facts]) -> Result<(), LinkError> {
    // One by one: several at once are understood from version 7 on.
    for name in SETTINGS {
        for (server, answer) in ask(link, cmd("CONFIG").arg("GET").arg(name)).await? {
            let Some(facts) = of(all, &server) else { continue };
            match (refusal(answer)?, &mut facts.settings) {
                (Ok(Value::Array(pair)), Ok(lines)) => {
                    let value = pair.get(1).map(text).unwrap_or_default();
                    lines.push_str(&format!("{name}:{value}\n"));
                }
                (Err(why), settings) => *settings = Err(why),
                _ => {}
            }
        }
    }
    Ok(())
}

async fn cluster(link: &Link, all: &mut [Facts]) -> Result<(), LinkError> {
    if !all.iter().any(|facts| value(&facts.info, "cluster_enabled") == Some("1")) {
        return Ok(());
    }
    for (server, info) in told(link, cmd("CLUSTER").arg("INFO")).await? {
        if let Some(facts) = of(all, &server) {
            facts.cluster = Some(info?);
        }
    }
    for (server, nodes) in told(link, cmd("CLUSTER").arg("NODES")).await? {
        if let (Some(facts), Ok(nodes)) = (of(all, &server), nodes?) {
            let myself = nodes.lines().find(|line| line.contains("myself"));
            facts.myself = myself.unwrap_or_default().to_owned();
        }
    }
    Ok(())
}

async fn clock(link: &Link, all: &mut [Facts]) -> Result<(), LinkError> {
    let before = SystemClock.now();
    let answers = ask(link, &cmd("TIME")).await?;
    let after = SystemClock.now();
    for (server, answer) in answers {
        if let (Some(facts), Ok(Value::Array(parts))) = (of(all, &server), refusal(answer)?) {
            let part = |at: usize| parts.get(at).map(text).and_then(|text| text.parse().ok());
            if let (Some(s), Some(us)) = (part(0), part(1)) {
                let theirs = Moment::from_us(us).plus(Span::from_s(s));
                facts.ahead_us = ahead_us(theirs, before, after);
            }
        }
    }
    Ok(())
}

/// How far `theirs`, read between two readings of our clock, lies outside of them.
fn ahead_us(theirs: Moment, before: Moment, after: Moment) -> i64 {
    let us = |span: Span| i64::try_from(span.us()).unwrap_or(i64::MAX);
    if theirs < before { -us(before.since(theirs)) } else { us(theirs.since(after)) }
}

async fn functions(link: &Link, all: &mut [Facts]) -> Result<(), LinkError> {
    let library = link.library();
    let mut fingerprint = cmd("FCALL");
    fingerprint.arg(library.function("fingerprint")).arg(0);
    for (server, answer) in ask(link, &fingerprint).await? {
        let loaded = refusal(answer)?.is_ok_and(|loaded| text(&loaded) == library.fingerprint());
        if let (Some(facts), true) = (of(all, &server), loaded) {
            facts.functions = Functions::Loaded;
        }
    }
    if all.iter().all(|facts| facts.functions == Functions::Loaded) {
        return Ok(());
    }
    let mut load = cmd("FUNCTION");
    load.arg("LOAD").arg("REPLACE").arg(PROBE);
    let loads = ask(link, &load).await?;
    // Where it was not loaded, or another doctor removed it, there is nothing to remove.
    let _ = ask(link, cmd("FUNCTION").arg("DELETE").arg(PROBE_NAME)).await?;
    for (server, answer) in loads {
        if let (Some(facts), Err(why)) = (of(all, &server), refusal(answer)?)
            && facts.functions != Functions::Loaded
        {
            facts.functions = Functions::Refused(why);
        }
    }
    Ok(())
}

/// The channels of a namespace: due moments, and waiting calls of a process.
fn channels(link: &Link, namespace: &str) -> [String; 2] {
    ["t:", "w:doctor"].map(|rest| link.address().key(namespace, rest))
}

async fn unpublished(link: &Link, namespace: &str, all: &mut [Facts]) -> Result<(), LinkError> {
    for channel in channels(link, namespace) {
        // No process takes an empty text for anything.
        let mut publish = cmd(link.channels().publish());
        publish.arg(&channel).arg("");
        for (server, answer) in ask(link, &publish).await? {
            match (of(all, &server), refusal(answer)?) {
                // The right is looked at before the slot: this node would publish what is its own.
                (Some(_), Err(why)) if why.starts_with("MOVED ") => {}
                (Some(facts), Err(why)) => facts.unpublished.push((channel.clone(), why)),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Why we may not listen to the channels of a namespace; `None` if we may.
pub async fn unheard(link: &Link, namespace: &str, within: Duration) -> Option<String> {
    let (subscription, mut events) = link.listen();
    let [channel, _] = channels(link, namespace);
    subscription.subscribe(&channel);
    // A gap is told when a channel is heard, and on a single server also when there is a connection.
    let heard = async { while !subscription.hears(&channel) && events.recv().await.is_some() {} };
    // Each try that fails is told otherwise.
    let _ = timeout(within, heard).await;
    if subscription.hears(&channel) {
        return None;
    }
    subscription.down().map(|why| match why {
        LinkError::Refused { code, message } => format!("{channel}: {code} {message}"),
        why => why.to_string(),
    })
}

type ServerAnswer = Result<Value, LinkError>;

async fn ask(link: &Link, cmd: &Cmd) -> Result<Vec<(String, ServerAnswer)>, LinkError> {
    let answers = link.command_all(cmd).await?;
    let server = |endpoint: Endpoint| endpoint.to_string();
    Ok(answers.into_iter().map(|(endpoint, answer)| (server(endpoint), answer)).collect())
}

async fn told(
    link: &Link,
    cmd: &Cmd,
) -> Result<Vec<(String, Result<RedisReply, LinkError>)>, LinkError> {
    let told = |answer| refusal(answer).map(|answer| answer.map(|value| text(&value)));
    Ok(ask(link, cmd).await?.into_iter().map(|(server, answer)| (server, told(answer))).collect())
}

/// What the server refuses is an answer here; that it cannot be reached, or wants a login, is none.
fn refusal(answer: ServerAnswer) -> Result<Result<Value, String>, LinkError> {
    match answer {
        Ok(value) => Ok(Ok(value)),
        Err(LinkError::Refused { code, message }) if code != "NOAUTH" => {
            Ok(Err(format!("{code} {message}")))
        }
        Err(why) => Err(why),
    }
}

fn of<'a>(all: &'a mut [Facts], server: &str) -> Option<&'a mut Facts> {
    all.iter_mut().find(|facts| facts.server == server)
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::VerbatimString { text, .. } => text.clone(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_only_off_by_what_the_way_does_not_explain() {
        let at = Moment::from_us;
        for (theirs, ahead) in [(99, -1), (100, 0), (150, 0), (200, 0), (201, 1)] {
            assert_eq!(ahead_us(at(theirs), at(100), at(200)), ahead, "{theirs}");
        }
    }

    #[test]
    fn a_value_is_found_by_its_whole_name() {
        let told = Ok("# Memory\r\nmaxmemory_human:0B\r\nmaxmemory:10\r\nempty:\r\n".to_owned());
        assert_eq!(number(&told, "maxmemory"), Some(10));
        assert_eq!(value(&told, "empty"), Some(""));
        assert_eq!(value(&told, "memory"), None);
        assert_eq!(value(&Err("NOPERM".to_owned()), "maxmemory"), None);
    }
}
