-- explain_job: what a job waits for, exactly; a refused grant told in reasons. It only reads.
--
-- args: a reference, {id, b} or {key}. Replies {id, state, lease = {fence, seq, holder, since,
-- expires_at, what it holds}, lost, run_at, reasons}. A reason is {kind, name, in_use, capacity, holders, position,
-- ahead, earliest} and what its kind adds: weight, held, behind; external; unread, error, since; kept, for_job, since; count,
-- there, tag, id; why; ended. Words are made of them outside. Refusals: job_not_found. Cost: a few commands
-- for a job that is next; at most a thousand lanes and a thousand resources are looked at for one that
-- is far behind.

-- When so many permits have rested; at most a thousand are looked at.
local function rested_at(name, missing)
  local sum, looked = 0, 0
  for member, at in inner.each(db.get(RECORD.limit, name).resting, lib.limit_resting(name)) do
    looked = looked + 1
    if looked > BOUND.ITEMS_MAX then
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
  local lane_record, _, slot = db.get(RECORD.lane, lane), lib.head(lane)
  if slot and lane_record.queue ~= CALLERS then
    reason.for_job = lib.job(slot).id
  end
  local mark = db.get(RECORD.mark, lane)
  reason.since = mark and mark.since or 0
  return reason
end

-- Why a limit cannot serve a need of a lane (or of nobody's) now.
local function explain_limit(name, weight, cost, lane, now)
  local settings = lib.setting_of(name)
  if not settings then
    return {}
  end
  local limit_record = db.get(RECORD.limit, name)
  local used, cap, rate = limit_record.in_use + limit_record.resting_sum, settings.concurrency, settings.rate
  local holders, reasons = lib.holders(inner.each(limit_record.holders, lib.limit_holders(name))), {}
  local function add(kind, more)
    more.kind, more.name, more.in_use, more.capacity, more.holders = kind, name, used, cap, holders
    reasons[#reasons + 1] = more
    return more
  end
  if limit_record.paused_until and limit_record.paused_until > now then
    add('limit_paused', { earliest = limit_record.paused_until < lib.FOREVER and limit_record.paused_until or nil })
  end
  if not lib.gauge_may_be_used(name, limit_record, now) then
    local gauge = db.get(RECORD.gauge, name)
    add('external', { unread = not gauge.failed_at, since = gauge.failing_since, error = gauge.error })
  end
  local mark = limit_record.mark
  if mark and mark.lane == lane then
    mark = nil
  end
  local learns = cap and lib.learns(now)
  if learns then
    add('limit', { weight = weight, held = limit_record.in_use, learns = true, earliest = learns })
  elseif cap then
    if limit_record.in_use + weight > cap then
      add('limit', { weight = weight, held = limit_record.in_use })
    elseif used + weight > cap then
      add('gap', { earliest = rested_at(name, used + weight - cap) })
    elseif used + limit_record.external + weight > cap then
      add('external', { external = limit_record.external, earliest = limit_record.external_until })
    elseif mark and used + limit_record.external + weight + mark.weight > cap then
      reserved(add('reserved', {}), mark.lane, mark.weight)
    end
  end
  if rate and cost > 0 then
    local kept = mark and mark.cost or 0
    local at = lib.rate_fits_at(rate, limit_record.tat, min(cost + kept, rate[RATE_AT.burst]), now)
    if at > now then
      add('rate', { earliest = at })
    end
  end
  if #reasons == 0 then
    -- It fits, but others of its queue stand before it.
    add('limit', { weight = weight, held = limit_record.in_use, behind = true })
  end
  return reasons
end

local function has_tag(resource, tag)
  for _, own in ipairs(resource.tags) do
    if own == tag then
      return true
    end
  end
end

-- Why a pool cannot serve a need of a lane (or of nobody's) now.
local function explain_pool(need, lane)
  local pool, tag, id, count = need[NEED_AT.name], need[NEED_AT.tag], need[NEED_AT.id], need[NEED_AT.count]
  local pool_record = db.get(RECORD.pool, pool)
  local mark = pool_record.mark
  if mark and mark.lane ~= lane and #mark.kept > 0 then
    return reserved({ name = pool }, mark.lane, mark.count)
  end
  local there
  if id then
    there = lib.resource(pool, id) and 1 or 0
  else
    there = tag and lib.tagged(pool, tag) or pool_record.ids.n
  end
  local holders, held, looked, earliest = {}, 0, 0, nil
  local function look(resource)
    if #resource.holders > 0 then
      held = held + 1
    end
    for _, lease in ipairs(resource.holders) do
      if #holders >= BOUND.HOLDERS_SHOWN then
        break
      end
      holders[#holders + 1] = lib.holder_of(lease)
    end
    if resource.timer then
      earliest = earliest and min(earliest, resource.timer) or resource.timer
    end
  end
  if id then
    if there > 0 then
      look(lib.resource(pool, id))
    end
  else
    for one in inner.each(pool_record.ids, lib.pool_ids(pool)) do
      looked = looked + 1
      if looked > BOUND.ITEMS_MAX then
        break
      end
      local resource = lib.resource(pool, one)
      if not tag or has_tag(resource, tag) then
        look(resource)
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
  local learns = lib.learns(now)
  if learns then
    reason.learns, reason.earliest = true, learns
  end
  return { reason }
end

local function explain_door(place, lane, arrival, now)
  local door = place.door
  local kind, name = lib.door_need(door)
  if place.misfit then
    local why = 'pool'
    if kind == DOOR.limit then
      why = lib.setting_of(name) and 'above' or 'unset'
    end
    return { { kind = 'never_fits', name = name, why = why } }
  end
  local reasons = {}
  for _, need in ipairs(db.see(RECORD.lane, lane).needs) do
    if lib.door_key(need) == door then
      reasons = explain_need(need, lane, now)
      break
    end
  end
  local ahead = lib.ahead_at_door(door, lane, arrival)
  for _, reason in ipairs(reasons) do
    reason.ahead, reason.position = ahead, ahead + 1
  end
  return reasons
end

-- Why nobody takes a ready job of a queue: nobody asks, or all who ask are busy. Of those who ask the
-- first thousand are looked at.
local function explain_workers(queue, name, now)
  local queue_record = db.get(RECORD.queue, queue)
  local function recent(at)
    return at and at + BOUND.WORKER_US > now
  end
  if lib.has_takers(queue) then
    return nil
  end
  if not recent(queue_record.asked_at) then
    return { kind = 'no_worker', name = name }
  end
  local asking, busy, looked = 0, 0, 0
  for id in sets.each('wn') do
    looked = looked + 1
    if looked > BOUND.ITEMS_MAX then
      return nil
    end
    local worker_record = db.get(RECORD.worker, id)
    if recent(worker_record.queues[queue]) then
      asking = asking + 1
      if lib.holding(id) and worker_record.waiting == 0 then
        busy = busy + 1
      end
    end
  end
  if asking > 0 and busy == asking then
    return { kind = 'workers_full', name = name, in_use = busy, capacity = asking }
  end
end

local function explain_waiting(job, now)
  local lane = lib.lane_of_job(job)
  local lane_record, reasons = db.get(RECORD.lane, lane), {}
  local queue_record = db.get(RECORD.queue, lane_record.queue)
  if queue_record.paused_until and queue_record.paused_until > now then
    reasons[1] = {
      kind = 'queue_paused', name = queue_record.name,
      earliest = queue_record.paused_until < lib.FOREVER and queue_record.paused_until or nil,
    }
  end
  if queue_record.place and queue_record.limit then
    local ahead = lib.ahead_at_door(queue_record.place.door, lane, job.arrival)
    for _, reason in ipairs(explain_limit(queue_record.limit, 1, 1, nil, now)) do
      reason.ahead, reason.position = ahead, ahead + 1
      reasons[#reasons + 1] = reason
    end
  end
  local place = lane_record.place or db.get(RECORD.bundle, lane_record.bundle).place
  if place then
    for _, reason in ipairs(explain_door(place, lane, job.arrival, now)) do
      reasons[#reasons + 1] = reason
    end
    return reasons
  end
  local ahead = lib.ahead_in_queue(lane, job.arrival)
  if ahead > 0 then
    reasons[#reasons + 1] = { kind = 'behind', name = queue_record.name, ahead = ahead, position = ahead + 1 }
  end
  reasons[#reasons + 1] = explain_workers(lane_record.queue, queue_record.name, now)
  return reasons
end

-- Why a caller who waits for needs alone is not granted them now.
function lib.reasons_of_caller(number, now)
  local caller = db.see(RECORD.caller, number)
  local lane, reasons = caller.lane, {}
  local lane_record = db.get(RECORD.lane, lane)
  local place = lane_record.place or db.get(RECORD.bundle, lane_record.bundle).place
  for _, need in ipairs(lane_record.needs) do
    if lib.need_fit(need, nil, now) ~= 'yes' then
      for _, reason in ipairs(explain_need(need, nil, now)) do
        reasons[#reasons + 1] = reason
      end
      -- It has a place in one line only: that of the first need that it lacks.
      local last = reasons[#reasons]
      if last and place and place.door == lib.door_key(need) then
        last.position = lib.ahead_at_door(place.door, lane, caller.arrival) + 1
      end
    end
  end
  return reasons
end

-- One reason for each parent that is not done, or is telling its end, up to a bound.
local function explain_dependent(job)
  local kin, reasons = job.kin, {}
  for _, parent in lib.each_parent(job.seq, kin[KIN_AT.parents], 0) do
    if #reasons >= BOUND.HOLDERS_SHOWN then
      break
    end
    if lib.is_edge_open(parent, job.seq, kin[KIN_AT.turn]) then
      local row, flow = parent[PARENT_AT.row], parent[PARENT_AT.flow]
      local ended = flow and lib.look_at_flow(flow) ~= 'open' or row and not lib.live(row)
      reasons[#reasons + 1] = {
        kind = 'waiting_on', name = flow and 'flow:' .. flow or parent[PARENT_AT.id], ended = ended,
        in_use = kin[KIN_AT.parents] - kin[KIN_AT.open], capacity = kin[KIN_AT.parents],
      }
    end
  end
  return reasons
end

lib.op('explain_job', { 'no-writes' }, function(args, now)
  local job = lib.must_name(args)
  local reply = { id = job.id, state = job.state, lost = job.lost, run_at = job.run_at, reasons = {} }
  if job.state == STATE.running then
    local lease = job.lease
    reply.lease = {
      lease.fence, job.seq, lease.holder or 'anonymous', lease.granted_at, lease.expires_at,
      lib.held_by(lease),
    }
  elseif job.state == STATE.scheduled then
    reply.reasons[1] = { kind = 'scheduled', earliest = job.run_at }
  elseif job.state == STATE.dependent then
    reply.reasons = explain_dependent(job)
  elseif job.state == STATE.ready then
    reply.state = lib.state_of(job)
    reply.reasons = explain_waiting(job, now)
  end
  return reply
end)
