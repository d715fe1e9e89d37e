-- The audit of what is held: leases, jobs, limits, pools.
--
-- It only reads. Each is compared with all that points to it, as far as that can be found by name.

local A = T.audit

-- ---- Leases ----

local function lease_of(name)
  return T.lease(T.parse_lease(name))
end

-- A lease as a finding names it. Its id tells what it holds, and a finding is that something is not there.
local function said(id)
  local fence, seq = T.parse_lease(id)
  if seq == 0 then
    return { 'lease_alone', fence }
  end
  return { 'lease', fence, seq }
end

-- A member of the order of expiries: a lease, or those of a span.
function A.expiry(member, expires_at)
  local names = T.leases_named(member)
  A.check(names[1], 'expiring_range_missing')
  for _, name in ipairs(names) do
    A.lease(name, expires_at)
  end
end

function A.lease(id, expires_at)
  local name = said(id)
  local lease, job = lease_of(id)
  A.spend(2)
  if not A.check(lease, 'expires_without_lease', name) then
    return
  end
  A.check(lease.expires_at == expires_at, 'expiry_differs', name, lease.expires_at,
    expires_at)
  A.check(lease.fence <= db.space.fence, 'fence_too_high', name)
  A.check_timer('dl', id, lease.deadline, name)
  for _, held in ipairs(lease.limits) do
    local limit = held[PERMIT_AT.limit]
    local l = db.get(RECORD.limit, limit)
    A.check(l and O.score(l.holders, T.limit_holders(limit), id) == lease.fence, 'held_limit_unknowing', name,
      limit)
    A.add('held', 'all', held[PERMIT_AT.weight])
  end
  for _, held in ipairs(lease.resources) do
    local pool, of_pool = held[HELD_AT.pool], held[HELD_AT.id]
    local r, known = T.resource(pool, of_pool), false
    for _, holder in ipairs(r and r.holders or {}) do
      known = known or holder == id
    end
    A.check(known, 'held_resource_unknowing', name, of_pool, pool)
    A.add('resources', 'all', 1)
  end
  if job then
    A.check(job.state == STATE.running, 'holds_idle_job', name)
    db.jobs[job.seq] = nil
  else
    A.add('tokens', 'all', 1)
  end
  if lease.request then
    local past, known = db.get(RECORD.request, lease.request), false
    for _, other in ipairs(past and T.leases_of_request(past) or {}) do
      known = known or other == id
    end
    A.check(known, 'request_forgotten', name)
  end
  A.check(T.holding(lease.holder), 'held_by_nobody', name)
  A.add('leases', lease.holder or '', 1)
  A.add('suspects', lease.holder or '', job and job.lost > 0 and 1 or 0)
  A.add('deadlines', 'all', lease.deadline and 1 or 0)
end

-- ---- Jobs ----

local WORDS = STATE_WORDS

local function check_live(job, shape, name)
  local queue = shape.q
  A.check(queue and db.get(RECORD.queue, queue), 'queue_missing', name)
  local id = T.pad(job.seq)
  A.check_timer('due', id, job.state == STATE.scheduled and job.run_at or nil, name)
  A.check_timer('ex', id, job.state ~= STATE.running and job.expires_at or nil, name)
  if job.state == STATE.ready then
    A.add('rows_waiting', queue, 1)
    local lane = job.lost > 0 and job.lane or shape.lane
    if A.check(lane and db.get(RECORD.lane, lane), 'in_no_lane', name) then
      local standing = A.standing(lane)
      A.check(not standing or standing[text(job.arrival) .. ':' .. text(job.seq)], 'in_no_line',
        name)
    end
  elseif job.state == STATE.running then
    local lease = job.lease
    if A.check(lease, 'runs_without_lease', name) then
      A.check_timer(KEY.expiries, T.expires_as(lease.fence, job.seq), lease.expires_at, name)
    end
    A.add('running', queue, 1)
  else
    A.add('scheduled', queue, 1)
  end
  A.check(job.state == STATE.running or not job.lease, 'lease_without_run', name)
  local unique = job.unique
  if unique and (unique[UNIQUE_AT.ends] == UNTIL.finish or not job.started_at) then
    local holder = T.key_holder(unique[UNIQUE_AT.key])
    A.check(holder and holder.seq == job.seq and holder.by_job, 'key_not_held', name)
  end
  A.add('live_of', job.shape, 1)
end

local function check_finished(job, shape, name)
  local _, class = T.kept_class(job.state)
  A.check(not job.lease, 'finished_with_lease', name)
  A.add('kept' .. class, 'all', job.bytes)
  A.add('finished' .. class, 'all', 1)
  local queue = T.find_queue(shape.qn)
  if queue then
    A.add(WORDS[job.state], queue, 1)
  end
end

local function check_job(seq)
  local job = T.job(seq)
  local name = { 'job', job.id }
  A.check(T.seq_of(job.id, job.b) == seq, 'not_found_by_id', name)
  A.check(seq <= db.space.seq, 'number_not_given', name)
  local shape = db.get(RECORD.shape, job.shape)
  if not A.check(shape, 'shape_missing', name) then
    return
  end
  A.add('rows_of', job.shape, 1)
  if T.is_live(job) then
    check_live(job, shape, name)
  else
    check_finished(job, shape, name)
  end
end

-- A member of the order of finished jobs: those that are meant by it. Their payloads are not read.
function A.kept(set, class, member, at)
  local seqs = T.kept_seqs(member)
  A.check(seqs[1], 'kept_range_missing')
  for i, life in ipairs(T.read_lives(seqs)) do
    local state, kept_until = T.end_in_life(life)
    if kept_until == at and T.kept_class(state) == set then
      A.add('ordered' .. class, 'all', 1)
    end
  end
  A.spend(#seqs / 4)
end

-- That a block's texts, its states and its spans go together.
local function check_block(chunk, k, name)
  local index, texts = T.block_texts(chunk, k, 0, k.size - 1)
  A.check(#index == k.size * 8 and #k.states == k.size, 'block_rows_differ', name, k.size)
  A.check(call('STRLEN', db.prefix .. T.texts_key(chunk)) == #index + #texts, 'texts_cut_off', name)
  local are = {}
  for at = 0, k.size - 1 do
    if not T.has_own_life(k, at) then
      local number = byte(k.states, at + 1)
      are[number] = (are[number] or 0) + 1
      A.check(number == 0 or k.spans[number], 'range_missing', name, at)
    end
  end
  for number, span in ipairs(k.spans) do
    A.check(not span or span[SPAN_AT.rows] == are[number], 'range_rows_differ', name,
      are[number] or 0, span and span[SPAN_AT.rows] or 0)
  end
end

-- So many rows are looked at together: they come with their payloads.
local ROWS = 32

-- Some rows of a chunk from a place on, and with the first of them what is said of all: the place to go on
-- from, or nil when it is done.
function A.chunk(chunk, from)
  local name = { 'chunk', chunk }
  local first = chunk * T.CHUNK_ROWS
  local _, key = T.job_home(first)
  local rows, lives = {}, {}
  local k = T.block_in(chunk)
  if k then
    if not from then
      check_block(chunk, k, name)
    end
    rows = T.rows_of_block(chunk, k)
  end
  for _, field in ipairs(call('HKEYS', db.prefix .. key)) do
    local at = tonumber(field)
    if not at then
      at = tonumber(sub(field, 1, -2))
      lives[#lives + 1] = first + at
    elseif not k or at >= k.size then
      rows[#rows + 1] = first + at
    end
    A.check(not k or at >= k.size or T.has_own_life(k, at), 'row_written_twice', name, at)
  end
  local n = #rows
  if not from then
    local c = db.get(RECORD.chunk, chunk)
    A.check(c and c.n == n, 'rows_differ', name, n, c and c.n or 0)
    local there = {}
    for _, seq in ipairs(rows) do
      there[seq] = true
    end
    for _, seq in ipairs(lives) do
      A.check(there[seq], 'life_without_row', name, seq)
    end
    for _, part in ipairs({ PART.result, PART.progress, PART.errors }) do
      for _, field in ipairs(call('HKEYS', db.prefix .. key .. part)) do
        A.check(there[first + tonumber(field)], 'part_without_row', name, field)
      end
    end
    A.add('rows', 'all', n)
    from = 1
  end
  sort(rows)
  local piece = { unpack(rows, from, min(from + ROWS - 1, n)) }
  T.load_jobs(piece)
  for _, seq in ipairs(piece) do
    A.try({ 'job_row', seq }, check_job, seq)
  end
  for _, seq in ipairs(piece) do
    db.jobs[seq] = nil
  end
  A.spend(#piece)
  return from + ROWS <= n and from + ROWS or nil
end

-- ---- Limits ----

function A.limit(limit)
  local name = { 'limit', limit }
  local l = db.get(RECORD.limit, limit)
  A.spend(2)
  if not A.check(l, 'known_by_name_only', name) then
    return
  end
  A.check_set(l.holders, T.limit_holders(limit), { 'holders' }, name)
  A.check_set(l.resting, T.limit_resting(limit), { 'resting_permits' }, name)
  local sum = 0
  for id, fence in A.some(l.holders, T.limit_holders(limit)) do
    local lease, job = lease_of(id)
    local held = lease and T.held_limit(lease, limit)
    if A.check(held and lease.fence == fence, 'holder_holds_not', name, said(id)) then
      sum = sum + held[PERMIT_AT.weight]
    end
    if job then
      db.jobs[job.seq] = nil
    end
  end
  A.check(l.in_use == sum or l.holders.n > A.MANY, 'in_use_differs', name,
    l.in_use, sum)
  sum = 0
  for member in A.some(l.resting, T.limit_resting(limit)) do
    sum = sum + tonumber(sub(member, find(member, ':', 1, true) + 1))
  end
  A.check(l.resting_sum == sum or l.resting.n > A.MANY, 'resting_differs', name)
  A.check_timer('lt', limit, l.timer, name)
  if l.mark then
    local lane = db.get(RECORD.lane, l.mark.lane)
    A.check(lane and lane.marked, 'kept_for_unmarked', name)
  end
  A.add('uses', 'all', l.uses)
  A.add('in_use', 'all', l.in_use)
  A.add('timed_limits', 'all', l.timer and 1 or 0)
end

-- ---- Pools ----

local function check_resource(p, pool, id, name, now)
  local r = T.resource(pool, id)
  A.spend(2)
  if not A.check(r, 'resource_missing', name, id) then
    return
  end
  name = { 'resource', id, pool }
  for _, holder in ipairs(r.holders) do
    local lease, job = lease_of(holder)
    A.check(lease and T.held_resource(lease, pool, id), 'holder_holds_not', name,
      said(holder))
    if job then
      db.jobs[job.seq] = nil
    end
  end
  -- Fewer slots than before evict nobody, they drain.
  A.check(#r.holders <= r.slots or not r.free, 'more_holders_than_slots', name)
  local free = r.state == RESOURCE.available and not r.retiring and not r.kept_for and #r.holders < r.slots
    and p.settings ~= nil
  local paced = r.paced_until > now or r.timer and r.timer <= now
  A.check((r.free ~= nil) == free or paced, free and 'free_in_no_set' or 'free_by_mistake', name)
  A.check(O.score(p.free, T.pool_free(pool), id) == r.free,
    'free_misplaced', name)
  for _, tag in ipairs(r.tags) do
    local known = T.tag_of(pool, tag)
    A.check(known and O.score(known.free, T.pool_tag(pool, tag), id) == r.free,
      'tag_misplaced', name)
    A.add('tags', pool .. '\0' .. tag, 1)
    A.add('tags_free', 'all', r.free and 1 or 0)
  end
  A.check_timer('rt', pool .. '\0' .. id, r.timer, name)
  A.check(M.get(T.data_home(pool, id)), 'data_missing', name)
  if r.kept_for then
    local kept = false
    for _, other in ipairs(p.mark and p.mark.lane == r.kept_for and p.mark.kept or {}) do
      kept = kept or other == id
    end
    A.check(kept, 'kept_for_unknowing', name)
  end
  A.add('pool_ids', 'all', 1)
  A.add('pool_free', 'all', r.free and 1 or 0)
  A.add('pool_leased', 'all', #r.holders > 0 and 1 or 0)
  A.add('pool_cooling', 'all', r.state == RESOURCE.cooling and 1 or 0)
  A.add('pool_banned', 'all', r.state == RESOURCE.banned and 1 or 0)
  A.add('pool_retiring', 'all', r.retiring and 1 or 0)
  A.add('resources_held', 'all', #r.holders)
  A.add('timed_resources', 'all', r.timer and 1 or 0)
end

local OF_POOL = { 'ids', 'free', 'leased', 'cooling', 'banned', 'retiring' }

-- What is known of a tag of a pool, after all resources were looked at.
function A.tag(of)
  local nul = find(of, '\0', 1, true)
  local pool, tag = sub(of, 1, nul - 1), sub(of, nul + 1)
  local name = { 'tag', tag, pool }
  local known, there = T.tag_of(pool, tag), A.sums and A.sum_of('tags', of)
  A.spend(1)
  A.check(known.n > 0, 'tag_unused', name)
  A.check(not there or there == known.n, 'tag_count_differs', name, there or 0, known.n)
  A.check_set(known.free, T.pool_tag(pool, tag), { 'free_resources' }, name)
  A.add('tags_said', 'all', known.n)
  A.add('tags_free_said', 'all', known.free.n)
end

-- Some resources of a pool behind an id: the id to go on from, or nil when it is done.
function A.pool(pool, after, now)
  local name = { 'pool', pool }
  local p = db.get(RECORD.pool, pool)
  if not A.check(p, 'known_by_name_only', name) then
    return nil
  end
  local most = 200
  local ids = T.ids_after(pool, after, most)
  for _, id in ipairs(ids) do
    A.try(name, check_resource, p, pool, id, name, now)
  end
  if #ids == most then
    return ids[most]
  end
  A.spend(2)
  A.check_set(p.ids, T.pool_ids(pool), { 'resources' }, name)
  A.check_set(p.free, T.pool_free(pool), { 'free_resources' }, name)
  A.check_set(p.doors, T.pool_doors_key(pool), { 'doors' }, name)
  for door in A.some(p.doors, T.pool_doors_key(pool)) do
    A.check(db.get(RECORD.door, door), 'door_missing', name)
  end
  if A.sums then
    local cached = {
      ids = p.ids.n, free = p.free.n, leased = p.leased, cooling = p.cooling, banned = p.banned,
      retiring = p.retiring or 0,
    }
    A.add('said_pool_waiting', 'all', p.waiting)
    local waiting = A.sum_of('pool_waiting', pool)
    A.check(not waiting or waiting == p.waiting, 'pool_waiting_differs', name, waiting or 0,
      p.waiting)
    for _, sum in ipairs(OF_POOL) do
      local are = A.total('pool_' .. sum)
      A.check(are == cached[sum], 'count_differs', name, cached[sum], sum, are)
      -- The next pool begins anew.
      A.sums['pool_' .. sum], A.sums['pool_' .. sum .. '/'] = nil, nil
    end
  end
  if p.mark then
    local lane = db.get(RECORD.lane, p.mark.lane)
    A.check(lane and lane.marked, 'kept_for_unmarked', name)
    for _, id in ipairs(p.mark.kept) do
      local r = T.resource(pool, id)
      A.check(r and r.kept_for == p.mark.lane, 'not_kept', name, id)
    end
  end
  A.add('uses', 'all', p.uses)
  A.add('pool_doors', 'all', p.doors.n)
end
