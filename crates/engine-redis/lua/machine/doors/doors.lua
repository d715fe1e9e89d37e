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
  if need[NEED_AT.kind] == NEED.limit then
    return DOOR.limit .. need[NEED_AT.name]
  end
  return T.pool_door(need[NEED_AT.name], need[NEED_AT.tag], need[NEED_AT.id])
end

function T.pool_door(pool, tag, id)
  return DOOR.pool .. pool .. '\0' .. (id and POOL_DOOR.resource .. id or tag and POOL_DOOR.tag .. tag or '')
end

-- The limit or the pool of a door: 'l' and the name, or 'p' and the pool, tag, id.
function T.door_need(door)
  if byte(door) == DOOR_BYTE.limit then
    return DOOR.limit, sub(door, 2)
  end
  local nul = find(door, '\0', 1, true)
  local which, rest = sub(door, nul + 1, nul + 1), sub(door, nul + 2)
  return DOOR.pool, sub(door, 2, nul - 1), which == POOL_DOOR.tag and rest or false,
    which == POOL_DOOR.resource and rest or false
end

function T.door_lines(door)
  return 'ds:' .. door
end
local door_lines = T.door_lines
function T.door_aside(door)
  return 'dm:' .. door
end
local door_aside = T.door_aside

local function line_id(door, queue)
  return text(queue) .. '\0' .. door
end

-- ---- What is pending ----
--
-- Doors that are due, and bundles of which lanes are still out, in the order in which they came: a set of
-- `m` itself while they are few. Each costs steps of its own; no call takes more than a bounded number.

local PENDING = 'pend'
T.PENDING = PENDING

local function pend(what)
  O.add(db.space.pending, PENDING, db.number(), what)
end

-- Whether there is a step to be done.
function T.is_pending()
  local space = db.space
  return space.pending.n > 0 or space.family or space.families.n > 0
end

-- ---- Those aside ----
--
-- Who can never fit as the settings are stands in `aside` under the door's round. A change of the settings
-- begins a new round: who is there under an older one is tried again, one by one, as steps of what is
-- pending. So a change moves nobody, and a second one that comes meanwhile is as cheap.

-- Sorts as bundles, lanes, queues, each by number.
function T.aside_name(entry)
  return sub(entry, 1, 1) .. T.pad(tonumber(sub(entry, 2)))
end

function T.put_aside(d, door, entry)
  O.add(d.aside, door_aside(door), d.round, T.aside_name(entry))
end

function T.take_from_aside(d, door, entry)
  O.rem(d.aside, door_aside(door), T.aside_name(entry))
end

-- The entry of such a name.
function T.entry_aside(name)
  return sub(name, 1, 1) .. text(tonumber(sub(name, 2)))
end

-- The next that is tried again; or nil.
function T.next_again(d, door)
  if d.aside.n > 0 then
    local name, round = O.first(d.aside, door_aside(door))
    if round < d.round then
      return T.entry_aside(name)
    end
  end
end

function T.door_for(door)
  local d = db.get(RECORD.door, door)
  if d then
    return d
  end
  d = db.put(RECORD.door, door, { lines = O.new(), pass = 0, aside = O.new(), round = 0, waiting = 0 })
  local kind, name, tag, id = T.door_need(door)
  if kind == DOOR.limit then
    T.limit_for(name)
  else
    T.pool_door_opened(name, tag, id, door)
  end
  return d
end

-- The line of a queue at a door, if it is there.
function T.find_line(door, queue)
  return db.get(RECORD.door_line, line_id(door, queue))
end

-- The same, made if it is not there.
function T.door_line(door, queue)
  local id = line_id(door, queue)
  local line = db.get(RECORD.door_line, id)
  if not line then
    line = db.put(RECORD.door_line, id, { marked = O.new(), order = O.new(), waiting = 0 })
    O.add(db.get(RECORD.door, door).lines, door_lines(door), queue, text(queue))
  end
  return line
end

function T.drop_line_if_idle(door, queue)
  local line = T.find_line(door, queue)
  if line and not line.whole and line.marked.n == 0 and line.order.n == 0 and not line.out
    and line.waiting == 0 then
    db.drop(RECORD.door_line, line_id(door, queue))
    O.rem(db.get(RECORD.door, door).lines, door_lines(door), text(queue))
  end
end

-- Drops what nobody stands at.
function T.tidy_door(door, queue)
  T.drop_line_if_idle(door, queue)
  local d = db.get(RECORD.door, door)
  if d.lines.n > 0 or d.aside.n > 0 or d.pending then
    return
  end
  if d.timer then
    T.timer_clear('dt', door)
  end
  db.drop(RECORD.door, door)
  local kind, name, tag, id = T.door_need(door)
  if kind == DOOR.limit then
    T.drop_limit_if_idle(name)
  else
    T.pool_door_closed(name, tag, id)
    T.drop_pool_if_idle(name)
  end
end

-- This door may serve more than before: lengthens its pass to a whole lap from where it is. It never
-- starts one again from the front, or the queues behind would be forgotten.
function T.door_due(door)
  local d = db.see(RECORD.door, door) and db.get(RECORD.door, door)
  if not d or d.lines.n == 0 and not T.next_again(d, door) then
    return
  end
  d.pass = d.lines.n
  if not d.pending then
    d.pending = true
    pend(door)
  end
end

-- The settings behind a door changed: what could never fit may fit now. They are tried again one by
-- one, as steps of what is pending.
function T.retry_misfits(door)
  local d = db.get(RECORD.door, door)
  if d.aside.n > 0 then
    d.round = d.round + 1
  end
  T.door_due(door)
end

-- Lanes of a bundle that other doors opened are to stand with it: a step each.
function T.outs_due(bundle)
  local what = ENTRY.bundle .. text(bundle)
  if not O.score(db.space.pending, PENDING, what) then
    pend(what)
  end
end

-- The doors of a pool, those of these tags and this id only if they are there.
function T.pool_doors_due(pool, tags, id)
  T.door_due(T.pool_door(pool))
  local p = db.get(RECORD.pool, pool)
  if p.doors.n > (db.get(RECORD.door, T.pool_door(pool)) and 1 or 0) then
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
  if byte(entry) == ENTRY_BYTE.queue then
    return tonumber(sub(entry, 2))
  end
  return T.entry_record(entry).queue
end

-- The lane whose head is the first of an entry; or nil.
function T.entry_lane(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    local lane = O.first(db.get(RECORD.bundle, number).open, T.bundle_open(number))
    return lane and tonumber(lane)
  elseif kind == ENTRY.lane then
    return number
  end
end

function T.entry_group(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    return db.get(RECORD.bundle, number).group
  end
  return T.group_of(number)
end

function T.entry_head(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    local _, head = O.first(db.get(RECORD.bundle, number).open, T.bundle_open(number))
    return head
  elseif kind == ENTRY.lane then
    return (T.head(number))
  end
  return 0
end

function T.is_suspect(entry)
  return byte(entry) ~= ENTRY_BYTE.queue and T.entry_record(entry).suspect
end
