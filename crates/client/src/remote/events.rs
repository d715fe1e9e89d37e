//! Reading events over HTTP.

use tenure_core::requests::{EventsSince, ReadEvents};

use super::ask::{OverHttp, Query};

impl OverHttp for ReadEvents {
    fn query(&self, query: &mut Query) {
        let since = match self.since {
            EventsSince::Now => None,
            EventsSince::First => Some("first".to_owned()),
            EventsSince::Id(id) => Some(id.to_string()),
        };
        query.with("since", since.as_deref());
        let filter = &self.filter;
        let types: Vec<&str> = filter.types.iter().map(|kind| kind.as_str()).collect();
        query.with("type", (!types.is_empty()).then(|| types.join(",")).as_deref());
        query.with("queue", filter.queue.as_ref().map(|queue| queue.as_str()));
        query.with("job", filter.job.as_ref().map(|job| job.as_str()));
        query.with("flow", filter.flow.as_ref().map(|flow| flow.as_str()));
        query.with("schedule", filter.schedule.as_ref().map(|schedule| schedule.as_str()));
        query.with("limit", filter.limit.as_ref().map(|limit| limit.as_str()));
        query.with("pool", filter.pool.as_ref().map(|pool| pool.as_str()));
        query.with("max", Some(self.max.to_string()).as_deref());
        query.wait(self.wait);
    }
}
