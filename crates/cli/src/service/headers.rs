//! The headers that tell a service of its job beside the payload: one family, and a key by which it knows a repeat.
//!
//! Values are visible ASCII; everything else, and `%`, is percent-encoded, since a header cannot carry it. The data of
//! resources is secret and stays out.

use data_encoding::HEXLOWER;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use sha2::{Digest, Sha256};
use tenure_core::job::JobView;
use tenure_core::lease::LeaseView;

/// Characters that would not come out of a header as they went in; above ASCII everything is encoded anyway.
const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%').add(b',');
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/tenure-outcome+json, application/json, */*;q=0.5");
/// Bytes of the digest that tells a job from another that had its id.
const DIGEST_BYTES: usize = 8;

/// Names one operation: all runs of one job have the same, so that a service which did the work of a run whose answer was
/// lost sees that the next run asks for the same. An id may be given to another job once the first is forgotten, and a
/// push may replace a payload, so the moment of the push and the payload are in it too.
pub fn idempotency_key(job: &JobView) -> String {
    let mut digest = Sha256::new();
    digest.update(job.created_at.to_string());
    digest.update(b"\n");
    digest.update(job.payload.as_ref().map_or("null", |payload| payload.text()));
    let digest = HEXLOWER.encode(&digest.finalize()[..DIGEST_BYTES]);
    format!("{}-{digest}", utf8_percent_encode(job.id.as_str(), ESCAPED))
}

/// The headers of a request for this job. `key` is its [`idempotency_key`].
pub fn of(lease: &LeaseView, job: &JobView, key: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, ACCEPTED);
    let mut put = |name: &'static str, text: &str| {
        let value = utf8_percent_encode(text, ESCAPED).to_string();
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.append(HeaderName::from_static(name), value);
        }
    };
    put("tenure-job-id", job.id.as_str());
    put("tenure-queue", job.queue.as_str());
    put("tenure-kind", &job.kind);
    put("tenure-attempt", &job.attempt.to_string());
    put("tenure-fence", &lease.fence.to_string());
    if let Some(id) = &lease.lease {
        put("tenure-lease", id);
    }
    if let Some(deadline) = lease.deadline {
        put("tenure-deadline", &deadline.to_string());
    }
    if let Some(made_by) = &job.schedule {
        put("tenure-schedule", made_by.id.as_str());
        if let Some(at) = made_by.at {
            put("tenure-schedule-at", &at.to_string());
        }
    }
    if let Some(flow) = &job.flow {
        put("tenure-flow", flow.as_str());
    }
    if let Some(trace) = &job.traceparent {
        put("traceparent", trace.as_str());
    }
    for limit in &lease.limits {
        put("tenure-limit", limit.as_str());
    }
    for resource in &lease.resources {
        put("tenure-resource", &format!("{}/{}", resource.pool, resource.id));
    }
    if let Ok(key) = HeaderValue::from_str(key) {
        headers.insert(HeaderName::from_static("idempotency-key"), key);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::lease::LeasedResource;
    use tenure_core::names::{LimitName, PoolName, ResourceId};
    use tenure_core::secret::Json;
    use tenure_core::time::Moment;
    use tenure_testkit::fake;

    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_service_is_told_of_its_job_and_of_no_secret() {
        let mut lease = fake::job_lease("a", "{\"n\":1}");
        lease.deadline = Some("2026-12-01T08:00:00Z".parse().unwrap());
        lease.limits = ["scrapy", "site:a"].map(|name| LimitName::parse(name).unwrap()).to_vec();
        lease.resources = vec![LeasedResource {
            pool: PoolName::parse("accounts").unwrap(),
            id: ResourceId::parse("bö b").unwrap(),
            data: Json::parse(r#"{"password":"geheim"}"#).unwrap(),
            tags: Vec::new(),
        }];
        let mut job = lease.job.clone().unwrap();
        job.kind = "50 %\n".to_owned();
        job.traceparent = Some(TRACE.parse().unwrap());
        let headers = of(&lease, &job, "key");
        let all = |name: &str| {
            let values = headers.get_all(name).iter();
            values.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(all("tenure-job-id"), ["job-a"]);
        assert_eq!(all("tenure-queue"), ["q"]);
        assert_eq!(all("tenure-kind"), ["50%20%25%0A"]);
        assert_eq!(all("tenure-attempt"), ["1"]);
        assert_eq!(all("tenure-fence"), ["7"]);
        assert_eq!(all("tenure-lease"), ["a"]);
        assert_eq!(all("tenure-deadline"), ["2026-12-01T08:00:00.000000Z"]);
        assert_eq!(all("tenure-limit"), ["scrapy", "site:a"]);
        assert_eq!(all("tenure-resource"), ["accounts/b%C3%B6%20b"]);
        assert_eq!(all("traceparent"), [TRACE]);
        assert_eq!(all("idempotency-key"), ["key"]);
        assert!(!format!("{headers:?}").contains("geheim"));
    }

    #[test]
    fn a_key_is_the_same_for_all_runs_of_a_job_and_for_no_other_job() {
        let job = *fake::job_lease("a", "1").job.unwrap();
        let key = idempotency_key(&job);
        assert!(key.starts_with("job-a-") && key.len() == "job-a-".len() + 16, "{key}");
        let later = JobView { attempt: 7, lost: 2, ..job.clone() };
        assert_eq!(idempotency_key(&later), key);
        let pushed_again = JobView { created_at: Moment::from_us(5), ..job.clone() };
        let replaced = JobView { payload: Json::parse("2"), ..job };
        assert_ne!(idempotency_key(&pushed_again), key);
        assert_ne!(idempotency_key(&replaced), key);
    }
}
