use tenure::url::StoreUrl;

use super::*;
use crate::cmd::doctor::finding::Severity;

/// A server with which all is well.
const INFO: &str = "redis_version:7.0.15\nused_memory:1048576\nmaxmemory:10485760\n\
                    maxmemory_policy:noeviction\naof_enabled:1\naof_last_write_status:ok\n\
                    aof_last_bgrewrite_status:ok\nrdb_last_bgsave_status:ok\nrole:master\n\
                    connected_slaves:0\ncluster_enabled:0\n";
const SETTINGS: &str =
    "appendfsync:always\nno-appendfsync-on-rewrite:no\nmin-replicas-to-write:0\n";

fn told(text: &str, change: &str) -> RedisReply {
    let name = change.split(':').next().unwrap_or_default();
    let lines = text.lines().map(|line| {
        let same = !name.is_empty() && line.split(':').next() == Some(name);
        if same { change } else { line }
    });
    let mut text: Vec<_> = lines.collect();
    if !text.contains(&change) {
        text.push(change);
    }
    Ok(text.join("\r\n"))
}

fn found(url: &str, info: &RedisReply, settings: &RedisReply, check: &str) -> RuleVerdict {
    let Ok(StoreUrl::Redis(address)) = url.parse() else { panic!("{url}") };
    let all = of_redis(address.topology(), info, settings);
    all.into_iter().find(|(name, _)| *name == check).unwrap_or_else(|| panic!("{check}")).1
}

#[track_caller]
fn is((level, found, fix): &RuleVerdict, expected: Severity, part: &str) {
    assert_eq!(*level, expected, "{found}");
    assert!(found.contains(part), "'{part}' is not in {found}");
    assert_eq!(fix.is_none(), expected == Severity::Ok, "{found}");
}

#[test]
fn a_server_with_which_all_is_well_has_nothing_to_change() {
    let Ok(StoreUrl::Redis(address)) = "redis://host".parse() else { panic!("it is one") };
    for (_, verdict) in of_redis(address.topology(), &told(INFO, ""), &told(SETTINGS, "")) {
        is(&verdict, Severity::Ok, "");
    }
}

#[test]
fn each_line_of_info_has_its_verdict() {
    for (change, check, level, part) in [
        ("redis_version:6.2.14", "version", Severity::Wrong, "Redis 6.2.14"),
        ("redis_version:new", "version", Severity::Look, "Redis new"),
        ("redis_version:10.0.0", "version", Severity::Ok, "Redis 10.0.0"),
        ("valkey_version:8.1.0", "version", Severity::Ok, "Valkey 8.1.0"),
        ("role:slave", "role", Severity::Wrong, "takes no writes"),
        ("cluster_enabled:1", "role", Severity::Wrong, "a node of a cluster"),
        ("maxmemory_policy:allkeys-lru", "eviction", Severity::Wrong, "allkeys-lru: a full server"),
        ("maxmemory:0", "memory", Severity::Look, "1 MiB in use, and no maxmemory"),
        ("used_memory:10000000", "memory", Severity::Wrong, "9 MiB of 10 MiB"),
        ("aof_enabled:0", "persistence", Severity::Wrong, "appendonly no"),
        ("aof_last_write_status:err", "disk", Severity::Wrong, "log failed"),
        ("rdb_last_bgsave_status:err", "disk", Severity::Wrong, "snapshot failed"),
        ("connected_slaves:1", "replicas", Severity::Look, "one: one that is promoted"),
        ("connected_slaves:2", "replicas", Severity::Look, "2: one that is promoted"),
    ] {
        let verdict = found("redis://host", &told(INFO, change), &told(SETTINGS, ""), check);
        is(&verdict, level, part);
    }
}

#[test]
fn what_a_crash_may_lose_is_said_for_each_way_to_sync() {
    for (change, level, part) in [
        ("appendfsync:always", Severity::Ok, "loses nothing"),
        ("appendfsync:everysec", Severity::Look, "two seconds"),
        ("appendfsync:no", Severity::Wrong, "half a minute"),
        ("no-appendfsync-on-rewrite:yes", Severity::Wrong, "nothing is synced"),
    ] {
        let settings = told(SETTINGS, change);
        is(&found("redis://host", &told(INFO, ""), &settings, "persistence"), level, part);
    }
    let settings = Err("NOPERM no".to_owned());
    let verdict = found("redis://host", &told(INFO, ""), &settings, "persistence");
    is(&verdict, Severity::Look, "not told (NOPERM no)");
}

#[test]
fn whether_a_replica_can_be_promoted_depends_on_who_watches() {
    let none = told(INFO, "");
    let settings = told(SETTINGS, "");
    let sentinel = "redis-sentinel://host/main";
    is(&found("redis://host", &none, &settings, "replicas"), Severity::Ok, "none");
    is(&found(sentinel, &none, &settings, "replicas"), Severity::Look, "can take over");
    let one = told(INFO, "connected_slaves:1");
    let fix = found(sentinel, &one, &settings, "replicas").2.unwrap();
    assert!(fix.contains("min-replicas-to-write 1"), "{fix}");
    let settings = told(SETTINGS, "min-replicas-to-write:1");
    let fix = found(sentinel, &one, &settings, "replicas").2.unwrap();
    assert!(fix.contains("is set"), "{fix}");
}

#[test]
fn a_server_that_tells_nothing_is_noted() {
    let refused = Err("NOPERM no".to_owned());
    let noted = found("redis://host", &refused, &told(SETTINGS, ""), "info");
    is(&noted, Severity::Look, "NOPERM no");
}
