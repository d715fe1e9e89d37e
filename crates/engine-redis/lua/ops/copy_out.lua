-- copy_out: a namespace is frozen and read, to be copied elsewhere. See docs/decisions/018-copy.md.
--
-- copy_look {} -> {frozen, to, whole, copied, empty, pages, next}: what it is in a copy, if in one
-- copy_freeze {copy, to, whole, kn} -> {more}: from now on every other call is refused. `more`: a
--   change of a large set is under way, of which it did a portion: ask again
-- copy_thaw {} -> true: served again
-- copy_head {} -> {fence, arrival, used, jobs, learns}
-- copy_out {section, after, max, bytes} -> {items, next}: a page of things behind `after`, `next` if
--   there may be more
-- Refusals: wrong_state (frozen for something else, or not frozen).
-- Cost: a few reads for each item; a page ends at `max` items or `bytes` of what Lua never reads.
--
-- While frozen nothing changes, so ranks and numbers are good cursors. Freezing and thawing work when the
-- store is full. In the namespace's own key the field `frozen` says what it is frozen for: 'from:ID' is
-- copied elsewhere, 'into:ID' an unfinished copy, 'drop:ID' one that is given up, anything else somebody's
-- own; `copy` what belongs to that; `copied` which copy it was before it was opened.

-- What a frozen namespace is frozen for: 'copied' elsewhere, 'unfinished' as a copy, or 'by_hand'.
function lib.frozen_for(frozen)
  local what = sub(frozen, 1, 5)
  if what == 'from:' then
    return 'copied'
  elseif what == 'into:' or what == 'drop:' then
    return 'unfinished'
  end
  return 'by_hand'
end

-- The marks of a copy: what it is frozen for (or nil), and what belongs to that.
function lib.copy_mark()
  local mark = maps.get(KEY.meta, 'copy')
  return maps.get(KEY.meta, 'frozen'), mark and cmsgpack.unpack(mark) or {}
end

function lib.set_copy_mark(frozen, mark)
  maps.set(KEY.meta, 'frozen', frozen)
  maps.set(KEY.meta, 'copy', mark and cmsgpack.pack(mark))
end

-- Whether nothing is there that a copy would meet: who only asked for work left nothing.
function lib.is_untouched()
  local space, p = db.space, db.prefix
  return space.seq == 0 and space.live == 0
    and call('EXISTS', p .. 'ql', p .. 'lsn', p .. 'Ln', p .. 'pn', p .. 'uke', p .. 'sl') == 0
end

lib.op('copy_look', { 'no-writes' }, function()
  local frozen, mark = lib.copy_mark()
  local into = frozen and sub(frozen, 1, 5) == 'into:'
  return {
    frozen = frozen or false, copied = maps.get(KEY.meta, 'copied') or false, empty = lib.is_untouched(),
    to = not into and mark[1] or false, whole = not into and mark[2] or false,
    pages = into and mark[1] or 0, next = into and mark[2] or false,
  }
end, { copies = true })

local function frozen_else(frozen)
  lib.refuse('copy_source_frozen', { frozen = lib.frozen_for(frozen) })
end

lib.op('copy_freeze', { 'write', 'allow-oom' }, function(args, now)
  local frozen = lib.copy_mark()
  if frozen and frozen ~= 'from:' .. args.copy then
    frozen_else(frozen)
  end
  -- Who forgot its last writes may have forgotten leases: they count as held.
  lib.look_at_run(args.kn, now)
  if not frozen and db.space.steps then
    lib.carry_on(now)
    return { more = true }
  end
  lib.set_copy_mark('from:' .. args.copy, { args.to, args.whole or false })
  return { more = false }
end, { copies = true })

lib.op('copy_thaw', { 'write', 'allow-oom' }, function()
  local frozen = lib.copy_mark()
  if frozen and sub(frozen, 1, 5) ~= 'from:' then
    frozen_else(frozen)
  end
  lib.set_copy_mark(nil, nil)
  return true
end, { copies = true })

-- ---- Reading ----

local function must_be_frozen()
  local frozen = lib.copy_mark()
  if not frozen or sub(frozen, 1, 5) ~= 'from:' then
    lib.refuse('copy_source_not_frozen')
  end
end

lib.op('copy_head', { 'no-writes' }, function()
  must_be_frozen()
  local space, jobs = db.space, 0
  for b = 0, 255 do
    jobs = jobs + call('HLEN', db.prefix .. 'i:' .. text(b))
  end
  return {
    fence = space.fence, arrival = space.arrival, used = space.used, jobs = jobs,
    learns = space.learns_until or false,
  }
end, { copies = true })

-- A page of the names of an ordered set behind `after`: what `show` makes of each (and about how long that is), and the
-- last name.
local function by_name(key, args, show)
  local from = args.after ~= '' and '(' .. args.after or '-'
  local names = call('ZRANGEBYLEX', db.prefix .. key, from, '+', 'LIMIT', 0, args.max)
  local items, bytes = {}, 0
  for _, name in ipairs(names) do
    local item, length = show(name)
    items[#items + 1], bytes = item, bytes + (length or 0)
    if bytes >= args.bytes then
      return items, name
    end
  end
  return items, #names == args.max and names[#names] or nil
end

-- A page of a set that is ordered by moments, by rank.
local function by_rank(key, args, show)
  local from = tonumber(args.after) or 0
  local members = call('ZRANGE', db.prefix .. key, from, from + args.max - 1)
  local items = {}
  for _, member in ipairs(members) do
    items[#items + 1] = show(member)
  end
  return items, #members == args.max and text(from + args.max) or nil
end

local OUT = {}

function OUT.queues(args)
  return by_name('ql', args, function(name)
    local number = lib.find_queue(name)
    local queue_record = number and db.get(RECORD.queue, number)
    if not queue_record or queue_record.hidden then
      return nil
    end
    local settings = lib.queue_settings(number)
    return {
      name = name, needs = settings.needs, retry = settings.retry, timeout = settings.timeout, retain = settings.retain,
      max_waiting = settings.max_waiting, lost_delay = settings.lost_delay, shares = settings.shares,
      paused_until = queue_record.paused_until,
      since = queue_record.since, skipped = queue_record.skipped,
    }
  end)
end

function OUT.settings(args)
  return by_name('lsn', args, function(name)
    local setting = db.get(RECORD.limit_setting, name)
    return setting and { name = name, concurrency = setting.concurrency, rate = setting.rate, gap = setting.gap,
      quarantine = setting.quarantine, gauge = lib.said_gauge(name) }
  end)
end

-- What rests at a limit. Of very many the last rest as long as the longest.
local function resting(name, limit_record)
  local rests, sum = {}, 0
  for member, at in inner.each(limit_record.resting, lib.limit_resting(name)) do
    local weight = tonumber(sub(member, find(member, ':', 1, true) + 1))
    rests[#rests + 1] = { at, weight }
    sum = sum + weight
    if #rests == BOUND.ITEMS_MAX then
      break
    end
  end
  if #rests < limit_record.resting.n then
    local last = call('ZRANGE', db.prefix .. lib.limit_resting(name), -1, -1, 'WITHSCORES')
    rests[#rests + 1] = { tonumber(last[2]), limit_record.resting_sum - lib.gauge_resting(name, limit_record) - sum }
  end
  return rests
end

-- What rests for a reading: {ended_at, granted_at (false of one that was settled), the end of its gap, weight} each. Of very
-- many the others rest as the one that ended last, as if that was granted then.
local function unshown(name, limit_record)
  local all, others, end_of_all, gap_of_all = {}, 0, 0, 0
  lib.each_gauge_rest(name, limit_record, function(rest, ended_at)
    if #all < BOUND.ITEMS_MAX then
      all[#all + 1] = { ended_at, rest.granted_at or false, rest['until'], rest.weight }
    else
      others = others + rest.weight
      end_of_all, gap_of_all = max(end_of_all, ended_at), max(gap_of_all, rest['until'])
    end
  end)
  if others > 0 then
    all[#all + 1] = { end_of_all, end_of_all, gap_of_all, others }
  end
  return all
end

function OUT.limits(args, now)
  return by_name('Ln', args, function(name)
    local limit_record = db.get(RECORD.limit, name)
    if not limit_record or limit_record.tat <= now and not limit_record.paused_until and limit_record.resting_sum == 0
      and limit_record.external == 0 then
      return nil
    end
    return {
      name = name, tat = limit_record.tat, paused_until = limit_record.paused_until,
      resting = resting(name, limit_record), unshown = unshown(name, limit_record),
      external = limit_record.external, external_until = limit_record.external_until,
    }
  end)
end

function OUT.leases(args)
  local function show(name)
    local lease, job = lib.lease(lib.parse_lease(name))
    if not lease then
      return nil
    end
    if job then
      -- It came with its payload, and is let go.
      db.jobs[job.seq] = nil
    end
    local limits = {}
    for i, held in ipairs(lease.limits) do
      limits[i] = { held[PERMIT_AT.limit], held[PERMIT_AT.weight] }
    end
    return {
      called_off_in = job and job.cancel and job.flow or nil, has_job = lease.seq > 0, granted_at = lease.granted_at, expires_at = lease.expires_at, limits = limits,
      resources = lease.resources,
    }
  end
  local items = {}
  local _, next_at = by_rank(KEY.expiries, args, function(member)
    for _, name in ipairs(lib.leases_named(member)) do
      items[#items + 1] = show(name)
    end
  end)
  return items, next_at
end

local function this_run()
  return call('INFO', 'server'):match('run_id:(%x+)') or ''
end

-- What is ahead of its priority: any other group starts again at V in any case.
local function turn_of(number)
  local group_record = db.get(RECORD.group, number)
  local queue_record = group_record and db.get(RECORD.queue, group_record.queue)
  local turns = queue_record and queue_record.priorities[-group_record.priority]
  if turns and queue_record.name and group_record.own > turns.v then
    return { q = queue_record.name, pr = group_record.priority, g = group_record.name, own = group_record.own,
      v = turns.v }
  end
end

-- The parts of a kind, each by a cursor that holds as long as this server runs: in another run a part is read anew, and
-- what comes twice is the same. What `show` makes of each name and its value.
local function by_parts(kind, args, show)
  local part, cursor, run = args.after:match('^(%d+)%s(%d+)%s(.*)$')
  local this, items, looked = this_run(), {}, 0
  part = tonumber(part or 0)
  if run ~= this then
    cursor = '0'
  end
  while part < PARTS and looked < args.max do
    local found = call('HSCAN', db.prefix .. kind .. ':' .. text(part), cursor, 'COUNT', args.max)
    for i = 1, #found[2], 2 do
      items[#items + 1] = show(found[2][i], found[2][i + 1])
    end
    looked, cursor = looked + #found[2] / 2, found[1]
    if cursor == '0' then
      part = part + 1
    end
  end
  return items, part < PARTS and text(part) .. ' ' .. cursor .. ' ' .. this or nil
end

function OUT.turns(args)
  return by_parts('gn', args, function(_, group)
    return turn_of(tonumber(group))
  end)
end

function OUT.pools(args)
  return by_name('pn', args, function(name)
    local pool_record = db.get(RECORD.pool, name)
    local settings = pool_record and pool_record.settings
    return settings and {
      name = name, quarantine = settings.quarantine, cooldown = settings.cooldown, rate = settings.rate,
      max_uses = settings.max_uses,
      pick = settings.pick, version = pool_record.version, generation = pool_record.generation,
    }
  end)
end

local function show_resource(resource, data)
  return {
    pool = resource.pool, id = resource.id, data = lib.blob(data), tags = resource.tags, slots = resource.slots,
    state = resource.state,
    till = resource['until'], rest = resource.rest, reason = resource.reason, uses = resource.uses,
    used = resource.used,
    last_used_at = resource.last_used_at, tat = resource.tat, retiring = resource.retiring or false,
    generation = resource.generation,
  }
end

-- Behind a pool and an id in it: pool by pool.
function OUT.resources(args)
  local pool, after = args.after:match('^(.-)\n(.*)$')
  if not pool then
    pool = call('ZRANGEBYLEX', db.prefix .. 'pn', '-', '+', 'LIMIT', 0, 1)[1]
    if not pool then
      return {}
    end
    after = ''
  end
  local pool_record = db.get(RECORD.pool, pool)
  local ids = pool_record and pool_record.settings and lib.ids_after(pool, after, args.max) or {}
  local items, bytes = {}, 0
  for _, id in ipairs(ids) do
    local resource = lib.resource(pool, id)
    local data = maps.get(lib.data_home(pool, id)) or 'null'
    items[#items + 1], bytes = show_resource(resource, data), bytes + #data
    after = id
    if #items == args.max or bytes >= args.bytes then
      return items, pool .. '\n' .. after
    end
  end
  local behind = call('ZRANGEBYLEX', db.prefix .. 'pn', '(' .. pool, '+', 'LIMIT', 0, 1)[1]
  return items, behind and behind .. '\n' or nil
end

-- Rows that are read together, and rows that one page looks at.
local ROWS, LOOKED_MAX = 16, 2048

local function blob(bytes)
  return bytes and lib.blob(bytes) or nil
end

local function show_job(job)
  local holds
  if job.unique then
    local holder = lib.key_holder(job.unique[UNIQUE_AT.key])
    if holder and holder.seq == job.seq then
      holds = { holder.by_job or false, holder.till or false }
    end
  end
  local parts, parent = job.life ~= nil, lib.parent(job.seq)
  local kept_until = parent and parent.till or job.kept_until
  return {
    id = job.id, st = job.state, sh = lib.shape_number(job.shape), body = lib.blob(lib.body(job)),
    ar = job.arrival, cr = job.created_at, at = job.run_at, sa = job.started_at, fa = job.finished_at,
    ku = lib.is_live(job) and 0 or kept_until, ex = job.expires_at, w = job.wait, n = job.ended,
    l = job.lost, rel = job.released, und = job.undelivered, ca = job.cancel or false, kp = job.keeps or false,
    u = job.unique, og = job.origin, f = job.flow, eu = job.ended_unsettled, cc = parent and parent.cancelled or 0,
    h = holds, by = job.bytes, err = job.error, r = parts and blob(lib.job_part(job, PART.result)),
    p = parts and blob(lib.job_part(job, PART.progress)), e = parts and blob(lib.job_part(job, PART.errors)),
  }
end

-- In the order of row numbers.
function OUT.jobs(args)
  local seq = (tonumber(args.after) or 0) + 1
  local items, bytes, looked = {}, 0, 0
  while true do
    local chunk = floor(seq / lib.CHUNK_ROWS)
    local known = call('ZRANGEBYSCORE', db.prefix .. 'ch', chunk, '+inf', 'LIMIT', 0, 1)[1]
    if not known then
      return items
    end
    seq = max(seq, tonumber(known) * lib.CHUNK_ROWS)
    local seqs, last = {}, (tonumber(known) + 1) * lib.CHUNK_ROWS
    for at = seq, min(seq + ROWS, last) - 1 do
      seqs[#seqs + 1] = at
    end
    lib.load_jobs(seqs)
    for _, at in ipairs(seqs) do
      local job = db.jobs[at]
      if job then
        items[#items + 1], bytes = show_job(job), bytes + #job.row
      end
      db.jobs[at] = nil
      seq = at + 1
      if #items == args.max or bytes >= args.bytes then
        return items, text(at)
      end
    end
    looked = looked + #seqs
    if looked >= LOOKED_MAX then
      return items, text(seq - 1)
    end
  end
end

function OUT.keys(args)
  return by_rank('uke', args, function(key)
    local holder = db.get(RECORD.unique_key, key)
    if not holder or not holder.till then
      return nil
    end
    local job = lib.job(holder.seq)
    if job then
      db.jobs[holder.seq] = nil
      return nil
    end
    return { key = key, id = holder.id, till = holder.till, ended = holder.ended }
  end)
end

function OUT.kin(args)
  local items, last = lib.show_copied_kin(tonumber(args.after) or 0, args.max)
  return items, last and text(last)
end

function OUT.flows(args)
  return by_name(lib.FLOW_NAMES, args, lib.show_copied_flow)
end

function OUT.schedules(args)
  return by_name('sl', args, lib.show_copied_schedule)
end

function OUT.sets(args)
  return by_parts(RECORD.synced_set, args, function(owner)
    local version = db.get(RECORD.synced_set, owner).version
    return version and { owner = owner, version = version }
  end)
end

lib.op('copy_out', { 'no-writes' }, function(args, now)
  must_be_frozen()
  local items, next_at = OUT[args.section](args, now)
  return { items = items, next = next_at or false }
end, { copies = true })
