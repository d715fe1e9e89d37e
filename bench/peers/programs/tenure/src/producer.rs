//! Pushes.

use std::ops::Range;
use std::time::SystemTime;

use peers_gauge::{Call, Failed, Payload, Role, in_bulk, now_us, steadily};
use tenure::core::requests::PutLimit;
use tenure::core::settings::LimitSettings;
use tenure::{Client, Json, LimitName, Moment, Need, NewJob, When};

use crate::queue;

/// Jobs of a call; the most that one takes.
const CALL: u64 = 1_000;
/// Bulk calls in flight.
const FLIGHT: usize = 4;

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

/// In bulk, without needs.
pub async fn push(client: &Client, call: &Call) -> Result<(), Failed> {
    bulk(client, call.jobs, |n| job(&Payload::new(n, now_us(), "free"))).await
}

/// In bulk; each needs a limit of its key, which allows one at a time.
pub async fn push_keyed(client: &Client, call: &Call) -> Result<(), Failed> {
    let settings = LimitSettings { concurrency: Some(1), ..LimitSettings::default() };
    client.run(PutLimit { limit: LimitName::parse("site:*")?, settings }).await?;
    let keys = if call.role == Role::PushBlocked { 1 } else { call.keys.max(1) };
    bulk(client, call.jobs, |n| {
        let key = format!("k{}", n % keys);
        let limit = LimitName::parse(&format!("site:{key}"))?;
        let needs = Some(vec![Need::Limit { limit, weight: 1, cost: 1 }]);
        Ok(NewJob { needs, ..job(&Payload::new(n, now_us(), &key))? })
    })
    .await
}

/// One by one, so many per second.
pub async fn steady(client: &Client, call: &Call) -> Result<(), Failed> {
    steadily(call, |payload| {
        let (client, job) = (client.clone(), job(&payload));
        async move {
            client.push(job?).await?;
            Ok(())
        }
    })
    .await
}

/// In bulk, due over some seconds.
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
