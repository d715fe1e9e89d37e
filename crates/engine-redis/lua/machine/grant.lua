-- The grant: a lane's head gets its turn, its permits, its tokens, its resources and its lease in one
-- step, or nothing at all and its lane stands in the line of the first need that it lacks.
--
-- Who asks is {worker = id or nil, ttl, request = id or nil, away = the call waits elsewhere (machine/parcels)}.

-- Whether the head of an open lane may go now; if not, its lane or its bundle stands at the door of the
-- first need that it lacks.
function T.may_go(lane, now)
  local l = db.get(RECORD.lane, lane)
  local marked = l.marked
  for _, need in ipairs(l.needs) do
    local door = T.door_key(need)
    local fit
    if not marked and db.get(RECORD.door, door) and T.must_stand_behind(door, lane) then
      fit = 'no'
    else
      fit = T.need_fit(need, lane, now)
    end
    if fit ~= 'yes' then
      local bundle, own = ENTRY.bundle .. text(l.bundle), ENTRY.lane .. text(lane)
      T.clear_out(own)
      T.clear_out(bundle)
      local entry = T.is_plain(need) and not marked and bundle or own
      if fit == 'no' then
        T.park(entry, door, now)
      else
        T.park_misfit(entry, door)
      end
      return false
    end
  end
  return true
end

-- Tries the head of an open lane: whether it may go; if not, it stands at a door now.
local function try_lane(lane, now)
  if not T.may_go(lane, now) then
    return false
  end
  local l = db.see(RECORD.lane, lane)
  if l.out then
    T.clear_out(ENTRY.lane .. text(lane))
  end
  if db.see(RECORD.bundle, l.bundle).out then
    T.clear_out(ENTRY.bundle .. text(l.bundle))
  end
  return true
end

-- The same, and grants it: the lease, or nil.
function T.try_lane(lane, asker, now)
  return try_lane(lane, now) and T.grant_head(lane, asker, now) or nil
end

-- Whether a queue's own limit lets one more go; if not, the queue stands at that door.
function T.queue_is_open(queue, now)
  local q = db.get(RECORD.queue, queue)
  if q.paused_until and q.paused_until > now or q.place then
    return false
  end
  if not q.limit then
    return true
  end
  T.clear_out(ENTRY.queue .. text(queue))
  if not T.setting_of(q.limit) then
    return true
  end
  local fit = T.limit_fit(q.limit, 1, 1, nil, now)
  if fit == 'yes' then
    return true
  elseif fit == 'no' then
    T.park(ENTRY.queue .. text(queue), DOOR.limit .. q.limit, now)
  else
    T.park_misfit(ENTRY.queue .. text(queue), DOOR.limit .. q.limit)
  end
  return false
end

function T.grant_head(lane, asker, now)
  local space = db.space
  local arrival, slot = T.head(lane)
  local l = db.get(RECORD.lane, lane)
  if l.marked then
    T.drop_mark(lane, now)
  end
  local queue = l.queue
  local q = db.get(RECORD.queue, queue)
  space.fence = max(space.fence + 1, now)
  local fence = space.fence
  local is_caller = queue == CALLERS
  local seq = is_caller and 0 or slot
  local lease_id = T.lease_id(fence, seq)
  local limits, resources = {}, {}
  local own = q.limit
  if own and T.setting_of(own) then
    for _, need in ipairs(l.needs) do
      if need[NEED_AT.kind] == NEED.limit and need[NEED_AT.name] == own then
        own = nil
        break
      end
    end
    if own then
      limits[1] = { own, 1, 1 }
    end
  end
  for _, need in ipairs(l.needs) do
    if need[NEED_AT.kind] == NEED.limit then
      limits[#limits + 1] = { need[NEED_AT.name], need[NEED_AT.weight], need[NEED_AT.cost] }
    else
      for _, id in ipairs(T.take_resources(need, lane, lease_id, now)) do
        resources[#resources + 1] = { need[NEED_AT.name], id }
      end
    end
  end
  for _, held in ipairs(limits) do
    local limit = held[PERMIT_AT.limit]
    O.add(db.get(RECORD.limit, limit).holders, T.limit_holders(limit), fence, lease_id)
    held[PERMIT_AT.cost] = T.take_limit(limit, held[PERMIT_AT.weight], held[PERMIT_AT.cost], now)
  end
  T.book_turn(lane)
  T.more_live(1, asker.ttl, now)
  local job, deadline
  if not is_caller then
    job = T.job(slot)
    local timeout = db.get(RECORD.shape, job.shape).timeout
    deadline = timeout and now + timeout
  end
  if deadline then
    T.timer_set('dl', deadline, lease_id)
  end
  local lease = {
    fence = fence, seq = seq, holder = asker.worker, granted_at = now, ttl = asker.ttl,
    deadline = deadline, limits = limits, resources = resources, request = asker.request, seen_at = now,
  }
  T.set_expiry(lease, T.expiry(asker.ttl, deadline, now))
  T.hold(asker.worker, 1, l.suspect)
  if is_caller then
    db.put(RECORD.lease, text(fence), lease)
    T.leave_lane(lane, arrival, slot, now)
  else
    T.leave_lane(lane, arrival, slot, now)
    T.run_job(job, lease, now)
  end
  return lease
end

-- A job that waits nowhere any more runs under this lease, from its grant on.
function T.run_job(job, lease, now)
  lease.begins = not job.started_at or nil
  job.lease, job.state, job.started_at, job.lane = lease, STATE.running, lease.granted_at, nil
  if job.expires_at then
    T.timer_clear('ex', T.pad(job.seq))
  end
  local q = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
  q.running = q.running + 1
  if job.unique and job.unique[UNIQUE_AT.ends] == UNTIL.start then
    T.drop_key(job.unique[UNIQUE_AT.key], job.seq, nil, now)
  end
  T.dirty(job)
end

-- A turn of fewer jobs that go the short way costs as much as one that goes the long way.
local FEW = 16
-- So many that need a keyed limit and go the short way cost as much.
local KEYED = 4

-- Takes up to `most` jobs of these queues, in their order, fewer if they bring more bytes than one answer
-- carries, of which `bytes` were granted before; the leases, whether the bounded work was not enough, and whether
-- another call may go on granting where this one had to stop. A grant that goes the long way takes some 60 us and
-- 40 more for each need but the first, so a call makes so many of them at most.
function T.take_jobs(queues, most, asker, bytes, now)
  local leases, steps, long = { n = 0, bytes = bytes }, B.TICK_MAX, B.TICK_MAX
  for _, queue in ipairs(queues) do
    local q = db.get(RECORD.queue, queue)
    while leases.n < most and leases.bytes < B.PAGE_BYTES_FULL and steps > 0 and long > 0 do
      -- What events have freed is opened first, so that order holds between what is open and what is
      -- about to be. For calls that are away that is done between grants.
      if asker.away and T.is_pending() then
        return leases, false, false
      elseif T.is_pending() then
        steps = steps - 1
        T.step_pending(now)
      else
        if not T.queue_is_open(queue, now) then
          break
        end
        local held = T.holding(asker.worker)
        local lane = T.next_lane(queue, not held or held.suspects == 0)
        if not lane then
          break
        end
        if asker.away and not T.goes_unasked(lane, q) then
          return leases, false, false
        end
        local had, l = leases.n, db.get(RECORD.lane, lane)
        if #l.needs == 0 and not l.suspect and not (q.limit and T.setting_of(q.limit)) then
          T.grant_short(lane, most - had, asker, leases, now)
        elseif #l.needs == 1 and not (q.limit and T.setting_of(q.limit)) then
          T.grant_keyed(lane, most - had, asker, leases, now)
        end
        if leases.n == had then
          if not try_lane(lane, now) then
            steps = steps - 1
          else
            long = long - max(#l.needs, 1)
            if not T.grant_held(lane, asker, leases, now) then
              local lease = T.grant_head(lane, asker, now)
              leases[#leases + 1], leases.n = lease, leases.n + 1
              leases.bytes = leases.bytes + T.job(lease.seq).bytes
            end
          end
        elseif #l.needs > 0 or leases.n - had < FEW then
          long = long - max(floor((leases.n - had) / KEYED), 1)
        end
      end
    end
  end
  return leases, steps == 0, long <= 0
end

-- A grant under a request id is remembered in the same step, beside what the request was granted before. `taker` and
-- `number`: the call that waited for it, and the parcel that brings it.
function T.remember_request(leases, asker, now, taker, number)
  if asker.request and #leases > 0 then
    local past = db.get(RECORD.request, asker.request) or { leases = '' }
    local names, runs = { past.leases }, {}
    for i, run in ipairs(past.runs or {}) do
      runs[i] = run
    end
    for _, lease in ipairs(leases) do
      if lease.short and lease.fence then
        runs[#runs + 1] = { lease.fence, lease.seq, lease.n }
      else
        names[#names + 1] = lease.short and concat(lease.names) or T.lease_id(lease.fence, lease.seq)
      end
    end
    db.put(RECORD.request, asker.request, {
      leases = concat(names), runs = runs[1] and runs, taker = taker or past.taker, number = number or past.number,
    })
    T.timer_set('rqe', now + B.REQUEST_US, asker.request)
  end
end

-- A request id is remembered for the life of its leases, and at least 60 s. How many leases it has.
function T.tick_request(id, now)
  local past = db.get(RECORD.request, id)
  if not past then
    return 0
  end
  -- Who has a life of his own expires by his name: to look there reads no row. Of the others their block tells.
  local names, lives, looked = T.lease_names(past.leases), false, 0
  for _, run in ipairs(past.runs or {}) do
    for i = 0, run[RUN_AT.many] - 1 do
      local fence, seq = run[RUN_AT.fence] + i, run[RUN_AT.seq] + i
      local k, at = T.block_of(seq)
      if k and not T.has_own_life(k, at) then
        looked, lives = looked + 1, lives or T.is_live_lease(fence, seq)
      else
        names[#names + 1] = T.lease_id(fence, seq)
      end
    end
  end
  looked, lives = looked + #names, lives or Z.any(KEY.expiries, names)
  if lives then
    T.timer_set('rqe', now + B.REQUEST_US, id)
  else
    db.drop(RECORD.request, id)
  end
  return looked
end

-- ---- Queues ----

-- The queue of a name; or nil.
function T.find_queue(name)
  local number = M.get('qn:' .. shard(name), name)
  return number and tonumber(number)
end

local function new_queue(number, name, now)
  return db.put(RECORD.queue, number, {
    name = name, priorities = {}, scheduled = 0, waiting = 0, blocked = 0, running = 0,
    succeeded = 0, failed = 0, cancelled = 0, hidden = not name or nil, since = now, used_at = now,
  })
end

-- The queue of a name, made if it is not there.
function T.queue_for(name, now)
  local known = T.find_queue(name)
  if known then
    local q = db.get(RECORD.queue, known)
    q.hidden, q.used_at = nil, max(q.used_at, now)
    return known
  end
  local number = db.number()
  M.put('qn:' .. shard(name), name, text(number))
  Z.add('ql', 0, name)
  local q = new_queue(number, name, now)
  T.timer_set('hk', now + B.FORGET_US, TIDY.queue .. text(number))
  -- Longer names, and those with a '*' in them, make no name of a limit.
  if #name + 6 <= B.NAME_BYTES_MAX and (name == '*' or not find(name, '*', 1, true)) then
    q.limit = 'queue:' .. name
    local l = T.limit_for(q.limit)
    l.uses = l.uses + 1
  end
  return number
end

-- The settings of a queue: {needs, retry, timeout, retain, max_waiting, shares}, each if it is set. They
-- lie apart, since every call writes the queue's record and few read these.
function T.queue_settings(queue)
  local q = db.get(RECORD.queue, queue)
  return q.set and db.get(RECORD.queue_setting, text(queue)) or {}
end

function T.set_queue_settings(queue, settings)
  db.put(RECORD.queue_setting, text(queue), settings)
  db.get(RECORD.queue, queue).set = true
end

-- The queue of callers: it has no name, so no job can be in it.
function T.callers()
  return db.get(RECORD.queue, CALLERS) or new_queue(CALLERS, nil, 0)
end
