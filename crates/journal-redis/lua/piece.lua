-- Writes one piece of a snapshot and notes which one is being written, or unlinks it where no body is given and `own` does not name its snapshot.
-- KEYS: own, log, the piece. ARGV: (fence), generation, body.
if refused then return refused end
if ARGV[6] then
  if own[9] ~= ARGV[5] then redis.call('HSET', KEYS[1], 'writing', ARGV[5]) end
  redis.call('SET', KEYS[3], ARGV[6])
elseif own[8] and string.match(own[8], '^%S+') == ARGV[5] then
  return 'refused'
else
  redis.call('UNLINK', KEYS[3])
end
return 'done ' .. time
