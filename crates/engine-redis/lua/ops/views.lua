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
  looked = looked + #data * B.ITEMS_MAX / B.BODY_BYTES_MAX
end

-- ---- Pages ----

-- How many names are read at a time.
local READ = 128

-- Walks the names of some ordered sets and one more, in order of their bytes, each once, behind
-- `after`. It reads what is stored: only for calls that have changed none of these sets.
function T.names(keys, after, also)
  local sources = {}
  for i, key in ipairs(keys) do
    sources[i] = { key = db.prefix .. key, from = after and '(' .. after or '-', found = {}, at = 1 }
  end
  if also and after and not T.less(after, also) then
    also = nil
  end
  local function head(s)
    if not s.found[s.at] and not s.done then
      s.found, s.at = call('ZRANGEBYLEX', s.key, s.from, '+', 'LIMIT', 0, READ), 1
      s.done = #s.found < READ
      s.from = '(' .. (s.found[#s.found] or '')
    end
    return s.found[s.at]
  end
  return function()
    local first = also
    for _, s in ipairs(sources) do
      local name = head(s)
      if name and (not first or T.less(name, first)) then
        first = name
      end
    end
    for _, s in ipairs(sources) do
      if s.found[s.at] == first then
        s.at = s.at + 1
      end
    end
    if also == first then
      also = nil
    end
    return first
  end
end

-- A page of names: `listed` is what is shown of a name, or nil; `show` makes its view.
function T.page(args, names, listed, show)
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
function T.holder_of(name)
  looked = looked + HOLDER
  local fence, seq = T.parse_lease(name)
  local lease, job = T.lease(fence, seq)
  if lease then
    return {
      fence, seq, lease.holder or 'anonymous', job and job.id or false, lease.granted_at, T.held_by(lease),
    }
  end
end

-- The first of these leases, by name, as holders.
function T.holders(names)
  local holders, n = {}, 0
  for name in names do
    if n >= B.HOLDERS_SHOWN then
      break
    end
    n = n + 1
    holders[#holders + 1] = T.holder_of(name)
  end
  return holders
end

-- ---- Queues ----

-- How many workers asked for a queue within the last minute. It counts what is stored: for calls of no
-- worker.
local function count_workers(number, now)
  return call('ZCOUNT', db.prefix .. T.workers_of(number), '(' .. text(now - B.WORKER_US), '+inf')
end

-- Since when the oldest ready job is ready: the least over the heads of open lanes, of which it looks at
-- as many as a tick does of a kind.
function T.oldest_ready(number)
  local q = db.get(RECORD.queue, number)
  if q.place then
    return nil
  end
  local ranks, slots = {}, {}
  for rank in pairs(q.priorities) do
    ranks[#ranks + 1] = rank
  end
  sort(ranks)
  local function look()
    for _, rank in ipairs(ranks) do
      for turn in O.each(q.priorities[rank].open, T.turns_open(number, rank)) do
        local group = tonumber(sub(turn, 18))
        for bundle in O.each(db.get(RECORD.group, group).open, T.group_open(group)) do
          bundle = tonumber(bundle)
          for lane in O.each(db.get(RECORD.bundle, bundle).open, T.bundle_open(bundle)) do
            local _, slot = T.head(tonumber(lane))
            slots[#slots + 1] = slot
            if #slots >= B.TICK_MAX then
              return
            end
          end
        end
      end
    end
  end
  look()
  looked = looked + HEAD * #slots
  T.load_jobs(slots)
  local oldest
  for _, slot in ipairs(slots) do
    local at = T.job(slot).run_at
    oldest = oldest and min(oldest, at) or at
  end
  return oldest
end

-- A pause as it is shown: none if it is over, no moment if it has no end.
local function paused(till, now)
  if till and till > now then
    return true, till < T.FOREVER and till or nil
  end
  return false
end

function T.queue_view(number, now)
  looked = looked + 1
  local q = db.get(RECORD.queue, number)
  local s = T.queue_settings(number)
  local is_paused, till = paused(q.paused_until, now)
  local blocked = q.place and q.waiting or q.blocked
  return {
    name = q.name, paused = is_paused, paused_until = till, needs = s.needs or {}, retry = s.retry,
    timeout = s.timeout, retain = s.retain, max_waiting = s.max_waiting, shares = s.shares or {},
    counts = {
      ready = q.waiting - blocked, blocked = blocked, scheduled = q.scheduled, dependent = 0,
      running = q.running,
    },
    oldest_ready_at = T.oldest_ready(number), workers = count_workers(number, now),
  }
end

-- ---- Limits ----

-- The family and the key of a limit's name; without a colon there is no key.
function T.limit_parts(name)
  local colon = find(name, ':', 1, true)
  if colon then
    return sub(name, 1, colon - 1), sub(name, colon + 1)
  end
  return name
end

function T.is_template(name)
  return sub(name, -2) == ':*'
end

local function waiter(queue, slot)
  if queue == CALLERS then
    return { false, false, db.see(RECORD.caller, slot).since }
  end
  local job = T.job(slot)
  return { job.id, db.get(RECORD.queue, queue).name, job.run_at }
end

-- The first in line at a door.
local function line_at(door)
  local waiters = {}
  for i, first in ipairs(T.first_at(door)) do
    waiters[i] = waiter(first[1], first[2])
  end
  return waiters
end

local NOTHING = {}

-- line: with the first in its line.
function T.limit_view(name, line, now)
  looked = looked + 1
  local settings, template
  if name == 'lock:*' or not T.is_template(name) then
    settings, template = T.setting_of(name)
  else
    settings = db.get(RECORD.limit_setting, name)
  end
  settings = settings or NOTHING
  if template == name then
    template = nil
  end
  local l = db.get(RECORD.limit, name)
  local door = db.get(RECORD.door, DOOR.limit .. name)
  local in_use, external, waiting, rests = 0, 0, door and door.waiting or 0, 0
  local till, holders = nil, {}
  if l then
    in_use, external, rests = l.in_use + l.resting_sum, l.external, l.resting_sum
    local _, at = paused(l.paused_until, now)
    till = at
    holders = T.holders(O.each(l.holders, T.limit_holders(name)))
  end
  -- A queue that its own limit holds up stands there as a whole, its jobs nowhere else.
  local family, key = T.limit_parts(name)
  local queue = family == 'queue' and key and T.find_queue(key)
  local q = queue and db.get(RECORD.queue, queue)
  if q and q.place then
    waiting = waiting + q.waiting - q.blocked
  end
  local cap = settings.concurrency
  return {
    name = name, template = template, concurrency = cap, rate = settings.rate, gap = settings.gap,
    quarantine = settings.quarantine, in_use = in_use, resting = rests, external = external, waiting = waiting,
    over_limit = cap and max(in_use + external - cap, 0) or 0, paused_until = till, holders = holders,
    line = line and door and line_at(DOOR.limit .. name) or nil,
  }
end

-- ---- Pools and resources ----

function T.pool_view(name)
  looked = looked + 1
  local p = db.get(RECORD.pool, name)
  local s = p.settings
  return {
    name = name, quarantine = s.quarantine, cooldown = s.cooldown, rate = s.rate,
    max_uses = s.max_uses, pick = s.pick, available = p.free.n + (p.mark and #p.mark.kept or 0),
    leased = p.leased, cooling = p.cooling, banned = p.banned, waiting = p.waiting,
  }
end

function T.resource_view(r, now)
  local data = M.get(T.data_home(r.pool, r.id))
  local state, till, reason = r.state, nil, r.reason
  if state == RESOURCE.available and r.paced_until > now then
    state, till, reason = RESOURCE.cooling, r.paced_until, 'rate'
  elseif state == RESOURCE.cooling then
    till = r['until']
  end
  if data then
    weigh(data)
  end
  local at = 0
  return {
    id = r.id, data = data and T.blob(data) or nil, tags = r.tags, slots = r.slots, state = state,
    reason = reason, in_use = #r.holders, ['until'] = till, retiring = r.retiring or false,
    holders = T.holders(function()
      at = at + 1
      return r.holders[at]
    end),
    uses = r.uses, last_used_at = r.last_used_at,
  }
end
