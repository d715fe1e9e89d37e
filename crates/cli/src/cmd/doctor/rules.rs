//! What is well, what is worth a look and what is wrong with a Redis, by the facts that were told.
//!
//! Pure: it asks nobody. `wrong` is what breaks a promise of Tenure's or stops it from working; `look`
//! is a choice, with what it costs.

use std::time::Duration;

use tenure_engine_redis::link::{Address, Channels, Topology};

use super::facts::{Facts, Functions, RedisReply, number, value};
use super::finding::{Finding, RuleVerdict, look, ok, wrong};
use crate::output::size;

/// The oldest version that has what Tenure needs.
const MAJOR_MIN: u64 = 7;
/// Every cluster has so many slots.
const SLOTS: u64 = 16_384;
/// A clock is off that is further from ours than this, in µs.
const CLOCK_OFF_US: u64 = 1_000_000;
/// So many percent of maxmemory are nearly all.
const FULL_PERCENT: u64 = 90;
/// Slower than this, the way to the server is what a call mostly waits for.
const SLOW: Duration = Duration::from_millis(2);

/// What a Redis says of itself, whatever is kept in it: `info` and `settings` as they were told.
pub fn of_redis(
    topology: &Topology,
    info: &RedisReply,
    settings: &RedisReply,
) -> Vec<(&'static str, RuleVerdict)> {
    if let Err(why) = info {
        let found = format!("INFO is refused ({why}): version, memory and disk were not looked at");
        return vec![("info", look(found, "allow INFO to this user (ACL SETUSER NAME +info)"))];
    }
    vec![
        ("version", version(info)),
        ("role", role(topology, info)),
        ("eviction", eviction(info)),
        ("memory", memory(info)),
        ("persistence", persistence(info, settings)),
        ("disk", disk(info)),
        ("replicas", replicas(topology, info, settings)),
    ]
}

/// Everything about one primary.
pub fn examine(address: &Address, facts: &Facts) -> Vec<Finding> {
    let topology = address.topology();
    let mut all = Vec::new();
    let mut say = |check, (level, found, fix): RuleVerdict| {
        all.push(Finding { server: Some(facts.server.clone()), check, level, found, fix });
    };
    for (check, verdict) in of_redis(topology, &facts.info, &facts.settings) {
        say(check, verdict);
    }
    if let Some(cluster) = &facts.cluster {
        say("slots", slots(cluster, &facts.myself));
    }
    say("functions", functions(&facts.functions));
    say("publish", publish(address, facts));
    say("clock", clock(facts.ahead_us));
    all
}

/// Whether notifications can be heard.
pub fn listening(unheard: Option<String>, channels: Channels) -> Finding {
    let (level, found, fix) = match unheard {
        None => ok("the channels of the namespace can be listened to"),
        Some(why) => wrong(
            format!(
                "this user may not listen ({why}): waiting calls find new work up to a second late"
            ),
            format!(
                "ACL SETUSER NAME {}, and & with the prefix of Tenure's keys and a *",
                channels.rights_to_listen()
            ),
        ),
    };
    Finding { server: None, check: "subscribe", level, found, fix }
}

fn publish(address: &Address, facts: &Facts) -> RuleVerdict {
    if facts.unpublished.is_empty() {
        return ok("notifications can be published");
    }
    let channels: Vec<String> =
        facts.unpublished.iter().map(|(channel, why)| format!("{channel:?} ({why})")).collect();
    wrong(
        format!(
            "this user may not publish to {}: waiting calls find new work up to a second late",
            channels.join(" and ")
        ),
        format!("ACL SETUSER NAME {} '&{}*'", facts.channels.right_to_publish(), address.prefix()),
    )
}

/// The median of so many PINGs.
pub fn latency(pings: usize, median: Duration) -> Finding {
    let found = format!("{:.2} ms, the median of {pings} PINGs", median.as_secs_f64() * 1e3);
    let (level, found, fix) = if median <= SLOW {
        ok(found)
    } else {
        look(
            format!("{found}: every call waits at least that long"),
            "run Tenure nearer to the Redis, and push, lease and settle many jobs with each call",
        )
    };
    Finding { server: None, check: "latency", level, found, fix }
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
            wrong(found, "install Redis 7.0 or later, or Valkey: older ones have no functions")
        }
        Some(_) => ok(found),
        None => look(found, "ask who runs it whether it is as Redis 7.0 or later"),
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
                "{}: a full server throws away jobs, leases and limits, and says nothing",
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
            "set maxmemory to some three quarters of the machine's memory",
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
    if value(info, "aof_enabled") != Some("1") {
        return wrong(
            "appendonly no: a restart loses everything since the last snapshot, and without \
             snapshots everything",
            "CONFIG SET appendonly yes, and the same in its configuration",
        );
    }
    if value(settings, "no-appendfsync-on-rewrite") == Some("yes") {
        return wrong(
            "no-appendfsync-on-rewrite yes: while the log is rewritten, nothing is synced, and a \
             crash of the machine loses it",
            "CONFIG SET no-appendfsync-on-rewrite no, and the same in its configuration",
        );
    }
    match (value(settings, "appendfsync"), settings) {
        (Some("always"), _) => ok("appendfsync always: a crash loses nothing that was answered"),
        (Some("everysec"), _) => look(
            "appendfsync everysec: a crash may lose the last two seconds of what was answered; \
             Tenure then learns for one ttl which leases live",
            ALWAYS,
        ),
        (Some(other), _) => wrong(
            format!("appendfsync {other}: a crash of the machine may lose half a minute"),
            format!("CONFIG SET appendfsync everysec loses two seconds; {ALWAYS}"),
        ),
        (None, Err(why)) => look(
            format!("appendonly yes; how often it syncs is not told ({why})"),
            "ask who runs it for appendfsync: with everysec a crash may lose two seconds",
        ),
        (None, Ok(_)) => look(
            "appendonly yes; how often it syncs is not told",
            "ask who runs it for appendfsync: with everysec a crash may lose two seconds",
        ),
    }
}

fn disk(info: &RedisReply) -> RuleVerdict {
    let failed = |name| value(info, name).is_some_and(|status| status != "ok");
    if failed("aof_last_write_status") || failed("aof_last_bgrewrite_status") {
        return wrong("the last write of its log failed", "look into its log; is its disk full?");
    }
    if failed("rdb_last_bgsave_status") {
        return wrong(
            "its last snapshot failed; by default it refuses all writes then",
            "look into its log; is its disk full, or has it no memory to fork?",
        );
    }
    ok("the last writes of its log and snapshot went well")
}

fn replicas(topology: &Topology, info: &RedisReply, settings: &RedisReply) -> RuleVerdict {
    let count = number(info, "connected_slaves").unwrap_or(0);
    let waits = number(settings, "min-replicas-to-write").unwrap_or(0);
    let promoted = !matches!(topology, Topology::Single(_));
    match (count, promoted) {
        (0, true) => look("none: no other can take over when it dies", "give it a replica"),
        (0, false) => ok("none: no other is ever promoted that lacks the last writes"),
        _ => {
            let which = if count == 1 { "one".to_owned() } else { count.to_string() };
            let found = format!(
                "{which}: one that is promoted may lack the last writes; Tenure then learns for one \
                 ttl which leases live"
            );
            let fix = match waits {
                0 => {
                    "CONFIG SET min-replicas-to-write 1 keeps a primary that lost its replicas from \
                     taking writes that are lost with it"
                }
                _ => "min-replicas-to-write is set, which is all that can be done",
            };
            look(found, fix)
        }
    }
}

fn slots(cluster: &RedisReply, myself: &str) -> RuleVerdict {
    let moving: Vec<_> =
        myself.split_whitespace().filter_map(|word| word.strip_prefix('[')).collect();
    if !moving.is_empty() {
        let numbers: Vec<_> = moving.iter().filter_map(|slot| slot.split('-').next()).collect();
        return wrong(
            format!(
                "slot {} is in migration: calls of a namespace that lies half here and half there \
                 are refused until it has moved",
                numbers.join(", ")
            ),
            "end the migration (redis-cli --cluster fix); freeze a namespace before its slot moves",
        );
    }
    let state = value(cluster, "cluster_state");
    let (assigned, well) =
        (number(cluster, "cluster_slots_assigned"), number(cluster, "cluster_slots_ok"));
    match (cluster, state, assigned, well) {
        (Err(why), ..) => {
            look(format!("CLUSTER INFO is refused ({why})"), "allow CLUSTER INFO to this user")
        }
        (_, Some("ok"), Some(SLOTS), Some(SLOTS)) => ok("all are covered and none is moving"),
        (_, state, assigned, well) => wrong(
            format!(
                "the cluster's state is '{}': of {SLOTS} slots {} are assigned and {} are well",
                state.unwrap_or("unknown"),
                assigned.unwrap_or(0),
                well.unwrap_or(0)
            ),
            "bring the primaries that are missing back, or assign their slots (redis-cli --cluster \
             fix)",
        ),
    }
}

fn functions(functions: &Functions) -> RuleVerdict {
    match functions {
        Functions::Loaded => ok("the library is loaded"),
        Functions::Loadable => ok("the library will be loaded when it is first called"),
        Functions::Refused(why) => wrong(
            format!("the library is not there, and may not be loaded ({why})"),
            "allow FUNCTION LOAD to this user, or have the operator load the text of `tenure redis \
             print-library`",
        ),
    }
}

fn clock(ahead_us: i64) -> RuleVerdict {
    if ahead_us.unsigned_abs() <= CLOCK_OFF_US {
        return ok("agrees with this machine's");
    }
    let (by, way) =
        (ahead_us.unsigned_abs() / 1_000_000, if ahead_us > 0 { "ahead of" } else { "behind" });
    look(
        format!("{by} s {way} this machine's: jobs start by the server's clock"),
        "let both keep time by NTP",
    )
}

#[cfg(test)]
mod tests;
