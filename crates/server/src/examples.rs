//! Examples of bodies and answers for `/openapi.json`: real calls, which a test of the schemas recorded.
//!
//! `TENURE_WRITE_DOCS=1 cargo test -p tenure-server --test it schemas` records them again.

use std::sync::OnceLock;

use serde_json::Value;

/// By the name of an operation: its `body`, and its answer by status. Operations without JSON have none.
fn all() -> &'static Value {
    static ALL: OnceLock<Value> = OnceLock::new();
    // A test reads the file, too.
    ALL.get_or_init(|| serde_json::from_str(include_str!("examples.json")).unwrap_or_default())
}

/// The body of a call, or its answer by its status. `None` if none was recorded.
pub(crate) fn of(operation: &str, part: &str) -> Option<&'static Value> {
    all().get(operation)?.get(part)
}
