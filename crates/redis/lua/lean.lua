-- The short path of a plain append: its text provably reached the run that the caller knows, the store is the caller's,
-- and the entry is the next one, or the last one with nothing behind it. All others continue with the fence. It must
-- never give another answer than the fence and the append would, except that it returns no TIME and leaves the
-- heartbeat unchanged. KEYS and ARGV are those of the append.
if ARGV[4] == 'proved' and ARGV[9] == '' and ARGV[10] == '' then
  local own = redis.call('HMGET', KEYS[1], 'store', 'epoch', 'owner', 'number', 'checksum', 'moment', 'largest_ttl')
  if own[1] == ARGV[1] and own[2] == ARGV[2] and own[3] == ARGV[3] then
    local is_done
    if ARGV[12] then
      is_done = tonumber(ARGV[5]) == own[4] + 1
        and type(redis.pcall('XADD', KEYS[2], 'NOMKSTREAM', ARGV[5] .. '-0', ARGV[11], ARGV[12])) == 'string'
    else
      is_done = ARGV[5] == own[4] and ARGV[6] == own[5] and (tonumber(redis.pcall('XLEN', KEYS[2])) or 0) > 0
    end
    if is_done then
      local moment = tonumber(ARGV[7]) > tonumber(own[6]) and ARGV[7] or own[6]
      local ttl = tonumber(ARGV[8]) > tonumber(own[7]) and ARGV[8] or own[7]
      redis.call('HSET', KEYS[1], 'number', ARGV[5], 'checksum', ARGV[6], 'moment', moment, 'largest_ttl', ttl)
      return 'done'
    end
  end
end
