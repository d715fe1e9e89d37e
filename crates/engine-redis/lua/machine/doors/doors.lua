-- Doors: where what lacks a need stands, in order, and how an event opens them.
--
-- The invariant that the rest depends on: the first entry of a queue at a door cannot be served, or
-- that queue has an entry out for this door, or the door is pending. Every event by which a door may
-- serve more goes through `lib.door_due`; nothing else opens a door, and no call does more than a
-- bounded number of steps.
--
-- A door is named by its need: 'l' and the limit; 'p', the pool, NUL and '' (any), 't' and the tag or
-- 'i' and the id. An entry is 'b', 'l' or 'q' and the number of a bundle, a lane or a queue.
-- A fit is 'yes', 'no' (and the moment at which time alone may change it, if that can be said), or
-- 'never' (as the settings are).

function lib.door_key(need)
  if need[NEED_AT.kind] == NEED.limit then
    return DOOR.limit .. need[NEED_AT.name]
  end
  return lib.pool_door(need[NEED_AT.name], need[NEED_AT.tag], need[NEED_AT.id])
end

function lib.pool_door(pool, tag, id)
  return DOOR.pool .. pool .. '\0' .. (id and POOL_DOOR.resource .. id or tag and POOL_DOOR.tag .. tag or '')
end

-- The limit or the pool of a door: 'l' and the name, or 'p' and the pool, tag, id.
function lib.door_need(door)
  if byte(door) == DOOR_BYTE.limit then
    return DOOR.limit, sub(door, 2)
  end
  local nul = find(door, '\0', 1, true)
  local which, rest = sub(door, nul + 1, nul + 1), sub(door, nul + 2)
  return DOOR.pool, sub(door, 2, nul - 1), which == POOL_DOOR.tag and rest or false,
    which == POOL_DOOR.resource and rest or false
end

function lib.door_lines(door)
  return 'ds:' .. door
end
local door_lines = lib.door_lines
function lib.door_aside(door)
  return 'dm:' .. door
end
local door_aside = lib.door_aside

local function line_id(door, queue)
  return text(queue) .. '\0' .. door
end

-- ---- What is pending ----
--
-- Doors that are due, and bundles of which lanes are still out, in the order in which they came: a set of
-- `m` itself while they are few. Each costs steps of its own; no call takes more than a bounded number.

local PENDING = 'pend'
lib.PENDING = PENDING

local function pend(what)
  inner.add(db.space.pending, PENDING, db.number(), what)
end

-- Whether there is a step to be done.
function lib.is_pending()
  local space = db.space
  return space.pending.n > 0 or space.family or space.families.n > 0
end

-- ---- Those aside ----
--
-- Who can never fit as the settings are stands in `aside` under the door's round. A change of the settings
-- begins a new round: who is there under an older one is tried again, one by one, as steps of what is
-- pending. So a change moves nobody, and a second one that comes meanwhile is as cheap.

-- Sorts as bundles, lanes, queues, each by number.
function lib.aside_name(entry)
  return sub(entry, 1, 1) .. lib.pad(tonumber(sub(entry, 2)))
end

function lib.put_aside(door_record, door, entry)
  inner.add(door_record.aside, door_aside(door), door_record.round, lib.aside_name(entry))
end

function lib.take_from_aside(door_record, door, entry)
  inner.rem(door_record.aside, door_aside(door), lib.aside_name(entry))
end

-- The entry of such a name.
function lib.entry_aside(name)
  return sub(name, 1, 1) .. text(tonumber(sub(name, 2)))
end

-- The next that is tried again; or nil.
function lib.next_again(door_record, door)
  if door_record.aside.n > 0 then
    local name, round = inner.first(door_record.aside, door_aside(door))
    if round < door_record.round then
      return lib.entry_aside(name)
    end
  end
end

function lib.door_for(door)
  local door_record = db.get(RECORD.door, door)
  if door_record then
    return door_record
  end
  door_record = db.put(RECORD.door, door,
    { lines = inner.new(), pass = 0, aside = inner.new(), round = 0, waiting = 0 })
  local kind, name, tag, id = lib.door_need(door)
  if kind == DOOR.limit then
    lib.limit_for(name)
  else
    lib.pool_door_opened(name, tag, id, door)
  end
  return door_record
end

-- The line of a queue at a door, if it is there.
function lib.find_line(door, queue)
  return db.get(RECORD.door_line, line_id(door, queue))
end

-- The same, made if it is not there.
function lib.door_line(door, queue)
  local id = line_id(door, queue)
  local line = db.get(RECORD.door_line, id)
  if not line then
    line = db.put(RECORD.door_line, id, { marked = inner.new(), order = inner.new(), waiting = 0 })
    inner.add(db.get(RECORD.door, door).lines, door_lines(door), queue, text(queue))
  end
  return line
end

function lib.drop_line_if_idle(door, queue)
  local line = lib.find_line(door, queue)
  if line and not line.whole and line.marked.n == 0 and line.order.n == 0 and not line.out
    and line.waiting == 0 then
    db.drop(RECORD.door_line, line_id(door, queue))
    inner.rem(db.get(RECORD.door, door).lines, door_lines(door), text(queue))
  end
end

-- Drops what nobody stands at.
function lib.tidy_door(door, queue)
  lib.drop_line_if_idle(door, queue)
  local door_record = db.get(RECORD.door, door)
  if door_record.lines.n > 0 or door_record.aside.n > 0 or door_record.pending then
    return
  end
  if door_record.timer then
    lib.timer_clear('dt', door)
  end
  db.drop(RECORD.door, door)
  local kind, name, tag, id = lib.door_need(door)
  if kind == DOOR.limit then
    lib.drop_limit_if_idle(name)
  else
    lib.pool_door_closed(name, tag, id)
    lib.drop_pool_if_idle(name)
  end
end

-- This door may serve more than before: lengthens its pass to a whole lap from where it is. It never
-- starts one again from the front, or the queues behind would be forgotten.
function lib.door_due(door)
  local door_record = db.see(RECORD.door, door) and db.get(RECORD.door, door)
  if not door_record or door_record.lines.n == 0 and not lib.next_again(door_record, door) then
    return
  end
  door_record.pass = door_record.lines.n
  if not door_record.pending then
    door_record.pending = true
    pend(door)
  end
end

-- The settings behind a door changed: what could never fit may fit now. They are tried again one by
-- one, as steps of what is pending.
function lib.retry_misfits(door)
  local door_record = db.get(RECORD.door, door)
  if door_record.aside.n > 0 then
    door_record.round = door_record.round + 1
  end
  lib.door_due(door)
end

-- Lanes of a bundle that other doors opened are to stand with it: a step each.
function lib.outs_due(bundle)
  local what = ENTRY.bundle .. text(bundle)
  if not inner.score(db.space.pending, PENDING, what) then
    pend(what)
  end
end

-- The doors of a pool, those of these tags and this id only if they are there.
function lib.pool_doors_due(pool, tags, id)
  lib.door_due(lib.pool_door(pool))
  local pool_record = db.get(RECORD.pool, pool)
  if pool_record.doors.n > (db.get(RECORD.door, lib.pool_door(pool)) and 1 or 0) then
    for _, tag in ipairs(tags) do
      lib.door_due(lib.pool_door(pool, tag))
    end
    lib.door_due(lib.pool_door(pool, false, id))
  end
end

-- ---- Entries ----

-- A bundle's, a lane's or a queue's record.
function lib.entry_record(entry)
  return db.get(sub(entry, 1, 1), tonumber(sub(entry, 2)))
end

function lib.entry_queue(entry)
  if byte(entry) == ENTRY_BYTE.queue then
    return tonumber(sub(entry, 2))
  end
  return lib.entry_record(entry).queue
end

-- The lane whose head is the first of an entry; or nil.
function lib.entry_lane(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    local lane = inner.first(db.get(RECORD.bundle, number).open, lib.bundle_open(number))
    return lane and tonumber(lane)
  elseif kind == ENTRY.lane then
    return number
  end
end

function lib.entry_group(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    return db.get(RECORD.bundle, number).group
  end
  return lib.group_of(number)
end

function lib.entry_head(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.bundle then
    local bundle_record, head = inner.first(db.get(RECORD.bundle, number).open, lib.bundle_open(number))
    return head
  elseif kind == ENTRY.lane then
    return (lib.head(number))
  end
  return 0
end

function lib.is_suspect(entry)
  return byte(entry) ~= ENTRY_BYTE.queue and lib.entry_record(entry).suspect
end
