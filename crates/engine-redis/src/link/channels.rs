//! The commands that publish and listen, and what a server says on a connection that listens.
//!
//! On a cluster a channel lies in the slot of its hash tag, as a key does: it is published, heard and counted at the one
//! node that owns the slot. The ordinary channels of a cluster are heard at every node, and no node knows how many
//! listen. The function library makes the same choice (`db.publish` in `lua/store/commit.lua`), by the mode of the
//! server that runs it, so here the mode of the server decides as well, and not the form of the address: a cluster of
//! one node can be addressed as a single server.

use redis::{Cmd, Value};

use super::Link;
use super::error::LinkError;
use super::routes::hash_tag;

/// How notifications are published and heard on the servers of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channels {
    /// `PUBLISH` and `SUBSCRIBE`, at the primary.
    Ordinary,
    /// `SPUBLISH` and `SSUBSCRIBE`, at the node that owns the slot of the channel.
    Sharded,
}

impl Channels {
    /// The command that publishes.
    pub fn publish(self) -> &'static str {
        match self {
            Channels::Ordinary => "PUBLISH",
            Channels::Sharded => "SPUBLISH",
        }
    }

    /// The right of an ACL that publishing needs, beside that to the channel.
    pub fn right_to_publish(self) -> &'static str {
        match self {
            Channels::Ordinary => "+publish",
            Channels::Sharded => "+spublish",
        }
    }

    /// The rights of an ACL that listening needs, beside that to the channels.
    pub fn rights_to_listen(self) -> &'static str {
        match self {
            Channels::Ordinary => "+subscribe +unsubscribe +ping",
            Channels::Sharded => "+ssubscribe +sunsubscribe +ping",
        }
    }

    pub(super) fn subscribe(self) -> &'static str {
        match self {
            Channels::Ordinary => "SUBSCRIBE",
            Channels::Sharded => "SSUBSCRIBE",
        }
    }

    pub(super) fn unsubscribe(self) -> &'static str {
        match self {
            Channels::Ordinary => "UNSUBSCRIBE",
            Channels::Sharded => "SUNSUBSCRIBE",
        }
    }
}

/// Asks a server for its mode. The function library asks the same, so every user that can call it may ask.
pub(super) fn mode() -> Cmd {
    let mut info = redis::cmd("INFO");
    info.arg("cluster");
    info
}

/// The kind of channels that a server of this mode has. A user that may not ask for the mode is told nothing, and then
/// the form of the address counts.
pub(super) fn of_mode(answer: &Value) -> Channels {
    let is_clustered = match answer {
        Value::BulkString(told) => told
            .split(|byte| *byte == b'\n')
            .any(|line| line.strip_suffix(b"\r").unwrap_or(line) == b"cluster_enabled:1"),
        _ => false,
    };
    if is_clustered { Channels::Sharded } else { Channels::Ordinary }
}

impl Link {
    /// How notifications are published and heard here, as far as it is known: of a single server it is only known once
    /// the server was asked.
    pub fn channels(&self) -> Channels {
        self.inner.routes.channels()
    }

    /// The same, after the primary of a namespace was asked, if only the server can say it.
    pub async fn ask_channels(&self, namespace: &str) -> Channels {
        if self.inner.routes.may_be_either() {
            // A server that does not say it will say to the publishing itself what is wrong.
            if let Ok(mode) = self.command(namespace, &mode()).await {
                self.inner.routes.learn_channels(of_mode(&mode));
            }
        }
        self.channels()
    }

    /// Publishes to a channel, where its namespace lies.
    pub async fn publish(&self, channel: &str, text: &str) -> Result<(), LinkError> {
        let namespace = hash_tag(channel);
        let mut publish = redis::cmd(self.ask_channels(namespace).await.publish());
        publish.arg(channel).arg(text);
        self.command(namespace, &publish).await.map(|_| ())
    }
}

/// What a server says on a connection that listens.
#[derive(PartialEq, Debug)]
pub(super) enum ServerWord {
    /// Somebody published this.
    Message { channel: String, payload: Vec<u8> },
    /// From now on the messages of this channel come.
    Begins(String),
    /// From now on they come no more: because it was asked for, or because the slot has left the server.
    Ends(String),
    /// The answer to a PING.
    Pong,
    /// The answer to any other command.
    Answer(Value),
}

impl ServerWord {
    /// Every value says something.
    pub fn read(value: Value) -> Self {
        let kind = match &value {
            Value::SimpleString(text) if text == "PONG" => return ServerWord::Pong,
            Value::Array(parts) => match parts.first() {
                Some(Value::BulkString(kind)) => kind.as_slice(),
                _ => b"",
            },
            _ => b"",
        };
        match kind {
            b"pong" => ServerWord::Pong,
            b"message" | b"smessage" => match texts(&value) {
                Some((channel, Some(Value::BulkString(payload)))) => {
                    ServerWord::Message { channel, payload: payload.clone() }
                }
                _ => ServerWord::Answer(value),
            },
            b"subscribe" | b"ssubscribe" => match texts(&value) {
                Some((channel, _)) => ServerWord::Begins(channel),
                None => ServerWord::Answer(value),
            },
            b"unsubscribe" | b"sunsubscribe" => match texts(&value) {
                Some((channel, _)) => ServerWord::Ends(channel),
                None => ServerWord::Answer(value),
            },
            _ => ServerWord::Answer(value),
        }
    }
}

/// The channel in what a server says, and what stands behind it.
fn texts(value: &Value) -> Option<(String, Option<&Value>)> {
    let Value::Array(parts) = value else { return None };
    let Some(Value::BulkString(channel)) = parts.get(1) else { return None };
    Some((String::from_utf8(channel.clone()).ok()?, parts.get(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }
    fn list(kind: &str, channel: &str, last: Value) -> Value {
        Value::Array(vec![text(kind), text(channel), last])
    }

    #[test]
    fn what_a_server_says_to_a_listener_is_read_in_both_modes() {
        let message = |payload: &[u8]| ServerWord::Message {
            channel: "c".to_owned(),
            payload: payload.to_vec(),
        };
        for (value, said) in [
            (list("message", "c", text("x")), message(b"x")),
            (list("smessage", "c", text("")), message(b"")),
            (list("subscribe", "c", Value::Int(1)), ServerWord::Begins("c".to_owned())),
            (list("ssubscribe", "c", Value::Int(1)), ServerWord::Begins("c".to_owned())),
            (list("unsubscribe", "c", Value::Int(0)), ServerWord::Ends("c".to_owned())),
            (list("sunsubscribe", "c", Value::Int(0)), ServerWord::Ends("c".to_owned())),
            (Value::SimpleString("PONG".to_owned()), ServerWord::Pong),
            (Value::Array(vec![text("pong"), text("")]), ServerWord::Pong),
            (Value::Okay, ServerWord::Answer(Value::Okay)),
        ] {
            assert_eq!(ServerWord::read(value), said);
        }
        for value in [
            Value::Array(vec![]),
            Value::Array(vec![text("message"), text("c")]),
            Value::Array(vec![text("subscribe"), Value::Nil]),
            Value::Array(vec![Value::Int(1)]),
        ] {
            assert_eq!(ServerWord::read(value.clone()), ServerWord::Answer(value));
        }
    }

    #[test]
    fn the_mode_of_a_server_decides_how_channels_are_heard() {
        for (told, channels) in [
            (text("# Cluster\r\ncluster_enabled:1\r\n"), Channels::Sharded),
            (text("# Cluster\r\ncluster_enabled:0\r\n"), Channels::Ordinary),
            (text(""), Channels::Ordinary),
            (Value::Nil, Channels::Ordinary),
        ] {
            assert_eq!(of_mode(&told), channels, "{told:?}");
        }
    }
}
