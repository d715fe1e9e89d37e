-- Passes: a door that is due tries the first entry of each queue, one bounded step at a time.
--
-- It opens what may be served and never grants: who was opened is tried in the ready order.

-- The first entry of a queue at a door: one that reserves if it can be served, else the first in
-- order, since what is beyond a reservation is free for all.
function lib.first_entry(door, queue, now)
  local line = lib.find_line(door, queue)
  if not line then
    return nil
  end
  if line.whole then
    return ENTRY.queue .. text(queue)
  end
  local marked = lib.line_marked(door, queue, line)
  if marked and lib.entry_fits(door, marked, now) == 'yes' then
    return marked
  end
  return lib.line_first(door, queue, line) or marked
end

-- Whether a lane must stand behind others of its own queue at this door.
function lib.must_stand_behind(door, lane)
  local queue = db.get(RECORD.lane, lane).queue
  local arrival = lib.head(lane)
  if not arrival then
    return false
  end
  -- Lanes that reserve protect their demand by their marks, not by the order.
  local line = lib.find_line(door, queue)
  if not line then
    return false
  end
  local _, order, group = lib.line_first(door, queue, line)
  if not order then
    return false
  end
  local own = lib.group_of(lane)
  local of_own = lib.group_first(door, queue, own)
  if of_own and of_own < arrival then
    return true
  end
  local group_record = db.get(RECORD.group, own)
  local turns = lib.turns(queue, -group_record.priority)
  return group ~= own
    and order < lib.door_order(-group_record.priority, max(group_record.own, turns and turns.v or 0), arrival)
end

-- Whether the first entry of a queue could be served at this door now: a fit, and its moment.
function lib.entry_fits(door, entry, now)
  local lane = lib.entry_lane(entry)
  if not lane then
    local kind, name = lib.door_need(door)
    -- Where its own limit is not set any more the queue is open.
    if kind == DOOR.limit and lib.setting_of(name) then
      return lib.limit_fit(name, 1, 1, nil, now)
    end
    return 'yes'
  end
  for _, need in ipairs(db.see(RECORD.lane, lane).needs) do
    if lib.door_key(need) == door then
      return lib.need_fit(need, lane, now)
    end
  end
  -- Cannot be: an entry stands at the door of one of its needs. Trying it says so.
  return 'yes'
end

-- Sets the door's timer to the moment when a queue's first entry, or the one that reserves beside it,
-- may fit by time alone.
function lib.arm_door(door, queue, now)
  local line = lib.find_line(door, queue)
  if not line or line.out then
    return
  end
  local firsts
  if line.whole then
    firsts = { ENTRY.queue .. text(queue) }
  else
    firsts = { lib.line_marked(door, queue, line) or lib.line_first(door, queue, line) }
    if firsts[1] and line.marked.n > 0 then
      firsts[2] = (lib.line_first(door, queue, line))
    end
  end
  for i = 1, 2 do
    if firsts[i] then
      local fit, at = lib.entry_fits(door, firsts[i], now)
      if fit ~= 'no' then
        -- It may be served: what made it so has made the door due, or makes it now.
        lib.door_due(door)
      elseif at then
        lib.arm_door_at(door, at)
      end
    end
  end
end

function lib.arm_door_at(door, at)
  local door_record = db.get(RECORD.door, door)
  if not door_record.timer or at < door_record.timer then
    door_record.timer = at
    lib.timer_set('dt', at, door)
  end
end

-- A step of a bundle that stands at a door while lanes of it are out for others.
local function step_outs(what)
  local bundle = tonumber(sub(what, 2))
  local bundle_record = db.get(RECORD.bundle, bundle)
  if bundle_record and bundle_record.place and bundle_record.outs.n > 0 then
    lib.clear_out(ENTRY.lane .. inner.first(bundle_record.outs, 'bx:' .. text(bundle)))
  else
    inner.rem(db.space.pending, lib.PENDING, what)
  end
  return true
end

-- One bounded step of what is pending; false if nothing is.
function lib.step_pending(now)
  local pending = db.space.pending
  local door = inner.first(pending, lib.PENDING)
  if not door then
    return lib.step_family()
  elseif byte(door) == ENTRY_BYTE.bundle then
    return step_outs(door)
  end
  local door_record = db.get(RECORD.door, door)
  local again = lib.next_again(door_record, door)
  if again then
    lib.unpark(again)
    lib.park(again, door, now)
    return true
  end
  if door_record.pass == 0 or door_record.lines.n == 0 then
    door_record.pending = nil
    inner.rem(pending, lib.PENDING, door)
    lib.tidy_door(door, CALLERS)
    return true
  end
  door_record.pass = door_record.pass - 1
  -- The next queue behind the cursor, round and round.
  local _, queue = inner.after(door_record.lines, lib.door_lines(door), door_record.cursor or -1)
  if not queue then
    _, queue = inner.first(door_record.lines, lib.door_lines(door))
  end
  door_record.cursor = queue
  if lib.find_line(door, queue).out then
    return true
  end
  local entry = lib.first_entry(door, queue, now)
  if not entry then
    lib.drop_line_if_idle(door, queue)
    return true
  end
  local fit = lib.entry_fits(door, entry, now)
  if fit == 'no' then
    lib.arm_door(door, queue, now)
  elseif fit == 'never' then
    lib.unpark(entry)
    lib.park_misfit(entry, door)
    lib.door_due(door)
  else
    lib.unpark(entry)
    local record = lib.entry_record(entry)
    if byte(entry) == ENTRY_BYTE.lane and db.see(RECORD.bundle, record.bundle).place then
      -- It lacks a plain need too, and stands there with its bundle: this door goes on to the next.
      lib.bundle_changed(record.bundle, now)
      lib.door_due(door)
      return true
    end
    if lib.is_suspect(entry) then
      -- Some workers may not have it, so the door does not wait for it to be tried.
      lib.door_due(door)
      return true
    end
    if byte(entry) == ENTRY_BYTE.lane then
      inner.add(db.get(RECORD.bundle, record.bundle).outs, 'bx:' .. text(record.bundle),
        tonumber(sub(entry, 2)), sub(entry, 2))
    end
    lib.door_line(door, queue).out = entry
    record.out = door
    db.touched[queue] = true
    lib.unit(queue, 1)
  end
  return true
end
