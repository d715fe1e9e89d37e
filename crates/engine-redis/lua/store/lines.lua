-- The line of a lane: who stands in it, by arrival.
--
-- A short line is a text in the lane's own record: of each its arrival and its slot, six bytes each. A longer line is
-- a list in order of arrival, since that is how nearly all come and go; who comes out of order (released, reaped,
-- moved) stands in a small ordered set beside it, and who leaves from the middle leaves a tombstone. Those who came
-- one after the other with one number after the other are one item of the list, a run. It never compares anything but
-- arrivals, which are unique in a namespace.
--
-- A line: {n, q = that text} or {n, big = true, last = the list's last arrival,
-- aside = how many stand in the set, dead = how many tombstones, skip = how many of the list's first run are
-- gone, pos = how many have been put into the list}.

-- More make a list: the text is written anew by every change. (In the library of tests a line is long sooner, since
-- its programs are small.)
local SHORT = TESTING and 4 or 64

local function standing(arrival, slot)
  return struct.pack('>I6I6', arrival, slot)
end

-- Who stands at a place of such a text: arrival and slot.
local function stands_at(q, at)
  local arrival, slot = struct.unpack('>I6I6', q, at)
  return arrival, slot
end

local function list(key)
  local its_list = db.lists[key]
  if not its_list then
    its_list = { base = {}, at = 1, read = 0, step = db.want + 1, done = false, push = {}, first = 1 }
    db.lists[key] = its_list
  end
  return its_list
end

-- An item of a list is the arrival and the slot of the first of a run, six bytes each, how many they are, two,
-- and how many were put into the list before them, six.
function lib.line_item(item)
  local arrival, slot, many, pos = struct.unpack('>I6I6I2I6', item)
  return arrival, slot, many, pos
end
local function item_of(arrival, slot, many, pos)
  return struct.pack('>I6I6I2I6', arrival, slot, many, pos)
end

-- The item at a place of a list, counted from its first as it was read; `l.at` is that of the first now.
local function item_at(key, its_list, at)
  while at > #its_list.base and not its_list.done do
    local found = call('LRANGE', db.prefix .. key, its_list.read, its_list.read + its_list.step - 1)
    for i = 1, #found do
      its_list.base[#its_list.base + 1] = found[i]
    end
    its_list.read = its_list.read + #found
    its_list.done = #found < its_list.step
    its_list.step = min(its_list.step * 4, 512)
  end
  return its_list.base[at] or its_list.push[its_list.first + at - #its_list.base - 1]
end

-- The first in the list: arrival, slot, and how many its run still has.
local function head(line, key)
  local its_list = list(key)
  local item = item_at(key, its_list, its_list.at)
  if item then
    local arrival, slot, many = lib.line_item(item)
    return arrival + line.skip, slot + line.skip, many - line.skip
  end
end

-- Takes n off the first run of the list.
local function pop(line, key, n)
  local its_list = list(key)
  local _, _, left = head(line, key)
  if n < left then
    line.skip = line.skip + n
    return
  end
  line.skip = 0
  if its_list.at <= #its_list.base then
    its_list.at = its_list.at + 1
  else
    its_list.first = its_list.first + 1
  end
end

function lines.new()
  return { n = 0, q = '' }
end

-- Whether one more makes a list of a short line.
function lines.is_full(line)
  return not line.big and line.n == SHORT
end

-- So many of a list are asked for together whether they are gone.
local ASKED = 256

-- Asks for them from an arrival on, with which `left` of the run at a place are left; the last that it asked for.
local function ask_for_dead(key, its_list, at, arrival, left)
  local fields, n, last = {}, 0, nil
  while arrival do
    local many = min(left, ASKED - n)
    for i = 1, many do
      fields[n + i] = text(arrival + i - 1)
    end
    n, last, at = n + many, arrival + many - 1, at + 1
    local item = n < ASKED and its_list.base[at]
    arrival = nil
    if item then
      local _
      arrival, _, left = lib.line_item(item)
    end
  end
  maps.fill(key .. LINE.gone, fields)
  return last
end

-- Drops tombstones that came to the head.
local function bury(line, key)
  local asked, lane_record
  while line.dead > 0 do
    local arrival, _, left = head(line, key)
    -- Mostly the first of them lives, and no other is asked for.
    if not lane_record then
      asked, lane_record = arrival, list(key)
    elseif arrival > asked then
      asked = ask_for_dead(key, lane_record, lane_record.at, arrival, left)
    end
    local field = text(arrival)
    if not maps.get(key .. LINE.gone, field) then
      return
    end
    maps.drop(key .. LINE.gone, field)
    line.dead = line.dead - 1
    pop(line, key, 1)
  end
end

-- The first: its arrival and its slot; or nil.
function lines.first(line, key)
  if not line.big then
    if line.n == 0 then
      return nil
    end
    return stands_at(line.q, 1)
  end
  local arrival, slot = head(line, key)
  if line.aside > 0 then
    local member, score = sets.first(key .. LINE.aside)
    if not arrival or score < arrival then
      return score, tonumber(member)
    end
  end
  return arrival, slot
end

-- The run that a line begins with: the arrival and the slot of its first, and how many they are; or nil. Among
-- them may be some who have left.
function lines.front(line, key)
  if not line.big then
    return nil
  end
  local arrival, slot, many = head(line, key)
  if arrival and line.aside > 0 then
    local _, other = sets.first(key .. LINE.aside)
    if other < arrival then
      return nil
    end
    many = min(many, other - arrival)
  end
  return arrival, slot, many
end

-- Puts a run at the end of the list.
local function push_run(line, key, arrival, slot, many)
  local item = item_of(arrival, slot, many, line.pos)
  if db.direct then
    call('RPUSH', db.prefix .. key, item)
  else
    local push = list(key).push
    push[#push + 1] = item
  end
  line.last, line.pos = arrival + many - 1, line.pos + many
end

local function spill(line, key)
  local q = line.q
  line.big, line.last, line.aside, line.dead, line.q = true, 0, 0, 0, nil
  line.skip, line.pos = 0, 0
  for at = 1, #q, STANDING do
    local arrival, slot = stands_at(q, at)
    push_run(line, key, arrival, slot, 1)
  end
end

-- A line of which nothing is left is short again.
local function shorten(line)
  line.big, line.last, line.aside, line.dead, line.q = nil, nil, nil, nil, ''
  line.skip, line.pos = nil, nil
end

-- Puts in many who arrive now, one after the other with one slot after the other: arrival and slot of the
-- first.
function lines.append(line, key, arrival, slot, many)
  if not line.big then
    if line.n + many <= SHORT then
      for i = 0, many - 1 do
        lines.insert(line, key, arrival + i, slot + i)
      end
      return
    end
    spill(line, key)
  end
  push_run(line, key, arrival, slot, many)
  line.n = line.n + many
end

function lines.insert(line, key, arrival, slot)
  line.n = line.n + 1
  if not line.big then
    local q = line.q
    if line.n <= SHORT then
      local n = #q
      while n > 0 and arrival < stands_at(q, n - STANDING + 1) do
        n = n - STANDING
      end
      line.q = sub(q, 1, n) .. standing(arrival, slot) .. sub(q, n + 1)
      return
    end
    spill(line, key)
  end
  if arrival > line.last then
    push_run(line, key, arrival, slot, 1)
  else
    sets.add(key .. LINE.aside, arrival, text(slot))
    line.aside = line.aside + 1
  end
end

-- Takes out who arrived then; whether he was there.
function lines.remove(line, key, arrival, slot)
  if not line.big then
    local q = line.q
    for at = 1, #q, STANDING do
      if stands_at(q, at) == arrival then
        line.q = sub(q, 1, at - 1) .. sub(q, at + STANDING)
        line.n = line.n - 1
        return true
      end
    end
    return false
  end
  line.n = line.n - 1
  if line.aside > 0 and sets.score(key .. LINE.aside, text(slot)) == arrival then
    sets.rem(key .. LINE.aside, text(slot))
    line.aside = line.aside - 1
  elseif line.n == 0 then
    line.dead = line.dead + 1
  elseif head(line, key) == arrival then
    pop(line, key, 1)
    bury(line, key)
  else
    maps.put(key .. LINE.gone, text(arrival), '1')
    line.dead = line.dead + 1
  end
  if line.n == 0 then
    -- Only tombstones are left: the list and they go as a whole.
    db.lists[key] = {
      base = {}, at = 1, read = 0, step = 0, done = true, push = {}, first = 1, gone = true,
    }
    db.loose_maps[key .. LINE.gone] = nil
    shorten(line)
  end
  return true
end

-- The first n at most: their arrivals, and their slots.
function lines.heads(line, key, n)
  local arrivals, slots, got = {}, {}, 0
  if not (line.big and line.aside == 0 and line.dead == 0) then
    for arrival, slot in lines.each(line, key) do
      got = got + 1
      arrivals[got], slots[got] = arrival, slot
      if got >= n then
        break
      end
    end
    return arrivals, slots
  end
  local its_list = list(key)
  local at, arrival, slot, left = its_list.at, head(line, key)
  while arrival do
    for i = 0, min(left, n - got) - 1 do
      arrivals[got + i + 1], slots[got + i + 1] = arrival + i, slot + i
    end
    got, at, arrival = got + left, at + 1, nil
    local item = got < n and item_at(key, its_list, at)
    if item then
      arrival, slot, left = lib.line_item(item)
    end
  end
  return arrivals, slots
end

-- Of the first two of a line the arrival and the slot of the first and the arrival of the second, or nil if there is
-- none; nothing of a line in which some stand aside or have left.
function lines.two(line, key)
  local n = line.n
  if n == 0 then
    return nil
  elseif not line.big then
    local arrival, slot = stands_at(line.q, 1)
    return arrival, slot, n > 1 and stands_at(line.q, STANDING + 1) or nil
  elseif line.aside > 0 or line.dead > 0 then
    return nil
  end
  if not db.lists[key] then
    list(key).step = 2
  end
  local arrival, slot, left = head(line, key)
  if left > 1 then
    return arrival, slot, arrival + 1
  elseif n == 1 then
    return arrival, slot
  end
  local its_list = list(key)
  return arrival, slot, (lib.line_item(item_at(key, its_list, its_list.at + 1)))
end

-- Takes out the first n.
function lines.take(line, key, n)
  if not line.big then
    line.n, line.q = line.n - n, sub(line.q, n * STANDING + 1)
    return
  end
  if line.aside == 0 and line.dead == 0 then
    line.n = line.n - n
    while n > 0 do
      local _, _, run = head(line, key)
      pop(line, key, min(run, n))
      n = n - run
    end
    if line.n == 0 then
      shorten(line)
    end
    return
  end
  for _ = 1, n do
    local arrival, slot = lines.first(line, key)
    lines.remove(line, key, arrival, slot)
  end
end

-- How many stand before `arrival`, counted to `most` at most.
function lines.rank(line, key, arrival, most)
  local n = 0
  for at in lines.each(line, key) do
    if at >= arrival or n >= most then
      return n
    end
    n = n + 1
  end
  return n
end

-- Walks in order: for arrival, slot in lines.each(line, key) do. The line must not change meanwhile.
function lines.each(line, key)
  if not line.big then
    local q, at = line.q, 1 - STANDING
    return function()
      at = at + STANDING
      if at < #q then
        return stands_at(q, at)
      end
    end
  end
  local aside = sets.each(key .. LINE.aside)
  local member, score = aside()
  local its_list = list(key)
  local at, asked = its_list.at, 0
  local next_arrival, next_slot, left = head(line, key)
  local function next_in_list()
    while next_arrival do
      local arrival, slot = next_arrival, next_slot
      if line.dead > 0 and arrival > asked then
        asked = ask_for_dead(key, its_list, at, arrival, left)
      end
      left = left - 1
      if left > 0 then
        next_arrival, next_slot = arrival + 1, slot + 1
      else
        at = at + 1
        local item = item_at(key, its_list, at)
        next_arrival = nil
        if item then
          next_arrival, next_slot, left = lib.line_item(item)
        end
      end
      if line.dead == 0 or not maps.get(key .. LINE.gone, text(arrival)) then
        return arrival, slot
      end
    end
  end
  -- The next is looked for when it is asked for: there may be many tombstones before it.
  local known, arrival, slot
  return function()
    local a, s
    if not known then
      known, arrival, slot = true, next_in_list()
    end
    if score and (not arrival or score < arrival) then
      a, s = score, tonumber(member)
      member, score = aside()
    elseif arrival then
      known, a, s = false, arrival, slot
    end
    return a, s
  end
end

function db.write_lists(out)
  for key, its_list in pairs(db.lists) do
    local popped = its_list.at - 1
    if its_list.gone then
      out(key).gone, out(key .. LINE.gone).gone = true, true
    end
    if popped > 0 or its_list.first <= #its_list.push then
      local writes = out(key)
      writes.pop = popped
      if its_list.first <= #its_list.push then
        writes.push = {}
        for i = its_list.first, #its_list.push do
          writes.push[#writes.push + 1] = its_list.push[i]
        end
      end
    end
  end
end
