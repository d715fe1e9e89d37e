-- The short way of jobs that have nothing unusual: stored ready, granted from a lane without needs,
-- settled as succeeded, many in one call.
--
-- It does what the long way does, once for all of them instead of once for each, and leaves the same
-- state; whatever is not plain goes the long way. The model test runs both.

local home = T.job_home

-- Rows that the short way writes, by key: {field, value, …}.
local function row_puts(key)
  local puts = db.rows[key]
  if not puts then
    puts = {}
    db.rows[key] = puts
  end
  return puts
end

function db.write_rows(out)
  for key, rows in pairs(db.rows) do
    local w = out(key)
    local puts = w.puts
    if not puts then
      w.puts = rows
    else
      for i = 1, #rows do
        puts[#puts + 1] = rows[i]
      end
    end
  end
end

-- ---- Stored ready ----

-- The parts of ids and of rows that lie together are gathered, and each command takes many.

-- Stores jobs of one shape that have nothing unusual: `flat` is {id, b, bytes, tail of the row, …}.
function T.store_flat(spec, flat, default_retry, now)
  local space = db.space
  local many = #flat / 4
  -- The first of a shape goes the long way to its lane.
  local number = T.shape_for(T.shape_of(spec, default_retry), now)
  local shape = db.get('s', number)
  shape.live, shape.rows = shape.live + many - 1, shape.rows + many - 1
  local lane = shape.lane or T.lane_of_job({ shape = number, lost = 0 })
  spec.unasked = T.is_unasked(shape.q, now)
  local l = db.get('l', lane)
  local line, items = T.lane_line(lane), {}
  local first_arrival, first_seq = space.arrival + 1, space.seq + 1
  local head = struct.pack('>I4I7', number, now)
  local last_b, ids, n_ids, puts, n_puts, ends
  for i = 1, many do
    local at, arrival, seq = i * 4 - 3, first_arrival + i - 1, first_seq + i - 1
    if not ends or seq > ends then
      local chunk, key = home(seq)
      ends = chunk * T.CHUNK_ROWS + T.CHUNK_ROWS - 1
      puts = row_puts(key)
      n_puts = #puts
      local c = db.get('c', chunk)
      if not c then
        c = db.put('c', chunk, { n = 0 })
        Z.add('ch', chunk, text(chunk))
      end
      c.n = c.n + min(ends, first_seq + many - 1) - seq + 1
    end
    local b = flat[at + 1]
    if b ~= last_b then
      last_b, ids = b, row_puts('i:' .. b)
      n_ids = #ids
    end
    ids[n_ids + 1], ids[n_ids + 2] = flat[at], text(seq)
    n_ids = n_ids + 2
    puts[n_puts + 1] = T.row_fields(seq - ends + T.CHUNK_ROWS - 1)
    puts[n_puts + 2] = head .. struct.pack('>I6I4', arrival, flat[at + 2]) .. flat[at + 3]
    n_puts = n_puts + 2
    items[i] = struct.pack('>I6I6', arrival, seq)
  end
  local had = l.line.n
  L.append(l.line, line, items, first_arrival, first_seq)
  space.arrival, space.seq = first_arrival + many - 1, first_seq + many - 1
  T.add_len(l, many)
  T.unit(l.queue, many)
  if had == 0 then
    T.lane_changed(lane, now)
  elseif T.has_takers(l.queue) then
    -- Its head is as it was, but there is more for those who wait.
    db.touched[l.queue] = true
  end
end

-- Stores jobs[from..to], all planned to be stored and without anything unusual.
function T.store_plain(jobs, shapes, from, to, default_retry, now)
  local at = from
  while at <= to do
    local shape, flat, n = jobs[at][5], {}, 0
    while at <= to and jobs[at][5] == shape do
      local new = jobs[at]
      flat[n + 1], flat[n + 2], flat[n + 3] = new[1], new[2], new[4]
      flat[n + 4] = new[1] .. '\n' .. new[2] .. '\n\n' .. new[3]
      n, at = n + 4, at + 1
    end
    T.store_flat(shapes[shape], flat, default_retry, now)
  end
end

-- ---- Lives of jobs that went the short way ----
--
-- Running: '\1', arrival (6 bytes), fence (8), row number (6), bytes (4), then what is the same for all of
-- a call: shape (4), expiry, grant, deadline or 0 (7 each), ttl (5), the lengths of the holder's name and of
-- the limits (2 each; 0 if there are none), the name, the limits ({{limit, weight, cost}, …}, packed), the
-- request id or nothing.
-- Succeeded: '\2', arrival, fence, row number, bytes; shape, grant, end, kept until.
-- All else is as in a job that was just pushed. Any other life is a packed array, and begins with neither.

local RUNNING, SUCCEEDED = '\1', '\2'
-- Where the fence and row number, the bytes, and what is the same for all begin.
local NAME_AT, BYTES_AT, TAIL_AT = 8, 22, 26

-- What is the same for all grants of a shape in a call: `shape` as it stands in a row.
local function tail_of(shape, number, asker, limits, now)
  local timeout = db.see('s', number).timeout
  local deadline = timeout and now + timeout
  local expires_at = T.expiry(asker.ttl, deadline, now)
  T.sooner(expires_at)
  local holder, held = asker.worker or '', limits and cmsgpack.pack(limits) or ''
  return {
    deadline = deadline, expires_at = expires_at, score = text(expires_at),
    packed = shape
      .. struct.pack('>I7I7I7I5I2I2', expires_at, now, deadline or 0, asker.ttl, #holder, #held)
      .. holder .. held .. (asker.request or ''),
  }
end

local function read_tail(tail)
  local shape, expires_at, granted_at, deadline, ttl, n, m, at = struct.unpack('>I4I7I7I7I5I2I2', tail)
  local request = at + n + m
  return {
    shape = shape, expires_at = expires_at, granted_at = granted_at,
    deadline = deadline > 0 and deadline or nil, ttl = ttl,
    holder = n > 0 and sub(tail, at, at + n - 1) or nil,
    limits = m > 0 and cmsgpack.unpack(sub(tail, at + n, request - 1)) or nil,
    request = request <= #tail and sub(tail, request) or nil,
  }
end

-- Puts what such a life says into a job; whether it is one.
function T.read_short_life(job, life)
  local kind = sub(life, 1, 1)
  if kind ~= RUNNING and kind ~= SUCCEEDED then
    return false
  end
  local arrival, fence, seq, bytes = struct.unpack('>I6I8I6I4', life, 2)
  job.arrival, job.bytes = arrival, bytes
  if kind == RUNNING then
    local rest = read_tail(sub(life, TAIL_AT))
    job.state, job.started_at = 'r', rest.granted_at
    job.lease = {
      fence = fence, seq = seq, expires_at = rest.expires_at, holder = rest.holder,
      granted_at = rest.granted_at, ttl = rest.ttl, deadline = rest.deadline,
      limits = rest.limits or {}, resources = {},
      request = rest.request, extended = false, again = false, seen_at = rest.granted_at,
    }
  else
    local _, granted_at, finished_at, kept_until = struct.unpack('>I4I7I7I7', life, TAIL_AT)
    job.state, job.ended, job.settles = 'S', 1, { { fence, 'S', 'S', false } }
    job.started_at, job.finished_at, job.kept_until = granted_at, finished_at, kept_until
  end
  return true
end

-- ---- Granted ----

-- So many heads of a lane are looked at first: where jobs that go the long way stand among them, what is
-- read beyond the first of those is read in vain, once for each of them.
local HEADS_FIRST = 16

-- Rows and lives of items[from..to] of a line, one after the other.
local function read_rows(items, from, to)
  local all
  local i = from
  while i <= to do
    local chunk = sub(items[i], 7, 11)
    local _, seq = T.line_item(items[i])
    local _, key = home(seq)
    local fields, n = {}, 0
    while i <= to and n < 800 and sub(items[i], 7, 11) == chunk do
      local row, life = T.row_fields(byte(items[i], 12))
      fields[n + 1], fields[n + 2] = row, life
      n, i = n + 2, i + 1
    end
    local read = call('HMGET', db.prefix .. key, unpack(fields))
    if not all then
      all = read
    else
      for k = 1, n do
        all[#all + 1] = read[k]
      end
    end
  end
  return all
end

local function new_run(leases, shape, tail, asker, limits, now)
  local run = {
    short = true, n = 0, names = {}, rows = {}, shape = shape, granted_at = now, limits = limits,
    expires_at = tail.expires_at, deadline = tail.deadline, holder = asker.worker,
  }
  leases[#leases + 1] = run
  return run
end

-- So many heads of an open lane were granted.
local function took(lane, n, asker, now)
  T.more_live(n, asker.ttl, now)
  T.hold(asker.worker, n, false)
  local l = db.get('l', lane)
  local q, b = db.get('q', l.queue), db.get('b', l.bundle)
  q.waiting, b.waiting = q.waiting - n, b.waiting - n
  q.running = q.running + n
  L.take(l.line, T.lane_line(lane), n)
  T.heads_taken(lane, n, now)
end

-- Grants heads of a lane that has no needs, as many as are wanted and as stay in turn; none of them was
-- ever granted, delayed or unique. Puts a run of leases into `leases` for each shape in a row.
function T.grant_short(lane, most, asker, leases, now)
  local l = db.get('l', lane)
  local b = db.get('b', l.bundle)
  local g = db.get('g', b.group)
  local queue = l.queue
  local q = db.get('q', queue)
  local turns = q.priorities[-g.priority]
  if turns.open.n > 1 or l.out or b.out or l.marked then
    return
  end
  -- The heads that come before those of the other lanes.
  local before
  if b.open.n > 1 or g.open.n > 1 then
    before = T.second(b.open, T.bundle_open(l.bundle))
    local other = T.second(g.open, T.group_open(b.group))
    before = before and other and min(before, other) or before or other
  end
  local line = T.lane_line(lane)
  local items = L.heads(l.line, line, most)
  local many = #items
  local space = db.space
  local fence = max(space.fence + 1, now)
  local expiries = Z.bulk('e').adds
  local n_expiries = #expiries
  local granted, tails, shape, tail, chunk, puts, n_puts, run = 0, {}, nil, nil, nil, nil, nil, nil
  local rows, from, to, step = nil, 1, 0, HEADS_FIRST
  for i = 1, many do
    local item = items[i]
    if before and T.line_item(item) > before then
      break
    end
    if i > to then
      from, to, step = i, min(i + step - 1, many), step * 4
      rows = read_rows(items, from, to)
    end
    local at = (i - from) * 2
    local row = rows[at + 1]
    if not row or rows[at + 2] then
      break
    end
    local its = sub(row, 1, 4)
    if its ~= shape then
      shape, tail = its, tails[its]
      local number = struct.unpack('>I4', its)
      if not tail then
        tail = tail_of(its, number, asker, nil, now)
        tails[its] = tail
      end
      run = new_run(leases, number, tail, asker, nil, now)
    end
    local name = struct.pack('>I8', fence) .. sub(item, 7)
    fence = fence + 1
    local its_chunk = sub(item, 7, 11)
    if its_chunk ~= chunk then
      chunk = its_chunk
      local _, seq = T.line_item(item)
      local _, key = home(seq)
      puts = row_puts(key)
      n_puts = #puts
    end
    local _, x = T.row_fields(byte(item, 12))
    puts[n_puts + 1] = x
    puts[n_puts + 2] = RUNNING .. sub(item, 1, 6) .. name .. sub(row, 18, 21) .. tail.packed
    n_puts = n_puts + 2
    expiries[n_expiries + 1], expiries[n_expiries + 2] = tail.score, name
    n_expiries = n_expiries + 2
    if tail.deadline then
      T.timer_set('dl', tail.deadline, name)
    end
    local n = run.n + 1
    run.n, run.names[n], run.rows[n] = n, name, row
    granted = granted + 1
  end
  if granted == 0 then
    return
  end
  leases.n = leases.n + granted
  space.fence = fence - 1
  took(lane, granted, asker, now)
end

-- Grants the head of a lane of which it was found that it may go, and that needs nothing but limits, if it
-- was never granted, delayed or unique; whether it did.
function T.grant_held(lane, asker, leases, now)
  local l = db.get('l', lane)
  local q = db.see('q', l.queue)
  if l.suspect or l.marked or l.queue == CALLERS or q.limit and T.setting_of(q.limit) then
    return false
  end
  for _, need in ipairs(l.needs) do
    if need[1] ~= 'l' then
      return false
    end
  end
  local items = L.heads(l.line, T.lane_line(lane), 1)
  local item, rows = items[1], read_rows(items, 1, 1)
  local row = rows[1]
  if not row or rows[2] then
    return false
  end
  local space = db.space
  local fence = max(space.fence + 1, now)
  space.fence = fence
  local name = struct.pack('>I8', fence) .. sub(item, 7)
  local limits = {}
  for i, need in ipairs(l.needs) do
    local limit = need[2]
    O.add(db.get('L', limit).holders, T.limit_holders(limit), fence, name)
    limits[i] = { limit, need[3], T.take_limit(limit, need[3], need[4], now) }
  end
  local shape = sub(row, 1, 4)
  local number = struct.unpack('>I4', shape)
  local tail = tail_of(shape, number, asker, limits, now)
  local _, seq = T.line_item(item)
  local _, key, _, x = home(seq)
  local puts = row_puts(key)
  puts[#puts + 1] = x
  puts[#puts + 1] = RUNNING .. sub(item, 1, 6) .. name .. sub(row, 18, 21) .. tail.packed
  local expiries = Z.bulk('e').adds
  expiries[#expiries + 1] = tail.score
  expiries[#expiries + 1] = name
  if tail.deadline then
    T.timer_set('dl', tail.deadline, name)
  end
  local run = new_run(leases, number, tail, asker, limits, now)
  run.n, run.names[1], run.rows[1] = 1, name, row
  leases.n = leases.n + 1
  took(lane, 1, asker, now)
  return true
end

-- The score of the second of a set; or nil.
function T.second(set, key)
  if set.n < 2 then
    return nil
  end
  local n = 0
  for _, score in O.each(set, key) do
    n = n + 1
    if n == 2 then
      return score
    end
  end
end

-- What the holder of such grants is told: {granted_at, expires_at, deadline, shape, how many, names, first
-- row, limits}. The names are one blob, each a fence (8 bytes) and a row number (6); their rows are blobs one
-- after the other. Their lives follow from that.
function T.show_short(run)
  local shown = {
    run.granted_at, run.expires_at, run.deadline or false, T.shape_number(run.shape), run.n,
    T.blob(concat(run.names)), 0, run.limits or {},
  }
  local rows, blobs = run.rows, db.blobs
  local n = #blobs
  shown[7] = n + 1
  for i = 1, run.n do
    blobs[n + i] = rows[i]
  end
  return shown
end

-- ---- Settled ----

-- Settles as succeeded what may go the short way: `plain` is {fence, seq, …}, `results` the results of
-- some by their place. The places of those that are left for the long way.
function T.settle_short(plain, results, now)
  local many = #plain / 2
  local named, left, names, seqs = {}, {}, {}, {}
  for i = 1, many do
    local seq = plain[i * 2]
    -- A lease that is named twice sees what was done before it in this call: rows that are written the
    -- short way are not read again, so all go the long way.
    if named[seq] and seq > 0 then
      for at = 1, many do
        left[at] = at
      end
      return left
    end
    named[seq] = true
    names[i], seqs[i] = struct.pack('>I8I6', plain[i * 2 - 1], seq), seq
  end
  local lives, rests, classes = T.read_lives(seqs), {}, {}
  local space = db.space
  local gone = Z.bulk('e').rems
  local n_gone, kept = #gone, 0
  local puts, ends
  for i = 1, many do
    local life, name, seq = lives[i], names[i], seqs[i]
    if life and sub(life, NAME_AT, BYTES_AT - 1) == name and sub(life, 1, 1) == RUNNING and seq > 0 then
      local tail = sub(life, TAIL_AT)
      local rest = rests[tail]
      if not rest then
        rest = read_tail(tail)
        rest.n = 0
        rests[tail] = rest
        local class = classes[rest.shape]
        if not class then
          local shape = db.get('s', rest.shape)
          class = {
            n = 0, shape = shape, till = now + (shape.retain or B.RETAIN_SUCCEEDED_US), rows = {},
          }
          classes[rest.shape] = class
        end
        rest.class = class
        rest.done = struct.pack('>I4I7I7I7', rest.shape, rest.granted_at, now, class.till)
      end
      if not ends or seq > ends or seq <= ends - T.CHUNK_ROWS then
        local chunk, key = home(seq)
        ends = chunk * T.CHUNK_ROWS + T.CHUNK_ROWS - 1
        puts = row_puts(key)
      end
      local _, x = T.row_fields(seq - ends + T.CHUNK_ROWS - 1)
      local n_puts = #puts
      puts[n_puts + 1] = x
      local bytes = struct.unpack('>I4', life, BYTES_AT)
      local result = results and results[i]
      if result then
        bytes = bytes + #result
        local _, key, field = home(seq)
        M.set(key .. 'r', field, result)
        puts[n_puts + 2] = SUCCEEDED .. sub(life, 2, BYTES_AT - 1) .. struct.pack('>I4', bytes) .. rest.done
      else
        puts[n_puts + 2] = SUCCEEDED .. sub(life, 2, TAIL_AT - 1) .. rest.done
      end
      kept = kept + bytes
      n_gone = n_gone + 1
      gone[n_gone] = name
      if rest.deadline then
        T.timer_clear('dl', name)
      end
      if rest.limits then
        T.return_limits(rest.limits, name, true, now)
      end
      rest.n = rest.n + 1
      local rows = rest.class.rows
      rows[#rows + 1] = sub(name, 9)
    else
      left[#left + 1] = i
    end
  end
  space.kept[2] = space.kept[2] + kept
  for _, rest in pairs(rests) do
    rest.class.n = rest.class.n + rest.n
    T.hear_worker(rest.holder, now)
    T.unhold(rest.holder, rest.n, false)
  end
  for number, class in pairs(classes) do
    local q = db.get('q', class.shape.q)
    q.running, q.succeeded = q.running - class.n, q.succeeded + class.n
    space.live = space.live - class.n
    Z.add('fo', class.till, concat(class.rows))
    T.sooner(class.till)
    -- The last goes the long way, and takes with it what nobody needs any more.
    class.shape.live = class.shape.live - class.n + 1
    T.release_shape(number)
  end
  return left
end

-- The lives of jobs, in their order; false where there is none.
function T.read_lives(seqs)
  local found, i, many = nil, 1, #seqs
  while i <= many do
    local chunk, key = home(seqs[i])
    local first = chunk * T.CHUNK_ROWS
    local fields, n = {}, 0
    while i <= many do
      local at = seqs[i] - first
      if at < 0 or at >= T.CHUNK_ROWS then
        break
      end
      local _, x = T.row_fields(at)
      n, i = n + 1, i + 1
      fields[n] = x
    end
    local read = call('HMGET', db.prefix .. key, unpack(fields))
    if not found then
      found = read
    else
      for k = 1, n do
        found[#found + 1] = read[k]
      end
    end
  end
  return found or {}
end
