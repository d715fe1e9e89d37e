#!lua name=barelayout
-- As little as a queue with leases can be: a sorted set of what is ready, a hash of what the jobs
-- carry, a sorted set of leases whose members hold the token. No limits, no retries, no waiting.

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- KEYS: ready, jobs. ARGV: id, content, id, content, ...
redis.register_function('bare_push', function(keys, args)
  local now = now_us()
  local ready = {}
  for i = 1, #args, 2 do
    ready[#ready + 1] = now
    ready[#ready + 1] = args[i]
  end
  redis.call('HSET', keys[2], unpack(args))
  return redis.call('ZADD', keys[1], unpack(ready))
end)

-- KEYS: ready, jobs, leases. ARGV: how many, ttl in us, token. Answers the ids and the contents.
redis.register_function('bare_lease', function(keys, args)
  local popped = redis.call('ZPOPMIN', keys[1], args[1])
  if #popped == 0 then return { {}, {} } end
  local ids, leases = {}, {}
  local until_us = now_us() + args[2]
  for i = 1, #popped, 2 do
    local id = popped[i]
    ids[#ids + 1] = id
    leases[i] = until_us
    leases[i + 1] = id .. ':' .. args[3]
  end
  redis.call('ZADD', keys[3], unpack(leases))
  return { ids, redis.call('HMGET', keys[2], unpack(ids)) }
end)

-- KEYS: jobs, leases. ARGV: token, id, id, ... Answers how many were held under this token.
redis.register_function('bare_ack', function(keys, args)
  local members, ids = {}, {}
  for i = 2, #args do
    members[i - 1] = args[i] .. ':' .. args[1]
    ids[i - 1] = args[i]
  end
  local held = redis.call('ZREM', keys[2], unpack(members))
  if held == #ids then
    redis.call('HDEL', keys[1], unpack(ids))
  else
    -- Somebody's lease was lost: what is still leased stays. Rare, and not measured.
    for i = 1, #ids do
      if not redis.call('ZSCORE', keys[2], members[i]) then redis.call('HDEL', keys[1], ids[i]) end
    end
  end
  return held
end)
