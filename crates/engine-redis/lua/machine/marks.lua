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
    for _, lane in ipairs(call('ZRANGEBYSCORE', key, from, to, 'LIMIT', 0, B.TICK_MAX - #lanes)) do
      lanes[#lanes + 1] = tonumber(lane)
    end
  end
  read('(' .. text(behind), '+inf')
  if #lanes < B.TICK_MAX and behind > 0 then
    read('-inf', text(behind))
  end
  return lanes
end

-- Tries those who waited longest, at most 8; the others at the next tick. Whether what is marked may go on
-- reserving is looked at in turn.
function T.tick_marks(now)
  local space, fallen = db.space, {}
  local lanes = Z.lowest(MARKS) and some_marks(space.marks_at or 0) or {}
  for _, lane in ipairs(lanes) do
    if db.get(RECORD.mark, lane) and not T.may_reserve(lane, now) then
      fallen[#fallen + 1] = lane
    end
  end
  space.marks_at = #lanes == B.TICK_MAX and lanes[#lanes] or nil
  for _, lane in ipairs(fallen) do
    T.drop_mark(lane, now)
  end
  if Z.lowest(MARKS) then
    T.sooner(now + B.SECOND_US)
  end
  for _ = 1, B.MARKS_MAX do
    local entry = Z.due('imp', now)
    if not entry then
      return
    end
    T.wait_on(entry, now + B.RESERVE_RETRY_US)
    local lane = T.entry_lane(entry)
    if lane and not db.see(RECORD.lane, lane).marked and T.may_reserve(lane, now) and T.none_is_marked(lane) then
      T.mark(lane, now)
    end
  end
end

-- No need is closed by time, banned, unknown or never fits, and the queue's workers ask.
function T.may_reserve(lane, now)
  local l = db.get(RECORD.lane, lane)
  local q = db.get(RECORD.queue, l.queue)
  local asked = q.asked_at and q.asked_at + B.ASKED_US >= now
  if q.paused_until or not (asked or l.queue == CALLERS or T.has_takers(l.queue)) then
    return false
  end
  for _, need in ipairs(l.needs) do
    if need[NEED_AT.kind] == NEED.limit then
      local settings = T.setting_of(need[NEED_AT.name])
      if not settings then
        return false
      end
      local limit = db.get(RECORD.limit, need[NEED_AT.name])
      if limit.paused_until and limit.paused_until > now then
        return false
      end
      -- What rests alone leaves no room: only time opens it, so it is not kept for anybody.
      if settings.concurrency and limit.resting_sum + need[NEED_AT.weight] > settings.concurrency then
        return false
      end
      local rate = settings.rate
      if rate and (need[NEED_AT.cost] > rate[RATE_AT.burst]
        or need[NEED_AT.cost] > 0 and T.rate_fits_at(rate, limit.tat, need[NEED_AT.cost], now) > now) then
        return false
      end
    else
      local p = db.get(RECORD.pool, need[NEED_AT.name])
      if not p or not p.settings then
        return false
      end
      local count = need[NEED_AT.count]
      if need[NEED_AT.id] then
        local r = T.resource(need[NEED_AT.name], need[NEED_AT.id])
        if not (r and r.state == RESOURCE.available and not r.retiring and r.paced_until <= now) then
          return false
        end
      elseif need[NEED_AT.tag] then
        if T.tagged(need[NEED_AT.name], need[NEED_AT.tag]) < count then
          return false
        end
      -- What is not banned or cooling may come: an exact count would scan the pool.
      elseif p.ids.n < p.banned + p.cooling + count then
        return false
      end
    end
  end
  return true
end

function T.none_is_marked(lane)
  for _, need in ipairs(db.see(RECORD.lane, lane).needs) do
    if db.get(need[NEED_AT.kind] == NEED.limit and RECORD.limit or RECORD.pool, need[NEED_AT.name]).mark then
      return false
    end
  end
  return true
end

function T.mark(lane, now)
  local head = T.head(lane)
  if not head then
    return
  end
  -- A lane that parked with its bundle stands for itself from now on.
  local l = db.get(RECORD.lane, lane)
  local bundle = l.bundle
  if not l.place then
    local place = db.get(RECORD.bundle, bundle).place
    if not place or place.misfit then
      return
    end
    l.marked = true
    T.park(ENTRY.lane .. text(lane), place.door, now)
    T.bundle_changed(bundle, now)
  else
    T.move_marked(lane, true)
  end
  T.own_bundle(lane)
  Z.add(MARKS, lane, text(lane))
  db.put(RECORD.mark, lane, { head = head, since = now })
  T.sooner(now + B.SECOND_US)
  for _, need in ipairs(l.needs) do
    if need[NEED_AT.kind] == NEED.limit then
      db.get(RECORD.limit, need[NEED_AT.name]).mark = {
        lane = lane, weight = need[NEED_AT.weight], cost = need[NEED_AT.cost],
      }
    else
      db.get(RECORD.pool, need[NEED_AT.name]).mark = {
        lane = lane, tag = need[NEED_AT.tag], id = need[NEED_AT.id], count = need[NEED_AT.count], kept = {},
      }
      T.keep_free(need[NEED_AT.name], now)
    end
  end
  T.need_doors_due(l.needs, now)
end

-- A mark falls: what was kept is free for all, so its doors are due.
function T.drop_mark(lane, now)
  if not db.get(RECORD.mark, lane) then
    return
  end
  db.drop(RECORD.mark, lane)
  Z.rem(MARKS, text(lane))
  local needs = db.get(RECORD.lane, lane).needs
  for _, need in ipairs(needs) do
    if need[NEED_AT.kind] == NEED.limit then
      db.get(RECORD.limit, need[NEED_AT.name]).mark = nil
    else
      local p = db.get(RECORD.pool, need[NEED_AT.name])
      local kept = p.mark and p.mark.kept or {}
      p.mark = nil
      T.unkeep(need[NEED_AT.name], kept, now)
    end
  end
  T.move_marked(lane, nil)
  T.shared_bundle(lane, now)
  T.need_doors_due(needs, now)
end

function T.need_doors_due(needs, now)
  for _, need in ipairs(needs) do
    if need[NEED_AT.kind] == NEED.limit then
      T.door_due(DOOR.limit .. need[NEED_AT.name])
    else
      T.all_pool_doors_due(need[NEED_AT.name], now)
    end
  end
end

-- A changed setting may end the condition of a mark.
function T.recheck_marks_of(limit, now)
  local mark = db.get(RECORD.limit, limit).mark
  if mark and not T.may_reserve(mark.lane, now) then
    T.drop_mark(mark.lane, now)
  end
end

-- A paused queue reserves nothing. Of very many marks, those that are not looked at here fall at a tick.
function T.drop_marks_of_queue(queue, now)
  for _, lane in ipairs(some_marks(0)) do
    if db.get(RECORD.mark, lane) and db.see(RECORD.lane, lane).queue == queue then
      T.drop_mark(lane, now)
    end
  end
end

-- Whether a need fits now for a lane: a fit, and its moment.
function T.need_fit(need, lane, now)
  if need[NEED_AT.kind] == NEED.limit then
    return T.limit_fit(need[NEED_AT.name], need[NEED_AT.weight], need[NEED_AT.cost], lane, now)
  end
  return T.pool_fit(need[NEED_AT.name], need[NEED_AT.tag], need[NEED_AT.id], need[NEED_AT.count], lane)
end
