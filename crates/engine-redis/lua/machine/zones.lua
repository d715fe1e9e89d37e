-- Zone data: by which the moments of cron schedules outside UTC are computed.
--
-- It is part of a release, so in a rolling upgrade processes differ. A namespace knows the newest that a live process has
-- announced by its ticks; this never goes down. When it becomes newer, what was planned by other data is planned anew
-- from its cursor, 256 schedules looked at in a tick. Versions are compared as text. A schedule knows the oldest data
-- that a moment of its plan may be of (`zones`), nil where no zone matters.

local UTC = 'UTC'

local function has_zone(schedule_record)
  local zone = schedule_record.timing[TIMING_AT.zone]
  return lib.is_cron(schedule_record) and zone and zone ~= UTC or false
end

-- A process that ticks plans by this data.
function lib.hear_zones(data, now)
  local space = db.space
  if data and (space.zones or '') < data then
    space.zones = data
    if sets.lowest('sl') then
      lib.go_on({ 'zones', '', '' }, now)
    end
  end
end

-- A moment that a `next_in` set stays, and one that has ended has none to plan.
local function plan_anew(id, now)
  local schedule_record = db.see(RECORD.schedule, id)
  if not schedule_record or schedule_record.shell or not has_zone(schedule_record) or schedule_record.moved
    or schedule_record.zones == db.space.zones or lib.has_ended(id, schedule_record) then
    return
  end
  schedule_record = db.get(RECORD.schedule, id)
  lib.leave_orders(id, schedule_record)
  schedule_record.wanted_at = nil
  lib.begin_after(schedule_record, schedule_record.cursor)
  lib.order_schedule(id, schedule_record, nil, now)
end

-- A step {'zones', '', behind which id}: a portion of the schedules is looked at.
function lib.step_zones(step, now)
  local looked, after = 0, step[STEP_AT.at]
  for id in lib.names({ 'sl' }, after ~= '' and after or nil) do
    if looked == BOUND.TICK_MAX then
      return false
    end
    looked, step[STEP_AT.at] = looked + 1, id
    plan_anew(id, now)
  end
  return true
end

-- What of moments that were computed by this data, {moment, due, passed, …}, may be planned, and whether no moment
-- follows; or nil. By data that is older than the newest no more than one moment that lies ahead is planned: so a change
-- of a law is late by one moment at most, and a downgrade does not stand still.
function lib.of_known_zones(schedule_record, moments, last, data, now)
  local plan = schedule_record.plan
  if data >= (db.space.zones or '') or not has_zone(schedule_record) then
    return moments, last
  elseif #plan > 0 and plan[#plan - 1] > now then
    return nil
  end
  local some = {}
  for i = 1, #moments, 3 do
    some[i], some[i + 1], some[i + 2] = unpack(moments, i, i + 2)
    if some[i + 1] > now then
      return some, last and i + 2 == #moments
    end
  end
  return some, last
end

-- Moments that were computed by this data are about to be planned behind those that are.
function lib.note_zones(schedule_record, data)
  local known = #schedule_record.plan > 0 and schedule_record.zones
  if not has_zone(schedule_record) then
    schedule_record.zones = nil
  elseif not known or data < known then
    schedule_record.zones = data
  end
end
