//! Writes which server leads the store, and which servers join and leave it. Each server writes what it sees itself.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use tenure_core::trail::TrailLine;
use tokio::time::sleep;

use super::Trail;
use crate::leadership::{Leadership, ServingLeader};

/// How often the servers of the store are looked at: they report once a second.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Follows the leadership of a shared store, for as long as it is polled.
pub async fn follow_leadership(leadership: Leadership, trail: Trail) -> Infallible {
    if !leadership.is_shared() || !trail.is_kept() {
        return pending().await;
    }
    let mut told = None;
    let mut servers = BTreeSet::new();
    loop {
        let now = leadership.now();
        let line = line_of(&now);
        if line.is_some() && told.as_ref() != line.as_ref() {
            told.clone_from(&line);
            trail.write(line.unwrap_or_default());
        }
        let seen = others(&leadership);
        for (op, url) in changes(&servers, &seen) {
            trail.write(TrailLine::of(op).about([format!("server:{url}")]));
        }
        servers = seen;
        tokio::select! {
            () = leadership.moved(&now) => {}
            () = sleep(LOOK_EVERY) => {}
        }
    }
}

/// The line about this leader; `None`: no server leads the store, which is no change of the leader.
fn line_of(leader: &ServingLeader) -> Option<TrailLine> {
    match leader {
        ServingLeader::Local { epoch, .. } => {
            Some(TrailLine::of("leads_store").saying(format!("epoch {epoch}")))
        }
        ServingLeader::Remote(other) => {
            let target = format!("server:{}", other.url);
            Some(
                TrailLine::of("follows_leader")
                    .about([target])
                    .saying(format!("epoch {}", other.epoch)),
            )
        }
        ServingLeader::None(_) | ServingLeader::Paused(_) => None,
    }
}

/// The addresses of the other servers.
fn others(leadership: &Leadership) -> BTreeSet<String> {
    let others = leadership.servers().into_iter().filter(|server| !server.is_self);
    others.map(|server| server.url).collect()
}

/// Servers that came and servers that left.
fn changes<'s>(
    before: &'s BTreeSet<String>,
    now: &'s BTreeSet<String>,
) -> impl Iterator<Item = (&'static str, &'s String)> {
    let joined = now.difference(before).map(|url| ("server_joined", url));
    joined.chain(before.difference(now).map(|url| ("server_left", url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_join_and_leave() {
        let set = |urls: &[&str]| urls.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let (before, now) = (set(&["a", "b"]), set(&["b", "c"]));
        let told: Vec<_> = changes(&before, &now).map(|(op, url)| (op, url.as_str())).collect();
        assert_eq!(told, [("server_joined", "c"), ("server_left", "a")]);
        assert_eq!(changes(&now, &now).count(), 0);
    }
}
