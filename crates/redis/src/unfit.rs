//! Reasons to reject a Redis for a store.

/// Reasons to reject a Redis for a store.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnfitServer {
    /// The server is too old.
    #[error(
        "this is Redis {version}, and a store needs Redis 7.0 or newer, or Valkey; use a newer server"
    )]
    Old {
        /// The version that it reports.
        version: String,
    },
    /// The server drops keys when it is full.
    #[error(
        "this Redis drops keys when it is full (maxmemory-policy is \"{policy}\"), and with them jobs; set it to \
         \"noeviction\""
    )]
    Evicts {
        /// The value of `maxmemory-policy`.
        policy: String,
    },
    /// It holds namespaces of a release that kept them without a journal.
    #[error(
        "an earlier release of Tenure has namespaces under \"{prefix}\" in this Redis; with that release copy them to a \
         folder, and from there into this store (tenure copy --help), or use another database"
    )]
    EarlierLayout {
        /// The prefix of their keys.
        prefix: String,
    },
}
