//! All that a namespace has in Redis.

use std::collections::BTreeMap;

use redis::{Connection, Value};

/// All keys of a pattern, each with its type and what it holds.
const DUMP: &str = "
local all = {}
for i, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local kind = redis.call('TYPE', key).ok
  local held
  if kind == 'hash' then
    held = redis.call('HGETALL', key)
  elseif kind == 'zset' then
    held = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'list' then
    held = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'stream' then
    held = {}
    for _, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do
      held[#held + 1] = entry[1]
      local parts = {}
      for at = 2, #entry[2], 2 do
        parts[#parts + 1] = entry[2][at]
      end
      held[#held + 1] = table.concat(parts)
    end
  else
    held = { redis.call('GET', key) }
  end
  all[i] = { key, kind, held }
end
return all
";

/// A key's type, and what it holds: fields with values, members with scores, entries with their texts, or items.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    pub kind: String,
    pub items: Vec<Vec<u8>>,
}

/// What all keys hold, without the prefix in their names; the pairs of a hash are sorted.
pub fn dump(commands: &mut Connection, prefix: &str) -> BTreeMap<Vec<u8>, Stored> {
    let mut command = redis::cmd("EVAL");
    command.arg(DUMP).arg(0).arg(format!("{prefix}*"));
    let keys: Vec<Value> = command.query(commands).expect("all keys");
    let stored = keys.iter().map(|key| {
        let Value::Array(parts) = key else { panic!("no key: {key:?}") };
        let Value::Array(items) = &parts[2] else { panic!("no list: {key:?}") };
        let kind = String::from_utf8_lossy(&bytes(&parts[1])).into_owned();
        let mut items: Vec<Vec<u8>> = items.iter().map(bytes).collect();
        if kind == "hash" {
            let mut pairs: Vec<&[Vec<u8>]> = items.chunks_exact(2).collect();
            pairs.sort();
            items = pairs.concat();
        }
        (bytes(&parts[0])[prefix.len()..].to_vec(), Stored { kind, items })
    });
    stored.collect()
}

pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::BulkString(bytes) => bytes.clone(),
        Value::SimpleString(text) => text.clone().into_bytes(),
        Value::Int(number) => number.to_string().into_bytes(),
        other => panic!("no text: {other:?}"),
    }
}
