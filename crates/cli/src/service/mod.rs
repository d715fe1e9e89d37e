//! Jobs that a service over HTTP executes (`tenure work --http`): what is sent, how it is signed, and what an answer
//! means for its job.
//!
//! No sentence made here holds a payload, a secret or the login of an address.

pub mod answer;
pub mod headers;
pub mod http_service;
pub mod retry_after;
pub mod signature;
