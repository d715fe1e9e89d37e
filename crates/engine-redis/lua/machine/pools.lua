-- Pools: which resources may be handed out, which one is, and what becomes of it afterwards.
--
-- A resource that may be handed out is in the sets of what is free, under its last use; whatever
-- changes that goes through `T.refresh_resource`. States: 'a'vailable, 'c'ooling, 'b'anned. Data is
-- never in a record: it is a field of its own.

local function key_of(pool, id)
  return pool .. '\0' .. id
end
local function free_key(pool)
  return 'pf:' .. pool
end
local function tag_key(pool, tag)
  return 'pt:' .. pool .. '\0' .. tag
end
-- What is known of a tag: {n = how many resources have it, free = those of them that are}. It is a record of
-- its own, since a pool may have as many tags as resources.
local function tag_of(pool, tag)
  return db.get(RECORD.tag, pool .. '\0' .. tag)
end
local function ids_key(pool)
  return 'pi:' .. pool
end
local function doors_key(pool)
  return 'pd:' .. pool
end
T.pool_ids, T.pool_free, T.pool_tag, T.pool_doors_key = ids_key, free_key, tag_key, doors_key
T.tag_of = tag_of

-- How many resources of a pool have a tag.
function T.tagged(pool, tag)
  local known = tag_of(pool, tag)
  return known and known.n or 0
end

-- Where the data of a resource lies: a key and a field.
function T.data_home(pool, id)
  return 'D:' .. pool .. ':' .. shard(id), id
end

function T.resource(pool, id)
  return db.get(RECORD.resource, key_of(pool, id))
end

-- The pool of this name, made if it is not there; without settings it is only a name.
function T.pool_for(name)
  local p = db.get(RECORD.pool, name)
  if not p then
    p = db.put(RECORD.pool, name, {
      uses = 0, ids = O.new(), free = O.new(), doors = O.new(), waiting = 0, version = 0,
      generation = 0, leased = 0, cooling = 0, banned = 0, draw = 0,
    })
    Z.add('pn', 0, name)
  end
  return p
end

function T.drop_pool_if_idle(name)
  local p = db.get(RECORD.pool, name)
  if not p or p.settings or p.uses > 0 or p.doors.n > 0 or p.ids.n > 0 then
    return
  end
  db.drop(RECORD.pool, name)
  Z.rem('pn', name)
end

-- ---- What is free ----

local function may_be_handed_out(r, now)
  local p = db.get(RECORD.pool, r.pool)
  return r.state == RESOURCE.available and not r.retiring and not r.kept_for and #r.holders < r.slots
    and r.paced_until <= now and p.settings
end

-- Puts a resource into the sets where it belongs now, and lets its doors know if it may be handed out.
function T.refresh_resource(r, now)
  T.leave_free(r)
  if may_be_handed_out(r, now) then
    if T.keep_for_mark(r) then
      return
    end
    local p = db.get(RECORD.pool, r.pool)
    r.free = p.settings.pick == 'random' and T.draw(r.pool) or r.used
    O.add(p.free, free_key(r.pool), r.free, r.id)
    for _, tag in ipairs(r.tags) do
      O.add(tag_of(r.pool, tag).free, tag_key(r.pool, tag), r.free, r.id)
    end
    T.pool_doors_due(r.pool, r.tags, r.id)
  end
  T.arm_resource(r, now)
end

function T.leave_free(r)
  if not r.free then
    return
  end
  r.free = nil
  local p = db.get(RECORD.pool, r.pool)
  O.rem(p.free, free_key(r.pool), r.id)
  for _, tag in ipairs(r.tags) do
    O.rem(tag_of(r.pool, tag).free, tag_key(r.pool, tag), r.id)
  end
end

-- A number that no client can foresee is not needed here, only one that spreads: the head of a hash
-- over a counter.
function T.draw(pool)
  local p = db.get(RECORD.pool, pool)
  p.draw = p.draw + 1
  return tonumber(sub(redis.sha1hex(pool .. ':' .. text(p.draw)), 1, 12), 16)
end

local function matches(r, tag, id)
  if id then
    return r.id == id
  elseif tag then
    for _, own in ipairs(r.tags) do
      if own == tag then
        return true
      end
    end
    return false
  end
  return true
end

-- A resource that became free is kept for the lane that reserves, if that lacks one.
function T.keep_for_mark(r)
  local mark = db.get(RECORD.pool, r.pool).mark
  if not mark or #mark.kept >= mark.count or not matches(r, mark.tag, mark.id) then
    return false
  end
  r.kept_for = mark.lane
  mark.kept[#mark.kept + 1] = r.id
  T.door_due(T.pool_door(r.pool, mark.tag, mark.id))
  return true
end

-- Keeps what is free already for a lane that begins to reserve.
function T.keep_free(pool, now)
  while true do
    local mark = db.get(RECORD.pool, pool).mark
    if not mark or #mark.kept >= mark.count then
      return
    end
    local r = T.first_free(pool, mark.tag, mark.id)
    if not r then
      return
    end
    T.refresh_resource(r, now)
  end
end

-- What was kept for a lane is free for all again.
function T.unkeep(pool, kept, now)
  for _, id in ipairs(kept) do
    local r = T.resource(pool, id)
    if r then
      r.kept_for = nil
      T.refresh_resource(r, now)
    end
  end
end

function T.first_free(pool, tag, id)
  local p = db.get(RECORD.pool, pool)
  if id then
    local r = T.resource(pool, id)
    return r and r.free and r or nil
  end
  local first
  if tag then
    local known = tag_of(pool, tag)
    first = known and O.first(known.free, tag_key(pool, tag))
  else
    first = O.first(p.free, free_key(pool))
  end
  return first and T.resource(pool, first)
end

local function count_free(pool, tag, id)
  local p = db.get(RECORD.pool, pool)
  if id then
    return T.first_free(pool, tag, id) and 1 or 0
  elseif tag then
    local known = tag_of(pool, tag)
    return known and known.free.n or 0
  end
  return p.free.n
end

-- Whether a need of a pool can be served now, what others reserve left alone.
function T.pool_fit(pool, tag, id, count, lane)
  local p = db.get(RECORD.pool, pool)
  if not p or not p.settings then
    return 'never'
  elseif T.learns(db.space.last) then
    return 'no', T.learns(db.space.last)
  elseif p.sync then
    -- A set is being applied: what is granted is of the old one or of the new one.
    return 'no'
  end
  local kept = p.mark and p.mark.lane == lane and #p.mark.kept or 0
  -- Timers of resources make the doors due, so no moment is told here.
  return count_free(pool, tag, id) + kept >= count and 'yes' or 'no'
end

-- ---- Taking and returning ----

-- Takes resources for a lease; the fit was checked in the same step. Their ids.
function T.take_resources(need, lane, lease, now)
  local pool, tag, prefer = need[NEED_AT.name], need[NEED_AT.tag], need[NEED_AT.prefer]
  local id, count = need[NEED_AT.id], need[NEED_AT.count]
  local taken, has, kept = {}, {}, {}
  local function take(r)
    T.take_resource(r, lease, now)
    taken[#taken + 1] = r.id
    has[r.id] = true
  end
  local mark = db.get(RECORD.pool, pool).mark
  if mark and mark.lane == lane then
    for _, one in ipairs(mark.kept) do
      kept[#kept + 1] = one
    end
  end
  local r = prefer and T.resource(pool, prefer)
  if r and (r.free or r.kept_for == lane) and matches(r, tag, id) and #taken < count then
    take(r)
  end
  for _, one in ipairs(kept) do
    if #taken < count and not has[one] then
      take(T.resource(pool, one))
    end
  end
  -- One lease holds a resource once, even if it has more slots: `count` is different ones.
  local put_back = {}
  while #taken < count do
    local free = T.first_free(pool, tag, id)
    if not free then
      break
    end
    if has[free.id] then
      T.leave_free(free)
      put_back[#put_back + 1] = free
    else
      take(free)
    end
  end
  for _, one in ipairs(put_back) do
    T.refresh_resource(one, now)
  end
  return taken
end

function T.take_resource(r, lease, now)
  local space = db.space
  space.used = space.used + 1
  local p = db.get(RECORD.pool, r.pool)
  if #r.holders == 0 then
    p.leased = p.leased + 1
  end
  r.kept_for = nil
  r.holders[#r.holders + 1] = lease
  r.uses, r.used, r.last_used_at = r.uses + 1, space.used, now
  local rate = p.settings and p.settings.rate
  if rate then
    r.tat = max(r.tat, now) + T.tokens(rate, 1)
    r.paced_until = T.rate_fits_at(rate, r.tat, 1, now)
  end
  if p.settings and p.settings.max_uses and r.uses >= p.settings.max_uses then
    T.set_resource_state(r, RESOURCE.banned, 0, 0, 'max_uses')
  end
  T.refresh_resource(r, now)
end

-- Takes a lease off a resource; a retiring one goes when it is free.
function T.release_resource(r, lease, now)
  local at
  for i, holder in ipairs(r.holders) do
    if holder == lease then
      at = i
    end
  end
  if not at then
    return
  end
  remove(r.holders, at)
  if #r.holders == 0 then
    local p = db.get(RECORD.pool, r.pool)
    p.leased = p.leased - 1
    if r.retiring then
      T.remove_resource(r)
      return
    end
  end
  T.refresh_resource(r, now)
end

-- Changes a resource's state; the pool's sums go with it.
function T.set_resource_state(r, state, until_, rest, reason)
  local p = db.get(RECORD.pool, r.pool)
  local function sum(of, by)
    if of == RESOURCE.cooling then
      p.cooling = p.cooling + by
    elseif of == RESOURCE.banned then
      p.banned = p.banned + by
    end
  end
  sum(r.state, -1)
  sum(state, 1)
  r.state, r['until'], r.rest, r.reason = state, until_, rest, reason
end

-- Lets a resource rest until a moment, unless it rests longer or is banned.
function T.cool(r, until_, reason, now)
  if r.state == RESOURCE.banned or (r.state == RESOURCE.cooling and r['until'] >= until_) or until_ <= now then
    return
  end
  T.set_resource_state(r, RESOURCE.cooling, until_, until_ - now, reason)
  T.refresh_resource(r, now)
end

-- Hands a resource out no more.
function T.ban(r, reason, now)
  T.set_resource_state(r, RESOURCE.banned, 0, 0, reason)
  T.lose_kept(r)
  T.refresh_resource(r, now)
end

-- A kept resource that may not be handed out any more is kept no more.
function T.lose_kept(r)
  if not r.kept_for then
    return
  end
  r.kept_for = nil
  local mark = db.get(RECORD.pool, r.pool).mark
  if mark then
    for i, id in ipairs(mark.kept) do
      if id == r.id then
        remove(mark.kept, i)
        break
      end
    end
  end
end

-- A resource that is not free has a tag no more.
local function untag(pool, tag)
  local known = tag_of(pool, tag)
  known.n = known.n - 1
  if known.n == 0 then
    db.drop(RECORD.tag, pool .. '\0' .. tag)
  end
end

-- Removes a resource that nobody holds.
function T.remove_resource(r)
  T.leave_free(r)
  T.lose_kept(r)
  T.set_resource_state(r, RESOURCE.available, 0, 0, nil)
  if r.timer then
    T.timer_clear('rt', key_of(r.pool, r.id))
  end
  local p = db.get(RECORD.pool, r.pool)
  if r.retiring then
    p.retiring = p.retiring - 1
  end
  O.rem(p.ids, ids_key(r.pool), r.id)
  for _, tag in ipairs(r.tags) do
    untag(r.pool, tag)
  end
  db.drop(RECORD.resource, key_of(r.pool, r.id))
  M.drop(T.data_home(r.pool, r.id))
  T.drop_pool_if_idle(r.pool)
end

-- Gives a resource other tags.
function T.retag(r, tags)
  T.leave_free(r)
  for _, tag in ipairs(r.tags) do
    untag(r.pool, tag)
  end
  for _, tag in ipairs(tags) do
    local known = tag_of(r.pool, tag) or db.put(RECORD.tag, r.pool .. '\0' .. tag, { n = 0, free = O.new() })
    known.n = known.n + 1
  end
  r.tags = tags
end

-- Adds a resource that was not there.
function T.add_resource(pool, id, tags, slots)
  local r = db.put(RECORD.resource, key_of(pool, id), {
    pool = pool, id = id, tags = {}, slots = slots, state = RESOURCE.available, ['until'] = 0, rest = 0, holders = {},
    uses = 0, used = 0, tat = 0, paced_until = 0, generation = 0,
  })
  O.add(db.get(RECORD.pool, pool).ids, ids_key(pool), 0, id)
  T.retag(r, tags)
  return r
end

-- ---- Time ----

function T.arm_resource(r, now)
  local next_at = r.state == RESOURCE.cooling and r['until'] or nil
  if r.paced_until > now then
    next_at = next_at and min(next_at, r.paced_until) or r.paced_until
  end
  if r.timer == next_at then
    return
  end
  if next_at then
    T.timer_set('rt', next_at, key_of(r.pool, r.id))
  else
    T.timer_clear('rt', key_of(r.pool, r.id))
  end
  r.timer = next_at
end

-- Ends what time ends at a resource.
function T.tick_resource(key, now)
  local r = db.get(RECORD.resource, key)
  if not r then
    return
  end
  r.timer = nil
  if r.state == RESOURCE.cooling and r['until'] <= now then
    T.set_resource_state(r, RESOURCE.available, 0, 0, nil)
  end
  T.refresh_resource(r, now)
end

-- A resource's pace under the pool's settings as they are now.
function T.repace(r, now)
  local settings = db.get(RECORD.pool, r.pool).settings
  local rate = settings and settings.rate
  if rate then
    r.tat = min(r.tat, now + T.tokens(rate, rate[RATE_AT.burst]))
    r.paced_until = T.rate_fits_at(rate, r.tat, 1, now)
  else
    r.paced_until = 0
  end
  T.refresh_resource(r, now)
end
