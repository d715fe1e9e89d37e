-- Records: small tables, each a packed field of a hash. What differs at the end is written.

-- Where a record lies. Numbers grow, so their hashes stay at 512 fields; names are spread over 64.
local function home(kind, id)
  if type(id) == 'number' then
    return kind .. ':' .. floor(id / 512), text(id)
  end
  return kind .. ':' .. shard(id), id
end

-- The record, or nil. It is the call's own: changing it is enough for it to be written.
function db.get(kind, id)
  local of_kind = db.records[kind]
  if not of_kind then
    of_kind = {}
    db.records[kind] = of_kind
  end
  local entry = of_kind[id]
  if not entry then
    local key, field = home(kind, id)
    local raw = call('HGET', db.prefix .. key, field)
    entry = { raw = raw, value = raw and cmsgpack.unpack(raw) or false }
    of_kind[id] = entry
  end
  return entry.value or nil
end

-- Makes a record.
function db.put(kind, id, value)
  db.get(kind, id)
  db.records[kind][id].value = value
  return value
end

-- Forgets a record.
function db.drop(kind, id)
  db.get(kind, id)
  db.records[kind][id].value = false
end

-- A number that names a new record; used once.
function db.number()
  local space = db.space
  space.number = space.number + 1
  return space.number
end

-- The changes of all records, by key.
function db.write_records(out)
  for kind, of_kind in pairs(db.records) do
    for id, entry in pairs(of_kind) do
      local raw = entry.value and cmsgpack.pack(entry.value) or false
      if raw ~= entry.raw then
        local key, field = home(kind, id)
        local hash = out(key)
        if raw then
          local puts = hash.puts
          puts[#puts + 1] = field
          puts[#puts + 1] = raw
        else
          hash.dels[#hash.dels + 1] = field
        end
      end
    end
  end
end

-- ---- Maps: text to text ----

-- What a map has under a field, or nil.
function M.get(key, field)
  local map = db.maps[key]
  if not map then
    map = { now = {}, was = {} }
    db.maps[key] = map
  end
  local value = map.now[field]
  if value == nil then
    value = call('HGET', db.prefix .. key, field)
    map.now[field] = value
    map.was[field] = value
  end
  return value or nil
end

function M.put(key, field, value)
  M.get(key, field)
  db.maps[key].now[field] = value
end

-- Sets or drops a field whose value before does not matter: it is not read.
function M.set(key, field, value)
  local map = db.maps[key]
  if not map then
    map = { now = {}, was = {} }
    db.maps[key] = map
  end
  map.now[field], map.was[field] = value or false, 0
end

function M.drop(key, field)
  M.get(key, field)
  db.maps[key].now[field] = false
end

function db.write_maps(out)
  for key, map in pairs(db.maps) do
    local hash
    for field, value in pairs(map.now) do
      if value ~= map.was[field] then
        hash = hash or out(key)
        if value then
          hash.puts[#hash.puts + 1] = field
          hash.puts[#hash.puts + 1] = value
        else
          hash.dels[#hash.dels + 1] = field
        end
      end
    end
  end
end
