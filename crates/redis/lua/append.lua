-- Writes the entry `number` behind the last one, or, without a body, checks that it is there. Both write the moment.
-- ARGV: (fence), number, checksum, moment, largest ttl, notes_run, '' without a heartbeat, then field and body.
if refused then return refused end
-- The log can be deleted, expire or be renamed alone, or another key can replace it. Then the journal ends with the
-- snapshot, and `own` is set so: its leader rebuilds the store, and no reader expects the missing entries.
local kept, sum = string.match(own[8] or '', '^%S+ (%d+) (%x+)')
kept, sum = kept or '0', sum or string.rep('0', 16)
local expects = own[4] ~= kept
local function lost()
  local checksum = string.gsub(sum, '%x%x', function(byte) return string.char(tonumber(byte, 16)) end)
  redis.call('HSET', KEYS[1], 'number', kept, 'checksum', string.reverse(checksum))
  return 'at ' .. kept
end
local function is_other(reply) return type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE', 1, true) end
local function leave(...) return note(ARGV[10] ~= '', ARGV[7], ARGV[8], ARGV[9], ...) end
-- An append of an entry notices this itself. This range is empty, so the read is cheap; a key of another type fails.
if not ARGV[12] and expects and (redis.call('EXISTS', KEYS[2]) == 0
    or is_other(redis.pcall('XRANGE', KEYS[2], '18446744073709551615-0', '+', 'COUNT', 1))) then return lost() end
local said = look(ARGV[5], ARGV[6])
-- Every journal begins at 0, so a repeat of the check before the first entry is done too.
local begins = ARGV[5] == '0' and ARGV[6] == string.rep('\0', 8) and not ARGV[12] and string.sub(said, 1, 2) == 'at'
if said == 'done' or begins then return leave() end
if said ~= 'next' then return said end
if not ARGV[12] then return 'at ' .. own[4] end
local added
if expects then added = redis.pcall('XADD', KEYS[2], 'NOMKSTREAM', ARGV[5] .. '-0', ARGV[11], ARGV[12])
else added = redis.pcall('XADD', KEYS[2], ARGV[5] .. '-0', ARGV[11], ARGV[12]) end
if not added or is_other(added) then
  if added then redis.call('UNLINK', KEYS[2]) end
  if expects then return lost() end
  added = redis.call('XADD', KEYS[2], ARGV[5] .. '-0', ARGV[11], ARGV[12])
end
if type(added) == 'table' then return added end
return leave('number', ARGV[5], 'checksum', ARGV[6])
