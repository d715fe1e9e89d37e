//! The scheme of a store in Redis that several servers share, of which one owns it. No user types it: it goes when all that a
//! Redis keeps is kept so.

use tenure_engine::redis_address::Address;

/// What stands before the address of the Redis.
pub const SHARED: &str = "shared+";

/// What stands before the address, which is empty for any other store, and the address without it.
pub fn split(store: &str) -> (&str, &str) {
    match store.starts_with(SHARED) {
        true => store.split_at(SHARED.len()),
        false => ("", store),
    }
}

/// The name of the store that this address means.
pub fn store_name(address: &Address) -> String {
    address.prefix().trim_end_matches(':').to_owned()
}
