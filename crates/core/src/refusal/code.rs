//! Codes of all refusals, each with its HTTP status and a title.

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
            /// The HTTP status of an answer with it.
            pub const fn status(self) -> u16 {
                match self { $(Code::$variant => $status),* }
            }
            /// Its meaning in a few words.
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
    BadRequest "bad_request" 400 "The request is not HTTP";
    Unauthorized "unauthorized" 401 "A token is needed";
    Forbidden "forbidden" 403 "The token does not permit it";
    ForbiddenOrigin "forbidden_origin" 403 "Not from this address";
    JobNotFound "job_not_found" 404 "No such job";
    QueueNotFound "queue_not_found" 404 "No such queue";
    LimitNotFound "limit_not_found" 404 "No such limit";
    PoolNotFound "pool_not_found" 404 "No such pool";
    ResourceNotFound "resource_not_found" 404 "No such resource";
    ScheduleNotFound "schedule_not_found" 404 "No such schedule";
    FlowNotFound "flow_not_found" 404 "No such flow";
    LeaseNotFound "lease_not_found" 404 "No such lease";
    RouteNotFound "route_not_found" 404 "No such route";
    MethodNotAllowed "method_not_allowed" 405 "Not that method";
    RequestTimeout "request_timeout" 408 "The request came too slowly";
    WrongState "wrong_state" 409 "Not in this state";
    UniqueConflict "unique_conflict" 409 "The unique key is taken";
    NotEmpty "not_empty" 409 "There are unfinished jobs";
    InUse "in_use" 409 "It is in use";
    StaleSync "stale_sync" 409 "A newer set was synced";
    OtherOwner "other_owner" 409 "It belongs to another owner";
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
    UnknownZone "unknown_zone" 422 "No such time zone";
    NeverFires "never_fires" 422 "No moment within ten years";
    HeadTooLarge "head_too_large" 431 "The head of the request is too large";
    QueueFull "queue_full" 429 "The queue is full";
    LineFull "line_full" 429 "Too many callers wait";
    NamespacesFull "namespaces_full" 429 "There are too many namespaces";
    StoreFull "store_full" 503 "The store is full";
    Overloaded "overloaded" 503 "Too many bytes are in flight";
    Draining "draining" 503 "The server is draining";
    StoreUnavailable "store_unavailable" 503 "The store cannot be reached";
    TrailUnwritable "trail_unwritable" 503 "The trail cannot be written";
    NotOwner "not_owner" 503 "Another server owns the store";
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
