//! The leader of a store, as its servers report it.

use std::time::Duration;

use tenure_testkit::tenure::exchange;

/// A server that is asked may stand still.
const SAYS_WITHIN: Duration = Duration::from_millis(300);

/// Whether the server at this port says that it leads the store.
pub fn owns(port: u16) -> bool {
    exchange(&format!("127.0.0.1:{port}"), SAYS_WITHIN, "GET /readyz", "")
        .is_ok_and(|said| said.contains("the server answers calls"))
}
