-- resources: added, changed, retired, cooled, banned and restored one by one.
--
-- A resource from outside is {id, data = JSON text, tags, slots}. What is said of one by hand changes
-- its data, tags and slots, or its state, and never its leases.
-- add_resources {pool, resources} -> views in the order given; makes the pool if it is not there
-- patch_resource {pool, id, data | tags | slots | false} -> view     delete_resource {pool, id} -> true
-- get_resource, restore_resource {pool, id}, cool_resource {pool, id, for | until}, ban_resource {pool,
-- id, reason} -> view. list_resources {pool, max, after} -> {items, next}
-- Refusals: pool_not_found, resource_not_found, in_use (the pool is being deleted).
-- Cost: a few reads and writes for each resource, and a read for each holder that is shown.

local function named(pool, id)
  T.pool_named(pool)
  local r = T.resource(pool, id)
  if not r then
    T.refuse('resource_not_found', { pool = pool, resource = id })
  end
  return r
end

local function same_tags(a, b)
  if #a ~= #b then
    return false
  end
  for i, tag in ipairs(a) do
    if b[i] ~= tag then
      return false
    end
  end
  return true
end

-- It is named again, or was never absent.
local function keep_on(r)
  if r.retiring then
    local p = db.get(RECORD.pool, r.pool)
    r.retiring, p.retiring = nil, (p.retiring or 0) - 1
  end
end

-- While a set is applied to the pool, what belongs to it is marked by the set's generation.
local function belongs(r)
  local p = db.get(RECORD.pool, r.pool)
  if p.sync then
    r.generation = p.generation
  end
end

-- Adds a resource, or changes what of it comes from outside: 'added', 'updated' or 'unchanged'.
function T.upsert_resource(pool, new, now)
  local data, tags, slots = new.data or 'null', new.tags or {}, new.slots or 1
  local r = T.resource(pool, new.id)
  local key, field = T.data_home(pool, new.id)
  if not r then
    r = T.add_resource(pool, new.id, tags, slots)
    belongs(r)
    M.put(key, field, data)
    T.refresh_resource(r, now)
    return 'added'
  end
  belongs(r)
  local data_stays = M.get(key, field) == data
  if data_stays and r.slots == slots and not r.retiring and same_tags(r.tags, tags) then
    return 'unchanged'
  end
  if not data_stays then
    M.put(key, field, data)
  end
  T.retag(r, tags)
  r.slots = slots
  keep_on(r)
  T.lose_kept(r)
  T.refresh_resource(r, now)
  return 'updated'
end

-- Hands it out no more; true if it is gone, false if it goes when it is free.
function T.retire(r, now)
  if #r.holders == 0 then
    T.remove_resource(r)
    return true
  end
  if not r.retiring then
    local p = db.get(RECORD.pool, r.pool)
    r.retiring, p.retiring = true, (p.retiring or 0) + 1
  end
  T.lose_kept(r)
  T.refresh_resource(r, now)
  return false
end

-- What is said by hand while a set is applied came after that set: the set says no more of it.
local function by_hand(pool, id, r)
  local p = db.get(RECORD.pool, pool)
  if p.sync then
    T.unstage(p.sync, id)
    if r then
      belongs(r)
    end
  end
end

T.op('add_resources', { 'write' }, function(args, now)
  T.pool_made(args.pool, now)
  for _, new in ipairs(args.resources) do
    T.upsert_resource(args.pool, new, now)
    by_hand(args.pool, new.id)
  end
  local views = {}
  for i, new in ipairs(args.resources) do
    views[i] = T.resource_view(T.resource(args.pool, new.id), now)
  end
  return views
end)

T.op('patch_resource', { 'write' }, function(args, now)
  local r = named(args.pool, args.id)
  by_hand(args.pool, args.id, r)
  if args.data ~= nil then
    local key, field = T.data_home(args.pool, args.id)
    M.put(key, field, args.data or 'null')
  end
  if args.tags ~= nil then
    T.retag(r, args.tags or {})
  end
  if args.slots ~= nil then
    r.slots = args.slots or 1
  end
  T.lose_kept(r)
  T.refresh_resource(r, now)
  return T.resource_view(r, now)
end)

T.op('delete_resource', { 'write', 'allow-oom' }, function(args, now)
  local r = named(args.pool, args.id)
  by_hand(args.pool, args.id, r)
  T.retire(r, now)
  return true
end)

T.op('get_resource', { 'no-writes' }, function(args, now)
  return T.resource_view(named(args.pool, args.id), now)
end)

T.op('list_resources', { 'no-writes' }, function(args, now)
  local p = T.pool_named(args.pool)
  local names
  if p.ids.z then
    names = T.names({ T.pool_ids(args.pool) }, args.after)
  else
    local ids, at = T.ids_after(args.pool, args.after or '', B.ITEMS_MAX), 0
    names = function()
      at = at + 1
      return ids[at]
    end
  end
  return T.page(args, names, function(id)
    return T.resource(args.pool, id)
  end, function(_, r)
    return T.resource_view(r, now)
  end)
end)

T.op('cool_resource', { 'write', 'allow-oom' }, function(args, now)
  local r = named(args.pool, args.id)
  T.lose_kept(r)
  T.cool(r, args['for'] and now + args['for'] or args['until'], { 'cooled_by_hand' }, now)
  T.refresh_resource(r, now)
  return T.resource_view(r, now)
end)

T.op('ban_resource', { 'write', 'allow-oom' }, function(args, now)
  local r = named(args.pool, args.id)
  T.ban(r, args.reason or nil, now)
  return T.resource_view(r, now)
end)

-- Available again; ends no lease. Its uses count anew, or `max_uses` would ban it at once.
T.op('restore_resource', { 'write', 'allow-oom' }, function(args, now)
  local r = named(args.pool, args.id)
  local most = db.get(RECORD.pool, args.pool).settings.max_uses
  T.set_resource_state(r, RESOURCE.available, 0, 0, nil)
  if most and r.uses >= most then
    r.uses = 0
  end
  T.refresh_resource(r, now)
  return T.resource_view(r, now)
end)
