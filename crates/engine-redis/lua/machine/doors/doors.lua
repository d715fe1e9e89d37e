-- Doors: where what lacks a need stands, in order, and how an event opens them.
--
-- The invariant that the rest depends on: the first entry of a queue at a door cannot be served, or
-- that queue has an entry out for this door, or the door is pending. Every event by which a door may
-- serve more goes through `T.door_due`; nothing else opens a door, and no call does more than a
-- bounded number of steps.
--
-- A door is named by its need: 'l' and the limit; 'p', the pool, NUL and '' (any), 't' and the tag or
-- 'i' and the id. An entry is 'b', 'l' or 'q' and the number of a bundle, a lane or a queue.
-- A fit is 'yes', 'no' (and the moment at which time alone may change it, if that can be said), or
-- 'never' (as the settings are).

function T.door_key(need)
  if need[1] == 'l' then
    return 'l' .. need[2]
  end
  return T.pool_door(need[2], need[3], need[5])
end

function T.pool_door(pool, tag, id)
  return 'p' .. pool .. '\0' .. (id and 'i' .. id or tag and 't' .. tag or '')
end

-- The limit or the pool of a door: 'l' and the name, or 'p' and the pool, tag, id.
function T.door_need(door)
  if byte(door) == 108 then
    return 'l', sub(door, 2)
  end
  local nul = find(door, '\0', 1, true)
  local which, rest = sub(door, nul + 1, nul + 1), sub(door, nul + 2)
  return 'p', sub(door, 2, nul - 1), which == 't' and rest or false, which == 'i' and rest or false
end

function T.door_lines(door)
  return 'ds:' .. door
end
local door_lines = T.door_lines
local function door_misfits(door)
  return 'dm:' .. door
end
local function door_retry(door)
  return 'dr:' .. door
end
T.door_misfits, T.door_retry = door_misfits, door_retry

local function line_id(door, queue)
  return text(queue) .. '\0' .. door
end

-- Sorts as bundles, lanes, queues, each by number.
local KINDS = { b = 0, l = 1, q = 2 }
function T.entry_score(entry)
  return KINDS[sub(entry, 1, 1)] * 1099511627776 + tonumber(sub(entry, 2))
end

function T.door_for(door)
  local d = db.get('d', door)
  if d then
    return d
  end
  d = db.put('d', door, { lines = O.new(), pass = 0, misfits = O.new(), retry = O.new(), waiting = 0 })
  local kind, name, tag, id = T.door_need(door)
  if kind == 'l' then
    T.limit_for(name)
  else
    T.pool_door_opened(name, tag, id, door)
  end
  return d
end

-- The line of a queue at a door, if it is there.
function T.find_line(door, queue)
  return db.get('dl', line_id(door, queue))
end

-- The same, made if it is not there.
function T.door_line(door, queue)
  local id = line_id(door, queue)
  local line = db.get('dl', id)
  if not line then
    line = db.put('dl', id, { marked = O.new(), order = O.new(), waiting = 0 })
    O.add(db.get('d', door).lines, door_lines(door), queue, text(queue))
  end
  return line
end

function T.drop_line_if_idle(door, queue)
  local line = T.find_line(door, queue)
  if line and not line.whole and line.marked.n == 0 and line.order.n == 0 and not line.out
    and line.waiting == 0 then
    db.drop('dl', line_id(door, queue))
    O.rem(db.get('d', door).lines, door_lines(door), text(queue))
  end
end

-- Drops what nobody stands at.
function T.tidy_door(door, queue)
  T.drop_line_if_idle(door, queue)
  local d = db.get('d', door)
  if d.lines.n > 0 or d.misfits.n > 0 or d.retry.n > 0 or d.pending then
    return
  end
  if d.timer then
    T.timer_clear('dt', door)
  end
  db.drop('d', door)
  local kind, name, tag, id = T.door_need(door)
  if kind == 'l' then
    T.drop_limit_if_idle(name)
  else
    T.pool_door_closed(name, tag, id)
    T.drop_pool_if_idle(name)
  end
end

-- This door may serve more than before: lengthens its pass to a whole lap from where it is. It never
-- starts one again from the front, or the queues behind would be forgotten.
function T.door_due(door)
  local d = db.get('d', door)
  if not d or d.lines.n == 0 and d.retry.n == 0 then
    return
  end
  d.pass = d.lines.n
  if not d.pending then
    d.pending = true
    local pending = db.space.pending
    pending[#pending + 1] = door
  end
end

-- The settings behind a door changed: what could never fit may fit now. They are tried again one by
-- one, as steps of what is pending.
function T.retry_misfits(door)
  local d = db.get('d', door)
  -- Bounded by what stands aside for this very name; each costs a step when it is tried.
  for entry in O.each(d.misfits, door_misfits(door)) do
    O.add(d.retry, door_retry(door), T.entry_score(entry), entry)
  end
  while d.misfits.n > 0 do
    O.rem(d.misfits, door_misfits(door), (O.first(d.misfits, door_misfits(door))))
  end
  T.door_due(door)
end

-- The doors of a pool, those of these tags and this id only if they are there.
function T.pool_doors_due(pool, tags, id)
  T.door_due(T.pool_door(pool))
  local p = db.get('p', pool)
  if p.doors.n > (db.get('d', T.pool_door(pool)) and 1 or 0) then
    for _, tag in ipairs(tags) do
      T.door_due(T.pool_door(pool, tag))
    end
    T.door_due(T.pool_door(pool, false, id))
  end
end

-- ---- Entries ----

-- A bundle's, a lane's or a queue's record.
function T.entry_record(entry)
  return db.get(sub(entry, 1, 1), tonumber(sub(entry, 2)))
end

function T.entry_queue(entry)
  if byte(entry) == 113 then
    return tonumber(sub(entry, 2))
  end
  return T.entry_record(entry).queue
end

-- The lane whose head is the first of an entry; or nil.
function T.entry_lane(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == 'b' then
    local lane = O.first(db.get('b', number).open, T.bundle_open(number))
    return lane and tonumber(lane)
  elseif kind == 'l' then
    return number
  end
end

function T.entry_group(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == 'b' then
    return db.get('b', number).group
  end
  return T.group_of(number)
end

function T.entry_head(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == 'b' then
    local _, head = O.first(db.get('b', number).open, T.bundle_open(number))
    return head
  elseif kind == 'l' then
    return (T.head(number))
  end
  return 0
end

function T.is_suspect(entry)
  return byte(entry) ~= 113 and T.entry_record(entry).suspect
end
