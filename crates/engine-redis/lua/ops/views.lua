-- How queues, limits, pools and resources are shown, and pages of what is listed by name. It only
-- reads.
--
-- A holder is {fence, seq, holder, job id or false, since, what it holds}; what is shown of holders and of lines is
-- bounded. A list answers {items, next}: `next` is the name of the last item that was looked at, and
-- is there only if something may follow. A page may be shorter than was asked for: it ends when the
-- work of one call is done, and who asks goes on from `next`.
-- Cost: a read or two for each item, holder and head of a lane that is looked at.

-- What this call's page has cost so far, in units of some 20 us. Set to 0 where a page begins.
local looked = 0
local HOLDER, HEAD = 2, 2
-- A page ends when it has cost so much, or looked at so many names: a few milliseconds, in which the server does
-- nothing else. Who asks for more is given it by further calls.
local PAGE, NAMES = 250, 250

-- Data is counted by its bytes, so that a page is no larger than a quarter of what a body may be.
local function weigh(data)
  looked = looked + #data * BOUND.ITEMS_MAX / BOUND.BODY_BYTES_MAX
end

-- ---- Pages ----

-- How many names are read at a time.
local READ = 128

-- Walks the names of some ordered sets and one more, in order of their bytes, each once, behind
-- `after`. It reads what is stored: only for calls that have changed none of these sets.
function lib.names(keys, after, also)
  local sources = {}
  for i, key in ipairs(keys) do
    sources[i] = { key = db.prefix .. key, from = after and '(' .. after or '-', found = {}, at = 1 }
  end
  if also and after and not lib.less(after, also) then
    also = nil
  end
  local function head(source)
    if not source.found[source.at] and not source.done then
      source.found, source.at = call('ZRANGEBYLEX', source.key, source.from, '+', 'LIMIT', 0, READ), 1
      source.done = #source.found < READ
      source.from = '(' .. (source.found[#source.found] or '')
    end
    return source.found[source.at]
  end
  return function()
    local first = also
    for _, s in ipairs(sources) do
      local name = head(s)
      if name and (not first or lib.less(name, first)) then
        first = name
      end
    end
    for _, source in ipairs(sources) do
      if source.found[source.at] == first then
        source.at = source.at + 1
      end
    end
    if also == first then
      also = nil
    end
    return first
  end
end

-- A page of names: `listed` is what is shown of a name, or nil; `show` makes its view.
function lib.page(args, names, listed, show)
  looked = 0
  local items, last, last_item, seen = {}, nil, nil, 0
  for name in names do
    if looked >= PAGE or seen > NAMES then
      return { items = items, next = last }
    end
    local found = listed(name)
    if found then
      if #items >= args.max then
        return { items = items, next = last_item }
      end
      items[#items + 1] = show(name, found)
      last_item = name
    end
    last, seen = name, seen + 1
  end
  return { items = items }
end

-- ---- Holders ----

-- Who holds a live lease; or nil.
function lib.holder_of(name)
  looked = looked + HOLDER
  local fence, seq = lib.parse_lease(name)
  local lease, job = lib.lease(fence, seq)
  if lease then
    return {
      fence, seq, lease.holder or 'anonymous', job and job.id or false, lease.granted_at, lib.held_by(lease),
    }
  end
end

-- The first of these leases, by name, as holders.
function lib.holders(names)
  local holders, n = {}, 0
  for name in names do
    if n >= BOUND.HOLDERS_SHOWN then
      break
    end
    n = n + 1
    holders[#holders + 1] = lib.holder_of(name)
  end
  return holders
end

-- ---- Queues ----

-- How many workers asked for a queue within the last minute. It counts what is stored: for calls of no
-- worker.
local function count_workers(number, now)
  return call('ZCOUNT', db.prefix .. lib.workers_of(number), '(' .. text(now - BOUND.WORKER_US), '+inf')
end

-- Since when the oldest ready job is ready: the least over the heads of open lanes, of which it looks at
-- as many as a tick does of a kind.
function lib.oldest_ready(number)
  local queue_record = db.get(RECORD.queue, number)
  if queue_record.place then
    return nil
  end
  local ranks, slots = {}, {}
  for rank in pairs(queue_record.priorities) do
    ranks[#ranks + 1] = rank
  end
  sort(ranks)
  local function look()
    for _, rank in ipairs(ranks) do
      for turn in inner.each(queue_record.priorities[rank].open, lib.turns_open(number, rank)) do
        local group = tonumber(sub(turn, 18))
        for bundle in inner.each(db.get(RECORD.group, group).open, lib.group_open(group)) do
          bundle = tonumber(bundle)
          for lane in inner.each(db.get(RECORD.bundle, bundle).open, lib.bundle_open(bundle)) do
            local _, slot = lib.head(tonumber(lane))
            slots[#slots + 1] = slot
            if #slots >= BOUND.TICK_MAX then
              return
            end
          end
        end
      end
    end
  end
  look()
  looked = looked + HEAD * #slots
  lib.load_jobs(slots)
  local oldest
  for _, slot in ipairs(slots) do
    local at = lib.job(slot).run_at
    oldest = oldest and min(oldest, at) or at
  end
  return oldest
end

-- A pause as it is shown: none if it is over, no moment if it has no end.
local function paused(till, now)
  if till and till > now then
    return true, till < lib.FOREVER and till or nil
  end
  return false
end

function lib.queue_view(number, now)
  looked = looked + 1
  local queue_record = db.get(RECORD.queue, number)
  local settings = lib.queue_settings(number)
  local is_paused, till = paused(queue_record.paused_until, now)
  local blocked = queue_record.place and queue_record.waiting or queue_record.blocked
  return {
    name = queue_record.name, paused = is_paused, paused_until = till, needs = settings.needs or {},
    retry = settings.retry,
    timeout = settings.timeout, retain = settings.retain, max_waiting = settings.max_waiting,
    lost_delay = settings.lost_delay, shares = settings.shares or {},
    counts = {
      ready = queue_record.waiting - blocked, blocked = blocked, scheduled = queue_record.scheduled,
      dependent = queue_record.dependent, running = queue_record.running,
    },
    oldest_ready_at = lib.oldest_ready(number), workers = count_workers(number, now), skipped = queue_record.skipped,
  }
end

-- ---- Limits ----

-- The family and the key of a limit's name; without a colon there is no key.
function lib.limit_parts(name)
  local colon = find(name, ':', 1, true)
  if colon then
    return sub(name, 1, colon - 1), sub(name, colon + 1)
  end
  return name
end

function lib.is_template(name)
  return sub(name, -2) == ':*'
end

local function waiter(queue, slot)
  if queue == CALLERS then
    return { false, false, db.see(RECORD.caller, slot).since }
  end
  local job = lib.job(slot)
  return { job.id, db.get(RECORD.queue, queue).name, job.run_at }
end

-- The first in line at a door.
local function line_at(door)
  local waiters = {}
  for i, first in ipairs(lib.first_at(door)) do
    waiters[i] = waiter(first[1], first[2])
  end
  return waiters
end

local NOTHING = {}

-- line: with the first in its line.
function lib.limit_view(name, line, now)
  looked = looked + 1
  local settings, template
  if name == 'lock:*' or not lib.is_template(name) then
    settings, template = lib.setting_of(name)
  else
    settings = db.get(RECORD.limit_setting, name)
  end
  settings = settings or NOTHING
  if template == name then
    template = nil
  end
  local limit_record = db.get(RECORD.limit, name)
  local door = db.get(RECORD.door, DOOR.limit .. name)
  local in_use, external, waiting, rests = 0, 0, door and door.waiting or 0, 0
  local till, holders, gauge = nil, {}, nil
  if limit_record then
    gauge = lib.show_gauge(name, limit_record)
    in_use, external, rests = limit_record.in_use + limit_record.resting_sum, limit_record.external,
      limit_record.resting_sum
    local _, at = paused(limit_record.paused_until, now)
    till = at
    holders = lib.holders(inner.each(limit_record.holders, lib.limit_holders(name)))
  end
  -- A queue that its own limit holds up stands there as a whole, its jobs nowhere else.
  local family, key = lib.limit_parts(name)
  local queue = family == 'queue' and key and lib.find_queue(key)
  local queue_record = queue and db.get(RECORD.queue, queue)
  if queue_record and queue_record.place then
    waiting = waiting + queue_record.waiting - queue_record.blocked
  end
  local cap = settings.concurrency
  return {
    name = name, template = template, concurrency = cap, rate = settings.rate, gap = settings.gap,
    quarantine = settings.quarantine, in_use = in_use, resting = rests, external = external, gauge = gauge,
    waiting = waiting, over_limit = cap and max(in_use + external - cap, 0) or 0, paused_until = till, holders = holders,
    line = line and door and line_at(DOOR.limit .. name) or nil,
  }
end

-- ---- Pools and resources ----

function lib.pool_view(name)
  looked = looked + 1
  local pool_record = db.get(RECORD.pool, name)
  local settings = pool_record.settings
  return {
    name = name, quarantine = settings.quarantine, cooldown = settings.cooldown, rate = settings.rate,
    max_uses = settings.max_uses, pick = settings.pick,
    available = pool_record.free.n + (pool_record.mark and #pool_record.mark.kept or 0),
    leased = pool_record.leased, cooling = pool_record.cooling, banned = pool_record.banned,
    waiting = pool_record.waiting,
  }
end

function lib.resource_view(resource, now)
  local data = maps.get(lib.data_home(resource.pool, resource.id))
  local state, till, reason = resource.state, nil, resource.reason
  if state == RESOURCE.available and resource.paced_until > now then
    state, till, reason = RESOURCE.cooling, resource.paced_until, 'rate'
  elseif state == RESOURCE.cooling then
    till = resource['until']
  end
  if data then
    weigh(data)
  end
  local at = 0
  return {
    id = resource.id, data = data and lib.blob(data) or nil, tags = resource.tags, slots = resource.slots,
    state = state,
    reason = reason, in_use = #resource.holders, ['until'] = till, retiring = resource.retiring or false,
    holders = lib.holders(function()
      at = at + 1
      return resource.holders[at]
    end),
    uses = resource.uses, last_used_at = resource.last_used_at,
  }
end
