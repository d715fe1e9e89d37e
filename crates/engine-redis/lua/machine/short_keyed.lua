-- The short way of jobs that need one keyed limit of concurrency each: the heads of many lanes of a bundle are granted
-- in one walk, and many are settled in one call.
--
-- It does what the long way does, lane by lane, and leaves the same state. Their rows are read side by side, and what
-- their lives have in common is made once: a life names no limits, since they are those that its shape needs.

-- The settings of limits, looked up once for all of a family that have none of their own.
local function family_settings()
  local family, settings
  return function(name)
    local own = db.see(RECORD.limit_setting, name)
    if own then
      return own
    elseif not family or sub(name, 1, #family) ~= family then
      family, settings = sub(name, 1, find(name, ':', 1, true)), lib.setting_of(name)
    end
    return settings
  end
end

-- The need of a lane whose only need is a keyed limit of concurrency alone, without a gauge, of which nothing is known
-- but permits in use; and the cap and the record of that limit. This is what *keyed* means.
local function keyed_need(lane_record, going)
  local need = lane_record.needs[1]
  if not need or lane_record.needs[2] or lane_record.out or lane_record.marked or lane_record.suspect
    or need[NEED_AT.kind] ~= NEED.limit or lib.is_plain(need) then
    return nil
  end
  local name = need[NEED_AT.name]
  local settings, limit = going.setting_of(name), db.see(RECORD.limit, name)
  local cap = settings and settings.concurrency
  if cap and not settings.rate and not limit.gauged and not limit.paused_until and not limit.mark
    and not db.see(RECORD.door, DOOR.limit .. name) and (not going.away or lib.only_counts(name)) then
    return need, cap, limit
  end
end

-- Of these lanes, which are the first of a bundle, those that may go now one after the other: {lane, its record, its
-- need, the record of the limit, the arrival that comes next or false, …}; the rows of their heads; how many they are.
-- `going`: what is known of those that went before.
local function lanes_that_go(members, going)
  local found, seqs, n, taken, next_least = {}, {}, 0, {}, going.next_least
  for i = 1, #members do
    local lane = tonumber(members[i])
    local lane_record = db.see(RECORD.lane, lane)
    local need, cap, limit = keyed_need(lane_record, going)
    -- A second head of a lane from which one went has its turn before one that arrived later.
    if not need or lane_record.ordered > next_least or taken[limit]
      or limit.in_use + limit.resting_sum + limit.external + need[NEED_AT.weight] > cap then
      break
    end
    local line = lane_record.line
    local _, seq, next_arrival = lines.two(line, line.big and lib.lane_line(lane))
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
    local at = n * 5
    found[at - 4], found[at - 3], found[at - 2], found[at - 1], found[at] = lane, lane_record, need, limit,
      next_arrival or false
  end
  going.next_least = next_least
  return found, seqs, n
end

-- So many heads are read at first, and four times as many each time that all of them went: what is read beyond the last
-- that is granted is read in vain.
local HEADS_FIRST = TESTING and 2 or 32

-- Grants the heads of lanes of this one's bundle, as long as each needs a keyed limit and nothing else stands in its
-- way; how many. At most so many lanes are looked at.
local function walk(lane, most, going, asker, leases, now)
  local bundle = db.see(RECORD.lane, lane).bundle
  if bundle ~= going.bundle or not lib.stands_alone(bundle) then
    return 0
  end
  local open, at = db.see(RECORD.bundle, bundle).open, lib.bundle_open(bundle)
  local members, as_stored = inner.front(open, at, going.passed, most)
  if tonumber(members[1]) ~= lane then
    return 0
  end
  local found, seqs, n = lanes_that_go(members, going)
  local rows = lib.read_rows(seqs, 1, n)
  local space = db.space
  local fence = max(space.fence + 1, now)
  local expires_at = now + asker.ttl
  local score, expiries = text(expires_at), sets.bulk(KEY.expiries).adds
  local in_common = lib.common_tail(expires_at, nil, asker, 'as_needed', now)
  local run, granted, n_expiries, emptied = nil, 0, #expiries, {}
  local chunk, puts, n_puts
  local limits, weights = {}, {}
  for i = 1, n do
    local row, seq = rows[i * 2 - 1], seqs[i]
    if not row or rows[i * 2] then
      db.found[seq] = row and { row, rows[i * 2] }
      break
    end
    local words = sub(row, 1, 4)
    local shape = struct.unpack('>I4', words)
    if db.see(RECORD.shape, shape).timeout or leases.bytes >= BOUND.PAGE_BYTES_FULL then
      break
    end
    local name = struct.pack('>I8I6', fence, seq)
    local place = i * 5
    local its, record, need, limit = found[place - 4], found[place - 3], found[place - 2], found[place - 1]
    db.get(RECORD.lane, its)
    db.get(RECORD.limit, need[NEED_AT.name])
    inner.add(limit.holders, lib.limit_holders(need[NEED_AT.name]), fence, name)
    limit.in_use = limit.in_use + need[NEED_AT.weight]
    fence = fence + 1
    local its_chunk = floor(seq / lib.CHUNK_ROWS)
    if its_chunk ~= chunk then
      local _, key = lib.job_home(seq)
      chunk, puts = its_chunk, lib.row_puts(key)
      n_puts = #puts
    end
    local _, x = lib.row_fields(seq - chunk * lib.CHUNK_ROWS)
    puts[n_puts + 1] = x
    local id = lib.id_in_row(row)
    puts[n_puts + 2] = lib.running_life(row, name, words .. in_common, id)
    n_puts = n_puts + 2
    expiries[n_expiries + 1], expiries[n_expiries + 2] = score, name
    n_expiries = n_expiries + 2
    if not run then
      run = lib.new_run(leases, nil, { expires_at = expires_at }, asker, nil, now)
      run.shapes = {}
    end
    granted = granted + 1
    run.names[granted], run.rows[granted], run.shapes[granted], run.ids[granted] = name, row, shape, id
    limits[granted], weights[granted] = need[NEED_AT.name], text(need[NEED_AT.weight])
    leases.bytes = leases.bytes + struct.unpack('>I4', row, 18)
    lines.take(record.line, record.line.big and lib.lane_line(its), 1)
    local next_arrival = found[place] or nil
    inner.place(open, at, record.ordered, next_arrival, number_text(its))
    record.ordered = next_arrival
    if not next_arrival then
      emptied[#emptied + 1] = its
    end
  end
  if granted == 0 then
    return 0
  end
  if as_stored then
    going.passed = going.passed + granted
    sets.passed(at, going.passed)
  end
  run.n, leases.n, space.fence = granted, leases.n + granted, fence - 1
  local queue = db.see(RECORD.queue, db.see(RECORD.lane, lane).queue).name
  lib.run_granted(run, queue, asker, concat(limits, '\n'), concat(weights, ','))
  lib.sooner(expires_at)
  lib.took(lane, granted, asker, now, function()
    lib.alone_taken(bundle, granted)
  end)
  for _, empty in ipairs(emptied) do
    lib.drop_lane_if_idle(empty)
  end
  return granted
end

-- The same in steps, from a lane on that is the next of its queue; what is not so is left for the long way.
function lib.grant_keyed(lane, most, asker, leases, now)
  local lane_record = db.see(RECORD.lane, lane)
  local queue = lane_record.queue
  local going = {
    bundle = lane_record.bundle, next_least = lib.FOREVER, passed = 0, setting_of = family_settings(),
    away = asker.away,
  }
  local _, head = lines.first(lane_record.line, lib.lane_line(lane))
  if queue == CALLERS or lib.learns(now) or db.found[head] or not keyed_need(lane_record, going) then
    return
  end
  local step, had = HEADS_FIRST, leases.n
  while lane and leases.n - had < most do
    local looks = min(most + had - leases.n, step)
    local granted = walk(lane, looks, going, asker, leases, now)
    lane = granted == looks and lib.next_lane(queue, true)
    -- No more than may still go, if they are as long as those before: they come with their payloads.
    step = min(step * 4, floor((BOUND.PAGE_BYTES_FULL - leases.bytes) * leases.n / max(leases.bytes, 1)) + 1)
  end
end
