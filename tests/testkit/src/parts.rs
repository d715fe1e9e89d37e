//! Parts that a run of the tests leaves out, and how much it plays of others.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Names, separated by commas, of the parts that this run leaves out.
const WITHOUT: &str = "TENURE_WITHOUT";

/// Whether tests that need this part run: not if `TENURE_WITHOUT` names it, which is then reported once, past the
/// harness, on stderr. A machine without the part is no reason: there the first test panics and says what to install,
/// so that no test is left out unnoticed.
pub fn wants(part: &'static str) -> bool {
    static REPORTED: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let without = std::env::var(WITHOUT).unwrap_or_default();
    if !without.split(',').any(|name| name.trim() == part) {
        return true;
    }
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !reported.contains(&part) {
        reported.push(part);
        let line = format!("left out: tests that need {part} ({WITHOUT}={without})");
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    false
}

/// True in `./test --long`. It plays some tests more often, or on more pairs of stores.
pub fn long() -> bool {
    std::env::var_os("TENURE_LONG").is_some()
}
