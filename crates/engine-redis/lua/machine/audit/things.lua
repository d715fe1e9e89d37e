-- The audit of what is held: leases, jobs, limits, pools.
--
-- It only reads. Each is compared with all that points to it, as far as that can be found by name.

local audit = lib.audit

-- ---- Leases ----

local function lease_of(name)
  return lib.lease(lib.parse_lease(name))
end

-- A lease as a finding names it. Its id tells what it holds, and a finding is that something is not there.
local function said(id)
  local fence, seq = lib.parse_lease(id)
  if seq == 0 then
    return { 'lease_alone', fence }
  end
  return { 'lease', fence, seq }
end

-- A member of the order of expiries: a lease, or those of a span.
function audit.expiry(member, expires_at)
  local names = lib.leases_named(member)
  audit.check(names[1], 'expiring_range_missing')
  for _, name in ipairs(names) do
    audit.lease(name, expires_at)
  end
end

function audit.lease(id, expires_at)
  local name = said(id)
  local lease, job = lease_of(id)
  audit.spend(2)
  if not audit.check(lease, 'expires_without_lease', name) then
    return
  end
  audit.check(lease.expires_at == expires_at, 'expiry_differs', name, lease.expires_at,
    expires_at)
  audit.check(lease.fence <= db.space.fence, 'fence_too_high', name)
  audit.check_timer('dl', id, lease.deadline, name)
  for _, held in ipairs(lease.limits) do
    local limit = held[PERMIT_AT.limit]
    local limit_record = db.get(RECORD.limit, limit)
    audit.check(limit_record and inner.score(limit_record.holders, lib.limit_holders(limit), id) == lease.fence,
      'held_limit_unknowing', name,
      limit)
    audit.add('held', 'all', held[PERMIT_AT.weight])
  end
  for _, held in ipairs(lease.resources) do
    local pool, of_pool = held[HELD_AT.pool], held[HELD_AT.id]
    local resource, known = lib.resource(pool, of_pool), false
    for _, holder in ipairs(resource and resource.holders or {}) do
      known = known or holder == id
    end
    audit.check(known, 'held_resource_unknowing', name, of_pool, pool)
    audit.add('resources', 'all', 1)
  end
  if job then
    audit.check(job.state == STATE.running, 'holds_idle_job', name)
    db.jobs[job.seq] = nil
  else
    audit.add('tokens', 'all', 1)
  end
  if lease.request then
    local past, known = db.get(RECORD.request, lease.request), false
    for _, other in ipairs(past and lib.leases_of_request(past) or {}) do
      known = known or other == id
    end
    audit.check(known, 'request_forgotten', name)
  end
  audit.check(lib.holding(lease.holder), 'held_by_nobody', name)
  audit.add('leases', lease.holder or '', 1)
  audit.add('suspects', lease.holder or '', job and job.lost > 0 and 1 or 0)
  audit.add('deadlines', 'all', lease.deadline and 1 or 0)
end

-- ---- Jobs ----

local WORDS = STATE_WORDS

local function check_live(job, shape, name)
  local queue = shape.q
  audit.check(queue and db.get(RECORD.queue, queue), 'queue_missing', name)
  local id = lib.pad(job.seq)
  audit.check_timer('due', id, job.state == STATE.scheduled and job.run_at or nil, name)
  audit.check_timer('ex', id, job.state ~= STATE.running and job.expires_at or nil, name)
  audit.live_kin(job, name)
  if job.state == STATE.ready then
    audit.add('rows_waiting', queue, 1)
    local lane = job.lost > 0 and job.lane or shape.lane
    if audit.check(lane and db.get(RECORD.lane, lane), 'in_no_lane', name) then
      local standing = audit.standing(lane)
      audit.check(not standing or standing[text(job.arrival) .. ':' .. text(job.seq)], 'in_no_line',
        name)
    end
  elseif job.state == STATE.running then
    local lease = job.lease
    if audit.check(lease, 'runs_without_lease', name) then
      audit.check_timer(KEY.expiries, lib.expires_as(lease.fence, job.seq), lease.expires_at, name)
    end
    audit.add('running', queue, 1)
  elseif job.state == STATE.dependent then
    audit.add('dependent', queue, 1)
  else
    audit.add('scheduled', queue, 1)
  end
  audit.check(job.state == STATE.running or not job.lease, 'lease_without_run', name)
  local unique = job.unique
  if unique and (unique[UNIQUE_AT.ends] == UNTIL.finish or not job.started_at) then
    local holder = lib.key_holder(unique[UNIQUE_AT.key])
    audit.check(holder and holder.seq == job.seq and holder.by_job, 'key_not_held', name)
  end
  if job.origin then
    local schedule = job.origin[ORIGIN_AT.schedule]
    audit.check(db.get(RECORD.schedule, schedule), 'schedule_missing', name, schedule)
    audit.add('unfinished', schedule, 1)
  end
  audit.add('live_of', job.shape, 1)
end

local function check_finished(job, shape, name)
  local _, class = lib.kept_class(job.state)
  audit.check(not job.lease, 'finished_with_lease', name)
  if lib.is_held(job) then
    audit.check(lib.parent(job.seq), 'held_for_nobody', name)
  else
    audit.add('kept' .. class, 'all', job.bytes)
    audit.add('finished' .. class, 'all', 1)
  end
  local queue = lib.find_queue(shape.qn)
  if queue then
    audit.add(WORDS[job.state], queue, 1)
  end
end

local function check_job(seq)
  local job = lib.job(seq)
  local name = { 'job', job.id }
  audit.check(lib.seq_of(job.id, job.b) == seq, 'not_found_by_id', name)
  audit.check(seq <= db.space.seq, 'number_not_given', name)
  local shape = db.get(RECORD.shape, job.shape)
  if not audit.check(shape, 'shape_missing', name) then
    return
  end
  audit.add('rows_of', job.shape, 1)
  audit.member(job, name)
  if lib.is_live(job) then
    check_live(job, shape, name)
  else
    check_finished(job, shape, name)
  end
end

-- A member of the order of finished jobs: those that are meant by it. Their payloads are not read.
function audit.kept(set, class, member, at)
  local seqs = lib.kept_seqs(member)
  audit.check(seqs[1], 'kept_range_missing')
  for i, life in ipairs(lib.read_lives(seqs)) do
    local state, kept_until = lib.end_in_life(life)
    if kept_until == at and lib.kept_class(state) == set then
      audit.add('ordered' .. class, 'all', 1)
    end
  end
  audit.spend(#seqs / 4)
end

-- That a block's texts, its states and its spans go together.
local function check_block(chunk, block, name)
  local index, texts = lib.block_texts(chunk, block, 0, block.size - 1)
  audit.check(#index == block.size * 8 and #block.states == block.size, 'block_rows_differ', name, block.size)
  local ids = lib.block_ids(chunk, block, 0, block.size - 1)
  audit.check(block.ids_at == #index + #texts
    and call('STRLEN', db.prefix .. lib.texts_key(chunk)) == block.ids_at + #ids + 1, 'texts_cut_off', name)
  local are = {}
  for at = 0, block.size - 1 do
    if not lib.has_own_life(block, at) then
      local number = byte(block.states, at + 1)
      are[number] = (are[number] or 0) + 1
      audit.check(number == 0 or block.spans[number], 'range_missing', name, at)
    end
  end
  for number, span in ipairs(block.spans) do
    audit.check(not span or span[SPAN_AT.rows] == are[number], 'range_rows_differ', name,
      are[number] or 0, span and span[SPAN_AT.rows] or 0)
  end
end

-- So many rows are looked at together: they come with their payloads.
local ROWS = 32

-- Some rows of a chunk from a place on, and with the first of them what is said of all: the place to go on
-- from, or nil when it is done.
function audit.chunk(chunk, from)
  local name = { 'chunk', chunk }
  local first = chunk * lib.CHUNK_ROWS
  local _, key = lib.job_home(first)
  local rows, lives = {}, {}
  local block = lib.block_in(chunk)
  if block then
    if not from then
      check_block(chunk, block, name)
    end
    rows = lib.rows_of_block(chunk, block)
  end
  for _, field in ipairs(call('HKEYS', db.prefix .. key)) do
    local at = tonumber(field)
    if not at then
      at = tonumber(sub(field, 1, -2))
      lives[#lives + 1] = first + at
    elseif not block or at >= block.size then
      rows[#rows + 1] = first + at
    end
    audit.check(not block or at >= block.size or lib.has_own_life(block, at), 'row_written_twice', name, at)
  end
  local n = #rows
  if not from then
    local chunk_record = db.get(RECORD.chunk, chunk)
    audit.check(chunk_record and chunk_record.n == n, 'rows_differ', name, n, chunk_record and chunk_record.n or 0)
    local there = {}
    for _, seq in ipairs(rows) do
      there[seq] = true
    end
    for _, seq in ipairs(lives) do
      audit.check(there[seq], 'life_without_row', name, seq)
    end
    for _, part in ipairs({ PART.result, PART.progress, PART.errors }) do
      for _, field in ipairs(call('HKEYS', db.prefix .. key .. part)) do
        audit.check(there[first + tonumber(field)], 'part_without_row', name, field)
      end
    end
    audit.add('rows', 'all', n)
    from = 1
  end
  sort(rows)
  local piece = { unpack(rows, from, min(from + ROWS - 1, n)) }
  lib.load_jobs(piece)
  for _, seq in ipairs(piece) do
    audit.try({ 'job_row', seq }, check_job, seq)
  end
  for _, seq in ipairs(piece) do
    db.jobs[seq] = nil
  end
  audit.spend(#piece)
  return from + ROWS <= n and from + ROWS or nil
end

-- ---- Limits ----

function audit.limit(limit)
  local name = { 'limit', limit }
  local limit_record = db.get(RECORD.limit, limit)
  audit.spend(2)
  if not audit.check(limit_record, 'known_by_name_only', name) then
    return
  end
  audit.check_set(limit_record.holders, lib.limit_holders(limit), { 'holders' }, name)
  audit.check_set(limit_record.resting, lib.limit_resting(limit), { 'resting_permits' }, name)
  local sum = 0
  for id, fence in audit.some(limit_record.holders, lib.limit_holders(limit)) do
    local lease, job = lease_of(id)
    local held = lease and lib.held_limit(lease, limit)
    if audit.check(held and lease.fence == fence, 'holder_holds_not', name, said(id)) then
      sum = sum + held[PERMIT_AT.weight]
    end
    if job then
      db.jobs[job.seq] = nil
    end
  end
  audit.check(limit_record.in_use == sum or limit_record.holders.n > audit.MANY, 'in_use_differs', name,
    limit_record.in_use, sum)
  sum = 0
  for member in audit.some(limit_record.resting, lib.limit_resting(limit)) do
    sum = sum + tonumber(sub(member, find(member, ':', 1, true) + 1))
  end
  local at_gauge, many = audit.gauge(limit, limit_record, name)
  audit.check(limit_record.resting_sum == sum + at_gauge or limit_record.resting.n > audit.MANY or many,
    'resting_differs', name)
  audit.check_timer('lt', limit, limit_record.timer, name)
  if limit_record.mark then
    local lane = db.get(RECORD.lane, limit_record.mark.lane)
    audit.check(lane and lane.marked, 'kept_for_unmarked', name)
  end
  audit.add('uses', 'all', limit_record.uses)
  audit.add('in_use', 'all', limit_record.in_use)
  audit.add('timed_limits', 'all', limit_record.timer and 1 or 0)
end

-- ---- Pools ----

local function check_resource(pool_record, pool, id, name, now)
  local resource = lib.resource(pool, id)
  audit.spend(2)
  if not audit.check(resource, 'resource_missing', name, id) then
    return
  end
  name = { 'resource', id, pool }
  for _, holder in ipairs(resource.holders) do
    local lease, job = lease_of(holder)
    audit.check(lease and lib.held_resource(lease, pool, id), 'holder_holds_not', name,
      said(holder))
    if job then
      db.jobs[job.seq] = nil
    end
  end
  -- Fewer slots than before evict nobody, they drain.
  audit.check(#resource.holders <= resource.slots or not resource.free, 'more_holders_than_slots', name)
  local free = resource.state == RESOURCE.available and not resource.retiring and not resource.kept_for
    and #resource.holders < resource.slots
    and pool_record.settings ~= nil
  local paced = resource.paced_until > now or resource.timer and resource.timer <= now
  audit.check((resource.free ~= nil) == free or paced, free and 'free_in_no_set' or 'free_by_mistake', name)
  audit.check(inner.score(pool_record.free, lib.pool_free(pool), id) == resource.free,
    'free_misplaced', name)
  for _, tag in ipairs(resource.tags) do
    local known = lib.tag_of(pool, tag)
    audit.check(known and inner.score(known.free, lib.pool_tag(pool, tag), id) == resource.free,
      'tag_misplaced', name)
    audit.add('tags', pool .. '\0' .. tag, 1)
    audit.add('tags_free', 'all', resource.free and 1 or 0)
  end
  audit.check_timer('rt', pool .. '\0' .. id, resource.timer, name)
  audit.check(maps.get(lib.data_home(pool, id)), 'data_missing', name)
  if resource.kept_for then
    local kept = false
    for _, other in ipairs(pool_record.mark and pool_record.mark.lane == resource.kept_for and pool_record.mark.kept
      or {}) do
      kept = kept or other == id
    end
    audit.check(kept, 'kept_for_unknowing', name)
  end
  audit.add('pool_ids', 'all', 1)
  audit.add('pool_free', 'all', resource.free and 1 or 0)
  audit.add('pool_leased', 'all', #resource.holders > 0 and 1 or 0)
  audit.add('pool_cooling', 'all', resource.state == RESOURCE.cooling and 1 or 0)
  audit.add('pool_banned', 'all', resource.state == RESOURCE.banned and 1 or 0)
  audit.add('pool_retiring', 'all', resource.retiring and 1 or 0)
  audit.add('resources_held', 'all', #resource.holders)
  audit.add('timed_resources', 'all', resource.timer and 1 or 0)
end

local OF_POOL = { 'ids', 'free', 'leased', 'cooling', 'banned', 'retiring' }

-- What is known of a tag of a pool, after all resources were looked at.
function audit.tag(of)
  local nul = find(of, '\0', 1, true)
  local pool, tag = sub(of, 1, nul - 1), sub(of, nul + 1)
  local name = { 'tag', tag, pool }
  local known, there = lib.tag_of(pool, tag), audit.sums and audit.sum_of('tags', of)
  audit.spend(1)
  audit.check(known.n > 0, 'tag_unused', name)
  audit.check(not there or there == known.n, 'tag_count_differs', name, there or 0, known.n)
  audit.check_set(known.free, lib.pool_tag(pool, tag), { 'free_resources' }, name)
  audit.add('tags_said', 'all', known.n)
  audit.add('tags_free_said', 'all', known.free.n)
end

-- Some resources of a pool behind an id: the id to go on from, or nil when it is done.
function audit.pool(pool, after, now)
  local name = { 'pool', pool }
  local pool_record = db.get(RECORD.pool, pool)
  if not audit.check(pool_record, 'known_by_name_only', name) then
    return nil
  end
  local most = 200
  local ids = lib.ids_after(pool, after, most)
  for _, id in ipairs(ids) do
    audit.try(name, check_resource, pool_record, pool, id, name, now)
  end
  if #ids == most then
    return ids[most]
  end
  audit.spend(2)
  audit.check_set(pool_record.ids, lib.pool_ids(pool), { 'resources' }, name)
  audit.check_set(pool_record.free, lib.pool_free(pool), { 'free_resources' }, name)
  audit.check_set(pool_record.doors, lib.pool_doors_key(pool), { 'doors' }, name)
  for door in audit.some(pool_record.doors, lib.pool_doors_key(pool)) do
    audit.check(db.get(RECORD.door, door), 'door_missing', name)
  end
  if audit.sums then
    local cached = {
      ids = pool_record.ids.n, free = pool_record.free.n, leased = pool_record.leased, cooling = pool_record.cooling,
      banned = pool_record.banned,
      retiring = pool_record.retiring or 0,
    }
    audit.add('said_pool_waiting', 'all', pool_record.waiting)
    local waiting = audit.sum_of('pool_waiting', pool)
    audit.check(not waiting or waiting == pool_record.waiting, 'pool_waiting_differs', name, waiting or 0,
      pool_record.waiting)
    for _, sum in ipairs(OF_POOL) do
      local are = audit.total('pool_' .. sum)
      audit.check(are == cached[sum], 'count_differs', name, cached[sum], sum, are)
      -- The next pool begins anew.
      audit.sums['pool_' .. sum], audit.sums['pool_' .. sum .. '/'] = nil, nil
    end
  end
  if pool_record.mark then
    local lane = db.get(RECORD.lane, pool_record.mark.lane)
    audit.check(lane and lane.marked, 'kept_for_unmarked', name)
    for _, id in ipairs(pool_record.mark.kept) do
      local resource = lib.resource(pool, id)
      audit.check(resource and resource.kept_for == pool_record.mark.lane, 'not_kept', name, id)
    end
  end
  audit.add('uses', 'all', pool_record.uses)
  audit.add('pool_doors', 'all', pool_record.doors.n)
end
