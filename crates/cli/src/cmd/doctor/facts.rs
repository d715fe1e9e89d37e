//! Facts that a Redis states about itself, unchanged.
//!
//! Nothing here judges. A refusal of the server is a fact as well.

/// Lines of `name:value`, or the refusal.
pub type RedisReply = Result<String, String>;

/// The settings that are asked for.
pub const SETTINGS: [&str; 2] = ["appendfsync", "no-appendfsync-on-rewrite"];

/// The value of a line.
pub fn value<'a>(reply: &'a RedisReply, name: &str) -> Option<&'a str> {
    let lines = reply.as_ref().ok()?.lines();
    lines.filter_map(|line| line.split_once(':')).find(|(key, _)| *key == name).map(|(_, v)| v)
}

/// The number in a line.
pub fn number(reply: &RedisReply, name: &str) -> Option<u64> {
    value(reply, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_whole_name() {
        let told = Ok("# Memory\r\nmaxmemory_human:0B\r\nmaxmemory:10\r\nempty:\r\n".to_owned());
        assert_eq!(number(&told, "maxmemory"), Some(10));
        assert_eq!(value(&told, "empty"), Some(""));
        assert_eq!(value(&told, "memory"), None);
        assert_eq!(value(&Err("NOPERM".to_owned()), "maxmemory"), None);
    }
}
