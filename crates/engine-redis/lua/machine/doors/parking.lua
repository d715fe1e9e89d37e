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
T.at_door_id, T.at_door_entries, T.line_order, T.line_marks =
  at_door_id, at_door_entries, line_order, line_marked

-- Parks an entry at the door of a need that its head lacks.
function T.park(entry, door, now)
  T.door_for(door)
  local head = T.entry_head(entry) or 0
  T.insert_entry(door, entry, head)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    T.place_bundle(number, { door = door })
    T.outs_stand_again(number)
  elseif kind == ENTRY.lane then
    T.place_lane(number, { door = door })
  else
    db.get(RECORD.queue, number).place = { door = door }
  end
  T.start_wait(entry, head, now)
  T.arm_door(door, T.entry_queue(entry), now)
end

-- Puts an entry aside: as the settings are it can never be served here.
function T.park_misfit(entry, door)
  local d = T.door_for(door)
  T.put_aside(d, door, entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  local place = { door = door, misfit = true }
  if kind == ENTRY.bundle then
    T.place_bundle(number, place)
    T.outs_stand_again(number)
  elseif kind == ENTRY.lane then
    T.place_lane(number, place)
  else
    db.get(RECORD.queue, number).place = place
  end
end

-- Lanes that other doors opened now stand with their bundle: those doors go on. Of many, who are left
-- do so as steps of what is pending: until then their doors wait for lanes that nobody can try.
function T.outs_stand_again(bundle)
  local b = db.get(RECORD.bundle, bundle)
  for _ = 1, B.STEPS_MAX do
    if b.outs.n == 0 then
      return
    end
    T.clear_out(ENTRY.lane .. O.first(b.outs, 'bx:' .. text(bundle)))
  end
  if b.outs.n > 0 then
    T.outs_due(bundle)
  end
end

-- Puts a group in its place in a queue's order at a door.
local function reorder(door, queue, line, group, id, rank)
  local at_door = db.get(RECORD.door_group, id)
  if at_door.ordered then
    O.rem(line.order, line_order(door, queue), at_door.ordered)
    at_door.ordered = nil
  end
  local _, arrival = O.first(at_door.entries, at_door_entries(id))
  if arrival then
    at_door.ordered = T.door_order(rank, at_door.tag, arrival) .. ':' .. text(group)
    O.add(line.order, line_order(door, queue), 0, at_door.ordered)
  else
    db.drop(RECORD.door_group, id)
  end
end

-- Rank, time and arrival as text that sorts as they do.
function T.door_order(rank, tag, arrival)
  return format('%03d', rank + 100) .. T.pad(tag) .. T.pad(arrival)
end

function T.insert_entry(door, entry, head)
  local queue = T.entry_queue(entry)
  if byte(entry) == ENTRY_BYTE.queue then
    T.door_line(door, queue).whole = true
    return
  end
  local record = T.entry_record(entry)
  record.parked_key = head
  local line = T.door_line(door, queue)
  if record.marked then
    O.add(line.marked, line_marked(door, queue), head, entry)
    return
  end
  local group = T.entry_group(entry)
  local g = db.get(RECORD.group, group)
  local rank = -g.priority
  local turns = T.turns(queue, rank)
  local id = at_door_id(door, queue, group)
  local at_door = db.get(RECORD.door_group, id) or db.put(RECORD.door_group, id, { tag = 0, entries = O.new() })
  -- A group's time at a door is that of its last arrival there: what it is granted elsewhere does
  -- not move those who stand, since that would be no event of this door.
  at_door.tag = max(at_door.tag, g.own, turns and turns.v or 0)
  O.add(at_door.entries, at_door_entries(id), head, entry)
  reorder(door, queue, line, group, id, rank)
end

function T.remove_entry(door, entry, head)
  local queue = T.entry_queue(entry)
  local line = T.find_line(door, queue)
  if not line then
    return
  end
  if byte(entry) == ENTRY_BYTE.queue then
    line.whole = nil
    return
  end
  if T.entry_record(entry).marked then
    O.rem(line.marked, line_marked(door, queue), entry)
    return
  end
  local group = T.entry_group(entry)
  local id = at_door_id(door, queue, group)
  local at_door = db.get(RECORD.door_group, id)
  if at_door then
    O.rem(at_door.entries, at_door_entries(id), entry)
    reorder(door, queue, line, group, id, -db.see(RECORD.group, group).priority)
  end
end

-- The first in a line's order: its entry, its order, its group; or nil.
function T.line_first(door, queue, line)
  local order = O.first(line.order, line_order(door, queue))
  if order then
    local group = tonumber(sub(order, 37))
    local id = at_door_id(door, queue, group)
    return O.first(db.get(RECORD.door_group, id).entries, at_door_entries(id)), sub(order, 1, 35), group
  end
end

-- The arrival of the first entry of a group in a line; or nil.
function T.group_first(door, queue, group)
  local id = at_door_id(door, queue, group)
  local at_door = db.get(RECORD.door_group, id)
  if at_door then
    local _, arrival = O.first(at_door.entries, at_door_entries(id))
    return arrival
  end
end

-- The entry of a line that reserves and is first; or nil.
function T.line_marked(door, queue, line)
  return (O.first(line.marked, line_marked(door, queue)))
end

-- Takes an entry away from its door and opens it; the door, or nil if it stood open.
function T.unpark(entry)
  local record = T.entry_record(entry)
  local place = record.place
  if not place then
    return nil
  end
  local door = place.door
  if place.misfit then
    T.take_from_aside(db.get(RECORD.door, door), door, entry)
  else
    T.remove_entry(door, entry, record.parked_key)
  end
  T.stop_wait(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    T.place_bundle(number, nil)
  elseif kind == ENTRY.lane then
    T.place_lane(number, nil)
  else
    record.place = nil
    db.touched[number] = true
  end
  return door
end

-- As `T.unpark`, for good: the door goes on to the next.
function T.leave_door(entry)
  local queue = T.entry_queue(entry)
  local door = T.unpark(entry)
  if door then
    T.door_due(door)
    T.tidy_door(door, queue)
  end
end

-- What a lane's new head, new length or end means for where it stands.
function T.lane_changed(lane, now)
  local head = T.head(lane)
  local l = db.get(RECORD.lane, lane)
  if l.marked and db.see(RECORD.mark, lane).head ~= head then
    T.drop_mark(lane, now)
  end
  if not l.place then
    T.order_lane(lane)
  elseif not head then
    T.leave_door(ENTRY.lane .. text(lane))
  elseif not l.place.misfit and head ~= l.parked_key then
    T.rekey(l.place.door, ENTRY.lane .. text(lane), head, now)
  end
  if not head then
    T.clear_out(ENTRY.lane .. text(lane))
  end
  T.bundle_changed(l.bundle, now)
end

function T.bundle_changed(bundle, now)
  local b = db.get(RECORD.bundle, bundle)
  local _, head = O.first(b.open, T.bundle_open(bundle))
  if not b.place then
    if not head then
      T.clear_out(ENTRY.bundle .. text(bundle))
    end
  elseif not head then
    T.leave_door(ENTRY.bundle .. text(bundle))
  elseif not b.place.misfit and head ~= b.parked_key then
    T.rekey(b.place.door, ENTRY.bundle .. text(bundle), head, now)
  end
end

function T.rekey(door, entry, head, now)
  T.remove_entry(door, entry, T.entry_record(entry).parked_key)
  T.insert_entry(door, entry, head)
  T.start_wait(entry, head, now)
  T.door_due(door)
end

-- An entry that was out is tried, or is empty: its queue stands at the door again.
function T.clear_out(entry)
  local record = T.entry_record(entry)
  local door = record.out
  if not door then
    return
  end
  record.out = nil
  if byte(entry) == ENTRY_BYTE.lane then
    O.rem(db.get(RECORD.bundle, record.bundle).outs, 'bx:' .. text(record.bundle), sub(entry, 2))
  end
  local queue = T.entry_queue(entry)
  local line = T.find_line(door, queue)
  if line then
    line.out = nil
  end
  T.door_due(door)
  T.tidy_door(door, queue)
end

-- ---- Patience ----

local IMPATIENT = 'imp'

function T.start_wait(entry, head, now)
  if byte(entry) == ENTRY_BYTE.queue then
    return
  end
  T.stop_wait(entry)
  local record = T.entry_record(entry)
  -- The head may have stood elsewhere before, as a lane in a bundle or the other way.
  local other
  if byte(entry) == ENTRY_BYTE.bundle then
    local lane = T.entry_lane(entry)
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
  T.timer_set(IMPATIENT, try_at, entry)
end

-- Takes an entry out of the list of those who lose patience; what is known of its head stays.
function T.stop_wait(entry)
  if byte(entry) == ENTRY_BYTE.queue then
    return
  end
  local record = T.entry_record(entry)
  if record.try_at then
    T.timer_clear(IMPATIENT, entry)
    record.try_at = nil
  end
end

-- Tries an entry for a reservation later again.
function T.wait_on(entry, try_at)
  T.stop_wait(entry)
  if byte(entry) ~= ENTRY_BYTE.queue then
    T.entry_record(entry).try_at = try_at
    T.timer_set(IMPATIENT, try_at, entry)
  end
end

-- A lane that reserves is first at its door; one that does no more stands in its order again.
function T.move_marked(lane, marked)
  local l = db.get(RECORD.lane, lane)
  local entry = ENTRY.lane .. text(lane)
  if l.place and not l.place.misfit then
    T.remove_entry(l.place.door, entry, l.parked_key)
    l.marked = marked
    T.insert_entry(l.place.door, entry, l.parked_key)
    T.door_due(l.place.door)
  else
    l.marked = marked
  end
end
