//! Jobs that a service over HTTP executes (`tenure work --http`): the request, its signature, and the meaning of an
//! answer for its job.
//!
//! No sentence made here holds a payload, a secret or the login of an address.

pub mod answer;
pub mod headers;
pub mod http_service;
pub mod retry_after;
pub mod signature;
