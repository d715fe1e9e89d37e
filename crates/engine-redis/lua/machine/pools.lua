-- Pools: which resources may be handed out, which one is, and what becomes of it afterwards.
--
-- A resource that may be handed out is in the sets of what is free, under its last use; whatever
-- changes that goes through `lib.refresh_resource`. States: 'a'vailable, 'c'ooling, 'b'anned. Data is
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
lib.pool_ids, lib.pool_free, lib.pool_tag, lib.pool_doors_key = ids_key, free_key, tag_key, doors_key
lib.tag_of = tag_of

-- How many resources of a pool have a tag.
function lib.tagged(pool, tag)
  local known = tag_of(pool, tag)
  return known and known.n or 0
end

-- Where the data of a resource lies: a key and a field.
function lib.data_home(pool, id)
  return 'D:' .. pool .. ':' .. shard(id), id
end

function lib.resource(pool, id)
  return db.get(RECORD.resource, key_of(pool, id))
end

-- The pool of this name, made if it is not there; without settings it is only a name.
function lib.pool_for(name)
  local pool_record = db.get(RECORD.pool, name)
  if not pool_record then
    pool_record = db.put(RECORD.pool, name, {
      uses = 0, ids = inner.new(), free = inner.new(), doors = inner.new(), waiting = 0, version = 0,
      generation = 0, leased = 0, cooling = 0, banned = 0, draw = 0,
    })
    sets.add('pn', 0, name)
  end
  return pool_record
end

function lib.drop_pool_if_idle(name)
  local pool_record = db.get(RECORD.pool, name)
  if not pool_record or pool_record.settings or pool_record.uses > 0 or pool_record.doors.n > 0
    or pool_record.ids.n > 0 then
    return
  end
  db.drop(RECORD.pool, name)
  sets.rem('pn', name)
end

-- ---- What is free ----

local function may_be_handed_out(resource, now)
  local pool_record = db.get(RECORD.pool, resource.pool)
  return resource.state == RESOURCE.available and not resource.retiring and not resource.kept_for
    and #resource.holders < resource.slots
    and resource.paced_until <= now and pool_record.settings
end

-- Puts a resource into the sets where it belongs now, and lets its doors know if it may be handed out.
function lib.refresh_resource(resource, now)
  lib.leave_free(resource)
  if may_be_handed_out(resource, now) then
    if lib.keep_for_mark(resource) then
      return
    end
    local pool_record = db.get(RECORD.pool, resource.pool)
    resource.free = pool_record.settings.pick == 'random' and lib.draw(resource.pool) or resource.used
    inner.add(pool_record.free, free_key(resource.pool), resource.free, resource.id)
    for _, tag in ipairs(resource.tags) do
      inner.add(tag_of(resource.pool, tag).free, tag_key(resource.pool, tag), resource.free, resource.id)
    end
    lib.pool_doors_due(resource.pool, resource.tags, resource.id)
  end
  lib.arm_resource(resource, now)
end

function lib.leave_free(resource)
  if not resource.free then
    return
  end
  resource.free = nil
  local pool_record = db.get(RECORD.pool, resource.pool)
  inner.rem(pool_record.free, free_key(resource.pool), resource.id)
  for _, tag in ipairs(resource.tags) do
    inner.rem(tag_of(resource.pool, tag).free, tag_key(resource.pool, tag), resource.id)
  end
end

-- A number that no client can foresee is not needed here, only one that spreads: the head of a hash
-- over a counter.
function lib.draw(pool)
  local pool_record = db.get(RECORD.pool, pool)
  pool_record.draw = pool_record.draw + 1
  return tonumber(sub(redis.sha1hex(pool .. ':' .. text(pool_record.draw)), 1, 12), 16)
end

local function matches(resource, tag, id)
  if id then
    return resource.id == id
  elseif tag then
    for _, own in ipairs(resource.tags) do
      if own == tag then
        return true
      end
    end
    return false
  end
  return true
end

-- A resource that became free is kept for the lane that reserves, if that lacks one.
function lib.keep_for_mark(resource)
  local mark = db.get(RECORD.pool, resource.pool).mark
  if not mark or #mark.kept >= mark.count or not matches(resource, mark.tag, mark.id) then
    return false
  end
  resource.kept_for = mark.lane
  mark.kept[#mark.kept + 1] = resource.id
  lib.door_due(lib.pool_door(resource.pool, mark.tag, mark.id))
  return true
end

-- Keeps what is free already for a lane that begins to reserve.
function lib.keep_free(pool, now)
  while true do
    local mark = db.get(RECORD.pool, pool).mark
    if not mark or #mark.kept >= mark.count then
      return
    end
    local resource = lib.first_free(pool, mark.tag, mark.id)
    if not resource then
      return
    end
    lib.refresh_resource(resource, now)
  end
end

-- What was kept for a lane is free for all again.
function lib.unkeep(pool, kept, now)
  for _, id in ipairs(kept) do
    local resource = lib.resource(pool, id)
    if resource then
      resource.kept_for = nil
      lib.refresh_resource(resource, now)
    end
  end
end

function lib.first_free(pool, tag, id)
  local pool_record = db.get(RECORD.pool, pool)
  if id then
    local resource = lib.resource(pool, id)
    return resource and resource.free and resource or nil
  end
  local first
  if tag then
    local known = tag_of(pool, tag)
    first = known and inner.first(known.free, tag_key(pool, tag))
  else
    first = inner.first(pool_record.free, free_key(pool))
  end
  return first and lib.resource(pool, first)
end

local function count_free(pool, tag, id)
  local pool_record = db.get(RECORD.pool, pool)
  if id then
    return lib.first_free(pool, tag, id) and 1 or 0
  elseif tag then
    local known = tag_of(pool, tag)
    return known and known.free.n or 0
  end
  return pool_record.free.n
end

-- Whether a need of a pool can be served now, what others reserve left alone.
function lib.pool_fit(pool, tag, id, count, lane)
  local pool_record = db.get(RECORD.pool, pool)
  if not pool_record or not pool_record.settings then
    return 'never'
  elseif lib.learns(db.space.last) then
    return 'no', lib.learns(db.space.last)
  elseif pool_record.sync then
    -- A set is being applied: what is granted is of the old one or of the new one.
    return 'no'
  end
  local kept = pool_record.mark and pool_record.mark.lane == lane and #pool_record.mark.kept or 0
  -- Timers of resources make the doors due, so no moment is told here.
  return count_free(pool, tag, id) + kept >= count and 'yes' or 'no'
end

-- ---- Taking and returning ----

-- Takes resources for a lease; the fit was checked in the same step. Their ids.
function lib.take_resources(need, lane, lease, now)
  local pool, tag, prefer = need[NEED_AT.name], need[NEED_AT.tag], need[NEED_AT.prefer]
  local id, count = need[NEED_AT.id], need[NEED_AT.count]
  local taken, has, kept = {}, {}, {}
  local function take(resource)
    lib.take_resource(resource, lease, now)
    taken[#taken + 1] = resource.id
    has[resource.id] = true
  end
  local mark = db.get(RECORD.pool, pool).mark
  if mark and mark.lane == lane then
    for _, one in ipairs(mark.kept) do
      kept[#kept + 1] = one
    end
  end
  local resource = prefer and lib.resource(pool, prefer)
  if resource and (resource.free or resource.kept_for == lane) and matches(resource, tag, id) and #taken < count then
    take(resource)
  end
  for _, one in ipairs(kept) do
    if #taken < count and not has[one] then
      take(lib.resource(pool, one))
    end
  end
  -- One lease holds a resource once, even if it has more slots: `count` is different ones.
  local put_back = {}
  while #taken < count do
    local free = lib.first_free(pool, tag, id)
    if not free then
      break
    end
    if has[free.id] then
      lib.leave_free(free)
      put_back[#put_back + 1] = free
    else
      take(free)
    end
  end
  for _, one in ipairs(put_back) do
    lib.refresh_resource(one, now)
  end
  return taken
end

function lib.take_resource(resource, lease, now)
  local space = db.space
  space.used = space.used + 1
  local pool_record = db.get(RECORD.pool, resource.pool)
  if #resource.holders == 0 then
    pool_record.leased = pool_record.leased + 1
  end
  resource.kept_for = nil
  resource.holders[#resource.holders + 1] = lease
  resource.uses, resource.used, resource.last_used_at = resource.uses + 1, space.used, now
  local rate = pool_record.settings and pool_record.settings.rate
  if rate then
    resource.tat = max(resource.tat, now) + lib.tokens(rate, 1)
    resource.paced_until = lib.rate_fits_at(rate, resource.tat, 1, now)
  end
  if pool_record.settings and pool_record.settings.max_uses and resource.uses >= pool_record.settings.max_uses then
    lib.set_resource_state(resource, RESOURCE.banned, 0, 0, 'max_uses')
  end
  lib.refresh_resource(resource, now)
end

-- Takes a lease off a resource; a retiring one goes when it is free.
function lib.release_resource(resource, lease, now)
  local at
  for i, holder in ipairs(resource.holders) do
    if holder == lease then
      at = i
    end
  end
  if not at then
    return
  end
  remove(resource.holders, at)
  if #resource.holders == 0 then
    local pool_record = db.get(RECORD.pool, resource.pool)
    pool_record.leased = pool_record.leased - 1
    if resource.retiring then
      lib.remove_resource(resource)
      return
    end
  end
  lib.refresh_resource(resource, now)
end

-- Changes a resource's state; the pool's sums go with it.
function lib.set_resource_state(resource, state, until_, rest, reason)
  local pool_record = db.get(RECORD.pool, resource.pool)
  local function sum(of, by)
    if of == RESOURCE.cooling then
      pool_record.cooling = pool_record.cooling + by
    elseif of == RESOURCE.banned then
      pool_record.banned = pool_record.banned + by
    end
  end
  sum(resource.state, -1)
  sum(state, 1)
  resource.state, resource['until'], resource.rest, resource.reason = state, until_, rest, reason
end

-- Lets a resource rest until a moment, unless it rests longer or is banned.
function lib.cool(resource, until_, reason, now)
  if resource.state == RESOURCE.banned or (resource.state == RESOURCE.cooling and resource['until'] >= until_)
    or until_ <= now then
    return
  end
  lib.event(EVENT.resource_cooling, resource.pool, resource.id, until_, reason or false)
  lib.set_resource_state(resource, RESOURCE.cooling, until_, until_ - now, reason)
  lib.refresh_resource(resource, now)
end

-- Hands a resource out no more.
function lib.ban(resource, reason, now)
  lib.event(EVENT.resource_banned, resource.pool, resource.id, reason or false)
  lib.set_resource_state(resource, RESOURCE.banned, 0, 0, reason)
  lib.lose_kept(resource)
  lib.refresh_resource(resource, now)
end

-- A kept resource that may not be handed out any more is kept no more.
function lib.lose_kept(resource)
  if not resource.kept_for then
    return
  end
  resource.kept_for = nil
  local mark = db.get(RECORD.pool, resource.pool).mark
  if mark then
    for i, id in ipairs(mark.kept) do
      if id == resource.id then
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
function lib.remove_resource(resource)
  lib.leave_free(resource)
  lib.lose_kept(resource)
  lib.set_resource_state(resource, RESOURCE.available, 0, 0, nil)
  if resource.timer then
    lib.timer_clear('rt', key_of(resource.pool, resource.id))
  end
  local pool_record = db.get(RECORD.pool, resource.pool)
  if resource.retiring then
    pool_record.retiring = pool_record.retiring - 1
  end
  inner.rem(pool_record.ids, ids_key(resource.pool), resource.id)
  for _, tag in ipairs(resource.tags) do
    untag(resource.pool, tag)
  end
  db.drop(RECORD.resource, key_of(resource.pool, resource.id))
  maps.drop(lib.data_home(resource.pool, resource.id))
  lib.drop_pool_if_idle(resource.pool)
end

-- Gives a resource other tags.
function lib.retag(resource, tags)
  lib.leave_free(resource)
  for _, tag in ipairs(resource.tags) do
    untag(resource.pool, tag)
  end
  for _, tag in ipairs(tags) do
    local known = tag_of(resource.pool, tag)
      or db.put(RECORD.tag, resource.pool .. '\0' .. tag, { n = 0, free = inner.new() })
    known.n = known.n + 1
  end
  resource.tags = tags
end

-- Adds a resource that was not there.
function lib.add_resource(pool, id, tags, slots)
  local resource = db.put(RECORD.resource, key_of(pool, id), {
    pool = pool, id = id, tags = {}, slots = slots, state = RESOURCE.available, ['until'] = 0, rest = 0, holders = {},
    uses = 0, used = 0, tat = 0, paced_until = 0, generation = 0,
  })
  inner.add(db.get(RECORD.pool, pool).ids, ids_key(pool), 0, id)
  lib.retag(resource, tags)
  return resource
end

-- ---- Time ----

function lib.arm_resource(resource, now)
  local next_at = resource.state == RESOURCE.cooling and resource['until'] or nil
  if resource.paced_until > now then
    next_at = next_at and min(next_at, resource.paced_until) or resource.paced_until
  end
  if resource.timer == next_at then
    return
  end
  if next_at then
    lib.timer_set('rt', next_at, key_of(resource.pool, resource.id))
  else
    lib.timer_clear('rt', key_of(resource.pool, resource.id))
  end
  resource.timer = next_at
end

-- Ends what time ends at a resource.
function lib.tick_resource(key, now)
  local resource = db.get(RECORD.resource, key)
  if not resource then
    return
  end
  resource.timer = nil
  if resource.state == RESOURCE.cooling and resource['until'] <= now then
    lib.set_resource_state(resource, RESOURCE.available, 0, 0, nil)
  end
  lib.refresh_resource(resource, now)
end

-- A resource's pace under the pool's settings as they are now.
function lib.repace(resource, now)
  local settings = db.get(RECORD.pool, resource.pool).settings
  local rate = settings and settings.rate
  if rate then
    resource.tat = min(resource.tat, now + lib.tokens(rate, rate[RATE_AT.burst]))
    resource.paced_until = lib.rate_fits_at(rate, resource.tat, 1, now)
  else
    resource.paced_until = 0
  end
  lib.refresh_resource(resource, now)
end
