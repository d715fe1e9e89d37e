-- Acquires the store, if epoch, owner and run id are as the caller saw them; makes one if there is no store. It must
-- never touch an entry or a snapshot. KEYS: own, store. ARGV: store, owner, seen epoch and owner ('' if there was no
-- own), above, is_new, format, run, largest ttl.
local named = redis.call('HMGET', KEYS[2], 'id', 'ttl')
local id, ttl = named[1], math.max(tonumber(named[2]) or 0, tonumber(ARGV[9]))
local own = redis.call('HMGET', KEYS[1], 'store', 'epoch', 'owner')
if (id and id ~= ARGV[1]) or (own[1] and own[1] ~= ARGV[1]) then return 'moved' end
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local clock = redis.call('TIME')
local time = string.format('%.0f', clock[1] * 1000000 + clock[2])
local known = math.max(tonumber(ARGV[5]), tonumber(ARGV[3]) or 0)
-- A repeat finds the caller named, above the epoch that it saw.
if not (own[3] == ARGV[2] and tonumber(own[2]) > known) then
  if run ~= ARGV[8] or (own[2] or '') ~= ARGV[3] or (own[3] or '') ~= ARGV[4] then return 'not as seen' end
  if not id then redis.call('HSET', KEYS[2], 'id', ARGV[1], 'format', ARGV[7], 'ttl', ARGV[9]) end
  if not own[1] then
    redis.call('HSET', KEYS[1], 'store', ARGV[1], 'number', '0', 'checksum', string.rep('\0', 8), 'moment', '0',
      'largest_ttl', string.format('%.0f', ttl), 'noted_run', ARGV[6] == '1' and run or '')
  end
  local epoch = string.format('%.0f', math.max(known + 1, tonumber(time)))
  redis.call('HSET', KEYS[1], 'epoch', epoch, 'owner', ARGV[2], 'beat', time)
end
return {'acquired', run, time, redis.call('HGETALL', KEYS[1])}
