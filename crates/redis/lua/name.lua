-- Writes the id of a store that lost it, with the longest ttl that the caller knows; does nothing if there is an id.
-- KEYS: store. ARGV: store, format, ttl.
if redis.call('HEXISTS', KEYS[1], 'id') == 0 then
  redis.call('HSET', KEYS[1], 'id', ARGV[1], 'format', ARGV[2], 'ttl', ARGV[3])
end
local clock = redis.call('TIME')
return 'done ' .. string.format('%.0f', clock[1] * 1000000 + clock[2])
