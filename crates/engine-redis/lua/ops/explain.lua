-- explain_job: what a job waits for, exactly; a refused grant told in reasons. It only reads.
--
-- args: a reference, {id, b} or {key}. Replies {id, state, lease = {fence, seq, holder, since,
-- expires_at, what it holds}, lost, run_at, reasons}. A reason is {kind, name, in_use, capacity, holders, position,
-- ahead, earliest} and what its kind adds: weight, held, behind; external; kept, for_job, since; count,
-- there, tag, id; why. Words are made of them outside. Refusals: job_not_found. Cost: a few commands
-- for a job that is next; at most a thousand lanes and a thousand resources are looked at for one that
-- is far behind.

-- When so many permits have rested; at most a thousand are looked at.
local function rested_at(name, missing)
  local sum, looked = 0, 0
  for member, at in O.each(db.get(RECORD.limit, name).resting, T.limit_resting(name)) do
    looked = looked + 1
    if looked > B.ITEMS_MAX then
      return nil
    end
    sum = sum + tonumber(sub(member, find(member, ':', 1, true) + 1))
    if sum >= missing then
      return at
    end
  end
end

-- What is kept for a lane that waited longer.
local function reserved(reason, lane, kept)
  reason.kind, reason.kept = 'reserved', kept
  local l, _, slot = db.get(RECORD.lane, lane), T.head(lane)
  if slot and l.queue ~= CALLERS then
    reason.for_job = T.job(slot).id
  end
  local mark = db.get(RECORD.mark, lane)
  reason.since = mark and mark.since or 0
  return reason
end

-- Why a limit cannot serve a need of a lane (or of nobody's) now.
local function explain_limit(name, weight, cost, lane, now)
  local settings = T.setting_of(name)
  if not settings then
    return {}
  end
  local l = db.get(RECORD.limit, name)
  local used, cap, rate = l.in_use + l.resting_sum, settings.concurrency, settings.rate
  local holders, reasons = T.holders(O.each(l.holders, T.limit_holders(name))), {}
  local function add(kind, more)
    more.kind, more.name, more.in_use, more.capacity, more.holders = kind, name, used, cap, holders
    reasons[#reasons + 1] = more
    return more
  end
  if l.paused_until and l.paused_until > now then
    add('limit_paused', { earliest = l.paused_until < T.FOREVER and l.paused_until or nil })
  end
  local mark = l.mark
  if mark and mark.lane == lane then
    mark = nil
  end
  local learns = cap and T.learns(now)
  if learns then
    add('limit', { weight = weight, held = l.in_use, learns = true, earliest = learns })
  elseif cap then
    if l.in_use + weight > cap then
      add('limit', { weight = weight, held = l.in_use })
    elseif used + weight > cap then
      add('gap', { earliest = rested_at(name, used + weight - cap) })
    elseif used + l.external + weight > cap then
      add('external', { external = l.external, earliest = l.external_until })
    elseif mark and used + l.external + weight + mark.weight > cap then
      reserved(add('reserved', {}), mark.lane, mark.weight)
    end
  end
  if rate and cost > 0 then
    local kept = mark and mark.cost or 0
    local at = T.rate_fits_at(rate, l.tat, min(cost + kept, rate[RATE_AT.burst]), now)
    if at > now then
      add('rate', { earliest = at })
    end
  end
  if #reasons == 0 then
    -- It fits, but others of its queue stand before it.
    add('limit', { weight = weight, held = l.in_use, behind = true })
  end
  return reasons
end

local function has_tag(r, tag)
  for _, own in ipairs(r.tags) do
    if own == tag then
      return true
    end
  end
end

-- Why a pool cannot serve a need of a lane (or of nobody's) now.
local function explain_pool(need, lane)
  local pool, tag, id, count = need[NEED_AT.name], need[NEED_AT.tag], need[NEED_AT.id], need[NEED_AT.count]
  local p = db.get(RECORD.pool, pool)
  local mark = p.mark
  if mark and mark.lane ~= lane and #mark.kept > 0 then
    return reserved({ name = pool }, mark.lane, mark.count)
  end
  local there
  if id then
    there = T.resource(pool, id) and 1 or 0
  else
    there = tag and T.tagged(pool, tag) or p.ids.n
  end
  local holders, held, looked, earliest = {}, 0, 0, nil
  local function look(r)
    if #r.holders > 0 then
      held = held + 1
    end
    for _, lease in ipairs(r.holders) do
      if #holders >= B.HOLDERS_SHOWN then
        break
      end
      holders[#holders + 1] = T.holder_of(lease)
    end
    if r.timer then
      earliest = earliest and min(earliest, r.timer) or r.timer
    end
  end
  if id then
    if there > 0 then
      look(T.resource(pool, id))
    end
  else
    for one in O.each(p.ids, T.pool_ids(pool)) do
      looked = looked + 1
      if looked > B.ITEMS_MAX then
        break
      end
      local r = T.resource(pool, one)
      if not tag or has_tag(r, tag) then
        look(r)
      end
    end
  end
  return {
    kind = 'pool', name = pool, in_use = held, capacity = there, holders = holders, count = count,
    there = there, tag = tag or nil, id = id or nil,
    -- Only where no holder can decide it sooner is the moment known.
    earliest = held == 0 and earliest or nil,
  }
end

local function explain_need(need, lane, now)
  if need[NEED_AT.kind] == NEED.limit then
    return explain_limit(need[NEED_AT.name], need[NEED_AT.weight], need[NEED_AT.cost], lane, now)
  end
  local reason = explain_pool(need, lane)
  local learns = T.learns(now)
  if learns then
    reason.learns, reason.earliest = true, learns
  end
  return { reason }
end

local function explain_door(place, lane, arrival, now)
  local door = place.door
  local kind, name = T.door_need(door)
  if place.misfit then
    local why = 'pool'
    if kind == DOOR.limit then
      why = T.setting_of(name) and 'above' or 'unset'
    end
    return { { kind = 'never_fits', name = name, why = why } }
  end
  local reasons = {}
  for _, need in ipairs(db.see(RECORD.lane, lane).needs) do
    if T.door_key(need) == door then
      reasons = explain_need(need, lane, now)
      break
    end
  end
  local ahead = T.ahead_at_door(door, lane, arrival)
  for _, reason in ipairs(reasons) do
    reason.ahead, reason.position = ahead, ahead + 1
  end
  return reasons
end

-- Why nobody takes a ready job of a queue: nobody asks, or all who ask are busy. Of those who ask the
-- first thousand are looked at.
local function explain_workers(queue, name, now)
  local q = db.get(RECORD.queue, queue)
  local function recent(at)
    return at and at + B.WORKER_US > now
  end
  if T.has_takers(queue) then
    return nil
  end
  if not recent(q.asked_at) then
    return { kind = 'no_worker', name = name }
  end
  local asking, busy, looked = 0, 0, 0
  for id in Z.each('wn') do
    looked = looked + 1
    if looked > B.ITEMS_MAX then
      return nil
    end
    local w = db.get(RECORD.worker, id)
    if recent(w.queues[queue]) then
      asking = asking + 1
      if T.holding(id) and w.waiting == 0 then
        busy = busy + 1
      end
    end
  end
  if asking > 0 and busy == asking then
    return { kind = 'workers_full', name = name, in_use = busy, capacity = asking }
  end
end

local function explain_waiting(job, now)
  local lane = T.lane_of_job(job)
  local l, reasons = db.get(RECORD.lane, lane), {}
  local q = db.get(RECORD.queue, l.queue)
  if q.paused_until and q.paused_until > now then
    reasons[1] = {
      kind = 'queue_paused', name = q.name,
      earliest = q.paused_until < T.FOREVER and q.paused_until or nil,
    }
  end
  if q.place and q.limit then
    local ahead = T.ahead_at_door(q.place.door, lane, job.arrival)
    for _, reason in ipairs(explain_limit(q.limit, 1, 1, nil, now)) do
      reason.ahead, reason.position = ahead, ahead + 1
      reasons[#reasons + 1] = reason
    end
  end
  local place = l.place or db.get(RECORD.bundle, l.bundle).place
  if place then
    for _, reason in ipairs(explain_door(place, lane, job.arrival, now)) do
      reasons[#reasons + 1] = reason
    end
    return reasons
  end
  local ahead = T.ahead_in_queue(lane, job.arrival)
  if ahead > 0 then
    reasons[#reasons + 1] = { kind = 'behind', name = q.name, ahead = ahead, position = ahead + 1 }
  end
  reasons[#reasons + 1] = explain_workers(l.queue, q.name, now)
  return reasons
end

-- Why a caller who waits for needs alone is not granted them now.
function T.reasons_of_caller(number, now)
  local caller = db.see(RECORD.caller, number)
  local lane, reasons = caller.lane, {}
  local l = db.get(RECORD.lane, lane)
  local place = l.place or db.get(RECORD.bundle, l.bundle).place
  for _, need in ipairs(l.needs) do
    if T.need_fit(need, nil, now) ~= 'yes' then
      for _, reason in ipairs(explain_need(need, nil, now)) do
        reasons[#reasons + 1] = reason
      end
      -- It has a place in one line only: that of the first need that it lacks.
      local last = reasons[#reasons]
      if last and place and place.door == T.door_key(need) then
        last.position = T.ahead_at_door(place.door, lane, caller.arrival) + 1
      end
    end
  end
  return reasons
end

T.op('explain_job', { 'no-writes' }, function(args, now)
  local job = T.must_name(args)
  local reply = { id = job.id, state = job.state, lost = job.lost, run_at = job.run_at, reasons = {} }
  if job.state == STATE.running then
    local lease = job.lease
    reply.lease = {
      lease.fence, job.seq, lease.holder or 'anonymous', lease.granted_at, lease.expires_at,
      T.held_by(lease),
    }
  elseif job.state == STATE.scheduled then
    reply.reasons[1] = { kind = 'scheduled', earliest = job.run_at }
  elseif job.state == STATE.ready then
    reply.state = T.state_of(job)
    reply.reasons = explain_waiting(job, now)
  end
  return reply
end)
