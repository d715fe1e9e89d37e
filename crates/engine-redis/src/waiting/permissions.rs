//! Whether this process may publish its notifications: looked at when an engine is opened, and again while it
//! may not.
//!
//! Notifications are hints, so nothing fails without them: waiting calls then look for themselves, and a job
//! starts up to a second later. That is slow enough to be told, with what to permit.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tenure_core::names::Namespace;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::link::{Channels, LinkError};
use crate::shared::Shared;

/// Between two looks while it is denied, or while nobody answers.
const AGAIN: Duration = Duration::from_secs(5);

/// The channel to which this process may not publish, if there is one.
#[derive(Default)]
pub(crate) struct DeniedChannel {
    channel: Mutex<Option<String>>,
    told: Notify,
}

impl DeniedChannel {
    /// Set by the first look, and by each answer to a call whose notification was denied; cleared by the first
    /// look that finds it permitted.
    pub(crate) fn set(&self, channel: Option<String>) {
        let mut known = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        if channel.is_some() && known.is_none() {
            self.told.notify_one();
        }
        *known = channel;
    }

    fn channel(&self) -> Option<String> {
        self.channel.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is denied, and what to permit; `None` if nothing is.
    pub(crate) fn notice(&self, channels: Channels) -> Option<String> {
        let channel = self.channel()?;
        let prefix = channel.split('{').next().unwrap_or_default();
        Some(format!(
            "redis does not permit this process to publish to {channel:?}: waiting calls find new work only by \
             looking, up to a second later; permit it (ACL SETUSER NAME {} &{prefix}*)",
            channels.right_to_publish()
        ))
    }
}

/// Whether one of these channels is denied; an error if nobody said so or otherwise.
async fn look(shared: &Shared, channels: &[String]) -> Result<Option<String>, LinkError> {
    for channel in channels {
        // Any namespace's channel is published where that lies. No process takes an empty text for anything.
        match shared.link.publish(channel, "").await {
            Err(LinkError::Refused { code, .. }) if code == "NOPERM" => {
                return Ok(Some(channel.clone()));
            }
            Err(why) => return Err(why),
            Ok(_) => {}
        }
    }
    Ok(None)
}

/// Looks once, and again for as long as it is denied.
pub(crate) async fn keep_looking(shared: Weak<Shared>) {
    loop {
        let Some(engine) = shared.upgrade() else { return };
        let (name, address) = (Namespace::main(), engine.link.address());
        let key = |rest: &str| address.key(name.as_str(), rest);
        let mut channels = vec![key("t:"), key(&format!("w:{}", engine.proc))];
        channels.extend(engine.denied.channel());
        let looked = look(&engine, &channels).await;
        let again = match looked {
            Ok(channel) => {
                let is_denied = channel.is_some();
                engine.denied.set(channel);
                is_denied
            }
            Err(_) => true,
        };
        let denied: Arc<DeniedChannel> = engine.denied.clone();
        let mut closing = engine.closing();
        drop(engine);
        tokio::select! {
            () = sleep(AGAIN), if again => {}
            () = denied.told.notified(), if !again => {}
            _ = closing.changed() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_denied_is_told_with_what_to_permit() {
        let denied = DeniedChannel::default();
        assert_eq!(denied.notice(Channels::Ordinary), None);
        denied.set(Some("ours:{default}t:".to_owned()));
        for (channels, right) in
            [(Channels::Ordinary, "+publish &ours:*"), (Channels::Sharded, "+spublish &ours:*")]
        {
            let notice = denied.notice(channels).expect("it is denied");
            assert!(notice.contains("\"ours:{default}t:\"") && notice.contains(right), "{notice}");
        }
        denied.set(None);
        assert_eq!(denied.notice(Channels::Ordinary), None);
    }
}
