-- Hands the store to another server, at a later epoch. A repeat finds that server named.
-- ARGV: (fence), number, checksum, to.
if own[1] == ARGV[1] and own[3] == ARGV[7] and tonumber(own[2]) > tonumber(ARGV[2]) then return 'done ' .. time end
if refused then return refused end
local said = look(ARGV[5], ARGV[6])
if said ~= 'done' then return said == 'next' and 'at ' .. own[4] or said end
local epoch = string.format('%.0f', math.max(own[2] + 1, tonumber(time)))
redis.call('HSET', KEYS[1], 'epoch', epoch, 'owner', ARGV[7], 'beat', time)
return 'done ' .. time
