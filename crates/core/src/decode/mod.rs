//! Decoders: make request structs from bodies, query parameters and parts of paths.
//!
//! One file per subject, one line of `http_calls!` per operation. A decoder either returns a request whose every field is
//! within the bounds of the contract, or refuses with a code, the place (RFC 6901, counted from the whole body;
//! `/query/NAME`, `/path/NAME`, `/header/NAME`) and the next step. Nothing here knows the state, reads a clock, or changes
//! anything: the state machine checks everything that depends on the state (an unknown limit, a moment too near, a patch
//! that leaves a limit without settings).
//!
//! Rules where the contract leaves it open:
//! - a field that is known but means nothing beside another one (`result` with the outcome `failed`,
//!   `tag` beside `limit`, `max` with a `fixed` backoff) is `conflicting_fields`, and the pointer is
//!   that of the field to leave out;
//! - `1.0` and `1e2` are no whole numbers;
//! - a query parameter that appears twice is `invalid_field`, just as an object with the same key twice is not JSON;
//! - a moment before 1970 becomes the first moment of 1970: both are past;
//! - a `kind` is any text of at most 128 bytes without control characters, since worker libraries
//!   use paths and the like.

mod fields;
mod flows;
mod forms;
mod gauges;
mod jobs;
mod leases;
mod limits;
mod lines;
mod many;
mod nearest;
mod needs;
mod object;
mod objects;
mod parameters;
mod paths;
mod pools;
mod query;
mod queues;
mod rates;
mod raw_call;
mod resources;
mod retry;
mod schedules;
mod settle;
#[cfg(test)]
mod tests;
mod times;
mod timing;
mod together;
mod words;

pub use forms::ValueKind;
pub use gauges::gauge;
pub use jobs::*;
pub use leases::*;
pub use lines::{LineRead, Lines, line_too_long};
pub use nearest::nearest;
pub use needs::{needs_distinct, one_need, one_need_of_json};
pub use object::{AsBody, FieldSpec, ObjectSpec, Presence, SentBody, Variant};
pub use objects::objects;
pub use parameters::{ParameterSpec, Queried, Query};
pub use paths::*;
pub use query::*;
pub use raw_call::{BodySpec, Decode, Encode, EncodedBody, RawCall};
pub use resources::*;
pub use schedules::*;
pub use settle::*;
pub use times::{advance, no_body};
pub use timing::{PreviewAsked, preview};
pub use together::stored_together;
