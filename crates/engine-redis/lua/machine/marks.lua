-- Reservation: a lane whose head stood parked past the namespace's patience keeps what frees.
--
-- It marks all its needs in one step, or none, and at most one lane marks a limit or a pool. A mark
-- keeps exactly the lane's own demand; what is beyond is free for all.

local MARKS = 'mks'

-- The lanes of so many marks behind a lane, and of those before it if these were not enough. It reads what is
-- stored: of what fell in this call there is no record.
local function some_marks(behind)
  local key, lanes = db.prefix .. MARKS, {}
  local function read(from, to)
    for _, lane in ipairs(call('ZRANGEBYSCORE', key, from, to, 'LIMIT', 0, BOUND.TICK_MAX - #lanes)) do
      lanes[#lanes + 1] = tonumber(lane)
    end
  end
  read('(' .. text(behind), '+inf')
  if #lanes < BOUND.TICK_MAX and behind > 0 then
    read('-inf', text(behind))
  end
  return lanes
end

-- Tries those who waited longest, at most 8; the others at the next tick. Whether what is marked may go on
-- reserving is looked at in turn.
function lib.tick_marks(now)
  local space, fallen = db.space, {}
  local lanes = sets.lowest(MARKS) and some_marks(space.marks_at or 0) or {}
  for _, lane in ipairs(lanes) do
    if db.get(RECORD.mark, lane) and not lib.may_reserve(lane, now) then
      fallen[#fallen + 1] = lane
    end
  end
  space.marks_at = #lanes == BOUND.TICK_MAX and lanes[#lanes] or nil
  for _, lane in ipairs(fallen) do
    lib.drop_mark(lane, now)
  end
  if sets.lowest(MARKS) then
    lib.sooner(now + BOUND.SECOND_US)
  end
  for _ = 1, BOUND.MARKS_MAX do
    local entry = sets.due('imp', now)
    if not entry then
      return
    end
    lib.wait_on(entry, now + BOUND.RESERVE_RETRY_US)
    local lane = lib.entry_lane(entry)
    if lane and not db.see(RECORD.lane, lane).marked and lib.may_reserve(lane, now) and lib.none_is_marked(lane) then
      lib.mark(lane, now)
    end
  end
end

-- No need is closed by time, banned, unknown or never fits, and the queue's workers ask.
function lib.may_reserve(lane, now)
  local lane_record = db.get(RECORD.lane, lane)
  local queue_record = db.get(RECORD.queue, lane_record.queue)
  local asked = queue_record.asked_at and queue_record.asked_at + BOUND.ASKED_US >= now
  if queue_record.paused_until or not (asked or lane_record.queue == CALLERS or lib.has_takers(lane_record.queue)) then
    return false
  end
  for _, need in ipairs(lane_record.needs) do
    if need[NEED_AT.kind] == NEED.limit then
      local settings = lib.setting_of(need[NEED_AT.name])
      if not settings then
        return false
      end
      local limit = db.get(RECORD.limit, need[NEED_AT.name])
      -- A gauge that is being read, or cannot be, is closed by time as well.
      if limit.paused_until and limit.paused_until > now or not lib.gauge_may_be_used(need[NEED_AT.name], limit, now) then
        return false
      end
      -- What rests alone leaves no room: only time opens it, so it is not kept for anybody.
      if settings.concurrency and limit.resting_sum + need[NEED_AT.weight] > settings.concurrency then
        return false
      end
      local rate = settings.rate
      if rate and (need[NEED_AT.cost] > rate[RATE_AT.burst]
        or need[NEED_AT.cost] > 0 and lib.rate_fits_at(rate, limit.tat, need[NEED_AT.cost], now) > now) then
        return false
      end
    else
      local pool_record = db.get(RECORD.pool, need[NEED_AT.name])
      if not pool_record or not pool_record.settings then
        return false
      end
      local count = need[NEED_AT.count]
      if need[NEED_AT.id] then
        local resource = lib.resource(need[NEED_AT.name], need[NEED_AT.id])
        if not (resource and resource.state == RESOURCE.available and not resource.retiring
          and resource.paced_until <= now) then
          return false
        end
      elseif need[NEED_AT.tag] then
        if lib.tagged(need[NEED_AT.name], need[NEED_AT.tag]) < count then
          return false
        end
      -- What is not banned or cooling may come: an exact count would scan the pool.
      elseif pool_record.ids.n < pool_record.banned + pool_record.cooling + count then
        return false
      end
    end
  end
  return true
end

function lib.none_is_marked(lane)
  for _, need in ipairs(db.see(RECORD.lane, lane).needs) do
    if db.get(need[NEED_AT.kind] == NEED.limit and RECORD.limit or RECORD.pool, need[NEED_AT.name]).mark then
      return false
    end
  end
  return true
end

function lib.mark(lane, now)
  local head = lib.head(lane)
  if not head then
    return
  end
  -- A lane that parked with its bundle stands for itself from now on.
  local lane_record = db.get(RECORD.lane, lane)
  local bundle = lane_record.bundle
  if not lane_record.place then
    local place = db.get(RECORD.bundle, bundle).place
    if not place or place.misfit then
      return
    end
    lane_record.marked = true
    lib.park(ENTRY.lane .. text(lane), place.door, now)
    lib.bundle_changed(bundle, now)
  else
    lib.move_marked(lane, true)
  end
  lib.own_bundle(lane)
  sets.add(MARKS, lane, text(lane))
  db.put(RECORD.mark, lane, { head = head, since = now })
  lib.sooner(now + BOUND.SECOND_US)
  for _, need in ipairs(lane_record.needs) do
    if need[NEED_AT.kind] == NEED.limit then
      db.get(RECORD.limit, need[NEED_AT.name]).mark = {
        lane = lane, weight = need[NEED_AT.weight], cost = need[NEED_AT.cost],
      }
    else
      db.get(RECORD.pool, need[NEED_AT.name]).mark = {
        lane = lane, tag = need[NEED_AT.tag], id = need[NEED_AT.id], count = need[NEED_AT.count], kept = {},
      }
      lib.keep_free(need[NEED_AT.name], now)
    end
  end
  lib.need_doors_due(lane_record.needs, now)
end

-- A mark falls: what was kept is free for all, so its doors are due.
function lib.drop_mark(lane, now)
  if not db.get(RECORD.mark, lane) then
    return
  end
  db.drop(RECORD.mark, lane)
  sets.rem(MARKS, text(lane))
  local needs = db.get(RECORD.lane, lane).needs
  for _, need in ipairs(needs) do
    if need[NEED_AT.kind] == NEED.limit then
      db.get(RECORD.limit, need[NEED_AT.name]).mark = nil
    else
      local pool_record = db.get(RECORD.pool, need[NEED_AT.name])
      local kept = pool_record.mark and pool_record.mark.kept or {}
      pool_record.mark = nil
      lib.unkeep(need[NEED_AT.name], kept, now)
    end
  end
  lib.move_marked(lane, nil)
  lib.shared_bundle(lane, now)
  lib.need_doors_due(needs, now)
end

function lib.need_doors_due(needs, now)
  for _, need in ipairs(needs) do
    if need[NEED_AT.kind] == NEED.limit then
      lib.door_due(DOOR.limit .. need[NEED_AT.name])
    else
      lib.all_pool_doors_due(need[NEED_AT.name], now)
    end
  end
end

-- A changed setting may end the condition of a mark.
function lib.recheck_marks_of(limit, now)
  local mark = db.get(RECORD.limit, limit).mark
  if mark and not lib.may_reserve(mark.lane, now) then
    lib.drop_mark(mark.lane, now)
  end
end

-- A paused queue reserves nothing. Of very many marks, those that are not looked at here fall at a tick.
function lib.drop_marks_of_queue(queue, now)
  for _, lane in ipairs(some_marks(0)) do
    if db.get(RECORD.mark, lane) and db.see(RECORD.lane, lane).queue == queue then
      lib.drop_mark(lane, now)
    end
  end
end

-- Whether a need fits now for a lane: a fit, and its moment.
function lib.need_fit(need, lane, now)
  if need[NEED_AT.kind] == NEED.limit then
    return lib.limit_fit(need[NEED_AT.name], need[NEED_AT.weight], need[NEED_AT.cost], lane, now)
  end
  return lib.pool_fit(need[NEED_AT.name], need[NEED_AT.tag], need[NEED_AT.id], need[NEED_AT.count], lane)
end
