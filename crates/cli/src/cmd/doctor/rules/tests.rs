use tenure::url::StoreUrl;

use super::*;
use crate::cmd::doctor::finding::Severity;

/// A server with which all is well.
const INFO: &str = "redis_version:7.0.15\nused_memory:1048576\nmaxmemory:10485760\n\
                    maxmemory_policy:noeviction\naof_enabled:1\naof_last_write_status:ok\n\
                    aof_last_bgrewrite_status:ok\nrdb_last_bgsave_status:ok\nrole:master\n\
                    connected_slaves:0\ncluster_enabled:0\n";
const SETTINGS: &str = "appendfsync:always\nno-appendfsync-on-rewrite:no\n";

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
    found_of(url, info, settings, 0, check)
}

/// The same, of a store whose answers wait for `awaited` replicas.
fn found_of(
    url: &str,
    info: &RedisReply,
    settings: &RedisReply,
    awaited: u64,
    check: &str,
) -> RuleVerdict {
    let Ok(StoreUrl::Redis(address)) = url.parse() else { panic!("{url}") };
    let all = of_redis(address.topology(), info, settings, awaited);
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
    for (_, verdict) in of_redis(address.topology(), &told(INFO, ""), &told(SETTINGS, ""), 0) {
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
        ("connected_slaves:1", "replicas", Severity::Look, "one, and no answer waits for it"),
        ("connected_slaves:2", "replicas", Severity::Look, "2, and no answer waits for them"),
    ] {
        let verdict = found("redis://host", &told(INFO, change), &told(SETTINGS, ""), check);
        is(&verdict, level, part);
    }
}

#[test]
fn what_a_crash_may_lose_is_said_for_each_way_to_sync() {
    for (change, level, part) in [
        ("appendfsync:always", Severity::Ok, "loses nothing"),
        ("appendfsync:everysec", Severity::Look, "together with the leader of the store"),
        ("appendfsync:no", Severity::Wrong, "half a minute"),
        ("no-appendfsync-on-rewrite:yes", Severity::Wrong, "nothing is synced"),
    ] {
        let settings = told(SETTINGS, change);
        is(&found("redis://host", &told(INFO, ""), &settings, "persistence"), level, part);
    }
    let settings = Err("NOPERM no".to_owned());
    let verdict = found("redis://host", &told(INFO, ""), &settings, "persistence");
    is(&verdict, Severity::Look, "unknown (NOPERM no)");
}

#[test]
fn a_lack_of_replicas_matters_only_under_sentinels() {
    let none = told(INFO, "");
    let settings = told(SETTINGS, "");
    let sentinel = "redis-sentinel://host/main";
    is(&found("redis://host", &none, &settings, "replicas"), Severity::Ok, "none");
    is(&found(sentinel, &none, &settings, "replicas"), Severity::Look, "can take over");
}

#[test]
fn replicas_are_judged_by_how_many_of_them_the_store_waits_for() {
    for (url, count, awaited, level, parts, fix) in [
        ("redis://host", 0, 1, Severity::Wrong, ["none", "no call is answered"], "--replicas 0"),
        ("redis-sentinel://host/main", 1, 2, Severity::Wrong, ["one", "2"], "--replicas 1"),
        ("redis://host", 1, 1, Severity::Ok, ["one", "waits for it"], ""),
        ("redis-sentinel://host/main", 2, 2, Severity::Ok, ["2", "waits for all"], ""),
        ("redis://host", 1, 0, Severity::Look, ["a failover may lose", "received"], "--replicas 1"),
        ("redis://host", 3, 0, Severity::Look, ["a failover may lose", "received"], "--replicas 3"),
        ("redis://host", 2, 1, Severity::Look, ["waits for one", "received"], "--replicas 2"),
    ] {
        let info = told(INFO, &format!("connected_slaves:{count}"));
        let verdict = found_of(url, &info, &told(SETTINGS, ""), awaited, "replicas");
        parts.iter().for_each(|part| is(&verdict, level, part));
        let said = verdict.2.unwrap_or_default();
        let says = if fix.is_empty() { String::new() } else { format!("tenure store set {fix}") };
        assert!(said.contains(&says), "{count} of {awaited}: {said}");
        assert!(!said.contains("min-replicas"), "{said}");
    }
}

#[test]
fn a_server_that_tells_nothing_is_noted() {
    let refused = Err("NOPERM no".to_owned());
    let noted = found("redis://host", &refused, &told(SETTINGS, ""), "info");
    is(&noted, Severity::Look, "NOPERM no");
}
