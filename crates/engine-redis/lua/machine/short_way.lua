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
    local puts = out(key).puts
    for i = 1, #rows do
      puts[#puts + 1] = rows[i]
    end
  end
end

-- ---- Stored ready ----

-- The parts of ids and of rows that lie together are gathered, and each command takes many.

-- Stores jobs[from..to], all planned to be stored and without anything unusual.
function T.store_plain(jobs, shapes, from, to, default_retry, now)
  local space = db.space
  local at = from
  while at <= to do
    local spec = shapes[jobs[at][5]]
    local run = at
    while run < to and jobs[run + 1][5] == jobs[at][5] do
      run = run + 1
    end
    -- The first of a shape goes the long way to its lane.
    local number = T.shape_for(T.shape_of(spec, default_retry), now)
    local shape = db.get('s', number)
    local more = run - at
    shape.live, shape.rows = shape.live + more, shape.rows + more
    local lane = shape.lane or T.lane_of_job({ shape = number, lost = 0 })
    spec.unasked = T.is_unasked(shape.q, now)
    local l = db.get('l', lane)
    local line, items = T.lane_line(lane), {}
    local arrival, seq = space.arrival, space.seq
    local last_b, ids, n_ids, last_chunk, puts, n_puts
    for index = at, run do
      local new = jobs[index]
      arrival, seq = arrival + 1, seq + 1
      local chunk, key, field = home(seq)
      if chunk ~= last_chunk then
        last_chunk, puts = chunk, row_puts(key)
        n_puts = #puts
        local c = db.get('c', chunk)
        if not c then
          db.put('c', chunk, { n = 0 })
          Z.add('ch', chunk, text(chunk))
        end
      end
      if new[2] ~= last_b then
        last_b, ids = new[2], row_puts('i:' .. new[2])
        n_ids = #ids
      end
      ids[n_ids + 1], ids[n_ids + 2] = new[1], text(seq)
      n_ids = n_ids + 2
      puts[n_puts + 1] = field
      puts[n_puts + 2] = struct.pack('>I4I7I6I4', number, now, arrival, new[4]) .. new[1] .. '\n' .. new[2]
        .. '\n\n' .. new[3]
      n_puts = n_puts + 2
      items[index - at + 1] = struct.pack('>I6I6', arrival, seq)
      local c = db.see('c', chunk)
      c.n = c.n + 1
    end
    L.append(l.line, line, items, space.arrival + 1, space.seq + 1)
    space.arrival, space.seq = arrival, seq
    T.add_len(l, more + 1)
    T.unit(l.queue, more + 1)
    T.lane_changed(lane, now)
    at = run + 1
  end
end

-- ---- Granted ----

local U64 = 207
-- So many heads of a lane are looked at first.
local HEADS_FIRST = 16

-- The life of a job that was just granted, or that just succeeded, in pieces: what differs from job to
-- job has a fixed place behind a fixed head, what is the same for all is made once.
local RUNNING = '\220\0\22\161r'
local SUCCEEDED = '\220\0\22\161S'
local NUMBERS = '>BI8BI8BI8BI8BI8BI8'
-- Where the fence stands in it, and where the rest begins.
local FENCE_AT = #RUNNING + 5 * 9 + 2
local REST_AT = #RUNNING + 6 * 9 + 1

-- Grants heads of a lane that has no needs, as many as are wanted and as stay in turn; none of them was
-- ever granted, delayed or unique. Puts the leases into `leases`.
function T.grant_short(lane, most, asker, leases, now)
  local l = db.get('l', lane)
  local q = db.get('q', l.queue)
  local b = db.get('b', l.bundle)
  local g = db.get('g', b.group)
  local turns = T.turns(g.queue, -g.priority)
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
  -- Heads are read a few at first and then more: where jobs that go the long way stand among them, what
  -- is read beyond the first of those is read in vain, once for each of them.
  local heads, step, ended = L.each(l.line, T.lane_line(lane)), HEADS_FIRST, false
  local seqs, arrivals, many, rows, at = {}, {}, 0, nil, 0
  local function read_on()
    local fresh_seqs, n = {}, 0
    while n < step and many < most and not ended do
      local arrival, seq = heads()
      if not arrival or before and arrival > before then
        ended = true
      else
        n, many = n + 1, many + 1
        fresh_seqs[n], seqs[many], arrivals[many] = seq, seq, arrival
      end
    end
    at, step = many - n, step * 4
    rows = T.read_rows(fresh_seqs)
    return n > 0
  end
  local space = db.space
  local expiries = Z.bulk('e')
  local tails, last_key, puts, n_puts = {}, nil, nil, 0
  local granted, fence = 0, space.fence
  local i = 0
  while i < many or read_on() do
    i = i + 1
    local row, life = rows[(i - at) * 2 - 1], rows[(i - at) * 2]
    if not row or life then
      break
    end
    local seq = seqs[i]
    local number, created_at, _, bytes = struct.unpack('>I4I7I6I4', row)
    local tail = tails[number]
    if not tail then
      local timeout = db.see('s', number).timeout
      local deadline = timeout and now + timeout
      local expires_at = now + asker.ttl
      if deadline then
        expires_at = min(expires_at, deadline + floor(asker.ttl / 4))
      end
      tail = {
        deadline = deadline, expires_at = expires_at,
        packed = cmsgpack.pack(expires_at) .. cmsgpack.pack(T.lease_array({
          holder = asker.worker, granted_at = now, ttl = asker.ttl, deadline = deadline, limits = {},
          resources = {}, request = asker.request, seen_at = now,
        })) .. cmsgpack.pack(now) .. '\0\0\0\0\194\194\144\194\0\0\0\194',
      }
      tails[number] = tail
      T.sooner(expires_at)
    end
    fence = max(fence + 1, now)
    local _, key, _, x = home(seq)
    if key ~= last_key then
      last_key, puts = key, row_puts(key)
      n_puts = #puts
    end
    puts[n_puts + 1] = x
    puts[n_puts + 2] = RUNNING .. struct.pack(NUMBERS, U64, arrivals[i], U64, created_at, U64, 0, U64,
      bytes, U64, number, U64, fence) .. tail.packed
    n_puts = n_puts + 2
    local name = struct.pack('>I8I6', fence, seq)
    expiries(tail.expires_at, name)
    if tail.deadline then
      T.timer_set('dl', tail.deadline, name)
    end
    leases[#leases + 1] = {
      short = true, fence = fence, seq = seq, holder = asker.worker, granted_at = now,
      expires_at = tail.expires_at, deadline = tail.deadline, row = row, shape = number, name = name,
    }
    granted = granted + 1
  end
  if granted == 0 then
    return
  end
  space.fence = fence
  if space.live == 0 then
    space.pulse = now
  end
  space.live = space.live + granted
  space.ttl_max = max(space.ttl_max, asker.ttl)
  T.add_len(l, -granted)
  q.running = q.running + granted
  local held = T.holding(asker.worker) or db.put('ho', asker.worker or '', { leases = 0, suspects = 0 })
  held.leases = held.leases + granted
  L.take(l.line, T.lane_line(lane), granted)
  T.book_turns(lane, granted)
  T.lane_changed(lane, now)
  T.drop_lane_if_idle(lane)
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

-- Rows and lives of jobs, in their order.
function T.read_rows(seqs)
  local found, i = {}, 1
  while i <= #seqs do
    local chunk, key = home(seqs[i])
    local fields, j = {}, i
    while j <= #seqs and j - i < 400 do
      local other, _, n, x = home(seqs[j])
      if other ~= chunk then
        break
      end
      fields[#fields + 1] = n
      fields[#fields + 1] = x
      j = j + 1
    end
    local read = call('HMGET', db.prefix .. key, unpack(fields))
    for k = 1, #read do
      found[#found + 1] = read[k]
    end
    i = j
  end
  return found
end

-- What the holder of such grants is told: what they have in common once, then {fence, seq, row} one after
-- the other. Their lives follow from that.
function T.show_short(leases, from)
  local first = leases[from]
  local run = { first.granted_at, first.expires_at, first.deadline or false,
    T.shape_number(first.shape), {} }
  local flat, n = run[5], 0
  local at = from
  while at <= #leases do
    local lease = leases[at]
    if not lease.short or lease.shape ~= first.shape then
      break
    end
    flat[n + 1], flat[n + 2], flat[n + 3] = lease.fence, lease.seq, T.blob(lease.row)
    n = n + 3
    at = at + 1
  end
  return run, at
end

-- ---- Settled ----

-- What the rest of a life says, if it is that of a job which was granted the short way and has not been
-- touched since.
local function read_rest(life)
  local x = cmsgpack.unpack(life)
  local l = x[9]
  local plain = l and #l[5] == 0 and #l[6] == 0 and x[11] == 0 and x[12] == 0 and x[13] == 0
    and x[14] == 0 and not x[15] and not x[16] and #x[17] == 0 and not x[18] and not x[22]
  return { plain = plain, holder = plain and l[1], deadline = plain and l[4], started_at = x[10] }
end

-- Settles as succeeded what may go the short way: answers in `answers`, by index; how many. The others are
-- left.
function T.settle_short(items, answers, now)
  local seqs, at, named = {}, {}, {}
  for _, item in ipairs(items) do
    -- A lease that is named twice, and a follow-up, see what was done before them in this call: rows
    -- that are written the short way are not read again, so all go the long way.
    if item.push or named[item.s] then
      return 0
    end
    named[item.s] = item.s > 0
  end
  for index, item in ipairs(items) do
    if item.o == 'S' and item.s > 0 and not item.resources and not item.limits and not item.push
      and db.jobs[item.s] == nil then
      seqs[#seqs + 1] = item.s
      at[item.s] = index
    end
  end
  local lives, rests, classes = T.read_lives(seqs), {}, {}
  local space = db.space
  local expiries, finished = Z.bulk('e'), Z.bulk('fo')
  local answer = { ok = true, state = 'S' }
  local settled = 0
  for i, seq in ipairs(seqs) do
    local life, item = lives[i], items[at[seq]]
    if life and sub(life, 1, 5) == RUNNING and byte(life, 6) == U64 and #life > REST_AT
      and struct.unpack('>I8', life, FENCE_AT) == item.f and byte(life, FENCE_AT - 1) == U64 then
      local text_of_rest = sub(life, REST_AT)
      local rest = rests[text_of_rest]
      if not rest then
        rest = read_rest(life)
        rests[text_of_rest] = rest
      end
      if rest.plain then
        local _, arrival, _, run_at, _, expires_at, _, bytes, _, number =
          struct.unpack('>BI8BI8BI8BI8BI8', life, 6)
        local class = classes[number]
        if not class then
          local shape = db.get('s', number)
          class = { n = 0, shape = shape, holders = {}, till = now + (shape.retain or B.RETAIN_SUCCEEDED_US) }
          class.finished = cmsgpack.pack(now) .. cmsgpack.pack(class.till) .. '\0\194'
          class.number = cmsgpack.pack(number)
          classes[number] = class
        end
        if item.result then
          bytes = bytes + #item.result
          local _, key, n = home(seq)
          M.set(key .. 'r', n, item.result)
        end
        local _, key, _, x = home(seq)
        local puts = row_puts(key)
        puts[#puts + 1] = x
        puts[#puts + 1] = SUCCEEDED .. struct.pack('>BI8BI8BI8BI8BI8', U64, arrival, U64, run_at, U64,
          expires_at, U64, bytes, U64, number) .. '\0\0\194' .. cmsgpack.pack(rest.started_at)
          .. '\0\1\0\0\194\194\145\148' .. sub(life, FENCE_AT - 1, FENCE_AT + 7) .. '\161S\161S\194\194'
          .. class.finished
        local name = struct.pack('>I8I6', item.f, seq)
        expiries(false, name)
        if rest.deadline then
          T.timer_clear('dl', name)
        end
        finished(class.till, T.pad(seq))
        class.n = class.n + 1
        local holder = rest.holder or ''
        class.holders[holder] = (class.holders[holder] or 0) + 1
        space.kept[2] = space.kept[2] + bytes
        db.jobs[seq] = nil
        answers[at[seq]] = answer
        settled = settled + 1
      end
    end
  end
  for number, class in pairs(classes) do
    local q = db.get('q', class.shape.q)
    q.running, q.succeeded = q.running - class.n, q.succeeded + class.n
    space.live = space.live - class.n
    T.sooner(class.till)
    for holder, n in pairs(class.holders) do
      T.hear_worker(holder ~= '' and holder or nil, now)
      local held = db.get('ho', holder)
      held.leases = held.leases - n
      if held.leases == 0 then
        db.drop('ho', holder)
      end
    end
    -- The last goes the long way, and takes with it what nobody needs any more.
    class.shape.live = class.shape.live - class.n + 1
    T.release_shape(number)
  end
  return settled
end

-- The lives of jobs, in their order; false where there is none.
function T.read_lives(seqs)
  local found, i = {}, 1
  while i <= #seqs do
    local chunk, key = home(seqs[i])
    local fields, j = {}, i
    while j <= #seqs do
      local other, _, _, x = home(seqs[j])
      if other ~= chunk then
        break
      end
      fields[#fields + 1] = x
      j = j + 1
    end
    local read = call('HMGET', db.prefix .. key, unpack(fields))
    for k = 1, #read do
      found[#found + 1] = read[k]
    end
    i = j
  end
  return found
end
