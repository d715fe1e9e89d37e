-- A call that goes the direct way: it writes at once what it changes, and not at its end.
--
-- A usual call keeps in tables whatever it read and will write, and works them off at its end (store/call,
-- store/commit). For one job that has nothing unusual these tables cost several times what is done with them. So an
-- operation may have a direct way (machine/direct): it looks at everything first, in the memory of the call before.
-- Either all is as plain as it must be, and then nothing can refuse any more, and each change is written where it is
-- made; or nothing was changed, and the call goes the usual way, as every call does while its slot is on its way to
-- another node.

-- The memory of the namespace, while a direct call is in it; and whether records that begin with numbers (store/forms)
-- change in no more than these.
local its_kept, is_brief

-- Begins a direct call, if there is what it needs: the namespace as it was when the last call left it. Nothing is
-- changed by that.
function db.begin_direct(prefix, raw, kid, born, unsaid)
  local kept = KEPT[prefix]
  if TESTING and call('EXISTS', prefix .. 'usual') == 1 then
    -- A test compares what both ways leave.
    return false
  end
  if db.clustered == nil or not raw or not kept or kept.raw ~= raw or not born
    or db.clustered and db.slot_moves(prefix .. KEY.meta, prefix) then
    return false
  end
  its_kept = kept
  db.prefix, db.raw, db.kid, db.born, db.unsaid_at = prefix, raw, kid or nil, born, tonumber(unsaid or '')
  db.space, records, db.maps, db.heads, db.held = kept.space, kept.records, kept.maps, kept.heads, kept.held
  used, this_call, db.seen = {}, this_call + 1, {}
  db.numbered = db.space.number
  db.said, db.denied, db.sooner, db.blobs, db.shown = {}, nil, nil, nil, nil
  db.events, db.happened, db.forgets_events, db.copying = {}, 0, false, false
  if next(db.lists) then
    db.lists = {}
  end
  db.direct, is_brief = true, true
  return true
end

-- It is not plain: nothing was changed.
function db.leave_direct()
  db.direct = false
  its_kept.held = db.held
end

-- From here on it writes: the moment of the call, by the clock if it was read. If it broke, the memory would not be what is
-- stored.
function db.write_direct(clock)
  KEPT[db.prefix] = nil
  if TESTING then
    -- So that a test knows that this way was gone at all.
    call('INCR', db.prefix .. 'directly')
  end
  db.clock = clock or lib.clock()
  return lib.advance()
end

-- More changes in a record than the numbers that it begins with.
function db.write_whole()
  is_brief = false
end

-- How the key of records by number begins.
local BY_NUMBER = 'r:'

-- The records by number of one key, which most calls have several of: {key, field, bytes, …}.
local together

local function write(entry, raw)
  local key, kind = db.prefix .. entry.key, entry.kind
  if not raw then
    call('HDEL', key, entry.field)
  elseif together and together[1] == key then
    local n = #together
    together[n + 1], together[n + 2] = entry.field, raw
  elseif not together and sub(entry.key, 1, 2) == BY_NUMBER then
    together = { key, entry.field, raw }
  else
    call('HSET', key, entry.field, raw)
  end
  if kind == RECORD.request or kind == RECORD.unique_key or kind == RECORD.waiting_call and not raw then
    -- Hardly another call asks for it.
    records[kind][entry.field] = nil
    db.held = db.held - 1
  end
end

-- What is written as in a usual call.
local at_once

local function write_at_once(key)
  local writes = { key = db.prefix .. key }
  at_once[#at_once + 1] = writes
  return writes
end

-- Ends a direct call: the records that changed, the lists, the events, and the namespace's own record.
function db.end_direct()
  together, at_once = nil, {}
  db.changed_records(write, is_brief)
  if together then
    call('HSET', unpack(together))
  end
  db.write_lists(write_at_once)
  lib.write_events(write_at_once)
  for _, writes in ipairs(at_once) do
    db.write_key(writes)
  end
  local space = db.space
  space.version = space.version + 1
  local raw = db.encode(RECORD.space, space, its_kept.raw)
  call('HSET', db.prefix .. KEY.meta, META.space, raw)
  its_kept.raw, its_kept.held = raw, db.held
  KEPT[db.prefix] = its_kept
  db.direct = false
end
