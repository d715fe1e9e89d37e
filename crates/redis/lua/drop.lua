-- Takes the whole store away, if it has the mark that the caller saw. KEYS: own, log, store, all pieces.
-- ARGV: (fence), the mark.
if redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then return 'done ' .. time end
if refused then return refused end
if redis.call('HGET', KEYS[3], 'copy') ~= ARGV[5] then return 'not as seen' end
for first = 1, #KEYS, 1000 do
    redis.call('UNLINK', unpack(KEYS, first, math.min(first + 999, #KEYS)))
end
return 'done ' .. time
