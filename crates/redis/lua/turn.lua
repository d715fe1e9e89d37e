-- Installs a snapshot: loads begin with it. If it heals, the journal ends with it, otherwise later entries stay.
-- KEYS: own, log, all pieces.
-- ARGV: (fence), number, checksum, moment, largest ttl, notes_run, heals, generation, snapshot.
if refused then return refused end
local before = redis.call('HGET', KEYS[1], 'snapshot') or ''
if string.match(before, '^%S+') == ARGV[11] then return note(true, ARGV[7], ARGV[8], ARGV[9]) end
for i = 3, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return 'refused' end
end
local named = {'snapshot', ARGV[12], 'before', before, 'writing', ''}
if ARGV[10] == '1' then
  redis.call('UNLINK', KEYS[2])
  return note(true, ARGV[7], ARGV[8], ARGV[9], 'number', ARGV[5], 'checksum', ARGV[6], unpack(named))
end
local said = look(ARGV[5], ARGV[6])
if said ~= 'done' then return said == 'next' and 'at ' .. own[4] or said end
redis.call('XTRIM', KEYS[2], 'MINID', string.format('%.0f', ARGV[5] + 1) .. '-0')
return note(true, ARGV[7], ARGV[8], ARGV[9], unpack(named))
