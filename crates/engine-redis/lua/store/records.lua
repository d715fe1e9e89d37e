-- Records: small tables, each a packed field of a hash. What differs at the end is written.

-- Kinds whose numbers are not those of `db.number`.
local OTHER_NUMBERS = { [RECORD.chunk] = true, [RECORD.block] = true, [RECORD.parent] = true }

-- Where a record lies. Numbers are given once, whatever the kind, so records by number lie together in
-- hashes of 512; names are spread over the parts of their kind.
local function home(kind, id)
  if type(id) == 'number' then
    if OTHER_NUMBERS[kind] or kind == RECORD.mark then
      return format('%s:%d', kind, floor(id / 512)), text(id)
    end
    return 'r:' .. number_text(floor(id / 512)), number_text(id)
  end
  return kind .. ':' .. shard(id), id
end

local function keep_entry(kind, id, key, field, raw)
  local of_kind = records[kind]
  if not of_kind then
    of_kind = {}
    records[kind] = of_kind
  end
  local entry = {
    kind = kind, key = key, field = field, raw = raw, value = raw and db.decode(kind, raw) or false,
    call = 0,
  }
  if TESTING and raw and #db.encode(kind, entry.value) ~= #raw then
    -- Something else wrote it: another release, whose layout should be another.
    error('form_is_another:' .. kind)
  end
  of_kind[id] = entry
  db.held = db.held + 1
  return entry
end

local function read(kind, id)
  local key, field = home(kind, id)
  return keep_entry(kind, id, key, field, call('HGET', db.prefix .. key, field))
end

-- One of which it is known that it is not there.
local function absent(kind, id)
  local key, field = home(kind, id)
  if TESTING and call('HGET', db.prefix .. key, field) then
    error('new_record_is_there:' .. kind)
  end
  return keep_entry(kind, id, key, field, false)
end

-- The record, or nil. It is the call's own: changing it is enough for it to be written.
function db.get(kind, id)
  local of_kind = records[kind]
  local entry = of_kind and of_kind[id] or read(kind, id)
  if entry.call ~= this_call then
    entry.call = this_call
    used[#used + 1] = entry
  end
  return entry.value or nil
end

-- The record, or nil, for who only looks at it: what is changed through this is not written.
function db.see(kind, id)
  local of_kind = records[kind]
  local entry = of_kind and of_kind[id] or read(kind, id)
  if TESTING then
    db.seen[#db.seen + 1] = entry
  end
  return entry.value or nil
end

-- Whether a number was given in this call: then nothing is stored that has to do with it.
function db.is_new(number)
  return number > db.numbered
end

-- Makes a record. One with a new number is not looked for: a push that makes a thousand queues would look
-- for five thousand.
function db.put(kind, id, value)
  local of_kind = records[kind]
  local entry = of_kind and of_kind[id]
  if not entry and type(id) == 'number' and not OTHER_NUMBERS[kind] and db.is_new(id) then
    entry = absent(kind, id)
  end
  if not entry then
    db.get(kind, id)
    entry = records[kind][id]
  elseif entry.call ~= this_call then
    entry.call = this_call
    used[#used + 1] = entry
  end
  entry.value = value
  return value
end

-- Forgets a record.
function db.drop(kind, id)
  db.get(kind, id)
  records[kind][id].value = false
end

-- A number that names a new record; used once.
function db.number()
  local space = db.space
  space.number = space.number + 1
  return space.number
end

-- Calls `write` for each record that this call changed, with its entry, and its bytes or false. `briefly`: records that
-- begin with numbers changed in no more than these.
function db.changed_records(write, briefly)
  for i = 1, #used do
    local entry = used[i]
    local value, to_text = entry.value, TO_TEXT[entry.kind]
    local at_once = to_text and not (TESTING or briefly)
    local raw = value and (at_once and to_text(value) or db.encode(entry.kind, value, briefly and entry.raw))
    if raw ~= entry.raw then
      entry.raw = raw
      write(entry, raw)
    end
  end
  for _, entry in ipairs(db.seen) do
    if entry.value and not (entry.raw and same(entry.value, db.decode(entry.kind, entry.raw))) then
      error('record_changed_by_look:' .. entry.kind)
    end
  end
end

-- The same, by key.
function db.write_records(out)
  db.changed_records(function(entry, raw)
    if raw then
      db.write(out, entry.key, entry.field, raw)
    else
      db.erase(out, entry.key, entry.field)
    end
  end)
end

-- ---- Maps: text to text ----

-- Of the maps only those are kept that have an entry for a name in use, not for every job or call. No other key begins
-- as theirs do.
local KEPT_MAPS = { qn = true, sk = true, lk = true, bk = true, gn = true, [KEY.processes] = true }

local function is_kept(key)
  return KEPT_MAPS[sub(key, 1, 2)]
end

local function map_of(key)
  local map = db.maps[key] or db.loose_maps[key]
  if not map then
    -- now: what a field has, as far as it is known; was: what it had before this call changed it.
    map = { now = {}, was = {} }
    local maps = is_kept(key) and db.maps or db.loose_maps
    maps[key] = map
  end
  return map
end

-- What a map has under a field, or nil. `new`: the field has a new number in it, so it is not looked for.
function maps.get(key, field, new)
  if db.direct and not is_kept(key) then
    return call('HGET', db.prefix .. key, field) or nil
  end
  local map = map_of(key)
  local value = map.now[field]
  if value == nil and new and not TESTING then
    map.now[field] = false
  elseif value == nil then
    value = call('HGET', db.prefix .. key, field)
    if new and value then
      error('new_field_is_there:' .. field)
    end
    map.now[field] = value
    db.held = db.held + 1
  end
  return value or nil
end

-- Reads many fields that will be asked for, by one command.
function maps.fill(key, fields)
  local now = map_of(key).now
  local found = call('HMGET', db.prefix .. key, unpack(fields))
  for i, field in ipairs(fields) do
    if now[field] == nil then
      now[field] = found[i]
    end
  end
  db.held = db.held + #fields
end

local function change(key, field, value, was)
  local map = map_of(key)
  if map.was[field] == nil then
    map.was[field] = was
    local changed = db.changed
    changed[#changed + 1] = key
    changed[#changed + 1] = field
  end
  map.now[field] = value
end

function maps.put(key, field, value)
  if db.direct then
    call('HSET', db.prefix .. key, field, value)
    if is_kept(key) then
      map_of(key).now[field] = value
    end
    return
  end
  maps.get(key, field)
  change(key, field, value, map_of(key).now[field])
end

-- Sets or drops a field whose value before does not matter: it is not read.
function maps.set(key, field, value)
  if db.direct then
    return maps.put(key, field, value)
  end
  change(key, field, value or false, 0)
end

function maps.drop(key, field)
  if db.direct then
    call('HDEL', db.prefix .. key, field)
    return
  end
  maps.get(key, field)
  change(key, field, false, map_of(key).now[field])
end

function db.write_maps(out)
  local changed = db.changed
  for i = 1, #changed, 2 do
    local key, field = changed[i], changed[i + 1]
    local map = map_of(key)
    local value, was = map.now[field], map.was[field]
    map.was[field] = nil
    if value ~= was then
      if value then
        db.write(out, key, field, value)
      else
        db.erase(out, key, field)
      end
    end
  end
end

-- ---- Kept from call to call ----
--
-- The server runs one call at a time, and nobody else writes a namespace's keys. So what a call read
-- and wrote is what the next one would read, as long as the namespace's own record, which every call
-- that writes changes, is byte for byte the one that was written last. A call that is refused or breaks
-- may have changed what it held: nothing of it is kept. Nor is anything kept by a replica or after a
-- start: there this is empty.

local KEPT = {}
local kept_spaces = 0
-- More than so many things of a namespace, or so many namespaces, are read anew.
local HELD_MAX, SPACES_MAX = 20000, 16

-- Takes what is kept of a namespace, if it is still so; it is kept again only when the call succeeds.
function db.take_kept(raw)
  local kept = KEPT[db.prefix]
  KEPT[db.prefix] = nil
  if kept then
    kept_spaces = kept_spaces - 1
    if raw and kept.raw == raw then
      db.space, records, db.maps, db.held = kept.space, kept.records, kept.maps, kept.held
      db.heads = kept.heads
      return true
    end
  end
  return false
end

function db.keep(raw)
  if db.held > HELD_MAX then
    return
  end
  if kept_spaces >= SPACES_MAX then
    KEPT, kept_spaces = {}, 0
  end
  KEPT[db.prefix] = {
    raw = raw, space = db.space, records = records, maps = db.maps, held = db.held,
    heads = db.heads,
  }
  kept_spaces = kept_spaces + 1
end
