-- Writes the entry of a server, with its time; removes servers that were silent for a minute; makes the secret by which
-- servers authenticate each other, if there is no secret. KEYS: servers, secret. ARGV: server, its entry, new secret.
local clock = redis.call('TIME')
local time = string.format('%.0f', clock[1] * 1000000 + clock[2])
redis.call('HSET', KEYS[1], ARGV[1], time .. ' ' .. ARGV[2])
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local said = tonumber(string.match(all[i + 1], '^%d+')) or 0
  if tonumber(time) - said > 60000000 then redis.call('HDEL', KEYS[1], all[i]) end
end
if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('SET', KEYS[2], ARGV[3]) end
return {redis.call('GET', KEYS[2]), redis.call('HGETALL', KEYS[1])}
