-- The short way of jobs that need one keyed limit of concurrency each: the heads of many lanes of a bundle are granted
-- in one walk, and many are settled in one call.
--
-- It does what the long way does, lane by lane, and leaves the same state. Their rows are read side by side, and what
-- their lives have in common is made once: a life names no limits, since they are those that its shape needs.

local RUNNING = T.SHORT_LIFE.running

-- The keyed limit that is the only need of a lane, if that is a limit of concurrency alone and nothing but permits in
-- use is known of it: the need and the cap. This is what *keyed* means.
local function keyed_need(l)
  local need = l.needs[1]
  if not need or l.needs[2] or l.out or l.marked or l.suspect or need[NEED_AT.kind] ~= NEED.limit or T.is_plain(need) then
    return nil
  end
  local name = need[NEED_AT.name]
  local settings = T.setting_of(name)
  local cap = settings and settings.concurrency
  if cap and not settings.rate and not db.see(RECORD.door, DOOR.limit .. name) then
    return need, cap
  end
end

-- Up to so many lanes of a bundle that may go now, from its first on, as they would go one after the other: {lane, its
-- record, its need, the record of the limit, the arrival that comes next or false, …}, and the rows of their heads.
local function lanes_that_go(open, at, most)
  local found, seqs, n, taken = {}, {}, 0, {}
  local next_least, each = T.FOREVER, O.each(open, at)
  while n < most do
    local member, arrival = each()
    -- A second head of a lane from which one went has its turn before this one.
    if not member or arrival > next_least then
      break
    end
    local lane = tonumber(member)
    local l = db.see(RECORD.lane, lane)
    local need, cap = keyed_need(l)
    if not need then
      break
    end
    local name = need[NEED_AT.name]
    local limit = db.see(RECORD.limit, name)
    if taken[limit] or limit.paused_until or limit.mark
      or limit.in_use + limit.resting_sum + limit.external + need[NEED_AT.weight] > cap then
      break
    end
    local _, seq, next_arrival = L.two(l.line, T.lane_line(lane))
    if not seq then
      break
    end
    if limit.uses > 1 then
      taken[limit] = true
    end
    if next_arrival and next_arrival < next_least then
      next_least = next_arrival
    end
    n = n + 1
    seqs[n] = seq
    local i = n * 4
    found[i - 3], found[i - 2], found[i - 1], found[i] = lane, need, limit, next_arrival or false
  end
  return found, seqs, n
end

-- Grants the heads of lanes of this one's bundle, as long as each needs a keyed limit and nothing else stands in its
-- way; how many. What is not so is left for the long way, and so is a bundle that is not alone.
function T.grant_keyed(lane, most, asker, leases, now)
  local l = db.see(RECORD.lane, lane)
  if not keyed_need(l) or T.learns(now) then
    return 0
  end
  local bundle = l.bundle
  if l.queue == CALLERS or not T.stands_alone(bundle) then
    return 0
  end
  local open, at = db.see(RECORD.bundle, bundle).open, T.bundle_open(bundle)
  local found, seqs, n = lanes_that_go(open, at, most)
  local rows = T.read_rows(seqs, 1, n)
  local space = db.space
  local fence = max(space.fence + 1, now)
  local expires_at = now + asker.ttl
  local score, expiries = text(expires_at), Z.bulk(KEY.expiries).adds
  local in_common = T.common_tail(expires_at, nil, asker, 'as_needed', now)
  local run, granted, n_expiries, emptied = nil, 0, #expiries, {}
  local chunk, puts, n_puts
  for i = 1, n do
    local row, seq = rows[i * 2 - 1], seqs[i]
    if not row or rows[i * 2] then
      db.found[seq] = row and { row, rows[i * 2] }
      break
    end
    local words = sub(row, 1, 4)
    local shape = struct.unpack('>I4', words)
    if db.see(RECORD.shape, shape).timeout or leases.bytes >= B.PAGE_BYTES_FULL then
      break
    end
    local name = struct.pack('>I8I6', fence, seq)
    local place = i * 4
    local its, need, limit = found[place - 3], found[place - 2], found[place - 1]
    local record = db.get(RECORD.lane, its)
    db.get(RECORD.limit, need[NEED_AT.name])
    O.add(limit.holders, T.limit_holders(need[NEED_AT.name]), fence, name)
    limit.in_use = limit.in_use + need[NEED_AT.weight]
    fence = fence + 1
    local its_chunk = floor(seq / T.CHUNK_ROWS)
    if its_chunk ~= chunk then
      local _, key = T.job_home(seq)
      chunk, puts = its_chunk, T.row_puts(key)
      n_puts = #puts
    end
    local _, x = T.row_fields(seq - chunk * T.CHUNK_ROWS)
    puts[n_puts + 1] = x
    -- Its arrival and its bytes stand in its row.
    puts[n_puts + 2] = RUNNING .. sub(row, 12, 17) .. name .. sub(row, 18, 21) .. words .. in_common
    n_puts = n_puts + 2
    expiries[n_expiries + 1], expiries[n_expiries + 2] = score, name
    n_expiries = n_expiries + 2
    if not run then
      run = T.new_run(leases, nil, { expires_at = expires_at }, asker, nil, now)
      run.shapes = {}
    end
    granted = granted + 1
    run.names[granted], run.rows[granted], run.shapes[granted] = name, row, shape
    leases.bytes = leases.bytes + struct.unpack('>I4', row, 18)
    L.take(record.line, T.lane_line(its), 1)
    local next_arrival = found[place] or nil
    O.place(open, at, record.ordered, next_arrival, number_text(its))
    record.ordered = next_arrival
    if not next_arrival then
      emptied[#emptied + 1] = its
    end
  end
  if granted == 0 then
    return 0
  end
  run.n, leases.n, space.fence = granted, leases.n + granted, fence - 1
  T.sooner(expires_at)
  T.took(lane, granted, asker, now, function()
    T.alone_taken(bundle, granted)
  end)
  for _, empty in ipairs(emptied) do
    T.drop_lane_if_idle(empty)
  end
  return granted
end
