//! The hint below a page of a list.

use crate::output::{Output, hint};

/// Says on stderr how a list goes on, where people read it.
pub fn tell(out: Output, next: Option<&str>, partial: bool) {
    let (false, Some(next)) = (out.json, next) else { return };
    let why = if partial { "only a part was read" } else { "there are more" };
    hint(&format!("{why}: continue with --cursor '{next}'"));
}
