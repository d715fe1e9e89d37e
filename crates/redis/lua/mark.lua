-- Writes the mark of a copy in place of the one that the caller saw; an empty one takes it away.
-- It must never mark a store that holds entries as one that is to be filled. KEYS: own, log, store.
-- ARGV: (fence), the mark as it was seen, the new mark, whether the journal must be empty.
if refused then return refused end
local there = redis.call('HGET', KEYS[3], 'copy') or ''
if there == ARGV[6] then return 'done ' .. time end
if there ~= ARGV[5] then return 'not as seen' end
if ARGV[7] == '1' and own[4] ~= '0' then return 'at ' .. own[4] end
redis.call('HSET', KEYS[3], 'copy', ARGV[6])
return 'done ' .. time
