//! The scheme of a store in Redis that several servers share, of which one owns it. No user types it: it goes when all that a
//! Redis keeps is kept so.

pub use tenure::url::SHARED;

/// What stands before the address, which is empty for any other store, and the address without it.
pub fn split(store: &str) -> (&str, &str) {
    match store.starts_with(SHARED) {
        true => store.split_at(SHARED.len()),
        false => ("", store),
    }
}
