-- Lists of jobs, leases and workers, and totals. They only read.
--
-- list_jobs     {queue, states, failed, ended_from, ended_before, flow, schedule, oldest, from, max, scan, seen}
--               -> {jobs, next, scanned, tail, seen}: newest first; with `oldest`, which goes with a flow alone, oldest
--               first; behind the row `from`. `failed`: only jobs with a last error. With `seen` each comes with what
--               tells whether its content changes, and without its result, progress and errors
-- list_failures {queue, ended_from, after, max} -> {jobs, scanned, next}: failed jobs, kept longest first
-- list_leases   {queue, limit, pool, worker, after, max} -> {items, next}: by fence
-- list_workers  {max, after} -> {items, next}: by id
-- get_stats     {max, after} -> {queues = {{name, counts, oldest ready}}, leases, result_waiters, flows, events, next}: by name; without
--               `next` also {schedules = {count, paused, due, oldest_due_at}}
-- `next` is sent back as `from` or `after`; a page may have fewer than `max` and a `next`, so that
-- what one call looks at is bounded. No refusals. Cost: list_jobs a few commands for each 64 rows
-- looked at; list_leases a read of all expiries (below) and one row each; the others a read each.

-- Rows that are read in one go: they come with their payloads, and those that are not shown are let go
-- before the next come.
local ROWS = 64
-- Leases that one call looks at, each by its row.
local LEASES = 256
-- Chunks of rows that one call looks into; one with a single old row costs as much as a full one.
local CHUNKS = 64

-- ---- Jobs ----

-- The chunks below one, highest first.
local function chunks_below(chunk)
  return call('ZREVRANGEBYSCORE', db.prefix .. 'ch', '(' .. text(chunk), '-inf', 'LIMIT', 0, CHUNKS)
end

-- The rows of a chunk below a row number, newest first.
local function rows_below(chunk, before)
  local first = chunk * lib.CHUNK_ROWS
  local _, key = lib.job_home(first)
  local rows, size = {}, 0
  local block = lib.block_in(chunk)
  if block then
    size = block.size
    for _, seq in ipairs(lib.rows_of_block(chunk, block)) do
      if seq < before then
        rows[#rows + 1] = seq
      end
    end
  end
  for _, field in ipairs(call('HKEYS', db.prefix .. key)) do
    local n = tonumber(field)
    if n and n >= size and first + n < before then
      rows[#rows + 1] = first + n
    end
  end
  sort(rows, function(a, b)
    return a > b
  end)
  return rows
end

-- The states that a filter names, as a set; nil if any will do.
function lib.asked_states(args)
  if not (args.states and args.states[1]) then
    return nil
  end
  local states = {}
  for _, state in ipairs(args.states) do
    states[state] = true
  end
  return states
end

-- Whether a job ended when a filter asks for.
local function ended_then(job, args)
  local at = not lib.is_live(job) and job.finished_at
  return (not args.ended_from or at and at >= args.ended_from)
    and (not args.ended_before or at and at < args.ended_before)
end

-- Whether a job is one that a filter asks for, as far as Lua knows jobs: the caller knows the rest, and `failed` says
-- that it asks for a last error.
function lib.is_wanted(job, args, states)
  if args.queue and db.see(RECORD.shape, job.shape).qn ~= args.queue then
    return false
  end
  if args.failed and not job.error or not ended_then(job, args) then
    return false
  end
  if args.flow and job.flow ~= args.flow
    or args.schedule and not (job.origin and job.origin[ORIGIN_AT.schedule] == args.schedule) then
    return false
  end
  return not states or states[lib.is_live(job) and lib.state_of(job) or job.state] or false
end

-- What changes when what only the caller reads of a job does: its kind, its labels, its payload, its last error.
function lib.content_mark(job)
  return redis.sha1hex(lib.body(job) .. '\n' .. (job.error or ''))
end

-- All rows from a row number down, in pieces: calls `look` on each until it says that it is enough,
-- and says whether there is an older one then.
local function each_row(before, look)
  local top = before or db.space.seq + 1
  local chunks = chunks_below(floor((top - 1) / lib.CHUNK_ROWS) + 1)
  for nth, chunk in ipairs(chunks) do
    local rows = rows_below(tonumber(chunk), top)
    for from = 1, #rows, ROWS do
      local piece = { unpack(rows, from, min(from + ROWS - 1, #rows)) }
      lib.load_jobs(piece)
      for i, seq in ipairs(piece) do
        local job = lib.job(seq)
        db.jobs[seq] = nil
        if job and look(job) then
          local older = from + i - 1 < #rows
          return older or #chunks_below(tonumber(chunk)) > 0
        end
      end
    end
    if nth == CHUNKS then
      return #chunks_below(tonumber(chunk)) > 0
    end
  end
  return false
end

-- The next rows of the members of a flow behind one, newest or oldest first.
local function members_behind(name, flow_record, from, oldest)
  local members, key = flow_record.members, db.prefix .. lib.flow_members_key(name)
  if members.z and oldest then
    return call('ZRANGEBYSCORE', key, from and '(' .. text(from) or '-inf', '+inf', 'LIMIT', 0, ROWS)
  elseif members.z then
    return call('ZREVRANGEBYSCORE', key, from and '(' .. text(from) or '+inf', '-inf', 'LIMIT', 0, ROWS)
  end
  local rows = {}
  for _, row in inner.each(members, key) do
    if not from or oldest and row > from or not oldest and row < from then
      insert(rows, oldest and #rows + 1 or 1, row)
    end
  end
  return rows
end

-- The same as each_row of the members of a flow.
local function each_member(args, look)
  local flow_record, from = db.see(RECORD.flow, args.flow), args.from
  while flow_record do
    local rows = members_behind(args.flow, flow_record, from, args.oldest)
    for i, row in ipairs(rows) do
      rows[i] = tonumber(row)
    end
    lib.load_jobs(rows)
    for i, seq in ipairs(rows) do
      local job = lib.job(seq)
      db.jobs[seq] = nil
      if job and look(job) then
        return i < #rows or #members_behind(args.flow, flow_record, seq, args.oldest) > 0
      end
    end
    if #rows < ROWS then
      return false
    end
    from = rows[#rows]
  end
  return false
end

lib.op('list_jobs', { 'no-writes' }, function(args)
  local states, seen = lib.asked_states(args), args.seen and {} or nil
  local jobs, scanned, bytes, last, last_shown = {}, 0, 0, nil, nil
  local held = db.held
  local function look(job)
    scanned, last = scanned + 1, job.seq
    if lib.is_wanted(job, args, states) then
      local from = #(db.blobs or {})
      jobs[#jobs + 1], last_shown = (seen and lib.show_bare or lib.show)(job), last
      if seen then
        seen[#jobs] = lib.content_mark(job)
      end
      for i = from + 1, #db.blobs do
        bytes = bytes + #db.blobs[i]
      end
    end
    -- A job whose needs are its own costs several reads to tell where it stands.
    return #jobs >= args.max or scanned >= args.scan or bytes >= BOUND.PAGE_BYTES_FULL
      or scanned + db.held - held >= BOUND.ITEMS_MAX
  end
  local older
  if args.flow then
    older = each_member(args, look)
  else
    older = each_row(args.from, look)
  end
  return {
    jobs = jobs, scanned = scanned, next = older and last or nil,
    tail = last_shown ~= last, seen = seen,
  }
end)

-- Where in the order of failed jobs a page goes on: behind the cursor, or, if what it names went meanwhile, behind all
-- that are kept longer.
local function failed_from(key, after)
  if not after then
    return 0
  end
  local at, seq = string.match(after, '^(%d+):(%d+)$')
  if not at then
    return 0
  end
  local rank = call('ZREVRANK', key, lib.kept_name(tonumber(seq)))
  return rank and rank + 1 or call('ZCOUNT', key, '(' .. at, '+inf')
end

-- A page of failed jobs: adds those of some rows that are asked for; the reply, if they fill it. `cursor_of` says where
-- the next page goes on behind a row.
local function add_failed(page, seqs, args, cursor_of)
  for from = 1, #seqs, ROWS do
    local some = { unpack(seqs, from, min(from + ROWS - 1, #seqs)) }
    lib.load_jobs(some)
    for i, seq in ipairs(some) do
      local job = lib.job(seq)
      db.jobs[seq] = nil
      page.scanned = page.scanned + 1
      if job and job.state == STATE.failed and lib.is_wanted(job, args) then
        page.jobs[#page.jobs + 1] = lib.show_bare(job)
        page.bytes = page.bytes + #job.row
      end
      if page.bytes >= BOUND.PAGE_BYTES_FULL then
        return { jobs = page.jobs, scanned = page.scanned, next = cursor_of(from + i - 1) }
      end
    end
  end
end

-- Failed jobs that others name stay longer than any: they come first, newest first. In the cursor `h` is before the row.
local function add_held(page, args, many)
  local row = args.after and string.match(args.after, '^h:(%d+)$')
  local found = call('ZREVRANGEBYSCORE', db.prefix .. lib.HELD_FAILED, row and '(' .. row or '+inf', '-inf', 'LIMIT', 0, many)
  local seqs = {}
  for i, held in ipairs(found) do
    seqs[i] = tonumber(held)
  end
  local function cursor_of(i)
    return 'h:' .. text(seqs[i])
  end
  return add_failed(page, seqs, args, cursor_of)
    or #seqs == many and { jobs = page.jobs, scanned = page.scanned, next = cursor_of(many) }
end

lib.op('list_failures', { 'no-writes' }, function(args)
  local page, many = { jobs = {}, scanned = 0, bytes = 0 }, min(args.max, BOUND.MANY_PORTION)
  local behind_held = args.after and not string.match(args.after, '^h:')
  local full = not behind_held and add_held(page, args, many)
  if full then
    return full
  end
  local key = db.prefix .. (lib.kept_class(STATE.failed))
  local from, left = failed_from(key, behind_held and args.after), many - page.scanned
  local found, seqs = call('ZREVRANGE', key, from, from + left - 1, 'WITHSCORES'), {}
  for i = 1, #found, 2 do
    seqs[#seqs + 1] = lib.kept_seqs(found[i])[1]
  end
  local function cursor_of(i)
    return found[2 * i] .. ':' .. text(seqs[i])
  end
  return add_failed(page, seqs, args, cursor_of)
    or { jobs = page.jobs, scanned = page.scanned, next = #seqs == left and cursor_of(left) or nil }
end)

-- ---- Leases ----
-- The list is in the order of fences, and no set has that order: `e` is by expiry. One more ordered
-- set would cost every lease 3.4 to 4.3 us in calls of a hundred (6 to 8 in calls of one) and 105 bytes
-- while it lives, beside 28 us for the whole of its grant and end as they were then, and all that for
-- a list that people ask for. So a page looks through the names in `e`, which begin with the fence, and
-- keeps the lowest: half a millisecond for a thousand. That is bounded: beyond ten thousand live leases
-- a page is of those that expire next, and its cursor says so. There a lease that is extended meanwhile
-- may come twice; none that lives all the time is missed.

local function fence_of(name)
  return (lib.parse_lease(name))
end

-- The names of up to n live leases with the lowest fences above one.
local function lowest(after, n)
  local fences, names, most, from = {}, {}, nil, 0
  local function cut()
    sort(fences)
    for i = #fences, n + 1, -1 do
      names[fences[i]], fences[i] = nil, nil
    end
    most = fences[n]
  end
  while true do
    local found = call('ZRANGE', db.prefix .. KEY.expiries, from, from + BOUND.ITEMS_MAX - 1)
    for _, member in ipairs(found) do
      for _, name in ipairs(lib.leases_named(member)) do
        local fence = fence_of(name)
        if fence > after and not (most and fence > most) then
          fences[#fences + 1], names[fence] = fence, name
        end
      end
    end
    if #fences >= 2 * n then
      cut()
    end
    from = from + #found
    if #found < BOUND.ITEMS_MAX then
      break
    end
  end
  cut()
  local all = {}
  for i, fence in ipairs(fences) do
    all[i] = names[fence]
  end
  return all
end

-- The same of those that hold a limit: these are in the order of fences.
local function lowest_of_limit(limit, after, n)
  local limit_record, all = db.get(RECORD.limit, limit), {}
  if not limit_record then
    return all
  elseif limit_record.holders.z then
    return call('ZRANGEBYSCORE', db.prefix .. lib.limit_holders(limit), '(' .. text(after), '+inf',
      'LIMIT', 0, n)
  end
  for name, fence in inner.each(limit_record.holders, lib.limit_holders(limit)) do
    if fence > after and #all < n then
      all[#all + 1] = name
    end
  end
  return all
end

-- Up to n names in the order of expiry, from behind a moment and a name; those of a span stand together.
local function next_to_expire(at, name, n)
  local key = db.prefix .. KEY.expiries
  local low, high = 0, call('ZCARD', key)
  local last = #name > 0 and lib.expires_as(lib.parse_lease(name)) or name
  local within = last ~= name and fence_of(name)
  while low < high do
    local mid = floor((low + high) / 2)
    local member, scored = unpack(call('ZRANGE', key, mid, mid, 'WITHSCORES'))
    local score = tonumber(scored)
    if score < at or score == at and not lib.less(last, member) and not (within and member == last) then
      low = mid + 1
    else
      high = mid
    end
  end
  local names = {}
  for _, member in ipairs(call('ZRANGE', key, low, low + n - 1)) do
    for _, one in ipairs(lib.leases_named(member)) do
      if #names < n and not (within and member == last and fence_of(one) <= within) then
        names[#names + 1] = one
      end
    end
  end
  return names
end

-- What a lease is shown as, if it is one that is asked for.
local function lease_view(name, args)
  local lease, job = lib.lease(lib.parse_lease(name))
  local holder = lease and (lease.holder or 'anonymous')
  if not lease or args.worker and holder ~= args.worker then
    return nil
  end
  local queue = job and db.get(RECORD.shape, job.shape).qn
  if args.queue and queue ~= args.queue then
    return nil
  end
  local limits, of_limit, of_pool = {}, not args.limit, not args.pool
  for i, held in ipairs(lease.limits) do
    limits[i] = held[PERMIT_AT.limit]
    of_limit = of_limit or held[PERMIT_AT.limit] == args.limit
  end
  for _, held in ipairs(lease.resources) do
    of_pool = of_pool or held[HELD_AT.pool] == args.pool
  end
  return of_limit and of_pool and {
    fence = lease.fence, seq = lease.seq, holder = holder, granted_at = lease.granted_at,
    expires_at = lease.expires_at, deadline = lease.deadline, job = job and job.id, queue = queue,
    limits = limits, resources = lease.resources, cancel = job and job.cancel or false,
    held = lib.held_by(lease),
  }
end

-- Shows up to `most` of these leases; the names of the last shown and of the last looked at, and
-- whether one more would have been shown.
local function show_leases(names, args)
  local items, shown, looked = {}, nil, nil
  for from = 1, #names, ROWS do
    local seqs, to = {}, min(from + ROWS - 1, #names)
    for i = from, to do
      local _, seq = lib.parse_lease(names[i])
      if seq > 0 then
        seqs[#seqs + 1] = seq
      end
    end
    lib.load_jobs(seqs)
    for i = from, to do
      local view = lease_view(names[i], args)
      if view and #items >= args.max then
        return items, shown, true
      end
      looked = names[i]
      if view then
        items[#items + 1], shown = view, looked
      end
    end
    for _, seq in ipairs(seqs) do
      db.jobs[seq] = nil
    end
  end
  return items, looked, false
end

lib.op('list_leases', { 'no-writes' }, function(args)
  local after, at, behind = args.after, nil, nil
  if after and sub(after, 1, 1) == CURSOR.by_expiry then
    -- "x", the fence from which on, and the expiry, the fence and the row of the last looked at.
    local parts = {}
    for part in string.gmatch(after, '%d+') do
      parts[#parts + 1] = tonumber(part)
    end
    after, at, behind = parts[1], parts[2], lib.lease_id(parts[3], parts[4])
  end
  after = after and tonumber(after) or 0
  -- With a filter more are looked at than are shown.
  local n = (args.queue or args.pool or args.worker) and LEASES or min(args.max + 1, LEASES)
  local by_expiry = at or not args.limit and db.space.live > BOUND.LIST_SCAN_MAX
  local names
  if by_expiry then
    names = next_to_expire(at or 0, behind or '', n)
  elseif args.limit then
    names = lowest_of_limit(args.limit, after, n)
  else
    names = lowest(after, n)
  end
  local seen = names
  if by_expiry and after > 0 then
    names = {}
    for _, name in ipairs(seen) do
      if fence_of(name) > after then
        names[#names + 1] = name
      end
    end
  end
  local items, last, more = show_leases(names, args)
  if not more then
    last = seen[#seen]
  end
  local reply = { items = items }
  if last and (more or #seen == n) then
    if by_expiry then
      local fence, seq = lib.parse_lease(last)
      local score = call('ZSCORE', db.prefix .. KEY.expiries, lib.expires_as(lib.parse_lease(last)))
      reply.next = format('x%d:%d:%d:%d', after, tonumber(score), fence, seq)
    else
      reply.next = text(fence_of(last))
    end
  end
  return reply
end)

-- ---- By name ----

lib.op('list_workers', { 'no-writes' }, function(args, now)
  local function recent(at)
    return at + BOUND.WORKER_US > now
  end
  return lib.page(args, lib.names({ 'wn' }, args.after), function(id)
    local worker_record = db.get(RECORD.worker, id)
    return (recent(worker_record.seen_at) or worker_record.waiting > 0) and worker_record
  end, function(id, worker_record)
    local numbers, queues, held = {}, {}, lib.holding(id)
    for queue, at in pairs(worker_record.queues) do
      if recent(at) then
        numbers[#numbers + 1] = queue
      end
    end
    sort(numbers)
    for _, queue in ipairs(numbers) do
      local queue_record = db.get(RECORD.queue, queue)
      queues[#queues + 1] = queue_record and queue_record.name or nil
    end
    return {
      id = id, host = worker_record.host, pid = worker_record.pid, version = worker_record.version, queues = queues,
      leases = held and held.leases or 0, last_seen_at = worker_record.seen_at,
    }
  end)
end)

-- What the server has in memory, of whoever it is: what is a namespace's own would be a walk over its keys.
local function used_memory()
  local _, _, bytes = find(call('INFO', 'memory'), 'used_memory:(%d+)')
  return bytes and tonumber(bytes)
end

lib.op('get_stats', { 'no-writes' }, function(args, now)
  local page = lib.page(args, lib.names({ 'ql' }, args.after), function(name)
    local number = lib.find_queue(name)
    return number and not db.see(RECORD.queue, number).hidden and number
  end, function(name, number)
    local queue_record = db.get(RECORD.queue, number)
    local blocked = queue_record.place and queue_record.waiting or queue_record.blocked
    return { name, {
      d = queue_record.dependent, s = queue_record.scheduled, w = queue_record.waiting - blocked, b = blocked, r = queue_record.running,
      S = queue_record.succeeded,
      F = queue_record.failed, C = queue_record.cancelled,
    }, lib.oldest_ready(number) or false }
  end)
  return {
    queues = page.items, leases = db.space.live, next = page.next, bytes = not page.next and used_memory() or nil,
    result_waiters = lib.awaiting_calls(), schedules = not page.next and lib.schedule_stats(now) or nil,
    flows = not page.next and call('ZCARD', db.prefix .. lib.FLOW_NAMES) or nil,
    events = not page.next and lib.event_stats() or nil,
  }
end)
