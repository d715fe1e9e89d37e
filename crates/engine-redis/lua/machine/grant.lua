-- The grant: a lane's head gets its turn, its permits, its tokens, its resources and its lease in one
-- step, or nothing at all and its lane stands in the line of the first need that it lacks.
--
-- Who asks is {worker = id or nil, ttl, request = id or nil, away = the call waits elsewhere (machine/parcels)}.

-- Whether the head of an open lane may go now; if not, its lane or its bundle stands at the door of the
-- first need that it lacks.
function lib.may_go(lane, now)
  local lane_record = db.get(RECORD.lane, lane)
  local marked = lane_record.marked
  for _, need in ipairs(lane_record.needs) do
    local door = lib.door_key(need)
    local fit
    if not marked and db.get(RECORD.door, door) and lib.must_stand_behind(door, lane) then
      fit = 'no'
    else
      fit = lib.need_fit(need, lane, now)
    end
    if fit ~= 'yes' then
      local bundle, own = ENTRY.bundle .. text(lane_record.bundle), ENTRY.lane .. text(lane)
      lib.clear_out(own)
      lib.clear_out(bundle)
      local entry = lib.is_plain(need) and not marked and bundle or own
      if fit == 'no' then
        lib.park(entry, door, now)
      else
        lib.park_misfit(entry, door)
      end
      return false
    end
  end
  return true
end

-- Tries the head of an open lane: whether it may go; if not, it stands at a door now.
local function try_lane(lane, now)
  if not lib.may_go(lane, now) then
    return false
  end
  local lane_record = db.see(RECORD.lane, lane)
  if lane_record.out then
    lib.clear_out(ENTRY.lane .. text(lane))
  end
  if db.see(RECORD.bundle, lane_record.bundle).out then
    lib.clear_out(ENTRY.bundle .. text(lane_record.bundle))
  end
  return true
end

-- The same, and grants it: the lease, or nil.
function lib.try_lane(lane, asker, now)
  return try_lane(lane, now) and lib.grant_head(lane, asker, now) or nil
end

-- Whether a queue's own limit lets one more go; if not, the queue stands at that door.
function lib.queue_is_open(queue, now)
  local queue_record = db.get(RECORD.queue, queue)
  if queue_record.paused_until and queue_record.paused_until > now or queue_record.place then
    return false
  end
  if not queue_record.limit then
    return true
  end
  lib.clear_out(ENTRY.queue .. text(queue))
  if not lib.setting_of(queue_record.limit) then
    return true
  end
  local fit = lib.limit_fit(queue_record.limit, 1, 1, nil, now)
  if fit == 'yes' then
    return true
  elseif fit == 'no' then
    lib.park(ENTRY.queue .. text(queue), DOOR.limit .. queue_record.limit, now)
  else
    lib.park_misfit(ENTRY.queue .. text(queue), DOOR.limit .. queue_record.limit)
  end
  return false
end

function lib.grant_head(lane, asker, now)
  local arrival, slot = lib.head(lane)
  local lane_record = db.get(RECORD.lane, lane)
  if lane_record.marked then
    lib.drop_mark(lane, now)
  end
  local queue = lane_record.queue
  local queue_record = db.get(RECORD.queue, queue)
  local fence = lib.next_fence(now)
  local is_caller = queue == CALLERS
  local seq = is_caller and 0 or slot
  local lease_id = lib.lease_id(fence, seq)
  local limits, resources = {}, {}
  local own = queue_record.limit
  if own and lib.setting_of(own) then
    for _, need in ipairs(lane_record.needs) do
      if need[NEED_AT.kind] == NEED.limit and need[NEED_AT.name] == own then
        own = nil
        break
      end
    end
    if own then
      limits[1] = { own, 1, 1 }
    end
  end
  for _, need in ipairs(lane_record.needs) do
    if need[NEED_AT.kind] == NEED.limit then
      limits[#limits + 1] = { need[NEED_AT.name], need[NEED_AT.weight], need[NEED_AT.cost] }
    else
      for _, id in ipairs(lib.take_resources(need, lane, lease_id, now)) do
        resources[#resources + 1] = { need[NEED_AT.name], id }
      end
    end
  end
  for _, held in ipairs(limits) do
    local limit = held[PERMIT_AT.limit]
    inner.add(db.get(RECORD.limit, limit).holders, lib.limit_holders(limit), fence, lease_id)
    held[PERMIT_AT.cost] = lib.take_limit(limit, held[PERMIT_AT.weight], held[PERMIT_AT.cost], now)
  end
  lib.book_turn(lane)
  lib.more_live(1, asker.ttl, now)
  local job, deadline
  if not is_caller then
    job = lib.job(slot)
    local timeout = db.get(RECORD.shape, job.shape).timeout
    deadline = timeout and now + timeout
  end
  if deadline then
    lib.timer_set('dl', deadline, lease_id)
  end
  local lease = {
    fence = fence, seq = seq, holder = asker.worker, granted_at = now, ttl = asker.ttl,
    deadline = deadline, limits = limits, resources = resources, request = asker.request, seen_at = now,
  }
  lib.set_expiry(lease, lib.expiry(asker.ttl, deadline, now))
  lib.hold(asker.worker, 1, lane_record.suspect)
  if is_caller then
    db.put(RECORD.lease, text(fence), lease)
    lib.leave_lane(lane, arrival, slot, now)
    lib.granted_event(lease, nil)
  else
    lib.leave_lane(lane, arrival, slot, now)
    lib.run_job(job, lease, now)
    lib.granted_event(lease, job)
  end
  return lease
end

-- A job that waits nowhere any more runs under this lease, from its grant on.
function lib.run_job(job, lease, now)
  lease.begins = not job.started_at or nil
  job.lease, job.state, job.started_at, job.lane = lease, STATE.running, lease.granted_at, nil
  if job.expires_at then
    lib.timer_clear('ex', lib.pad(job.seq))
  end
  local queue_record = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
  queue_record.running = queue_record.running + 1
  if job.unique and job.unique[UNIQUE_AT.ends] == UNTIL.start then
    lib.drop_key(job.unique[UNIQUE_AT.key], job.seq, nil, now)
  end
  lib.dirty(job)
end

-- A turn of fewer jobs that go the short way costs as much as one that goes the long way.
local FEW = 16
-- This many that need limits and go the short way cost as much.
local WITH_LIMITS = 4

-- Takes up to `most` jobs of these queues, in their order, fewer if they bring more bytes than one answer
-- carries, of which `bytes` were granted before; the leases, whether the bounded work was not enough, and whether
-- another call may go on granting where this one had to stop. A grant that goes the long way takes some 60 us and
-- 40 more for each need but the first, so a call makes so many of them at most.
function lib.take_jobs(queues, most, asker, bytes, now)
  local leases, steps, long = { n = 0, bytes = bytes }, BOUND.TICK_MAX, BOUND.TICK_MAX
  for _, queue in ipairs(queues) do
    local queue_record = db.get(RECORD.queue, queue)
    while leases.n < most and leases.bytes < BOUND.PAGE_BYTES_FULL and steps > 0 and long > 0 do
      -- What events have freed is opened first, so that order holds between what is open and what is
      -- about to be. For calls that are away that is done between grants.
      if asker.away and lib.is_pending() then
        return leases, false, false
      elseif lib.is_pending() then
        steps = steps - 1
        lib.step_pending(now)
      else
        if not lib.queue_is_open(queue, now) then
          break
        end
        local holding = lib.holding(asker.worker)
        local lane = lib.next_lane(queue, not holding or holding.suspects == 0)
        if not lane then
          break
        end
        if asker.away and not lib.goes_unasked(lane, queue_record) then
          return leases, false, false
        end
        local had, lane_record = leases.n, db.get(RECORD.lane, lane)
        if #lane_record.needs == 0 and not lane_record.suspect
          and not (queue_record.limit and lib.setting_of(queue_record.limit)) then
          lib.grant_short(lane, most - had, asker, leases, now)
        elseif #lane_record.needs == 1 and not (queue_record.limit and lib.setting_of(queue_record.limit)) then
          lib.grant_keyed(lane, most - had, asker, leases, now)
        end
        if leases.n == had then
          if not try_lane(lane, now) then
            steps = steps - 1
          else
            local held = lib.grant_held(lane, most - had, asker, leases, now)
            long = long - max(#lane_record.needs, floor(held / WITH_LIMITS), 1)
            if held == 0 then
              local lease = lib.grant_head(lane, asker, now)
              leases[#leases + 1], leases.n = lease, leases.n + 1
              leases.bytes = leases.bytes + lib.job(lease.seq).bytes
            end
          end
        elseif #lane_record.needs > 0 or leases.n - had < FEW then
          long = long - max(floor((leases.n - had) / WITH_LIMITS), 1)
        end
      end
    end
  end
  return leases, steps == 0, long <= 0
end

-- A grant under a request id is remembered in the same step, beside what the request was granted before. `taker` and
-- `number`: the call that waited for it, and the parcel that brings it.
function lib.remember_request(leases, asker, now, taker, number)
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
        names[#names + 1] = lease.short and concat(lease.names) or lib.lease_id(lease.fence, lease.seq)
      end
    end
    db.put(RECORD.request, asker.request, {
      leases = concat(names), runs = runs[1] and runs, taker = taker or past.taker, number = number or past.number,
    })
    lib.timer_set('rqe', now + BOUND.REQUEST_US, asker.request)
  end
end

-- A request id is remembered for the life of its leases, and at least 60 s. How many leases it has.
function lib.tick_request(id, now)
  local past = db.get(RECORD.request, id)
  if not past then
    return 0
  end
  -- Who has a life of his own expires by his name: to look there reads no row. Of the others their block tells.
  local names, lives, looked = lib.lease_names(past.leases), false, 0
  for _, run in ipairs(past.runs or {}) do
    for i = 0, run[RUN_AT.many] - 1 do
      local fence, seq = run[RUN_AT.fence] + i, run[RUN_AT.seq] + i
      local block, at = lib.block_of(seq)
      if block and not lib.has_own_life(block, at) then
        looked, lives = looked + 1, lives or lib.is_live_lease(fence, seq)
      else
        names[#names + 1] = lib.lease_id(fence, seq)
      end
    end
  end
  looked, lives = looked + #names, lives or sets.any(KEY.expiries, names)
  if lives then
    lib.timer_set('rqe', now + BOUND.REQUEST_US, id)
  else
    db.drop(RECORD.request, id)
  end
  return looked
end

-- ---- Queues ----

-- The queue of a name; or nil.
function lib.find_queue(name)
  local number = maps.get('qn:' .. shard(name), name)
  return number and tonumber(number)
end

local function new_queue(number, name, now)
  return db.put(RECORD.queue, number, {
    name = name, priorities = {}, dependent = 0, scheduled = 0, waiting = 0, blocked = 0, running = 0,
    succeeded = 0, failed = 0, cancelled = 0, hidden = not name or nil, since = now, used_at = now,
  })
end

-- The queue of a name, made if it is not there.
function lib.queue_for(name, now)
  local known = lib.find_queue(name)
  if known then
    local queue_record = db.get(RECORD.queue, known)
    queue_record.hidden, queue_record.used_at = nil, max(queue_record.used_at, now)
    return known
  end
  local number = db.number()
  maps.put('qn:' .. shard(name), name, text(number))
  sets.add('ql', 0, name)
  local queue_record = new_queue(number, name, now)
  lib.timer_set('hk', now + BOUND.FORGET_US, TIDY.queue .. text(number))
  -- Longer names, and those with a '*' in them, make no name of a limit.
  if #name + 6 <= BOUND.NAME_BYTES_MAX and (name == '*' or not find(name, '*', 1, true)) then
    queue_record.limit = 'queue:' .. name
    local limit_record = lib.limit_for(queue_record.limit)
    limit_record.uses = limit_record.uses + 1
  end
  return number
end

-- The settings of a queue: {needs, retry, timeout, retain, max_waiting, lost_delay, shares}, each if it is set.
-- They lie apart, since every call writes the queue's record and few read these.
function lib.queue_settings(queue)
  local queue_record = db.get(RECORD.queue, queue)
  return queue_record.set and db.get(RECORD.queue_setting, text(queue)) or {}
end

function lib.set_queue_settings(queue, settings)
  db.put(RECORD.queue_setting, text(queue), settings)
  db.get(RECORD.queue, queue).set = true
end

-- The queue of callers: it has no name, so no job can be in it.
function lib.callers()
  return db.get(RECORD.queue, CALLERS) or new_queue(CALLERS, nil, 0)
end
