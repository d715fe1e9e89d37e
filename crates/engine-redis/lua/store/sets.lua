-- Ordered sets: (score, member), ordered by score, then by the member's bytes.
--
-- A set has a key of its own. Members that must sort by a number carry it padded: `lib.pad`.

-- A number as text that sorts as the number does.
function lib.pad(n)
  return format('%016d', n)
end

-- Whether a sorts before b by their bytes. (`<` would ask the server's locale.)
local function less(a, b)
  if a == b then
    return false
  end
  local i = 1
  while true do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then
      return not x or y and x < y
    end
    i = i + 1
  end
end
lib.less = less

local function before(s1, m1, s2, m2)
  return s1 < s2 or (s1 == s2 and less(m1, m2))
end

local LOWEST = 1 / 0

-- So many are read of a set at first, and four times as many each time that this was not enough.
local FIRST_READ = 4

local function zset_of(key)
  local set = db.zsets[key]
  if not set then
    -- base: what the store has, as far as it was read; at: the first of it not yet passed.
    -- put: what this call changed, member -> score, or false if taken out.
    -- extra: what it put in, in order, but for what is `loose`: not yet in order, since most sets are
    -- only written to. placed: the score under which a member is in `extra`.
    -- low: no score in `loose` is below.
    set = {
      base = {}, at = 1, read = 0, step = FIRST_READ, done = false, extra = {}, put = {}, loose = {},
      low = LOWEST, placed = {},
    }
    db.zsets[key] = set
  end
  return set
end

-- What was put in and taken out in bulk is as if it had been so one by one, once somebody looks.
local function absorb(set)
  local adds, rems = set.adds, set.rems
  set.adds, set.rems = nil, nil
  for i = 1, #adds, 2 do
    local score = tonumber(adds[i])
    set.put[adds[i + 1]], set.low = score, min(set.low, score)
    set.loose[#set.loose + 1] = adds[i + 1]
  end
  for i = 1, #rems do
    set.put[rems[i]] = false
  end
end

local function zset(key)
  local set = zset_of(key)
  if set.adds then
    absorb(set)
  end
  return set
end

local function read_more(key, set)
  local found = call('ZRANGE', db.prefix .. key, set.read, set.read + set.step - 1, 'WITHSCORES')
  local base = set.base
  for i = 1, #found, 2 do
    base[#base + 1] = { tonumber(found[i + 1]), found[i] }
  end
  set.read = set.read + #found / 2
  set.done = #found / 2 < set.step
  set.step = min(set.step * 4, 512)
end

-- The place in `extra` where an item stands or would stand.
local function place(extra, score, member)
  local low, high = 1, #extra + 1
  while low < high do
    local mid = floor((low + high) / 2)
    if before(extra[mid][1], extra[mid][2], score, member) then
      low = mid + 1
    else
      high = mid
    end
  end
  return low
end

-- Puts in order what was only written so far.
local function settle_loose(set)
  local extra, placed = set.extra, set.placed
  for _, member in ipairs(set.loose) do
    local score = set.put[member]
    if score and not placed[member] then
      placed[member] = score
      insert(extra, place(extra, score, member), { score, member })
    end
  end
  set.loose, set.low = {}, LOWEST
end

-- The first of the base that this call left alone, from index i on; its index.
local function next_base(key, set, i)
  while true do
    while i <= #set.base do
      if set.put[set.base[i][2]] == nil then
        return i
      end
      i = i + 1
    end
    if set.done then
      return nil
    end
    read_more(key, set)
  end
end

-- The first: member, score; or nil.
function sets.first(key)
  if db.direct then
    local found = call('ZRANGE', db.prefix .. key, '0', '0', 'WITHSCORES')
    return found[1], tonumber(found[2])
  end
  local set = zset(key)
  local i = next_base(key, set, set.at)
  set.at = i or #set.base + 1
  local base = i and set.base[i]
  if set.low < LOWEST and not (base and base[1] < set.low) then
    settle_loose(set)
  end
  local extra = set.extra[1]
  if base and (not extra or before(base[1], base[2], extra[1], extra[2])) then
    return base[2], base[1]
  elseif extra then
    return extra[2], extra[1]
  end
end

-- ---- Heads: the lowest scores of some sets, as far as this server's memory knows them (see records.lua) ----

-- Sets of which most calls change nothing, and of which ticks ask for the first again and again.
local WATCHED = {}

function sets.watch(keys)
  for i = 1, #keys do
    WATCHED[keys[i]] = true
  end
end

local function known_head(key)
  local known = not db.zsets[key] and db.heads[key]
  if TESTING and known then
    local _, score = sets.first(key)
    if (score or LOWEST) ~= known then
      error('lowest_score_is_wrong:' .. key)
    end
  end
  return known
end

-- The lowest score of a set, or nil if it is empty.
function sets.lowest(key)
  local known = known_head(key)
  if known then
    return known < LOWEST and known or nil
  end
  local _, score = sets.first(key)
  return score
end

-- The first if its score is not above `limit`; it is not read where the lowest is known to be.
function sets.due(key, limit)
  local known = known_head(key)
  if known and known > limit then
    return nil
  end
  local member, score = sets.first(key)
  if member and score <= limit then
    return member, score
  end
end

-- Whether a set that is watched is known to be empty, before a direct call.
function sets.is_known_empty(key)
  return db.heads[key] == LOWEST
end

-- What the call leaves as the lowest score of a set, if it read enough to know.
local function head_of(set, lowest_put)
  local base, at = set.base, set.at
  while base[at] and set.put[base[at][2]] ~= nil do
    at = at + 1
  end
  if base[at] then
    return min(base[at][1], lowest_put)
  end
  return set.done and lowest_put or nil
end

-- Walks in order: for member, score in sets.each(key) do. The set must not change meanwhile.
function sets.each(key)
  local set = zset(key)
  local i, e = set.at, 1
  settle_loose(set)
  return function()
    i = next_base(key, set, i) or #set.base + 1
    local base, extra = set.base[i], set.extra[e]
    if base and (not extra or before(base[1], base[2], extra[1], extra[2])) then
      i = i + 1
      return base[2], base[1]
    elseif extra then
      e = e + 1
      return extra[2], extra[1]
    end
  end
end

local function unplace(set, member)
  local score = set.placed[member]
  if score then
    remove(set.extra, place(set.extra, score, member))
    set.placed[member] = nil
  end
end

-- Up to so many of the members behind the first `passed`, in the order in which they are stored; nil if this call has
-- changed more than those. They come without their scores, which cost more than they do.
function sets.front(key, passed, n)
  if passed > 0 or next(zset(key).put) == nil then
    return call('ZRANGE', db.prefix .. key, passed, passed + n - 1)
  end
end

-- The first n as they are stored were changed by this call, so they are not read again.
function sets.passed(key, n)
  local set = zset(key)
  if n > set.read then
    set.base, set.at, set.read = {}, 1, n
  end
end

-- Puts a member in, or moves it.
function sets.add(key, score, member)
  if db.direct then
    call('ZADD', db.prefix .. key, text(score), member)
    local known = db.heads[key]
    if known and score < known then
      db.heads[key] = score
    end
    return
  end
  local set = zset(key)
  unplace(set, member)
  set.put[member] = score
  set.loose[#set.loose + 1] = member
  if score < set.low then
    set.low = score
  end
end

-- For many members that this call touches once: {adds = {score as text, member, …}, rems = {member, …}}, to
-- be added to. None of the added is there yet.
function sets.bulk(key)
  local set = zset_of(key)
  if not set.adds then
    set.adds, set.rems = {}, {}
  end
  return set
end

function sets.rem(key, member)
  if db.direct then
    call('ZREM', db.prefix .. key, member)
    db.heads[key] = nil
    return
  end
  local set = zset(key)
  unplace(set, member)
  set.put[member] = false
end

-- As `sets.due`, taken out.
function sets.take_due(key, limit)
  local member, score = sets.due(key, limit)
  if member then
    sets.rem(key, member)
  end
  return member, score
end

-- Whether one of these members is there: one command, whatever their number.
function sets.any(key, members)
  local set, asked = zset(key), {}
  for _, member in ipairs(members) do
    local put = set.put[member]
    if put then
      return true
    elseif put == nil then
      asked[#asked + 1] = member
    end
  end
  for _, score in ipairs(asked[1] and call('ZMSCORE', db.prefix .. key, unpack(asked)) or {}) do
    if score then
      return true
    end
  end
  return false
end

-- The first whose score is above one: member, score; or nil. It is looked for from there on, so what stands
-- before costs nothing.
function sets.after(key, score)
  local set = zset(key)
  settle_loose(set)
  local extra, low, high = set.extra, 1, #set.extra + 1
  while low < high do
    local mid = floor((low + high) / 2)
    if extra[mid][1] <= score then
      low = mid + 1
    else
      high = mid
    end
  end
  local own, from, step = extra[low], 0, 4
  while true do
    local found = call('ZRANGEBYSCORE', db.prefix .. key, '(' .. format('%.17g', score), '+inf', 'WITHSCORES',
      'LIMIT', from, step)
    for i = 1, #found, 2 do
      -- What this call changed stands in `extra`, or is gone.
      if set.put[found[i]] == nil then
        local member, at = found[i], tonumber(found[i + 1])
        if own and before(own[1], own[2], at, member) then
          return own[2], own[1]
        end
        return member, at
      end
    end
    if #found / 2 < step then
      if own then
        return own[2], own[1]
      end
      return nil
    end
    from, step = from + step, min(step * 4, 512)
  end
end

-- The whole set goes, whatever this call did to it.
function sets.drop(key)
  db.zsets[key], db.heads[key], db.texts[key] = nil, nil, false
end

function db.write_zsets(out)
  for key, its_set in pairs(db.zsets) do
    local zadd, zrem = its_set.adds, its_set.rems
    local n, m = zadd and #zadd or 0, zrem and #zrem or 0
    if n == 0 then
      zadd = nil
    end
    if m == 0 then
      zrem = nil
    end
    -- Many have the same score: what one call grants expires together.
    local last, written
    local lowest = LOWEST
    for member, score in pairs(its_set.put) do
      if score then
        zadd = zadd or {}
        lowest = min(lowest, score)
        if score ~= last then
          last = score
          written = score == floor(score) and format('%d', score) or format('%.17g', score)
        end
        zadd[n + 1], zadd[n + 2] = written, member
        n = n + 2
      else
        zrem = zrem or {}
        m = m + 1
        zrem[m] = member
      end
    end
    if zadd or zrem then
      local set = out(key)
      set.zadd, set.zrem = zadd, zrem
      set.read = its_set.read > 0 or its_set.done
    end
    if WATCHED[key] then
      db.heads[key] = not its_set.adds and head_of(its_set, lowest) or nil
    end
  end
end

-- The members of one score.
function sets.of_score(key, score)
  local set, members, at = zset(key), {}, text(score)
  for _, member in ipairs(call('ZRANGEBYSCORE', db.prefix .. key, at, at)) do
    if set.put[member] == nil then
      members[#members + 1] = member
    end
  end
  for member, its_score in pairs(set.put) do
    if its_score == score then
      members[#members + 1] = member
    end
  end
  return members
end

-- The score of a member, or nil.
function sets.score(key, member)
  local set = zset(key)
  local put = set.put[member]
  if put ~= nil then
    return put or nil
  end
  local score = call('ZSCORE', db.prefix .. key, member)
  return score and tonumber(score) or nil
end
