//! Makes the lines of calls. Each request has a record of its origin, which goes with it to the gate of the engine; the
//! gate begins a line for each call and ends it with the answer.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::header::HeaderMap;
use tenure_core::lease::{LeaseView, LeasedResource};
use tenure_core::names::Namespace;
use tenure_core::refusal::{Code, Refusal};
use tenure_core::requests::{Reply, Request, Settle, Settled, TrailEnd};
use tenure_core::secret::{HIDDEN, Json};
use tenure_core::trail::{TrailLine, TrailSubject, TrailVia, UNANSWERED, has_own_line};
use tenure_engine_api::{CallError, Fault};

use super::Trail;
use super::counts::CountedAs;
use crate::caller::Caller;
use crate::trace;

const REQUEST_ID: &str = "x-request-id";
/// The longest id of a request that is kept.
const REQUEST_ID_BYTES_MAX: usize = 128;
/// Resources in a line of a lease, beside the lease, its job and its worker.
const RESOURCES_MAX: usize = 7;

/// Where the calls of a request come from, and the trail that has their lines. The default records nothing.
#[derive(Clone, Default)]
pub struct CallRecord(Option<Arc<RecordedOrigin>>);

struct RecordedOrigin {
    trail: Trail,
    peer: Option<IpAddr>,
    via: TrailVia,
    request_id: Option<String>,
    /// The refusal of the request has its line.
    is_told: AtomicBool,
}

/// A call that was refused because of its token.
pub(crate) struct RecordedRefusal<'r> {
    pub op: &'static str,
    /// `None`: unknown, since it showed no valid token.
    pub caller: Option<&'r str>,
    pub namespace: Option<&'r str>,
    /// Made only for a refusal with a line of its own.
    pub targets: &'r dyn Fn() -> Vec<String>,
    pub code: Code,
}

impl CallRecord {
    /// For a request of the API from this address.
    pub(crate) fn of(trail: &Trail, headers: &HeaderMap, peer: Option<IpAddr>) -> Self {
        let origin = |via| RecordedOrigin {
            trail: trail.clone(),
            peer,
            via,
            request_id: request_id(headers),
            is_told: AtomicBool::new(false),
        };
        CallRecord(trail.is_kept().then(|| Arc::new(origin(TrailVia::Api))))
    }

    fn with(&self, via: TrailVia, peer: Option<IpAddr>) -> Self {
        let moved = |origin: &Arc<RecordedOrigin>| {
            Arc::new(RecordedOrigin {
                trail: origin.trail.clone(),
                peer,
                via,
                request_id: origin.request_id.clone(),
                is_told: AtomicBool::new(false),
            })
        };
        CallRecord(self.0.as_ref().map(moved))
    }

    /// The same for a request that another server forwards. `peer`: the address from which it came to that server.
    pub(crate) fn forwarded(&self, peer: Option<IpAddr>) -> Self {
        self.with(TrailVia::Server, peer.or(self.peer()))
    }

    /// The same for a page.
    pub(crate) fn on_page(&self) -> Self {
        self.with(TrailVia::Page, self.peer())
    }

    /// The id by which its caller knows the request.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.0.as_ref()?.request_id.as_deref()
    }

    /// The address from which the request came.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.0.as_ref()?.peer
    }

    /// Whether a trail has the lines.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// The last line of the trail; `None`: no line is kept.
    pub(crate) fn trail_end(&self) -> Option<TrailEnd> {
        self.0.as_ref()?.trail.end()
    }

    /// Whether the refusal of the request has its line already.
    pub(crate) fn is_told(&self) -> bool {
        self.0.as_ref().is_some_and(|origin| origin.is_told.load(Ordering::Relaxed))
    }

    /// Begins the line of a call of an engine, or counts it.
    ///
    /// # Errors
    /// `trail_unwritable`: the call would change something, and must not without its line.
    pub(crate) fn begin(
        &self,
        caller: &Arc<Caller>,
        namespace: &Namespace,
        request: &Request,
    ) -> Result<PendingLine, Refusal> {
        let Some(origin) = &self.0 else { return Ok(PendingLine(None)) };
        let spec = request.spec();
        if has_own_line(spec.scope) {
            origin.trail.permit_change()?;
            let subject = request.trail_subject();
            let line = TrailLine {
                namespace: Some(namespace.to_string()),
                ..origin.line(spec.name, Some(caller.name())).about(subject.targets())
            };
            return Ok(PendingLine::of_change(origin, line, Some(subject)));
        }
        origin.count(spec.name, caller.name(), Some(namespace));
        let may_grant =
            matches!(request, Request::Lease(_) | Request::Settle(Settle { lease: Some(_), .. }));
        if may_grant {
            let (origin, caller) = (origin.clone(), caller.clone());
            let namespace = namespace.clone();
            let pending = Pending::Grant { origin, op: spec.name, caller, namespace };
            return Ok(PendingLine(Some(pending)));
        }
        Ok(PendingLine(None))
    }

    /// Begins the line of a call that this server answers without an engine, such as a backup.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(crate) fn begin_own(&self, caller: &str, op: &'static str) -> Result<PendingLine, Refusal> {
        let Some(origin) = &self.0 else { return Ok(PendingLine(None)) };
        origin.trail.permit_change()?;
        Ok(PendingLine::of_change(origin, origin.line(op, Some(caller)), None))
    }

    /// Counts a call that this server answers without an engine.
    pub(crate) fn count(&self, caller: &str, op: &'static str) {
        if let Some(origin) = &self.0 {
            origin.count(op, caller, None);
        }
    }

    /// Writes the line of a refusal, or counts it if it is not the first of its kind in this minute.
    pub(crate) fn refused(&self, refusal: RecordedRefusal<'_>) {
        let Some(origin) = &self.0 else { return };
        origin.is_told.store(true, Ordering::Relaxed);
        let RecordedRefusal { op, caller, namespace, targets, code } = refusal;
        let counted = CountedAs {
            op,
            caller: caller.map(str::to_owned),
            namespace: namespace.map(str::to_owned),
            peer: origin.peer.map(|peer| peer.to_string()),
            refused: Some((code.status(), code.as_str())),
        };
        if !origin.trail.is_first(counted) {
            return;
        }
        let line = TrailLine {
            namespace: namespace.map(str::to_owned),
            status: Some(code.status()),
            code: Some(code.as_str().to_owned()),
            ..origin.line(op, caller).about(targets())
        };
        origin.trail.write(line);
    }

    /// Writes that a session of the dashboard began or ended.
    pub(crate) fn session(&self, op: &'static str, caller: &str) {
        if let Some(origin) = &self.0 {
            origin.trail.write(TrailLine { status: Some(200), ..origin.line(op, Some(caller)) });
        }
    }
}

impl fmt::Debug for CallRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(origin) => write!(f, "CallRecord({})", origin.via.as_str()),
            None => f.write_str("CallRecord(none)"),
        }
    }
}

impl RecordedOrigin {
    fn line(&self, op: &str, caller: Option<&str>) -> TrailLine {
        TrailLine {
            caller: caller.map(str::to_owned),
            peer: self.peer.map(|peer| peer.to_string()),
            via: Some(self.via),
            request_id: self.request_id.clone(),
            ..TrailLine::of(op)
        }
    }

    fn count(&self, op: &'static str, caller: &str, namespace: Option<&Namespace>) {
        self.trail.count(CountedAs {
            op,
            caller: Some(caller.to_owned()),
            namespace: namespace.map(ToString::to_string),
            peer: None,
            refused: None,
        });
    }
}

/// The id by which the caller knows the request.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_short = |id: &&str| !id.is_empty() && id.len() <= REQUEST_ID_BYTES_MAX;
    given.filter(is_short).map(str::to_owned).or_else(|| {
        // 00-TRACE-SPAN-FLAGS.
        trace::of(headers)?.to_string().split('-').nth(1).map(str::to_owned)
    })
}

enum Pending {
    /// It has a line, whatever the answer. The subject: its settings, for a call of an engine.
    Change { trail: Trail, line: Box<TrailLine>, subject: Option<TrailSubject> },
    /// It has a line for each lease with resources. Most lease calls get none, so that no line is begun.
    Grant {
        origin: Arc<RecordedOrigin>,
        op: &'static str,
        caller: Arc<Caller>,
        namespace: Namespace,
    },
}

/// A call that is under way, and has a line at its end. A caller that leaves before the answer drops it: the change may
/// have been made, so that the line is written then.
pub(crate) struct PendingLine(Option<Pending>);

impl PendingLine {
    fn of_change(origin: &RecordedOrigin, line: TrailLine, subject: Option<TrailSubject>) -> Self {
        let (trail, line) = (origin.trail.clone(), Box::new(line));
        PendingLine(Some(Pending::Change { trail, line, subject }))
    }

    /// Whether the call has no line.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The request whose reply has the settings before this one changes them.
    pub(crate) fn reads_before(&self) -> Option<&Request> {
        match self.0.as_ref()? {
            Pending::Change { subject, .. } => subject.as_ref()?.reads_before(),
            Pending::Grant { .. } => None,
        }
    }

    /// Writes the line of a call that was answered. `before`: the settings before it.
    ///
    /// # Errors
    /// A change was made, and its line is required and cannot be written.
    pub(crate) fn end(
        mut self,
        before: Option<&Reply>,
        answer: &Result<Reply, CallError>,
    ) -> Result<(), CallError> {
        let (trail, mut line, subject) = match self.0.take() {
            None => return Ok(()),
            Some(Pending::Change { trail, line, subject }) => (trail, line, subject),
            Some(Pending::Grant { origin, op, caller, namespace }) => {
                let line = || TrailLine {
                    namespace: Some(namespace.to_string()),
                    status: Some(200),
                    ..origin.line(op, Some(caller.name()))
                };
                grants(answer).for_each(|lease| granted(&origin.trail, line, lease));
                return Ok(());
            }
        };
        if let Some(subject) = subject {
            line.changed = subject.changed(before);
        }
        let code = match answer {
            Ok(reply) => {
                line.count = changed_jobs(reply);
                None
            }
            Err(error) => Some(code_of(error)),
        };
        if written(&trail, *line, code) || answer.is_err() || !trail.is_required() {
            return Ok(());
        }
        let why = "the change is made, and its line cannot be written into the trail".to_owned();
        Err(Fault::Unknown(why).into())
    }

    /// The same for a call that this server answered without an engine; `code`: that of its refusal.
    pub(crate) fn end_own(mut self, code: Option<Code>) {
        if let Some(Pending::Change { trail, line, .. }) = self.0.take() {
            written(&trail, *line, code);
        }
    }
}

impl Drop for PendingLine {
    fn drop(&mut self) {
        let Some(Pending::Change { trail, mut line, subject }) = self.0.take() else { return };
        if let Some(subject) = subject {
            line.changed = subject.changed(None);
        }
        line.code = Some(UNANSWERED.to_owned());
        trail.write(*line);
    }
}

/// Writes the line with the end of its call.
fn written(trail: &Trail, mut line: TrailLine, code: Option<Code>) -> bool {
    line.status = Some(code.map_or(200, Code::status));
    line.code = code.map(|code| code.as_str().to_owned());
    trail.write(line)
}

fn code_of(error: &CallError) -> Code {
    match error {
        CallError::Refused(no) | CallError::Fault(Fault::Denied(no)) => no.code,
        CallError::Fault(Fault::Unavailable(_) | Fault::StoreAway(_)) => Code::StoreUnavailable,
        CallError::Fault(Fault::Unknown(_)) => Code::OutcomeUnknown,
        CallError::Fault(Fault::Broken(_)) => Code::Internal,
    }
}

/// How many jobs a bulk call changed.
fn changed_jobs(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::CancelJobs(done) | Reply::RetryJobs(done) | Reply::DeleteJobs(done) => {
            Some(done.done)
        }
        _ => None,
    }
}

/// The leases that an answer grants.
fn grants(answer: &Result<Reply, CallError>) -> impl Iterator<Item = &LeaseView> {
    let leased = match answer {
        Ok(Reply::Lease(leased) | Reply::Settle(Settled { lease: Some(Ok(leased)), .. })) => {
            Some(leased)
        }
        _ => None,
    };
    leased.into_iter().flat_map(|leased| &leased.leases)
}

/// Writes the lines of a lease whose holder is told the data of resources.
fn granted(trail: &Trail, line: impl Fn() -> TrailLine, lease: &LeaseView) {
    let hidden = Json::from(HIDDEN);
    let told: Vec<&LeasedResource> =
        lease.resources.iter().filter(|one| one.data != hidden).collect();
    let named = || {
        let id = lease.lease.iter().map(|id| format!("lease:{id}"));
        let job = lease.job.iter().map(|job| format!("job:{}", job.id));
        id.chain(job).chain([format!("worker:{}", lease.holder)])
    };
    for some in told.chunks(RESOURCES_MAX) {
        let resources = some.iter().map(|one| format!("pool:{}/{}", one.pool, one.id));
        trail.write(line().about(resources.chain(named())));
    }
}
