//! A part of what Redis holds is not what was written: one job fails, one resource is banned, and the
//! others go on.

use tenure_core::job::{JobState, Need, NewJob};
use tenure_core::lease::Worker;
use tenure_core::names::{PoolName, QueueName, ResourceId};
use tenure_core::requests::{
    AddResources, GetResource, JobFilter, Lease, ListJobs, Page, Push, PushAnswer,
};
use tenure_core::secret::Json;
use tenure_core::settings::NewResource;
use tenure_testkit::redis::{Aof, RedisServer, wanted};

use crate::calls::*;

/// Puts a byte that is in no text in the place of the first letter of `word`, wherever it is stored.
fn damage(server: &RedisServer, word: &str) {
    let script = "
        local n = 0
        for _, key in ipairs(redis.call('KEYS', '*')) do
            local kind = redis.call('TYPE', key).ok
            if kind == 'hash' then
                local all = redis.call('HGETALL', key)
                for i = 1, #all, 2 do
                    if string.find(all[i + 1], ARGV[1], 1, true) then
                        local bad = string.gsub(all[i + 1], ARGV[1], '\\255' .. string.sub(ARGV[1], 2))
                        redis.call('HSET', key, all[i], bad)
                        n = n + 1
                    end
                end
            end
        end
        return n";
    let changed = server.must(&["EVAL", script, "0", word]);
    assert_eq!(changed.text(), "1", "{word} is stored once");
}

fn named(id: &str) -> NewJob {
    let payload = Json::of(&format!("payload_of_{id}")).expect("a text is JSON");
    NewJob { payload, ..job("q", id) }
}

fn many(max: usize) -> Lease {
    let worker = Worker::default();
    Lease { worker, ..Lease::jobs(vec![QueueName::parse("q").expect("a name")], max) }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_payload_that_cannot_be_read_fails_its_job_and_no_other() {
    if !wanted() {
        return;
    }
    // One after the other, and all together: they are stored in two ways.
    for together in [false, true] {
        let server = RedisServer::start(Aof::Off, &[]);
        let engine = open(&server.url());
        let jobs: Vec<_> = ["a", "b", "c"].map(named).into();
        if together {
            ok(&engine, Push { jobs, answer: PushAnswer::Ids }).await;
        } else {
            for one in jobs {
                push(&engine, one).await;
            }
        }
        damage(&server, "payload_of_b");
        let leases = ok(&engine, many(3)).await.leases;
        let ids: Vec<_> =
            leases.iter().map(|l| l.job.as_ref().expect("a job").id.as_str()).collect();
        assert_eq!(ids, ["a", "c"], "together: {together}");
        let ended = see(&engine, "b").await;
        assert_eq!(ended.state, JobState::Failed);
        assert!(ended.error.as_deref().is_some_and(|error| error.starts_with("unreadable")));
        let page = Page { max: 10, cursor: None };
        let list = ListJobs { filter: JobFilter::default(), page, full: true };
        assert_eq!(ok(&engine, list).await.items.len(), 3);
        for lease in &leases {
            assert!(settle(&engine, lease).await.ok, "the others go on");
        }
        is_whole(&engine).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_resource_that_cannot_be_read_bans_it_and_its_job_goes_on() {
    if !wanted() {
        return;
    }
    let server = RedisServer::start(Aof::Off, &[]);
    let engine = open(&server.url());
    let pool = PoolName::parse("p").expect("a name");
    let resource = |id: &str| NewResource {
        id: ResourceId::parse(id).expect("an id"),
        data: Json::of(&format!("secret_of_{id}")).expect("a text is JSON"),
        tags: vec![],
        slots: 1,
    };
    let resources = vec![resource("r1"), resource("r2")];
    ok(&engine, AddResources { pool: pool.clone(), resources }).await;
    let need = Need::Pool { pool: pool.clone(), tag: None, prefer: None, id: None, count: 1 };
    push(&engine, NewJob { needs: Some(vec![need]), ..named("a") }).await;
    damage(&server, "secret_of_r1");
    assert!(ok(&engine, many(1)).await.leases.is_empty(), "the first one is banned");
    let leases = ok(&engine, many(1)).await.leases;
    assert_eq!(leases[0].resources[0].id.as_str(), "r2");
    let get = GetResource { pool, resource: ResourceId::parse("r1").expect("an id") };
    assert_eq!(ok(&engine, get).await.reason.as_deref(), Some("unreadable"));
}
