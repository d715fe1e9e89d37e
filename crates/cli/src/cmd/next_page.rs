//! A page of a list, and the hint below it.

use serde::Serialize;
use tenure_core::requests::Listed;

use crate::exit::Failure;
use crate::output::{Output, hint};

/// Prints a page of a list: for people as `show` writes its items, with the hint how the list goes on.
pub fn answer<T: Serialize>(
    out: Output,
    listed: &Listed<T>,
    show: impl FnOnce(&[T]) -> String,
) -> Result<(), Failure> {
    out.answer(listed, |listed| show(&listed.items))?;
    tell(out, listed.next.as_deref(), listed.partial);
    Ok(())
}

/// Says on stderr how a list goes on, where people read it.
pub fn tell(out: Output, next: Option<&str>, partial: bool) {
    let (false, Some(next)) = (out.json, next) else { return };
    let why = if partial { "only a part was read" } else { "there are more" };
    hint(&format!("{why}: continue with --cursor '{next}'"));
}
