-- The short way of jobs that are granted: heads of a lane without needs, or that needs only limits, many in one call.

local home = lib.job_home

-- So many heads of a lane are looked at first, and four times as many each time that all of them go one way:
-- what is read beyond the last that is granted is read in vain.
local HEADS_FIRST = 16
-- As many as fill the hash of a chunk are read at once at the most.
local HEADS_MAX = 256

-- Rows and lives of from..to of `seqs`, one after the other; of what is in a block and is not as it was pushed no
-- row. (What is found to go the long way is handed to lib.load_jobs in db.found: it is read once.)
function lib.read_rows(seqs, from, to)
  local all, done = {}, 0
  while from <= to do
    local chunk, key, first, block, last = lib.side_by_side(seqs, from, min(to, from + 399))
    local fields, n, places, at_places = {}, 0, {}, {}
    for i = from, last do
      local at = seqs[i] - first
      if block and at < block.size and lib.is_as_pushed(block, at) then
        places[#places + 1], at_places[#at_places + 1] = at, done + n + 1
      end
      local row, life = lib.row_fields(at)
      fields[n + 1], fields[n + 2] = row, life
      n = n + 2
    end
    local found
    if #places * 2 < n then
      found = call('HMGET', db.prefix .. key, unpack(fields))
    end
    for at = 1, n do
      all[done + at] = found and found[at] or at % 2 == 1 and db.pushed[seqs[from + (at - 1) / 2]] or false
    end
    if places[1] then
      for i, row in ipairs(lib.block_rows(chunk, block, places)) do
        all[at_places[i]], all[at_places[i] + 1] = row, false
      end
    end
    from, done = last + 1, done + n
  end
  return all
end
local read_rows = lib.read_rows

function lib.new_run(leases, shape, tail, asker, limits, now)
  local run = {
    short = true, n = 0, names = {}, rows = {}, ids = {}, shape = shape, granted_at = now, limits = limits,
    expires_at = tail.expires_at, deadline = tail.deadline, holder = asker.worker,
  }
  leases[#leases + 1] = run
  return run
end
local new_run = lib.new_run

-- What a run grants, as an event each of a queue. Of a keyed run `limits` and `weights` have what each holds.
function lib.run_granted(run, queue, asker, limits, weights)
  if not lib.keeps_events() then
    return
  end
  local held = lib.held_together(asker.ttl, run.granted_at, run.deadline, run.limits)
  local leases = run.fence and { run.fence, run.seq } or concat(run.names)
  lib.together_event(RUN_EVENT.granted, queue, run.block_ids or concat(run.ids, '\n'), leases, run.n, run.holder, held,
    limits, weights)
end

local function queue_name(queue)
  return db.see(RECORD.queue, queue).name
end

-- So many heads of an open lane, or of some of its bundle, were granted; `book` carries up what comes next.
function lib.took(lane, n, asker, now, book)
  lib.more_live(n, asker.ttl, now)
  lib.hold(asker.worker, n, false)
  local lane_record = db.see(RECORD.lane, lane)
  local queue_record, bundle_record = db.get(RECORD.queue, lane_record.queue), db.get(RECORD.bundle, lane_record.bundle)
  local queue, rank = lane_record.queue, -lane_record.priority
  local turns = queue_record.priorities[rank]
  queue_record.waiting, bundle_record.waiting, turns.waiting = queue_record.waiting - n, bundle_record.waiting - n,
    turns.waiting - n
  queue_record.running = queue_record.running + n
  book()
  if turns.waiting == 0 then
    lib.void_turns(queue, rank)
  end
end

-- The same of this many heads of one lane.
function lib.took_heads(lane, n, asker, now)
  lib.took(lane, n, asker, now, function()
    lines.take(db.get(RECORD.lane, lane).line, lib.lane_line(lane), n)
    lib.heads_taken(lane, n, now)
  end)
end

-- How many heads of an open lane come before those of the other lanes: those whose arrival is below this; nil if
-- there are no others, false if nothing goes the short way here.
local function ahead_of_others(lane_record, bundle_record)
  local group_record = db.get(RECORD.group, bundle_record.group)
  local turns = db.get(RECORD.queue, lane_record.queue).priorities[-group_record.priority]
  if turns.open.n > 1 or lane_record.out or bundle_record.out or lane_record.marked then
    return false
  end
  if bundle_record.open.n > 1 or group_record.open.n > 1 then
    local before = lib.second(bundle_record.open, lib.bundle_open(lane_record.bundle))
    local other = lib.second(group_record.open, lib.group_open(bundle_record.group))
    return before and other and min(before, other) or before or other
  end
  return nil
end

-- Grants rows of a block that stand together at the head of a lane; how many.
local function grant_together(lane, lane_record, most, before, asker, leases, now)
  local arrival, seq, many = lines.front(lane_record.line, lib.lane_line(lane))
  if not arrival then
    return 0
  end
  many = min(many, most)
  if before then
    many = min(many, before - arrival)
  end
  local block, at, chunk = lib.block_of(seq)
  local n = block and lib.span_room(block, at, many) or 0
  if n == 0 then
    return 0
  end
  local space = db.space
  local fence = max(space.fence + 1, now)
  local tail = lib.tail_of(struct.pack('>I4', block.shape), block.shape, asker, nil, now)
  lib.grant_span(chunk, at, n, tail, fence)
  space.fence = fence + n - 1
  local run = new_run(leases, block.shape, tail, asker, nil, now)
  run.n, run.fence, run.seq, run.created = n, fence, seq, block.created
  run.index, run.texts = lib.block_texts(chunk, block, at, at + n - 1)
  leases.bytes = leases.bytes + #run.texts
  if lib.keeps_events() then
    run.block_ids = lib.block_ids(chunk, block, at, at + n - 1)
    lib.run_granted(run, queue_name(lane_record.queue), asker)
  end
  return n
end

-- Keeps what was read of those from a place on that go the long way, so that none is read again; whether all do.
local function keep_found(seqs, rows, place, from, to)
  local all = true
  for i = place, to do
    local at = (i - from) * 2
    local row, life = rows[at + 1], rows[at + 2]
    if row and life then
      db.found[seqs[i]] = { row, life }
    else
      all = false
    end
  end
  return all
end

-- What each head of a lane is granted that needs nothing but limits, as {limit, weight, cost}, and how many of its heads,
-- up to `most`, go one after the other as the first does; nil for other lanes. Only permits that are counted, and nothing
-- else, are granted to several at once: nobody stands at the door of the limit, nothing of it is kept for another, and no
-- gauge is asked.
local function permits_of(lane_record, queue_record, most)
  if lane_record.suspect or lane_record.marked or lane_record.queue == CALLERS
    or queue_record.limit and lib.setting_of(queue_record.limit) then
    return nil
  end
  local permits = {}
  for i, need in ipairs(lane_record.needs) do
    if need[NEED_AT.kind] ~= NEED.limit then
      return nil
    end
    local name, weight = need[NEED_AT.name], need[NEED_AT.weight]
    local settings, limit = lib.setting_of(name), db.see(RECORD.limit, name)
    local rate, cap = settings and settings.rate, settings and settings.concurrency
    if rate or not cap or limit.gauged or limit.mark or db.see(RECORD.door, DOOR.limit .. name) then
      most = 1
    else
      most = min(most, floor((cap - limit.in_use - limit.resting_sum - limit.external) / weight))
    end
    permits[i] = { name, weight, rate and need[NEED_AT.cost] or 0 }
  end
  return permits, max(most, 1)
end

-- Takes the permits of this many heads.
local function take_permits(permits, many, now)
  for _, permit in ipairs(permits) do
    lib.take_limit(permit[PERMIT_AT.limit], permit[PERMIT_AT.weight] * many, permit[PERMIT_AT.cost] * many, now)
  end
end

-- Grants heads of a lane, as many as are wanted and as stay in turn, as long as they have no life: none was ever granted,
-- delayed, or holds a key until its start. Puts a run of leases into `leases` for each shape in a row; how many were
-- granted. `permits`: of a lane that needs limits, what each head holds; that many may go.
local function grant_heads(lane, most, asker, leases, permits, now)
  local lane_record = db.get(RECORD.lane, lane)
  local before
  if most > 1 or not permits then
    before = ahead_of_others(lane_record, db.get(RECORD.bundle, lane_record.bundle))
  end
  if before == false then
    if not permits then
      return 0
    end
    -- Its head is the next of all; what comes after the head is not known here.
    most, before = 1, nil
  end
  local together = permits and 0 or grant_together(lane, lane_record, most, before, asker, leases, now)
  if together > 0 then
    leases.n = leases.n + together
    lib.took_heads(lane, together, asker, now)
    return together
  end
  local line, line_key = lane_record.line, lib.lane_line(lane)
  local _, head = lines.first(line, line_key)
  if db.found[head] then
    -- It is known already that this one goes the long way.
    return 0
  end
  local arrivals, seqs, many = nil, nil, 0
  local space = db.space
  local fence = max(space.fence + 1, now)
  local expiries = sets.bulk(KEY.expiries).adds
  local n_expiries = #expiries
  local granted, tails, shape, tail, chunk, puts, n_puts, run = 0, {}, nil, nil, nil, nil, nil, nil
  local rows, from, to, step, block = nil, 1, 0, db.ahead or HEADS_FIRST, nil
  for i = 1, most do
    if i > to then
      -- As many heads as are read, and no more: a lane whose heads go the long way is looked at for each of them.
      -- And no more than may still go, if they are as long as those before: they come with their payloads.
      local go = granted > 0 and floor((BOUND.PAGE_BYTES_FULL - leases.bytes) * granted / max(leases.bytes, 1)) + 1
        or step
      arrivals, seqs = lines.heads(line, line_key, min(most, to + min(step, go)))
      many = #seqs
      if i > many then
        break
      end
      from, to, step = i, many, min(step * 4, HEADS_MAX)
      rows = read_rows(seqs, from, to)
    end
    local arrival, seq = arrivals[i], seqs[i]
    if before and arrival > before or leases.bytes >= BOUND.PAGE_BYTES_FULL then
      break
    end
    local at = (i - from) * 2
    local row = rows[at + 1]
    if not row or rows[at + 2] then
      local all_long = keep_found(seqs, rows, i, from, to)
      db.ahead = granted == 0 and all_long and step or nil
      break
    end
    local its = sub(row, 1, 4)
    if its ~= shape then
      shape, tail = its, tails[its]
      local number = struct.unpack('>I4', its)
      if not tail then
        tail = lib.tail_of(its, number, asker, permits, now)
        tails[its] = tail
      end
      if run then
        lib.run_granted(run, queue_name(lane_record.queue), asker)
      end
      run = new_run(leases, number, tail, asker, permits, now)
    end
    local name = struct.pack('>I8I6', fence, seq)
    for j = 1, permits and #permits or 0 do
      local limit = permits[j][PERMIT_AT.limit]
      inner.add(db.get(RECORD.limit, limit).holders, lib.limit_holders(limit), fence, name)
    end
    fence = fence + 1
    local its_chunk = floor(seq / lib.CHUNK_ROWS)
    if its_chunk ~= chunk then
      chunk = its_chunk
      local _, key = home(seq)
      puts = lib.row_puts(key)
      n_puts, block = #puts, lib.block_in(chunk)
    end
    local _, x = lib.row_fields(seq - chunk * lib.CHUNK_ROWS)
    puts[n_puts + 1] = x
    local id = lib.id_in_row(row)
    puts[n_puts + 2] = lib.running_life(row, name, tail.packed, id)
    n_puts = n_puts + 2
    if block then
      lib.own_life(seq)
    end
    expiries[n_expiries + 1], expiries[n_expiries + 2] = tail.score, name
    n_expiries = n_expiries + 2
    if tail.deadline then
      lib.timer_set('dl', tail.deadline, name)
    end
    local n = run.n + 1
    run.n, run.names[n], run.rows[n], run.ids[n] = n, name, row, id
    granted, leases.bytes = granted + 1, leases.bytes + struct.unpack('>I4', row, 18)
  end
  if granted == 0 then
    return 0
  end
  leases.n = leases.n + granted
  space.fence = fence - 1
  lib.run_granted(run, queue_name(lane_record.queue), asker)
  take_permits(permits or {}, granted, now)
  lib.took_heads(lane, granted, asker, now)
  return granted
end

function lib.grant_short(lane, most, asker, leases, now)
  grant_heads(lane, most, asker, leases, nil, now)
end

-- Grants heads of a lane of which it was found that the first may go, if they need nothing but limits; how many.
function lib.grant_held(lane, most, asker, leases, now)
  local lane_record = db.see(RECORD.lane, lane)
  local permits, go = permits_of(lane_record, db.see(RECORD.queue, lane_record.queue), most)
  return permits and grant_heads(lane, go, asker, leases, permits, now) or 0
end

-- The score of the second of a set; or nil.
function lib.second(set, key)
  if set.n < 2 then
    return nil
  end
  local n = 0
  for _, score in inner.each(set, key) do
    n = n + 1
    if n == 2 then
      return score
    end
  end
end

-- What the holder of such grants is told: {granted_at, expires_at, deadline, shape, how many, names, first
-- row, limits}. The names are one blob, each a fence (8 bytes) and a row number (6); their rows are blobs one
-- after the other. Of rows of a block, which have one fence and one number after the other, the blob of names is
-- the first name and when they were pushed (7); for rows there are two, the index and the texts. Their lives
-- follow from that. Of a keyed run `shape` is a list, of each its own, and each holds the limits that this needs.
function lib.show_short(run)
  local names = run.fence and struct.pack('>I8I6I7', run.fence, run.seq, run.created) or concat(run.names)
  local shapes = run.shapes
  local shape = shapes and {} or lib.shape_number(run.shape)
  for i = 1, shapes and run.n or 0 do
    shape[i] = lib.shape_number(shapes[i])
  end
  local shown = {
    run.granted_at, run.expires_at, run.deadline or false, shape, run.n, lib.blob(names), 0, run.limits or {},
  }
  local rows, blobs = run.rows, db.blobs
  local n = #blobs
  shown[SHOWN_RUN_AT.rows] = n + 1
  if run.fence then
    blobs[n + 1], blobs[n + 2] = run.index, run.texts
    return shown
  end
  for i = 1, run.n do
    blobs[n + i] = rows[i]
  end
  return shown
end
