//! Takes the trace of a request for the jobs that it pushes: a producer whose HTTP client is traced need not state it.

use hyper::HeaderMap;
use hyper::header::HeaderName;
use tenure_core::job::NewJob;
use tenure_core::requests::Request;
use tenure_core::trace::TraceParent;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The trace in the header. A header that stands twice or is malformed counts as none, as the specification says.
pub(crate) fn of(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => TraceParent::of_header(value.to_str().ok()?),
        _ => None,
    }
}

/// Sets the trace of a request on a job that has none.
pub(crate) fn give(trace: Option<&TraceParent>, job: &mut NewJob) {
    if job.traceparent.is_none() {
        job.traceparent = trace.cloned();
    }
}

/// The same for all jobs that a request stores: those of a push, and those that a settle pushes.
pub(crate) fn give_all(headers: &HeaderMap, request: &mut Request) {
    // The jobs come first, since most requests push nothing: a heartbeat must not pay for a header that it does not
    // use.
    let jobs: &mut dyn Iterator<Item = &mut NewJob> = match request {
        Request::Push(push) => &mut push.jobs.iter_mut(),
        Request::Settle(settle) => &mut settle.settle.iter_mut().flat_map(|item| &mut item.push),
        _ => return,
    };
    let mut jobs = jobs.filter(|job| job.traceparent.is_none()).peekable();
    if jobs.peek().is_some()
        && let Some(trace) = of(headers)
    {
        jobs.for_each(|job| give(Some(&trace), job));
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::names::QueueName;
    use tenure_core::requests::{Push, PushAnswer};

    use super::*;

    const HERE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const THERE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_job_without_a_trace_has_that_of_its_request() {
        let job = NewJob::new(QueueName::parse("q").unwrap());
        let own = TraceParent::parse(THERE).unwrap();
        let with = NewJob { traceparent: Some(own.clone()), ..job.clone() };
        let mut request = Push { jobs: vec![job, with], answer: PushAnswer::Ids }.into();
        give_all(&headers(&[HERE]), &mut request);
        let Request::Push(push) = request else { panic!("a push") };
        let traces: Vec<_> = push.jobs.iter().map(|job| job.traceparent.as_ref()).collect();
        assert_eq!(traces, [Some(&TraceParent::parse(HERE).unwrap()), Some(&own)]);
    }

    #[test]
    fn a_header_that_is_not_well_formed_is_as_none() {
        for values in [&[][..], &["00-abc"], &[HERE, HERE]] {
            assert_eq!(of(&headers(values)), None, "{values:?}");
        }
    }
}
