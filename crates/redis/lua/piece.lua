-- Writes one piece of a snapshot, and notes the snapshot in `writing`. Without a body it unlinks the piece, unless
-- `own` names the snapshot.
-- KEYS: own, log, the piece. ARGV: (fence), generation, body.
if refused then return refused end
if ARGV[6] then
  if redis.call('HGET', KEYS[1], 'writing') ~= ARGV[5] then redis.call('HSET', KEYS[1], 'writing', ARGV[5]) end
  redis.call('SET', KEYS[3], ARGV[6])
elseif string.match(redis.call('HGET', KEYS[1], 'snapshot') or '', '^%S+') == ARGV[5] then
  return 'refused'
else
  redis.call('UNLINK', KEYS[3])
end
return 'done ' .. time
