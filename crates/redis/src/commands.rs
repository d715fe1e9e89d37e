//! Redis commands that a store's user needs. No code reads the list; a test drops each and sees a failure.

/// Commands that a server sends, or that its scripts run, as an ACL names them.
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
