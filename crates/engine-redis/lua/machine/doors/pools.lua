-- The doors of a pool: one for each tag and each id that somebody waits for, so there may be thousands.
--
-- The pool lists them and knows how many wait at all of them. What concerns all is told to each by itself, a
-- portion in a call. Nothing here opens a door.

local doors_key = T.pool_doors_key

-- The pool's own list of its doors.
function T.pool_door_opened(pool, _, _, door)
  local p = T.pool_for(pool)
  O.add(p.doors, doors_key(pool), 0, door)
end

function T.pool_door_closed(pool, tag, id)
  O.rem(db.get(RECORD.pool, pool).doors, doors_key(pool), T.pool_door(pool, tag, id))
end

-- So many more wait at a door, if it is a pool's.
function T.pool_waits(door, delta)
  if byte(door) == DOOR_BYTE.pool then
    local _, pool = T.door_need(door)
    local p = db.get(RECORD.pool, pool)
    p.waiting = p.waiting + delta
  end
end

-- What all doors of a pool are told of: 'due', that they may serve more, or 'again', that its settings
-- changed.
local TELL = { due = T.door_due, again = T.retry_misfits }

-- Tells all doors of a pool. Many are told by ticks, a portion each, in a lap from where the last one is: if
-- it began from the front again, those behind would be forgotten.
local function tell_doors(pool, what, now)
  local p = db.get(RECORD.pool, pool)
  if p.doors.n <= B.STEPS_MAX then
    local doors = {}
    for door in O.each(p.doors, doors_key(pool)) do
      doors[#doors + 1] = door
    end
    for _, door in ipairs(doors) do
      TELL[what](door)
    end
    return
  end
  local step = T.step_of(what, pool)
  if step then
    step[DOORS_STEP_AT.ends_with], step[DOORS_STEP_AT.again] = step[DOORS_STEP_AT.told], false
  else
    T.go_on({ what, pool, '', '', false }, now)
  end
end

function T.all_pool_doors_due(pool, now)
  tell_doors(pool, 'due', now)
end

function T.retry_pool_misfits(pool, now)
  tell_doors(pool, 'again', now)
end

-- A step {'due' or 'again', pool, the last door that was told, the one with which the lap ends or '', whether
-- it began from the front again}.
function T.step_doors(step)
  local pool = step[DOORS_STEP_AT.pool]
  local p = db.get(RECORD.pool, pool)
  if not p then
    return true
  elseif not p.doors.z then
    tell_doors(pool, step[DOORS_STEP_AT.kind])
    return true
  end
  local from = step[DOORS_STEP_AT.told] ~= '' and '(' .. step[DOORS_STEP_AT.told] or '-'
  local doors = call('ZRANGEBYLEX', db.prefix .. doors_key(pool), from, '+', 'LIMIT', 0, B.TICK_MAX)
  for _, door in ipairs(doors) do
    if step[DOORS_STEP_AT.again] and T.less(step[DOORS_STEP_AT.ends_with], door) then
      return true
    end
    if db.get(RECORD.door, door) then
      TELL[step[DOORS_STEP_AT.kind]](door)
    end
    step[DOORS_STEP_AT.told] = door
  end
  if #doors < B.TICK_MAX then
    if step[DOORS_STEP_AT.again] or step[DOORS_STEP_AT.ends_with] == '' then
      return true
    end
    step[DOORS_STEP_AT.told], step[DOORS_STEP_AT.again] = '', true
  end
  return false
end
