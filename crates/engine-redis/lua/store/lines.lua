-- The line of a lane: who stands in it, by arrival.
--
-- Up to four stand in the lane's own record. A longer line is a list in order of arrival, since that
-- is how nearly all come and go; who comes out of order (released, reaped, moved) stands in a small
-- ordered set beside it, and who leaves from the middle leaves a tombstone. It never compares
-- anything but arrivals, which are unique in a namespace.
--
-- A line: {n, q = {arrival, slot, …}} or {n, big = true, last = the list's last arrival,
-- aside = how many stand in the set, dead = how many tombstones}.

local SHORT = 4

local function list(key)
  local l = db.lists[key]
  if not l then
    l = { base = {}, at = 1, read = 0, step = db.want + 1, done = false, push = {}, first = 1 }
    db.lists[key] = l
  end
  return l
end

local function head(key)
  local l = list(key)
  if l.at > #l.base and not l.done then
    local found = call('LRANGE', db.prefix .. key, l.read, l.read + l.step - 1)
    for i = 1, #found do
      l.base[#l.base + 1] = found[i]
    end
    l.read = l.read + #found
    l.done = #found < l.step
    l.step = min(l.step * 4, 512)
  end
  local item = l.base[l.at] or l.push[l.first]
  if item then
    return T.line_item(item)
  end
end

-- An item of a list is arrival and slot, six bytes each.
function T.line_item(item)
  local arrival, slot = struct.unpack('>I6I6', item)
  return arrival, slot
end
local function item_of(arrival, slot)
  return struct.pack('>I6I6', arrival, slot)
end

local function pop(key)
  local l = list(key)
  if l.at <= #l.base then
    l.at = l.at + 1
  else
    l.first = l.first + 1
  end
end

function L.new()
  return { n = 0, q = {} }
end

-- Drops tombstones that came to the head.
local function bury(line, key)
  while line.dead > 0 do
    local arrival = head(key)
    local field = text(arrival)
    if not M.get(key .. 'x', field) then
      return
    end
    M.drop(key .. 'x', field)
    line.dead = line.dead - 1
    pop(key)
  end
end

-- The first: its arrival and its slot; or nil.
function L.first(line, key)
  if not line.big then
    return line.q[1], line.q[2]
  end
  local arrival, slot = head(key)
  if line.aside > 0 then
    local member, score = Z.first(key .. 'r')
    if not arrival or score < arrival then
      return score, tonumber(member)
    end
  end
  return arrival, slot
end

local function spill(line, key)
  local q, push = line.q, list(key).push
  line.big, line.last, line.aside, line.dead, line.q = true, 0, 0, 0, nil
  for i = 1, #q, 2 do
    push[#push + 1] = item_of(q[i], q[i + 1])
    line.last = q[i]
  end
end

-- Puts in many who arrive now, one after the other: items of a list, the arrival and the slot of the first.
function L.append(line, key, items, arrival, slot)
  local many = #items
  if not line.big then
    if line.n + many <= SHORT then
      for i = 0, many - 1 do
        L.insert(line, key, arrival + i, slot + i)
      end
      return
    end
    spill(line, key)
  end
  local push = list(key).push
  local n = #push
  for i = 1, many do
    push[n + i] = items[i]
  end
  line.n, line.last = line.n + many, arrival + many - 1
end

function L.insert(line, key, arrival, slot)
  line.n = line.n + 1
  if not line.big then
    local q = line.q
    if line.n <= SHORT then
      local i = #q - 1
      while i > 0 and arrival < q[i] do
        q[i + 2], q[i + 3] = q[i], q[i + 1]
        i = i - 2
      end
      q[i + 2], q[i + 3] = arrival, slot
      return
    end
    spill(line, key)
  end
  if arrival > line.last then
    local push = list(key).push
    push[#push + 1] = item_of(arrival, slot)
    line.last = arrival
  else
    Z.add(key .. 'r', arrival, text(slot))
    line.aside = line.aside + 1
  end
end

-- Takes out who arrived then; whether he was there.
function L.remove(line, key, arrival, slot)
  if not line.big then
    local q = line.q
    for i = 1, #q, 2 do
      if q[i] == arrival then
        remove(q, i)
        remove(q, i)
        line.n = line.n - 1
        return true
      end
    end
    return false
  end
  line.n = line.n - 1
  if line.aside > 0 and Z.score(key .. 'r', text(slot)) == arrival then
    Z.rem(key .. 'r', text(slot))
    line.aside = line.aside - 1
  elseif head(key) == arrival then
    pop(key)
    bury(line, key)
  else
    M.put(key .. 'x', text(arrival), '1')
    line.dead = line.dead + 1
  end
  if line.n == 0 then
    -- Only tombstones are left, and they have all come to the head.
    bury(line, key)
    line.big, line.last, line.aside, line.dead, line.q = nil, nil, nil, nil, {}
  end
  return true
end

-- The first n at most, as items of a list.
function L.heads(line, key, n)
  if line.big and line.aside == 0 and line.dead == 0 then
    local l = list(key)
    head(key)
    local base, at = l.base, l.at
    while #base - at + 1 < n and not l.done do
      l.at = #base + 1
      head(key)
      l.at = at
    end
    if #base - at + 1 >= n or line.n == #base - at + 1 then
      if at == 1 and #base <= n then
        return base
      end
      return { unpack(base, at, min(at + n - 1, #base)) }
    end
  end
  local items = {}
  for arrival, slot in L.each(line, key) do
    items[#items + 1] = item_of(arrival, slot)
    if #items >= n then
      break
    end
  end
  return items
end

-- Takes out the first n.
function L.take(line, key, n)
  if line.big and line.aside == 0 and line.dead == 0 and n < line.n then
    local l = list(key)
    local of_base = min(n, #l.base + 1 - l.at)
    if of_base == n or l.done then
      l.at, l.first = l.at + of_base, l.first + n - of_base
      line.n = line.n - n
      return
    end
  end
  for _ = 1, n do
    local arrival, slot = L.first(line, key)
    L.remove(line, key, arrival, slot)
  end
end

-- How many stand before `arrival`, counted to `most` at most.
function L.rank(line, key, arrival, most)
  local n = 0
  for at in L.each(line, key) do
    if at >= arrival or n >= most then
      return n
    end
    n = n + 1
  end
  return n
end

-- Walks in order: for arrival, slot in L.each(line, key) do. The line must not change meanwhile.
function L.each(line, key)
  if not line.big then
    local q, i = line.q, -1
    return function()
      i = i + 2
      return q[i], q[i + 1]
    end
  end
  local aside = Z.each(key .. 'r')
  local member, score = aside()
  local l = list(key)
  local at, first = l.at, l.first
  local function next_in_list()
    while true do
      if at > #l.base and not l.done then
        local kept = l.at
        l.at = #l.base + 1
        head(key)
        l.at = kept
      end
      local item = l.base[at]
      if item then
        at = at + 1
      else
        item = l.push[first]
        first = first + 1
      end
      if not item then
        return nil
      end
      local arrival, slot = T.line_item(item)
      if line.dead == 0 or not M.get(key .. 'x', text(arrival)) then
        return arrival, slot
      end
    end
  end
  local arrival, slot = next_in_list()
  return function()
    local a, s
    if score and (not arrival or score < arrival) then
      a, s = score, tonumber(member)
      member, score = aside()
    elseif arrival then
      a, s = arrival, slot
      arrival, slot = next_in_list()
    end
    return a, s
  end
end

function db.write_lists(out)
  for key, l in pairs(db.lists) do
    local popped = l.at - 1
    if popped > 0 or l.first <= #l.push then
      local w = out(key)
      w.pop = popped
      if l.first <= #l.push then
        w.push = {}
        for i = l.first, #l.push do
          w.push[#w.push + 1] = l.push[i]
        end
      end
    end
  end
end
