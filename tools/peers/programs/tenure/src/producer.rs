//! Producer: pushes the jobs of each workload.

use std::ops::Range;
use std::time::SystemTime;

use peers_gauge::{Call, Failed, Payload, Role, in_bulk, now_us, steadily};
use tenure::core::job::Need;
use tenure::core::requests::{AddResources, PutLimit, PutPool};
use tenure::core::settings::{LimitSettings, NewResource, PoolSettings};
use tenure::{Client, Json, LimitName, Moment, NewJob, PoolName, ResourceId, When};

use crate::queue;

/// Jobs of a call; the most that one accepts.
const CALL: u64 = 1_000;
/// Bulk calls in flight.
const FLIGHT: usize = 4;
/// Resources of the pool that jobs with three needs share.
const RESOURCES: usize = 200;

fn job(payload: &Payload) -> Result<NewJob, Failed> {
    Ok(NewJob { payload: Json::of(payload)?, ..NewJob::new(queue()?) })
}

async fn bulk(
    client: &Client,
    jobs: u64,
    make: impl Fn(u64) -> Result<NewJob, Failed>,
) -> Result<(), Failed> {
    let push = |numbers: Range<u64>| {
        let batch = numbers.map(&make).collect::<Result<Vec<_>, _>>();
        let client = client.clone();
        async move {
            client.push_all(batch?).await?;
            Ok(())
        }
    };
    in_bulk(jobs, CALL, FLIGHT, push).await
}

/// Pushes in bulk, without needs.
pub async fn push(client: &Client, call: &Call) -> Result<(), Failed> {
    bulk(client, call.jobs, |n| job(&Payload::new(n, now_us(), "free"))).await
}

async fn set_limit(client: &Client, name: &str, concurrency: u32) -> Result<(), Failed> {
    let settings = LimitSettings { concurrency: Some(concurrency), ..LimitSettings::default() };
    client.run(PutLimit { limit: LimitName::parse(name)?, settings, gauge: None }).await?;
    Ok(())
}

fn permit_of(name: &str) -> Result<Need, Failed> {
    Ok(Need::Limit { limit: LimitName::parse(name)?, weight: 1, cost: 1 })
}

/// Pushes in bulk; each job needs the one permit of its key, and the needs that all share.
async fn push_with(client: &Client, call: &Call, all_need: &[Need]) -> Result<(), Failed> {
    set_limit(client, "site:*", 1).await?;
    let keys = if call.role == Role::PushBlocked { 1 } else { call.keys.max(1) };
    bulk(client, call.jobs, |n| {
        let key = format!("k{}", n % keys);
        let mut needs = vec![permit_of(&format!("site:{key}"))?];
        needs.extend_from_slice(all_need);
        Ok(NewJob { needs: Some(needs), ..job(&Payload::new(n, now_us(), &key))? })
    })
    .await
}

/// Pushes in bulk; each job needs a limit of its key, which allows one at a time.
pub async fn push_keyed(client: &Client, call: &Call) -> Result<(), Failed> {
    push_with(client, call, &[]).await
}

/// The same, with a shared limit and a resource of a pool; there are more of both than are ever in use.
pub async fn push_three(client: &Client, call: &Call) -> Result<(), Failed> {
    set_limit(client, "all", 10_000).await?;
    let pool = PoolName::parse("accounts")?;
    client.run(PutPool { pool: pool.clone(), settings: PoolSettings::default() }).await?;
    let resource = |n| {
        let id = ResourceId::parse(&format!("account-{n}"))?;
        Ok(NewResource { id, data: Json::default(), tags: Vec::new(), slots: 1 })
    };
    let resources = (0..RESOURCES).map(resource).collect::<Result<_, Failed>>()?;
    client.run(AddResources { pool: pool.clone(), resources }).await?;
    let account = Need::Pool { pool, tag: None, prefer: None, id: None, count: 1 };
    push_with(client, call, &[permit_of("all")?, account]).await
}

/// Pushes each job by a call of its own: a number per second, or a number at once.
pub async fn one_by_one(client: &Client, call: &Call) -> Result<(), Failed> {
    let push = |payload: Payload| {
        let (client, job) = (client.clone(), job(&payload));
        async move {
            client.push_job(job?).await?;
            Ok(())
        }
    };
    match call.role {
        Role::Single => peers_gauge::one_by_one(call, push).await,
        _ => steadily(call, push).await,
    }
}

/// Pushes in bulk, due over some seconds.
pub async fn later(client: &Client, call: &Call) -> Result<(), Failed> {
    // Moments, since all delays of a call would count from its arrival.
    let begin = now_us();
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros() as u64;
    bulk(client, call.jobs, |n| {
        let wait = call.due_in_us(n);
        let when = When::At(Moment::from_us(wall + wait));
        Ok(NewJob { when, ..job(&Payload::new(n, begin + wait, "free"))? })
    })
    .await
}
