-- The doors of a pool: one for each tag and each id that somebody waits for, so there may be thousands.
--
-- The pool lists them and knows how many wait at all of them. What concerns all is told to each by itself, a
-- portion in a call. Nothing here opens a door.

local doors_key = lib.pool_doors_key

-- The pool's own list of its doors.
function lib.pool_door_opened(pool, _, _, door)
  local pool_record = lib.pool_for(pool)
  inner.add(pool_record.doors, doors_key(pool), 0, door)
end

function lib.pool_door_closed(pool, tag, id)
  inner.rem(db.get(RECORD.pool, pool).doors, doors_key(pool), lib.pool_door(pool, tag, id))
end

-- So many more wait at a door, if it is a pool's.
function lib.pool_waits(door, delta)
  if byte(door) == DOOR_BYTE.pool then
    local _, pool = lib.door_need(door)
    local pool_record = db.get(RECORD.pool, pool)
    pool_record.waiting = pool_record.waiting + delta
  end
end

-- What all doors of a pool are told of: 'due', that they may serve more, or 'again', that its settings
-- changed.
local TELL = { due = lib.door_due, again = lib.retry_misfits }

-- Tells all doors of a pool. Many are told by ticks, a portion each, in a lap from where the last one is: if
-- it began from the front again, those behind would be forgotten.
local function tell_doors(pool, what, now)
  local pool_record = db.get(RECORD.pool, pool)
  if pool_record.doors.n <= BOUND.STEPS_MAX then
    local doors = {}
    for door in inner.each(pool_record.doors, doors_key(pool)) do
      doors[#doors + 1] = door
    end
    for _, door in ipairs(doors) do
      TELL[what](door)
    end
    return
  end
  local step = lib.step_of(what, pool)
  if step then
    step[DOORS_STEP_AT.ends_with], step[DOORS_STEP_AT.again] = step[DOORS_STEP_AT.told], false
  else
    lib.go_on({ what, pool, '', '', false }, now)
  end
end

function lib.all_pool_doors_due(pool, now)
  tell_doors(pool, 'due', now)
end

function lib.retry_pool_misfits(pool, now)
  tell_doors(pool, 'again', now)
end

-- A step {'due' or 'again', pool, the last door that was told, the one with which the lap ends or '', whether
-- it began from the front again}.
function lib.step_doors(step)
  local pool = step[DOORS_STEP_AT.pool]
  local pool_record = db.get(RECORD.pool, pool)
  if not pool_record then
    return true
  elseif not pool_record.doors.z then
    tell_doors(pool, step[DOORS_STEP_AT.kind])
    return true
  end
  local from = step[DOORS_STEP_AT.told] ~= '' and '(' .. step[DOORS_STEP_AT.told] or '-'
  local doors = call('ZRANGEBYLEX', db.prefix .. doors_key(pool), from, '+', 'LIMIT', 0, BOUND.TICK_MAX)
  for _, door in ipairs(doors) do
    if step[DOORS_STEP_AT.again] and lib.less(step[DOORS_STEP_AT.ends_with], door) then
      return true
    end
    if db.get(RECORD.door, door) then
      TELL[step[DOORS_STEP_AT.kind]](door)
    end
    step[DOORS_STEP_AT.told] = door
  end
  if #doors < BOUND.TICK_MAX then
    if step[DOORS_STEP_AT.again] or step[DOORS_STEP_AT.ends_with] == '' then
      return true
    end
    step[DOORS_STEP_AT.told], step[DOORS_STEP_AT.again] = '', true
  end
  return false
end
