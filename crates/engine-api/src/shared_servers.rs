//! The servers of a store that several servers share.

/// One server, as another one of them knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedServer {
    /// The address at which servers and clients reach it.
    pub url: String,
    /// It is the server that was asked.
    pub is_self: bool,
    /// It leads the store. At most one does.
    pub is_leader: bool,
    /// Entries of the journal that its rows lacked at its last report, one a second; 0 for the leader.
    pub behind: u64,
    /// The reason why the asked server cannot reach it; `None`: it can, or has not tried yet.
    pub unreachable: Option<String>,
}
