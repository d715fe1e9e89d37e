use super::*;
use crate::cmd::doctor::finding::Severity;

/// A server with which all is well.
const INFO: &str = "redis_version:7.0.15\nused_memory:1048576\nmaxmemory:10485760\n\
                    maxmemory_policy:noeviction\naof_enabled:1\naof_last_write_status:ok\n\
                    aof_last_bgrewrite_status:ok\nrdb_last_bgsave_status:ok\nrole:master\n\
                    connected_slaves:0\ncluster_enabled:0\n";
const SETTINGS: &str =
    "appendfsync:always\nno-appendfsync-on-rewrite:no\nmin-replicas-to-write:0\n";
const CLUSTER: &str = "cluster_state:ok\ncluster_slots_assigned:16384\ncluster_slots_ok:16384\n";

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

fn facts() -> Facts {
    Facts {
        server: "host:6379".to_owned(),
        info: told(INFO, ""),
        settings: told(SETTINGS, ""),
        cluster: None,
        myself: String::new(),
        functions: Functions::Loaded,
        channels: Channels::Ordinary,
        unpublished: Vec::new(),
        ahead_us: 0,
    }
}

fn found(url: &str, facts: &Facts, check: &str) -> Finding {
    let address = url.parse().unwrap();
    let all = examine(&address, facts);
    all.iter().find(|finding| finding.check == check).unwrap_or_else(|| panic!("{check}")).clone()
}

#[track_caller]
fn is(finding: &Finding, level: Severity, part: &str) {
    assert_eq!(finding.level, level, "{finding:?}");
    assert!(finding.found.contains(part), "'{part}' is not in {finding:?}");
    assert_eq!(finding.fix.is_none(), level == Severity::Ok, "{finding:?}");
}

#[test]
fn a_server_with_which_all_is_well_has_nothing_to_change() {
    let address = "redis://host".parse().unwrap();
    for finding in examine(&address, &facts()) {
        is(&finding, Severity::Ok, "");
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
        let facts = Facts { info: told(INFO, change), ..facts() };
        is(&found("redis://host", &facts, check), level, part);
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
        let facts = Facts { settings: told(SETTINGS, change), ..facts() };
        is(&found("redis://host", &facts, "persistence"), level, part);
    }
    let facts = Facts { settings: Err("NOPERM no".to_owned()), ..facts() };
    is(&found("redis://host", &facts, "persistence"), Severity::Look, "not told (NOPERM no)");
}

#[test]
fn whether_a_replica_can_be_promoted_depends_on_who_watches() {
    let none = facts();
    is(&found("redis://host", &none, "replicas"), Severity::Ok, "none");
    is(&found("redis-sentinel://host/main", &none, "replicas"), Severity::Look, "can take over");
    let mut one = Facts { info: told(INFO, "connected_slaves:1"), ..facts() };
    let fix = found("redis-sentinel://host/main", &one, "replicas").fix.unwrap();
    assert!(fix.contains("min-replicas-to-write 1"), "{fix}");
    one.settings = told(SETTINGS, "min-replicas-to-write:1");
    let fix = found("redis-sentinel://host/main", &one, "replicas").fix.unwrap();
    assert!(fix.contains("is set"), "{fix}");
}

#[test]
fn every_slot_has_to_be_covered_and_at_rest() {
    let own = "a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-16383";
    let moving = format!("{own} [93->-b] [94-<-c]");
    for (change, myself, level, part) in [
        ("", own, Severity::Ok, "all are covered"),
        ("", moving.as_str(), Severity::Wrong, "slot 93, 94 is in migration"),
        ("cluster_slots_ok:16000", own, Severity::Wrong, "16384 are assigned and 16000 are well"),
        ("cluster_state:fail", own, Severity::Wrong, "state is 'fail'"),
    ] {
        let cluster = Some(told(CLUSTER, change));
        let facts = Facts { cluster, myself: myself.to_owned(), ..facts() };
        is(&found("redis-cluster://host", &facts, "slots"), level, part);
    }
}

#[test]
fn functions_that_may_not_be_loaded_are_wrong_and_others_are_well() {
    let refused = Functions::Refused("NOPERM no".to_owned());
    for (functions, level) in [
        (Functions::Loaded, Severity::Ok),
        (Functions::Loadable, Severity::Ok),
        (refused, Severity::Wrong),
    ] {
        let facts = Facts { functions, ..facts() };
        is(&found("redis://host", &facts, "functions"), level, "");
    }
}

#[test]
fn a_clock_that_is_off_and_a_slow_way_are_noted() {
    for (ahead_us, level, part) in [
        (1_000_000, Severity::Ok, "agrees"),
        (61_000_000, Severity::Look, "61 s ahead of"),
        (-2_000_000, Severity::Look, "2 s behind"),
        (i64::MIN, Severity::Look, "behind"),
    ] {
        let facts = Facts { ahead_us, ..facts() };
        is(&found("redis://host", &facts, "clock"), level, part);
    }
    is(&latency(20, Duration::from_micros(230)), Severity::Ok, "0.23 ms");
    is(&latency(20, Duration::from_millis(30)), Severity::Look, "30.00 ms");
}

#[test]
fn a_server_that_tells_nothing_is_noted_and_the_rest_is_looked_at() {
    let facts = Facts { info: Err("NOPERM no".to_owned()), ..facts() };
    is(&found("redis://host", &facts, "info"), Severity::Look, "NOPERM no");
    is(&found("redis://host", &facts, "clock"), Severity::Ok, "");
}

#[test]
fn what_may_not_be_published_or_heard_is_named_with_what_to_permit() {
    for (channels, publish, listen) in [
        (Channels::Ordinary, "+publish", "+subscribe +unsubscribe"),
        (Channels::Sharded, "+spublish", "+ssubscribe +sunsubscribe"),
    ] {
        let unpublished = vec![("ours:{default}t:".to_owned(), "NOPERM no channel".to_owned())];
        let denied = Facts { unpublished, channels, ..facts() };
        let one = found("redis://h?prefix=ours:", &denied, "publish");
        assert_eq!(one.level, Severity::Wrong);
        assert!(one.found.contains("\"ours:{default}t:\" (NOPERM no channel)"), "{}", one.found);
        assert_eq!(one.fix, Some(format!("ACL SETUSER NAME {publish} '&ours:*'")));
        let deaf = listening(Some("t: NOPERM no".to_owned()), channels);
        assert!(deaf.level == Severity::Wrong && deaf.found.contains("t: NOPERM no"), "{deaf:?}");
        assert!(deaf.fix.is_some_and(|fix| fix.contains(&format!("{listen} +ping"))));
        assert_eq!(listening(None, channels).level, Severity::Ok);
    }
    assert_eq!(found("redis://h", &facts(), "publish").level, Severity::Ok);
}
