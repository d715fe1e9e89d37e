//! Judges a Redis by its facts: what is well, what is worth a look and what is wrong.
//!
//! Pure: it asks nobody. Something `wrong` breaks a promise of Tenure's or stops it from working; `look` is a choice,
//! with its price.

use tenure_core::redis_address::Topology;

use super::facts::{RedisReply, number, value};
use super::finding::{RuleVerdict, look, ok, wrong};
use crate::output::size;

/// The oldest version that has what Tenure needs.
const MAJOR_MIN: u64 = 7;
/// From this percentage of maxmemory on, it is nearly full.
const FULL_PERCENT: u64 = 90;

/// The verdicts on a Redis, whatever is kept in it, by its answers `info` and `settings`. `awaited` is the store's
/// setting `replicas`, 0 without a store.
pub fn of_redis(
    topology: &Topology,
    info: &RedisReply,
    settings: &RedisReply,
    awaited: u64,
) -> Vec<(&'static str, RuleVerdict)> {
    if let Err(why) = info {
        let found = format!("INFO is refused ({why}): version, memory and disk were not checked");
        return vec![("info", look(found, "allow INFO to this user (ACL SETUSER NAME +info)"))];
    }
    vec![
        ("version", version(info)),
        ("role", role(topology, info)),
        ("eviction", eviction(info)),
        ("memory", memory(info)),
        ("persistence", persistence(info, settings)),
        ("disk", disk(info)),
        ("replicas", replicas(topology, info, awaited)),
    ]
}

fn version(info: &RedisReply) -> RuleVerdict {
    // Valkey says under Redis's name which Redis it is compatible with.
    let (name, own) = match value(info, "valkey_version") {
        Some(version) => ("Valkey", version),
        None => ("Redis", value(info, "redis_version").unwrap_or("of an unknown version")),
    };
    let found = format!("{name} {own}");
    let major: Option<u64> =
        value(info, "redis_version").and_then(|text| text.split('.').next()?.parse().ok());
    match major {
        Some(major) if major < MAJOR_MIN => {
            wrong(found, "install Redis 7.0 or later, or Valkey 7.2 or later")
        }
        Some(_) => ok(found),
        None => look(found, "ask its operator if it is compatible with Redis 7.0 or later"),
    }
}

fn role(topology: &Topology, info: &RedisReply) -> RuleVerdict {
    let cluster = value(info, "cluster_enabled") == Some("1");
    if value(info, "role") == Some("slave") {
        return wrong(
            "a replica: it takes no writes",
            "name its primary, or use redis-sentinel://",
        );
    }
    match topology {
        Topology::Cluster(_) => ok("a primary of a cluster"),
        _ if cluster => wrong(
            "a node of a cluster: it has only a part of the slots",
            "use redis-cluster:// in place of the scheme",
        ),
        Topology::Sentinel { .. } => ok("the primary that the sentinels name"),
        Topology::Single(_) => ok("a primary"),
    }
}

fn eviction(info: &RedisReply) -> RuleVerdict {
    match value(info, "maxmemory_policy") {
        Some("noeviction") => ok("noeviction: a full server refuses new jobs and keeps the old"),
        policy => wrong(
            format!(
                "{}: a full server silently drops jobs, leases and limits",
                policy.unwrap_or("unknown")
            ),
            "CONFIG SET maxmemory-policy noeviction, and the same in its configuration",
        ),
    }
}

fn memory(info: &RedisReply) -> RuleVerdict {
    let used = number(info, "used_memory").unwrap_or(0);
    match number(info, "maxmemory").unwrap_or(0) {
        0 => look(
            format!(
                "{} in use, and no maxmemory: it may grow until the kernel kills it",
                size(used)
            ),
            "set maxmemory to about three quarters of the machine's memory",
        ),
        all if used >= all / 100 * FULL_PERCENT => wrong(
            format!(
                "{} of {} in use: pushes will be refused as 'store_full'",
                size(used),
                size(all)
            ),
            "raise maxmemory, or keep finished jobs for a shorter time (retain)",
        ),
        all => ok(format!("{} of {} in use", size(used), size(all))),
    }
}

fn persistence(info: &RedisReply, settings: &RedisReply) -> RuleVerdict {
    const ALWAYS: &str =
        "CONFIG SET appendfsync always loses nothing, and costs a sync for each call";
    const ASK: &str = "ask its operator for appendfsync: with everysec, a crash together with the \
                       leader of the store may lose two seconds";
    if value(info, "aof_enabled") != Some("1") {
        return wrong(
            "appendonly no: a restart together with the leader of the store loses everything since the \
             last snapshot of Redis, and without snapshots everything",
            "CONFIG SET appendonly yes, and the same in its configuration",
        );
    }
    if value(settings, "no-appendfsync-on-rewrite") == Some("yes") {
        return wrong(
            "no-appendfsync-on-rewrite yes: while the log is rewritten, nothing is synced, and a \
             crash of the machine together with the leader of the store loses it",
            "CONFIG SET no-appendfsync-on-rewrite no, and the same in its configuration",
        );
    }
    match (value(settings, "appendfsync"), settings) {
        (Some("always"), _) => ok("appendfsync always: a crash loses nothing that was answered"),
        (Some("everysec"), _) => look(
            "appendfsync everysec: a crash together with the leader of the store may lose the last two \
             seconds of what was answered",
            ALWAYS,
        ),
        (Some(other), _) => wrong(
            format!(
                "appendfsync {other}: a crash of the machine together with the leader of the store may lose half a minute"
            ),
            format!("CONFIG SET appendfsync everysec loses two seconds; {ALWAYS}"),
        ),
        (None, Err(why)) => {
            look(format!("appendonly yes; how often it syncs is unknown ({why})"), ASK)
        }
        (None, Ok(_)) => look("appendonly yes; how often it syncs is unknown", ASK),
    }
}

fn disk(info: &RedisReply) -> RuleVerdict {
    let failed = |name| value(info, name).is_some_and(|status| status != "ok");
    if failed("aof_last_write_status") || failed("aof_last_bgrewrite_status") {
        return wrong("the last write of its log failed", "check its log: its disk may be full");
    }
    if failed("rdb_last_bgsave_status") {
        return wrong(
            "its last snapshot failed; by default it refuses all writes then",
            "check its log: its disk may be full, or it lacks the memory to fork",
        );
    }
    ok("the last writes of its log and snapshot went well")
}

/// Redis names the connected ones. It does not say if each of them may be promoted.
fn replicas(topology: &Topology, info: &RedisReply, awaited: u64) -> RuleVerdict {
    let count = number(info, "connected_slaves").unwrap_or(0);
    let promoted = !matches!(topology, Topology::Single(_));
    let which = match count {
        0 => "none".to_owned(),
        1 => "one".to_owned(),
        _ => count.to_string(),
    };
    let waits_for_all = || format!("tenure store set --replicas {count}");
    if count < awaited {
        let wanted = if awaited == 1 { "one" } else { &awaited.to_string() };
        return wrong(
            format!(
                "{which}, and each answer waits for {wanted}: no call is answered until that many are connected"
            ),
            format!("add the missing replicas, or let answers wait for fewer: {}", waits_for_all()),
        );
    }
    match (count, awaited) {
        (0, _) if promoted => look("none: no replica can take over when it dies", "add a replica"),
        (0, _) => ok("none: no replica that lacks the last writes can be promoted"),
        (1, 1) => ok("one, and each answer waits for it"),
        (count, awaited) if count == awaited => {
            ok(format!("{which}, and each answer waits for all"))
        }
        (count, 0) => look(
            format!(
                "{which}, and no answer waits for {}: a failover may lose writes that the replica \
                 had not received, if the leader of the store dies too",
                if count == 1 { "it" } else { "them" }
            ),
            waits_for_all(),
        ),
        (_, awaited) => look(
            format!(
                "{which}, and each answer waits for {}: a failover to another one may lose writes \
                 that it had not received, if the leader of the store dies too",
                if awaited == 1 { "one of them".to_owned() } else { format!("{awaited} of them") }
            ),
            waits_for_all(),
        ),
    }
}

#[cfg(test)]
mod tests;
