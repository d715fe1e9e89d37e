-- Start of every script of a leader: the fence, and the functions that the scripts share. It must never know the
-- content of a body. KEYS: own, log. ARGV: store, epoch, owner, run, as the caller knows them; `proved` in place of the
-- run if this text was sent to no other run.
local own = redis.call('HMGET', KEYS[1], 'store', 'epoch', 'owner', 'number', 'checksum', 'moment', 'largest_ttl', 'snapshot')
local refused
if own[1] ~= ARGV[1] then refused = 'moved'
elseif own[2] ~= ARGV[2] or own[3] ~= ARGV[3] then
  refused = own[2] ~= ARGV[2] and tonumber(own[2]) > tonumber(ARGV[2]) and 'deposed' or 'moved'
elseif ARGV[4] ~= 'proved' and not string.find(redis.call('INFO', 'server'), 'run_id:' .. ARGV[4] .. '\r', 1, true) then
  refused = 'moved'
end
local clock = redis.call('TIME')
local time = string.format('%d%06d', clock[1], clock[2])
local function look(number, checksum)
  local there
  if number == own[4] then there = own[5]
  elseif tonumber(number) <= tonumber(own[4]) then
    local found = redis.call('XRANGE', KEYS[2], number .. '-0', number .. '-0')[1]
    there = found and string.sub(found[2][2], 1, 8)
  end
  if there then return there == checksum and 'done' or 'deposed' end
  return tonumber(number) == tonumber(own[4]) + 1 and 'next' or 'at ' .. own[4]
end
local function larger(a, b) return tonumber(a) > tonumber(b) and a or b end
local function note(beats, moment, ttl, notes_run, ...)
  redis.call('HSET', KEYS[1], 'moment', larger(own[6], moment), 'largest_ttl', larger(own[7], ttl), ...)
  if beats then redis.call('HSET', KEYS[1], 'beat', time) end
  if notes_run ~= '' then redis.call('HSET', KEYS[1], 'noted_run', notes_run == '-' and '' or notes_run) end
  return 'done ' .. time
end
