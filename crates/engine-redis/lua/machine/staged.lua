-- Staged sets: what is laid beside a pool, or beside the schedules of an owner, until it takes their place in portions.
--
-- Nobody sees it there. A staged set is a record under its number: the `pool` or the `owner` it is for, and what the
-- operation that made it writes there. Its ids are in order in 'sx:NUMBER', what they stand for in 'sv:NUMBER:SHARD'.
-- What nobody asks for any more is dropped in portions, a minute after its last call.

local FORGET = 'sye'

local function ids_of(number)
  return 'sx:' .. text(number)
end
local function values_of(number, id)
  return 'sv:' .. text(number) .. ':' .. shard(id)
end

-- It is kept for a minute from now on.
function lib.keep_staged(number, now)
  lib.timer_set(FORGET, now + BOUND.REQUEST_US, text(number))
end

-- The number of a new one, with this record.
function lib.begin_staged(sync_record, now)
  local number = db.number()
  db.put(RECORD.sync, number, sync_record)
  lib.keep_staged(number, now)
  return number
end

-- What a call about it is answered: whether nothing is left to do, its number, and how much was done of what.
function lib.staged_reply(number, is_done, counts)
  local answer = { done = is_done, sync = number }
  for word, n in pairs(counts) do
    answer[word] = n
  end
  return answer
end

-- Lays down what an id stands for.
function lib.stage(number, id, value)
  sets.add(ids_of(number), 0, id)
  maps.set(values_of(number, id), id, value)
end

-- The first of its ids, at most so many.
function lib.staged_ids(number, most)
  local ids = {}
  for id in sets.each(ids_of(number)) do
    ids[#ids + 1] = id
    if #ids == most then
      break
    end
  end
  return ids
end

-- Those behind one, as they are stored; '' is before all.
function lib.staged_after(number, id, most)
  return call('ZRANGEBYLEX', db.prefix .. ids_of(number), id ~= '' and '(' .. id or '-', '+', 'LIMIT', 0, most)
end

-- Whether an id is in it.
function lib.is_staged(number, id)
  return sets.score(ids_of(number), id) ~= nil
end

-- Takes an id out of it. What it stands for.
function lib.take_staged(number, id)
  local key = values_of(number, id)
  local value = maps.get(key, id)
  sets.rem(ids_of(number), id)
  maps.drop(key, id)
  return value
end

-- Something was said of a resource after its set was decided: the set's word on it goes.
function lib.unstage(number, id)
  if lib.is_staged(number, id) then
    lib.take_staged(number, id)
  end
end

-- A step {'staged', number}: drops some of a set whose time is over.
function lib.step_staged(step)
  local number = step[STEP_AT.of]
  local ids = lib.staged_ids(number, BOUND.TICK_MAX)
  for _, id in ipairs(ids) do
    lib.take_staged(number, id)
  end
  return #ids < BOUND.TICK_MAX
end

-- Whether it is taking the place of what is there.
local function is_applied(number, sync_record)
  local of = sync_record.owner and db.get(RECORD.synced_set, sync_record.owner)
    or sync_record.pool and db.get(RECORD.pool, sync_record.pool)
  return of and of.sync == number
end

-- The time of a staged set is over: it was applied, or its caller is gone.
function lib.tick_sync(member, now)
  local number = tonumber(member)
  local sync_record = db.get(RECORD.sync, number)
  if not sync_record then
    return
  end
  if is_applied(number, sync_record) then
    lib.keep_staged(number, now)
  else
    db.drop(RECORD.sync, number)
    if sync_record.owner then
      lib.forget_set(sync_record.owner)
    end
    lib.go_on({ 'staged', number }, now)
  end
end
