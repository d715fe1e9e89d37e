//! Which Redis is none for a store.

/// Why a Redis is none that a store can be kept in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnfitServer {
    /// It is too old.
    #[error(
        "this is Redis {version}, and a store needs Redis 7.0 or newer, or Valkey; use a newer server"
    )]
    Old {
        /// The version that it says.
        version: String,
    },
    /// It throws keys away when it is full.
    #[error(
        "this Redis drops keys when it is full (maxmemory-policy is \"{policy}\"), and with them jobs; set it to \
         \"noeviction\""
    )]
    Evicts {
        /// Its policy.
        policy: String,
    },
    /// It holds namespaces of a release that kept them without a journal.
    #[error(
        "an earlier release of Tenure has namespaces under \"{prefix}\" in this Redis; with that release copy them to a \
         folder, and from there into this store (tenure copy --help), or use another database"
    )]
    EarlierLayout {
        /// What their keys begin with.
        prefix: String,
    },
}
