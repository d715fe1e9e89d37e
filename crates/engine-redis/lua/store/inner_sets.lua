-- Ordered sets inside a record (`inner`): a flat array there while they are small, a key of their own (`sets`) once
-- they grow. Their length is always known.

-- (In the library of tests a set is large sooner, since its programs are small.)
local INLINE = TESTING and 3 or 16

-- `set` is the record's field: {score, member, …, n = count} while small, {z = true, n = count} else.
-- `key` is where it lies when it is large; it is the owner's alone.

function inner.new()
  return { n = 0 }
end

function inner.first(set, key)
  if set.z then
    return sets.first(key)
  end
  return set[2], set[1]
end

-- The first whose score is above one: member, score; or nil.
function inner.after(set, key, score)
  if set.z then
    return sets.after(key, score)
  end
  for i = 1, #set, 2 do
    if set[i] > score then
      return set[i + 1], set[i]
    end
  end
end

-- The score of a member; or nil.
function inner.score(set, key, member)
  if set.z then
    return sets.score(key, member)
  end
  for i = 1, #set, 2 do
    if set[i + 1] == member then
      return set[i]
    end
  end
end

local function spill(set, key)
  for i = 1, #set, 2 do
    sets.add(key, set[i], set[i + 1])
  end
  for i = #set, 1, -1 do
    set[i] = nil
  end
  set.z = true
end

-- Puts in a member that is not there.
function inner.add(set, key, score, member)
  set.n = set.n + 1
  if not set.z then
    if set.n <= INLINE then
      local i = #set - 1
      while i > 0 and before(score, member, set[i], set[i + 1]) do
        set[i + 2], set[i + 3] = set[i], set[i + 1]
        i = i - 2
      end
      set[i + 2], set[i + 3] = score, member
      return
    end
    spill(set, key)
  end
  sets.add(key, score, member)
end

-- Gives a member that is there another score.
function inner.move(set, key, score, member)
  if set.z then
    sets.add(key, score, member)
  elseif set.n == 1 then
    set[1] = score
  else
    inner.rem(set, key, member)
    inner.add(set, key, score, member)
  end
end

-- Where a member stands now that stood at one score and is to stand at another; nil is not there.
function inner.place(set, key, was, score, member)
  if was and score then
    inner.move(set, key, score, member)
  elseif score then
    inner.add(set, key, score, member)
  elseif was then
    inner.rem(set, key, member)
  end
end

-- Takes a member out; whether it was there (a large set is told so by its owner: it must be).
function inner.rem(set, key, member)
  if set.z then
    sets.rem(key, member)
    set.n = set.n - 1
    if set.n == 0 then
      set.z = nil
    end
    return true
  end
  for i = 1, #set, 2 do
    if set[i + 1] == member then
      remove(set, i)
      remove(set, i)
      set.n = set.n - 1
      return true
    end
  end
  return false
end

-- Up to so many of the members behind the first `passed`, in order, and whether they come as `sets.front` has them;
-- otherwise they are the first as the set is now.
function inner.front(set, key, passed, n)
  local members = set.z and sets.front(key, passed, n)
  if members then
    return members, true
  end
  members = {}
  for member in inner.each(set, key) do
    members[#members + 1] = member
    if #members >= n then
      break
    end
  end
  return members, false
end

-- Walks in order: for member, score in inner.each(set, key) do. The set must not change meanwhile.
function inner.each(set, key)
  if set.z then
    return sets.each(key)
  end
  local i = -1
  return function()
    i = i + 2
    return set[i + 1], set[i]
  end
end

-- The scores of a large set above one, of those that this call put in or moved, in order; and how many it touched.
local function own_above(key, score)
  local set, own, touched = zset(key), {}, 0
  for member, at in pairs(set.put) do
    touched = touched + 1
    if at and at > score then
      own[#own + 1] = { at, member }
    end
  end
  sort(own, function(one, other)
    return before(one[1], one[2], other[1], other[2])
  end)
  return own, touched
end

-- Up to n members whose scores are above one, in order: {score, member} each.
function inner.some_after(set, key, score, n)
  local some = {}
  if not set.z then
    for i = 1, #set, 2 do
      if set[i] > score and #some < n then
        some[#some + 1] = { set[i], set[i + 1] }
      end
    end
    return some
  end
  local own, touched = own_above(key, score)
  local found = call('ZRANGEBYSCORE', db.prefix .. key, '(' .. text(score), '+inf', 'WITHSCORES', 'LIMIT', 0,
    n + touched)
  local put, at = zset(key).put, 1
  for i = 1, #found, 2 do
    local member, its = found[i], tonumber(found[i + 1])
    while own[at] and #some < n and before(own[at][1], own[at][2], its, member) do
      some[#some + 1], at = own[at], at + 1
    end
    if #some >= n then
      return some
    elseif put[member] == nil then
      some[#some + 1] = { its, member }
    end
  end
  while own[at] and #some < n do
    some[#some + 1], at = own[at], at + 1
  end
  return some
end

-- As `inner.rem` where it is not known whether the member is there.
function inner.rem_known(set, key, member)
  if set.z and not sets.score(key, member) then
    return false
  end
  return inner.rem(set, key, member)
end
