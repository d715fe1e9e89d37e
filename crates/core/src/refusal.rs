//! "No" is an answer, not an error: every refusal of the contract, with its stable code.
//!
//! A refused call changed nothing. What went wrong on the way (a disk, a network) is another type,
//! `tenure_engine::Fault`.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($variant:ident $text:literal $status:literal $title:literal;)*) => {
        /// A stable code; programs compare it, and it never changes its meaning.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $title] $variant),* }

        impl Code {
            /// All codes, in the order of the contract.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];
            /// The code as programs see it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text),* }
            }
            /// The HTTP status that carries it.
            pub const fn status(self) -> u16 {
                match self { $(Code::$variant => $status),* }
            }
            /// What it means, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$variant => $title),* }
            }
        }
        impl std::str::FromStr for Code {
            type Err = ();
            fn from_str(text: &str) -> Result<Self, ()> {
                match text { $($text => Ok(Code::$variant),)* _ => Err(()) }
            }
        }
    };
}

codes! {
    BadJson "bad_json" 400 "The body is not JSON";
    Unauthorized "unauthorized" 401 "A token is needed";
    ForbiddenOrigin "forbidden_origin" 403 "Not from this address";
    JobNotFound "job_not_found" 404 "No such job";
    QueueNotFound "queue_not_found" 404 "No such queue";
    LimitNotFound "limit_not_found" 404 "No such limit";
    PoolNotFound "pool_not_found" 404 "No such pool";
    ResourceNotFound "resource_not_found" 404 "No such resource";
    ScheduleNotFound "schedule_not_found" 404 "No such schedule";
    LeaseNotFound "lease_not_found" 404 "No such lease";
    RouteNotFound "route_not_found" 404 "No such route";
    MethodNotAllowed "method_not_allowed" 405 "Not that method";
    RequestTimeout "request_timeout" 408 "The request came too slowly";
    WrongState "wrong_state" 409 "Not in this state";
    UniqueConflict "unique_conflict" 409 "The unique key is taken";
    NotEmpty "not_empty" 409 "There are unfinished jobs";
    InUse "in_use" 409 "It is in use";
    StaleSync "stale_sync" 409 "A newer set was synced";
    TooLarge "too_large" 413 "The body is too large";
    UnsupportedMediaType "unsupported_media_type" 415 "Not this content type";
    InvalidField "invalid_field" 422 "A field has a wrong value";
    UnknownField "unknown_field" 422 "There is no such field";
    OutOfBounds "out_of_bounds" 422 "A value is outside its bounds";
    ConflictingFields "conflicting_fields" 422 "Two fields exclude each other";
    UnknownLimit "unknown_limit" 422 "No such limit, and no template for it";
    UnknownPool "unknown_pool" 422 "No such pool";
    UnknownResource "unknown_resource" 422 "No such resource";
    NeverFits "never_fits" 422 "More than the limit can ever give";
    DuplicateNeed "duplicate_need" 422 "The same need twice";
    EmptySet "empty_set" 422 "The set is empty";
    RetiresMost "retires_most" 422 "More than half would retire";
    Cycle "cycle" 422 "The jobs wait for each other";
    UnknownParent "unknown_parent" 422 "No such parent";
    QueueFull "queue_full" 429 "The queue is full";
    LineFull "line_full" 429 "Too many callers wait";
    StoreFull "store_full" 503 "The store is full";
    Overloaded "overloaded" 503 "Too many bytes are in flight";
    Draining "draining" 503 "The server is draining";
    StoreUnavailable "store_unavailable" 503 "The store cannot be reached";
    OutcomeUnknown "outcome_unknown" 503 "It may have happened";
    LeaseLost "lease_lost" 409 "The lease is no longer held";
    AlreadySettled "already_settled" 409 "The lease was settled otherwise";
    Internal "internal" 500 "A bug";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.as_str())
    }
}
impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(|()| serde::de::Error::custom("not a code"))
    }
}

/// A refused call: what is wrong, where, and what to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// For programs.
    pub code: Code,
    /// What is wrong with this very call: lower case, names quoted.
    pub detail: String,
    /// What to do next.
    pub hint: String,
    /// Where in the body (RFC 6901), or `/query/NAME`, `/header/NAME`, `/path/NAME`.
    pub pointer: Option<String>,
    /// Which item of an array.
    pub index: Option<usize>,
    /// Which line of an NDJSON body, from 1.
    pub line: Option<usize>,
    /// The job that is in the way (`unique_conflict`).
    pub job: Option<String>,
    /// After how many seconds a repeat may go through.
    pub retry_after_s: Option<u64>,
}

impl Refusal {
    /// A refusal with a code, what is wrong, and what to do.
    pub fn new(code: Code, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Refusal {
            code,
            detail: detail.into(),
            hint: hint.into(),
            pointer: None,
            index: None,
            line: None,
            job: None,
            retry_after_s: None,
        }
    }
    /// The refusal of a lease call by an engine that drains.
    pub fn draining() -> Self {
        Refusal {
            retry_after_s: Some(1),
            ..Refusal::new(
                Code::Draining,
                "the server is draining and grants nothing more",
                "ask again in a moment: another server answers, or this one when it is back",
            )
        }
    }
    /// The same, at this place of the request.
    pub fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }
    /// The same, below `prefix`: what an array adds to its item's refusal.
    pub fn below(mut self, prefix: &str) -> Self {
        let tail = self.pointer.unwrap_or_default();
        self.pointer = Some(format!("{prefix}{tail}"));
        self
    }
    /// The same, in this item of an array.
    pub fn item(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)?;
        if let Some(pointer) = &self.pointer {
            write!(f, " (at \"{pointer}\")")?;
        }
        Ok(())
    }
}
impl std::error::Error for Refusal {}

/// A refusal as answers write it: the document of RFC 9457.
#[derive(Serialize)]
pub struct Problem<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    hint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
}

impl<'a> Problem<'a> {
    /// The document that says `no`.
    pub fn of(no: &'a Refusal) -> Self {
        Problem {
            r#type: format!("urn:tenure:error:{}", no.code),
            title: no.code.title(),
            status: no.code.status(),
            code: no.code.as_str(),
            detail: &no.detail,
            hint: &no.hint,
            pointer: no.pointer.as_deref(),
            index: no.index,
            line: no.line,
            job: no.job.as_deref(),
        }
    }
}
