//! What a user of Redis must be allowed. It calls none of it: a test leaves out each, and sees that something fails.

/// The commands that a server sends, or that its scripts run, as an ACL names them.
pub const COMMANDS: &[&str] = &[
    "eval",
    "evalsha",
    "exists",
    "get",
    "hdel",
    "hexists",
    "hget",
    "hgetall",
    "hmget",
    "hset",
    "info",
    "memory|usage",
    "ping",
    "scan",
    "set",
    "time",
    "unlink",
    "wait",
    "xadd",
    "xrange",
    "xtrim",
];
