-- The short way of jobs that have nothing unusual: stored ready, granted from a lane without needs,
-- settled as succeeded, many in one call.
--
-- It does what the long way does, once for all of them instead of once for each, and leaves the same
-- state; whatever is not plain goes the long way. The model test runs both. Here is what its steps share: rows
-- that they write, and the lives of its jobs. The steps are in short_push, short_grant and short_settle.

-- Rows that the short way writes, by key: {field, value, …}.
function lib.row_puts(key)
  local puts = db.rows[key]
  if not puts then
    puts = {}
    db.rows[key] = puts
  end
  return puts
end

function db.write_rows(out)
  for key, rows in pairs(db.rows) do
    local writes = out(key)
    local puts = writes.puts
    if not puts then
      writes.puts = rows
    else
      for i = 1, #rows do
        puts[#puts + 1] = rows[i]
      end
    end
  end
end

-- ---- Lives of jobs that went the short way ----
--
-- Running: '\1', arrival (6 bytes), fence (8), row number (6), bytes (4), then what is the same for all of
-- a call: shape (4), expiry, grant, deadline or 0 (7 each), ttl (5), the lengths of the holder's name and of
-- the limits (2 each; 0 if there are none, 65535 if they are those that its shape needs, with nothing booked of a
-- rate), the name, the limits ({{limit, weight, cost}, …}, packed) or nothing, the request id or nothing. At the end
-- stands the job's id, and its length (2), since events name it.
-- Running, and its row has a unique key that it holds until its end: '\3', then as any that runs.
-- Succeeded: '\2', arrival, fence, row number, bytes; shape, grant, end, kept until.
-- All else is as in a job that was just pushed. Any other life is a packed array, and begins with none of these.

local RUNNING, SUCCEEDED, RUNNING_WITH_KEY = '\1', '\2', '\3'
-- Where the fence and row number, the bytes, and what is the same for all begin.
local TAIL_AT = 26
-- Where what follows the shape begins.
local COMMON_AT = TAIL_AT + 4
local AS_NEEDED = 65535
lib.SHORT_LIFE = {
  running = RUNNING, running_with_key = RUNNING_WITH_KEY, succeeded = SUCCEEDED, name_at = 8, bytes_at = 22,
  tail_at = TAIL_AT, common_at = COMMON_AT,
}

-- What is the same for all grants of a call that end at one moment and hold such limits: what follows the shape.
function lib.common_tail(expires_at, deadline, asker, limits, now)
  local holder, held = asker.worker or '', type(limits) == 'table' and cmsgpack.pack(limits) or ''
  return struct.pack('>I7I7I7I5I2I2', expires_at, now, deadline or 0, asker.ttl, #holder,
    limits == 'as_needed' and AS_NEEDED or #held) .. holder .. held .. (asker.request or '')
end

-- The life of a row that is granted under this name: its arrival and its bytes are those of the row, and so is the id.
-- `tail` is the same for all that a call grants alike.
function lib.running_life(row, name, tail, id)
  local kind = lib.has_key(row, #id) and RUNNING_WITH_KEY or RUNNING
  return kind .. sub(row, 12, 17) .. name .. sub(row, 18, 21) .. tail .. id .. struct.pack('>I2', #id)
end

-- What a running life has behind its shape, the same for all that were granted alike, and the id of its job.
function lib.common_and_id(life)
  local high, low = byte(life, -2, -1)
  local n = high * 256 + low
  return sub(life, COMMON_AT, -n - 3), sub(life, -n - 2, -3)
end

-- The life of a row of a span (machine/blocks), as if it were written for itself.
function lib.short_life(arrival, fence, seq, bytes, shape, span, id)
  local numbers = struct.pack('>I6I8I6I4', arrival, fence, seq, bytes)
  if span[SPAN_AT.tail] then
    return RUNNING .. numbers .. span[SPAN_AT.tail] .. id .. struct.pack('>I2', #id)
  end
  return SUCCEEDED .. numbers .. struct.pack('>I4I7I7I7', shape,
    span[SPAN_AT.granted_at], span[SPAN_AT.finished_at], span[SPAN_AT.kept_until])
end

-- What is the same for all grants of a shape in a call: `shape` as it stands in a row.
function lib.tail_of(shape, number, asker, limits, now)
  local timeout = db.see(RECORD.shape, number).timeout
  local deadline = timeout and now + timeout
  local expires_at = lib.expiry(asker.ttl, deadline, now)
  lib.sooner(expires_at)
  return {
    deadline = deadline, expires_at = expires_at, score = text(expires_at),
    packed = shape .. lib.common_tail(expires_at, deadline, asker, limits, now),
  }
end

-- The limits that a lease of a shape holds which holds what its shape needs, and nothing of a rate.
function lib.as_needed(shape)
  local limits = {}
  for i, need in ipairs(db.see(RECORD.shape, shape).needs) do
    limits[i] = { need[NEED_AT.name], need[NEED_AT.weight], 0 }
  end
  return limits
end

-- What follows the shape in such a life; `as_needed`: the limits are those that the shape needs.
function lib.read_common(common)
  local expires_at, granted_at, deadline, ttl, n, m, at = struct.unpack('>I7I7I7I5I2I2', common)
  local as_needed = m == AS_NEEDED
  m = as_needed and 0 or m
  local request = at + n + m
  return {
    expires_at = expires_at, granted_at = granted_at,
    deadline = deadline > 0 and deadline or nil, ttl = ttl,
    holder = n > 0 and sub(common, at, at + n - 1) or nil,
    limits = m > 0 and cmsgpack.unpack(sub(common, at + n, request - 1)) or nil,
    request = request <= #common and sub(common, request) or nil, as_needed = as_needed,
  }
end

-- Puts what such a life says into a job; whether it is one.
function lib.read_short_life(job, life)
  local kind = sub(life, 1, 1)
  local runs = kind == RUNNING or kind == RUNNING_WITH_KEY
  if not runs and kind ~= SUCCEEDED then
    return false
  end
  local arrival, fence, seq, bytes = struct.unpack('>I6I8I6I4', life, 2)
  job.arrival, job.bytes = arrival, bytes
  if runs then
    local rest = lib.read_common((lib.common_and_id(life)))
    local limits = rest.as_needed and lib.as_needed((struct.unpack('>I4', life, TAIL_AT))) or rest.limits
    job.state, job.started_at = STATE.running, rest.granted_at
    job.lease = {
      fence = fence, seq = seq, expires_at = rest.expires_at, holder = rest.holder,
      granted_at = rest.granted_at, ttl = rest.ttl, deadline = rest.deadline,
      limits = limits or {}, resources = {},
      request = rest.request, extended = false, again = false, seen_at = rest.granted_at,
      begins = true,
    }
  else
    local _, granted_at, finished_at, kept_until = struct.unpack('>I4I7I7I7', life, TAIL_AT)
    job.state, job.ended = STATE.succeeded, 1
    job.settles = { { fence, OUTCOME.succeeded, STATE.succeeded, false } }
    job.started_at, job.finished_at, job.kept_until = granted_at, finished_at, kept_until
  end
  return true
end

-- Rows of one hash that stand side by side from a place of `seqs` on: its chunk, its key, the number of its first
-- row, its block or nil, and the last place, `to` at most.
function lib.side_by_side(seqs, from, to)
  local chunk, key = lib.job_home(seqs[from])
  local first, last = chunk * lib.CHUNK_ROWS, from
  while last < to do
    local at = seqs[last + 1] - first
    if at < 0 or at >= lib.CHUNK_ROWS then
      break
    end
    last = last + 1
  end
  return chunk, key, first, lib.block_in(chunk), last
end

-- The lives of jobs, in their order; false where there is none.
function lib.read_lives(seqs)
  local found, from, many = {}, 1, #seqs
  while from <= many do
    local chunk, key, first, block, last = lib.side_by_side(seqs, from, many)
    local fields, places, at_places = {}, {}, {}
    for i = from, last do
      local at = seqs[i] - first
      if block and at < block.size and not lib.has_own_life(block, at) then
        places[#places + 1], at_places[#at_places + 1] = at, i
      end
      local _, x = lib.row_fields(at)
      fields[i - from + 1] = x
    end
    if #places < #fields then
      local read = call('HMGET', db.prefix .. key, unpack(fields))
      for i = from, last do
        found[i] = read[i - from + 1]
      end
    end
    if places[1] then
      for i, life in ipairs(lib.block_lives(chunk, block, places)) do
        found[at_places[i]] = life
      end
    end
    from = last + 1
  end
  return found
end
