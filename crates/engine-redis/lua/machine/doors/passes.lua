-- Passes: a door that is due tries the first entry of each queue, one bounded step at a time.
--
-- It opens what may be served and never grants: who was opened is tried in the ready order.

-- The first entry of a queue at a door: one that reserves if it can be served, else the first in
-- order, since what is beyond a reservation is free for all.
function T.first_entry(door, queue, now)
  local line = T.find_line(door, queue)
  if not line then
    return nil
  end
  if line.whole then
    return ENTRY.queue .. text(queue)
  end
  local marked = T.line_marked(door, queue, line)
  if marked and T.entry_fits(door, marked, now) == 'yes' then
    return marked
  end
  return T.line_first(door, queue, line) or marked
end

-- Whether a lane must stand behind others of its own queue at this door.
function T.must_stand_behind(door, lane)
  local queue = db.get(RECORD.lane, lane).queue
  local arrival = T.head(lane)
  if not arrival then
    return false
  end
  -- Lanes that reserve protect their demand by their marks, not by the order.
  local line = T.find_line(door, queue)
  if not line then
    return false
  end
  local _, order, group = T.line_first(door, queue, line)
  if not order then
    return false
  end
  local own = T.group_of(lane)
  local of_own = T.group_first(door, queue, own)
  if of_own and of_own < arrival then
    return true
  end
  local g = db.get(RECORD.group, own)
  local turns = T.turns(queue, -g.priority)
  return group ~= own
    and order < T.door_order(-g.priority, max(g.own, turns and turns.v or 0), arrival)
end

-- Whether the first entry of a queue could be served at this door now: a fit, and its moment.
function T.entry_fits(door, entry, now)
  local lane = T.entry_lane(entry)
  if not lane then
    local kind, name = T.door_need(door)
    -- Where its own limit is not set any more the queue is open.
    if kind == DOOR.limit and T.setting_of(name) then
      return T.limit_fit(name, 1, 1, nil, now)
    end
    return 'yes'
  end
  for _, need in ipairs(db.see(RECORD.lane, lane).needs) do
    if T.door_key(need) == door then
      return T.need_fit(need, lane, now)
    end
  end
  -- Cannot be: an entry stands at the door of one of its needs. Trying it says so.
  return 'yes'
end

-- Sets the door's timer to the moment when a queue's first entry, or the one that reserves beside it,
-- may fit by time alone.
function T.arm_door(door, queue, now)
  local line = T.find_line(door, queue)
  if not line or line.out then
    return
  end
  local firsts
  if line.whole then
    firsts = { ENTRY.queue .. text(queue) }
  else
    firsts = { T.line_marked(door, queue, line) or T.line_first(door, queue, line) }
    if firsts[1] and line.marked.n > 0 then
      firsts[2] = (T.line_first(door, queue, line))
    end
  end
  for i = 1, 2 do
    if firsts[i] then
      local fit, at = T.entry_fits(door, firsts[i], now)
      if fit ~= 'no' then
        -- It may be served: what made it so has made the door due, or makes it now.
        T.door_due(door)
      elseif at then
        T.arm_door_at(door, at)
      end
    end
  end
end

function T.arm_door_at(door, at)
  local d = db.get(RECORD.door, door)
  if not d.timer or at < d.timer then
    d.timer = at
    T.timer_set('dt', at, door)
  end
end

-- A step of a bundle that stands at a door while lanes of it are out for others.
local function step_outs(what)
  local bundle = tonumber(sub(what, 2))
  local b = db.get(RECORD.bundle, bundle)
  if b and b.place and b.outs.n > 0 then
    T.clear_out(ENTRY.lane .. O.first(b.outs, 'bx:' .. text(bundle)))
  else
    O.rem(db.space.pending, T.PENDING, what)
  end
  return true
end

-- One bounded step of what is pending; false if nothing is.
function T.step_pending(now)
  local pending = db.space.pending
  local door = O.first(pending, T.PENDING)
  if not door then
    return T.step_family()
  elseif byte(door) == ENTRY_BYTE.bundle then
    return step_outs(door)
  end
  local d = db.get(RECORD.door, door)
  local again = T.next_again(d, door)
  if again then
    T.unpark(again)
    T.park(again, door, now)
    return true
  end
  if d.pass == 0 or d.lines.n == 0 then
    d.pending = nil
    O.rem(pending, T.PENDING, door)
    T.tidy_door(door, CALLERS)
    return true
  end
  d.pass = d.pass - 1
  -- The next queue behind the cursor, round and round.
  local _, queue = O.after(d.lines, T.door_lines(door), d.cursor or -1)
  if not queue then
    _, queue = O.first(d.lines, T.door_lines(door))
  end
  d.cursor = queue
  if T.find_line(door, queue).out then
    return true
  end
  local entry = T.first_entry(door, queue, now)
  if not entry then
    T.drop_line_if_idle(door, queue)
    return true
  end
  local fit = T.entry_fits(door, entry, now)
  if fit == 'no' then
    T.arm_door(door, queue, now)
  elseif fit == 'never' then
    T.unpark(entry)
    T.park_misfit(entry, door)
    T.door_due(door)
  else
    T.unpark(entry)
    local record = T.entry_record(entry)
    if byte(entry) == ENTRY_BYTE.lane and db.see(RECORD.bundle, record.bundle).place then
      -- It lacks a plain need too, and stands there with its bundle: this door goes on to the next.
      T.bundle_changed(record.bundle, now)
      T.door_due(door)
      return true
    end
    if T.is_suspect(entry) then
      -- Some workers may not have it, so the door does not wait for it to be tried.
      T.door_due(door)
      return true
    end
    if byte(entry) == ENTRY_BYTE.lane then
      O.add(db.get(RECORD.bundle, record.bundle).outs, 'bx:' .. text(record.bundle),
        tonumber(sub(entry, 2)), sub(entry, 2))
    end
    T.door_line(door, queue).out = entry
    record.out = door
    db.touched[queue] = true
    T.unit(queue, 1)
  end
  return true
end
