-- Places at a door: who is parked, who leaves, and since when each head stands.
--
-- It keeps the order at a door and says when a door is due. It never opens one to serve: that is for
-- `passes`.

local function at_door_id(door, queue, group)
  return text(group) .. ':' .. text(queue) .. '\0' .. door
end
local function at_door_entries(id)
  return 'de:' .. id
end
local function line_order(door, queue)
  return 'do:' .. text(queue) .. '\0' .. door
end
local function line_marked(door, queue)
  return 'dk:' .. text(queue) .. '\0' .. door
end
lib.at_door_id, lib.at_door_entries, lib.line_order, lib.line_marks =
  at_door_id, at_door_entries, line_order, line_marked

-- Which of the needs of a lane a door is of, from 1 on.
local function need_at(lane_record, door)
  for at, need in ipairs(lane_record.needs) do
    if lib.door_key(need) == door then
      return at
    end
  end
end

-- The job at the head of a lane lacks a need. It is told once for each need since the job became ready: the lane knows of
-- its head, by its arrival, what was told last.
local function head_is_blocked(entry, door)
  local lane = lib.keeps_events() and lib.entry_lane(entry)
  local lane_record = lane and db.get(RECORD.lane, lane)
  if not lane_record or lane_record.queue == CALLERS then
    return
  end
  local arrival, seq = lib.head(lane)
  local at = arrival and need_at(lane_record, door)
  local job = at and not (lane_record.told == arrival and lane_record.told_need == at) and lib.job(seq)
  if job then
    lane_record.told, lane_record.told_need = arrival, at
    local kind, name = lib.door_need(door)
    lib.job_event(EVENT.job_blocked, job, { kind, name })
  end
end

-- Somebody stands here now, perhaps only because the gauge has not been read lately. One that is put aside is counted in
-- its line, too.
local function somebody_stands(door)
  local need, name = lib.door_need(door)
  if need == DOOR.limit then
    lib.order_gauge(name)
  end
end

-- Parks an entry at the door of a need that its head lacks.
function lib.park(entry, door, now)
  lib.door_for(door)
  local head = lib.entry_head(entry) or 0
  lib.insert_entry(door, entry, head)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    lib.place_bundle(number, { door = door })
    lib.outs_stand_again(number)
  elseif kind == ENTRY.lane then
    lib.place_lane(number, { door = door })
  else
    db.get(RECORD.queue, number).place = { door = door }
  end
  lib.start_wait(entry, head, now)
  lib.arm_door(door, lib.entry_queue(entry), now)
  somebody_stands(door)
  head_is_blocked(entry, door)
end

-- Puts an entry aside: as the settings are it can never be served here.
function lib.park_misfit(entry, door)
  local door_record = lib.door_for(door)
  lib.put_aside(door_record, door, entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  local place = { door = door, misfit = true }
  if kind == ENTRY.bundle then
    lib.place_bundle(number, place)
    lib.outs_stand_again(number)
  elseif kind == ENTRY.lane then
    lib.place_lane(number, place)
  else
    db.get(RECORD.queue, number).place = place
  end
  somebody_stands(door)
  head_is_blocked(entry, door)
end

-- Lanes that other doors opened now stand with their bundle: those doors go on. Of many, who are left
-- do so as steps of what is pending: until then their doors wait for lanes that nobody can try.
function lib.outs_stand_again(bundle)
  local bundle_record = db.get(RECORD.bundle, bundle)
  for _ = 1, BOUND.STEPS_MAX do
    if bundle_record.outs.n == 0 then
      return
    end
    lib.clear_out(ENTRY.lane .. inner.first(bundle_record.outs, 'bx:' .. text(bundle)))
  end
  if bundle_record.outs.n > 0 then
    lib.outs_due(bundle)
  end
end

-- Puts a group in its place in a queue's order at a door.
local function reorder(door, queue, line, group, id, rank)
  local at_door = db.get(RECORD.door_group, id)
  if at_door.ordered then
    inner.rem(line.order, line_order(door, queue), at_door.ordered)
    at_door.ordered = nil
  end
  local _, arrival = inner.first(at_door.entries, at_door_entries(id))
  if arrival then
    at_door.ordered = lib.door_order(rank, at_door.tag, arrival) .. ':' .. text(group)
    inner.add(line.order, line_order(door, queue), 0, at_door.ordered)
  else
    db.drop(RECORD.door_group, id)
  end
end

-- Rank, time and arrival as text that sorts as they do.
function lib.door_order(rank, tag, arrival)
  return format('%03d', rank + 100) .. lib.pad(tag) .. lib.pad(arrival)
end

function lib.insert_entry(door, entry, head)
  local queue = lib.entry_queue(entry)
  if byte(entry) == ENTRY_BYTE.queue then
    lib.door_line(door, queue).whole = true
    return
  end
  local record = lib.entry_record(entry)
  record.parked_key = head
  local line = lib.door_line(door, queue)
  if record.marked then
    inner.add(line.marked, line_marked(door, queue), head, entry)
    return
  end
  local group = lib.entry_group(entry)
  local group_record = db.get(RECORD.group, group)
  local rank = -group_record.priority
  local turns = lib.turns(queue, rank)
  local id = at_door_id(door, queue, group)
  local at_door = db.get(RECORD.door_group, id) or db.put(RECORD.door_group, id, { tag = 0, entries = inner.new() })
  -- A group's time at a door is that of its last arrival there: what it is granted elsewhere does
  -- not move those who stand, since that would be no event of this door.
  at_door.tag = max(at_door.tag, group_record.own, turns and turns.v or 0)
  inner.add(at_door.entries, at_door_entries(id), head, entry)
  reorder(door, queue, line, group, id, rank)
end

function lib.remove_entry(door, entry, head)
  local queue = lib.entry_queue(entry)
  local line = lib.find_line(door, queue)
  if not line then
    return
  end
  if byte(entry) == ENTRY_BYTE.queue then
    line.whole = nil
    return
  end
  if lib.entry_record(entry).marked then
    inner.rem(line.marked, line_marked(door, queue), entry)
    return
  end
  local group = lib.entry_group(entry)
  local id = at_door_id(door, queue, group)
  local at_door = db.get(RECORD.door_group, id)
  if at_door then
    inner.rem(at_door.entries, at_door_entries(id), entry)
    reorder(door, queue, line, group, id, -db.see(RECORD.group, group).priority)
  end
end

-- The first in a line's order: its entry, its order, its group; or nil.
function lib.line_first(door, queue, line)
  local order = inner.first(line.order, line_order(door, queue))
  if order then
    local group = tonumber(sub(order, 37))
    local id = at_door_id(door, queue, group)
    return inner.first(db.get(RECORD.door_group, id).entries, at_door_entries(id)), sub(order, 1, 35), group
  end
end

-- The arrival of the first entry of a group in a line; or nil.
function lib.group_first(door, queue, group)
  local id = at_door_id(door, queue, group)
  local at_door = db.get(RECORD.door_group, id)
  if at_door then
    local _, arrival = inner.first(at_door.entries, at_door_entries(id))
    return arrival
  end
end

-- The entry of a line that reserves and is first; or nil.
function lib.line_marked(door, queue, line)
  return (inner.first(line.marked, line_marked(door, queue)))
end

-- Takes an entry away from its door and opens it; the door, or nil if it stood open.
function lib.unpark(entry)
  local record = lib.entry_record(entry)
  local place = record.place
  if not place then
    return nil
  end
  local door = place.door
  if place.misfit then
    lib.take_from_aside(db.get(RECORD.door, door), door, entry)
  else
    lib.remove_entry(door, entry, record.parked_key)
  end
  lib.stop_wait(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    lib.place_bundle(number, nil)
  elseif kind == ENTRY.lane then
    lib.place_lane(number, nil)
  else
    record.place = nil
    db.touched[number] = true
  end
  return door
end

-- As `lib.unpark`, for good: the door goes on to the next.
function lib.leave_door(entry)
  local queue = lib.entry_queue(entry)
  local door = lib.unpark(entry)
  if door then
    lib.door_due(door)
    lib.tidy_door(door, queue)
  end
end

-- What a lane's new head, new length or end means for where it stands.
function lib.lane_changed(lane, now)
  local head = lib.head(lane)
  local lane_record = db.get(RECORD.lane, lane)
  if lane_record.marked and db.see(RECORD.mark, lane).head ~= head then
    lib.drop_mark(lane, now)
  end
  if not lane_record.place then
    lib.order_lane(lane)
  elseif not head then
    lib.leave_door(ENTRY.lane .. text(lane))
  elseif not lane_record.place.misfit and head ~= lane_record.parked_key then
    lib.rekey(lane_record.place.door, ENTRY.lane .. text(lane), head, now)
  end
  if not head then
    lib.clear_out(ENTRY.lane .. text(lane))
  end
  lib.bundle_changed(lane_record.bundle, now)
end

function lib.bundle_changed(bundle, now)
  local bundle_record = db.get(RECORD.bundle, bundle)
  local _, head = inner.first(bundle_record.open, lib.bundle_open(bundle))
  if not bundle_record.place then
    if not head then
      lib.clear_out(ENTRY.bundle .. text(bundle))
    end
  elseif not head then
    lib.leave_door(ENTRY.bundle .. text(bundle))
  elseif not bundle_record.place.misfit and head ~= bundle_record.parked_key then
    lib.rekey(bundle_record.place.door, ENTRY.bundle .. text(bundle), head, now)
  end
end

function lib.rekey(door, entry, head, now)
  lib.remove_entry(door, entry, lib.entry_record(entry).parked_key)
  lib.insert_entry(door, entry, head)
  lib.start_wait(entry, head, now)
  lib.door_due(door)
end

-- An entry that was out is tried, or is empty: its queue stands at the door again.
function lib.clear_out(entry)
  local record = lib.entry_record(entry)
  local door = record.out
  if not door then
    return
  end
  record.out = nil
  if byte(entry) == ENTRY_BYTE.lane then
    inner.rem(db.get(RECORD.bundle, record.bundle).outs, 'bx:' .. text(record.bundle), sub(entry, 2))
  end
  local queue = lib.entry_queue(entry)
  local line = lib.find_line(door, queue)
  if line then
    line.out = nil
  end
  lib.door_due(door)
  lib.tidy_door(door, queue)
end

-- ---- Patience ----

local IMPATIENT = 'imp'

function lib.start_wait(entry, head, now)
  if byte(entry) == ENTRY_BYTE.queue then
    return
  end
  lib.stop_wait(entry)
  local record = lib.entry_record(entry)
  -- The head may have stood elsewhere before, as a lane in a bundle or the other way.
  local other
  if byte(entry) == ENTRY_BYTE.bundle then
    local lane = lib.entry_lane(entry)
    other = lane and db.get(RECORD.lane, lane)
  else
    other = db.get(RECORD.bundle, record.bundle)
  end
  local since = now
  if record.head == head and record.since > 0 then
    since = record.since
  elseif other and other.head == head and other.since > 0 then
    since = other.since
  end
  local try_at = max(since + db.space.patience, now)
  record.head, record.since, record.try_at = head, since, try_at
  lib.timer_set(IMPATIENT, try_at, entry)
end

-- Takes an entry out of the list of those who lose patience; what is known of its head stays.
function lib.stop_wait(entry)
  if byte(entry) == ENTRY_BYTE.queue then
    return
  end
  local record = lib.entry_record(entry)
  if record.try_at then
    lib.timer_clear(IMPATIENT, entry)
    record.try_at = nil
  end
end

-- Tries an entry for a reservation later again.
function lib.wait_on(entry, try_at)
  lib.stop_wait(entry)
  if byte(entry) ~= ENTRY_BYTE.queue then
    lib.entry_record(entry).try_at = try_at
    lib.timer_set(IMPATIENT, try_at, entry)
  end
end

-- A lane that reserves is first at its door; one that does no more stands in its order again.
function lib.move_marked(lane, marked)
  local lane_record = db.get(RECORD.lane, lane)
  local entry = ENTRY.lane .. text(lane)
  if lane_record.place and not lane_record.place.misfit then
    lib.remove_entry(lane_record.place.door, entry, lane_record.parked_key)
    lane_record.marked = marked
    lib.insert_entry(lane_record.place.door, entry, lane_record.parked_key)
    lib.door_due(lane_record.place.door)
  else
    lane_record.marked = marked
  end
end
