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
  lib.pool_named(pool)
  local resource = lib.resource(pool, id)
  if not resource then
    lib.refuse('resource_not_found', { pool = pool, resource = id })
  end
  return resource
end

local function same_tags(one, other)
  if #one ~= #other then
    return false
  end
  for i, tag in ipairs(one) do
    if other[i] ~= tag then
      return false
    end
  end
  return true
end

-- It is named again, or was never absent.
local function keep_on(resource)
  if resource.retiring then
    local pool_record = db.get(RECORD.pool, resource.pool)
    resource.retiring, pool_record.retiring = nil, (pool_record.retiring or 0) - 1
  end
end

-- While a set is applied to the pool, what belongs to it is marked by the set's generation.
local function belongs(resource)
  local pool_record = db.get(RECORD.pool, resource.pool)
  if pool_record.sync then
    resource.generation = pool_record.generation
  end
end

-- Adds a resource, or changes what of it comes from outside: 'added', 'updated' or 'unchanged'.
function lib.upsert_resource(pool, new, now)
  local data, tags, slots = new.data or 'null', new.tags or {}, new.slots or 1
  local resource = lib.resource(pool, new.id)
  local key, field = lib.data_home(pool, new.id)
  if not resource then
    resource = lib.add_resource(pool, new.id, tags, slots)
    belongs(resource)
    maps.put(key, field, data)
    lib.refresh_resource(resource, now)
    return 'added'
  end
  belongs(resource)
  local data_stays = maps.get(key, field) == data
  if data_stays and resource.slots == slots and not resource.retiring and same_tags(resource.tags, tags) then
    return 'unchanged'
  end
  if not data_stays then
    maps.put(key, field, data)
  end
  lib.retag(resource, tags)
  resource.slots = slots
  keep_on(resource)
  lib.lose_kept(resource)
  lib.refresh_resource(resource, now)
  return 'updated'
end

-- Hands it out no more; true if it is gone, false if it goes when it is free.
function lib.retire(resource, now)
  if not resource.retiring then
    lib.event(EVENT.resource_retired, resource.pool, resource.id)
  end
  if #resource.holders == 0 then
    lib.remove_resource(resource)
    return true
  end
  if not resource.retiring then
    local pool_record = db.get(RECORD.pool, resource.pool)
    resource.retiring, pool_record.retiring = true, (pool_record.retiring or 0) + 1
  end
  lib.lose_kept(resource)
  lib.refresh_resource(resource, now)
  return false
end

-- What is said by hand while a set is applied came after that set: the set says no more of it.
local function by_hand(pool, id, resource)
  local pool_record = db.get(RECORD.pool, pool)
  if pool_record.sync then
    lib.unstage(pool_record.sync, id)
    if resource then
      belongs(resource)
    end
  end
end

lib.op('add_resources', { 'write' }, function(args, now)
  lib.pool_made(args.pool, now)
  local changed = false
  for _, new in ipairs(args.resources) do
    changed = lib.upsert_resource(args.pool, new, now) ~= 'unchanged' or changed
    by_hand(args.pool, new.id)
  end
  if changed then
    lib.event(EVENT.pool_changed, args.pool)
  end
  local views = {}
  for i, new in ipairs(args.resources) do
    views[i] = lib.resource_view(lib.resource(args.pool, new.id), now)
  end
  return views
end)

lib.op('patch_resource', { 'write' }, function(args, now)
  local resource = named(args.pool, args.id)
  by_hand(args.pool, args.id, resource)
  if args.data ~= nil or args.tags ~= nil or args.slots ~= nil then
    lib.event(EVENT.pool_changed, args.pool)
  end
  if args.data ~= nil then
    local key, field = lib.data_home(args.pool, args.id)
    maps.put(key, field, args.data or 'null')
  end
  if args.tags ~= nil then
    lib.retag(resource, args.tags or {})
  end
  if args.slots ~= nil then
    resource.slots = args.slots or 1
  end
  lib.lose_kept(resource)
  lib.refresh_resource(resource, now)
  return lib.resource_view(resource, now)
end)

lib.op('delete_resource', { 'write', 'allow-oom' }, function(args, now)
  local resource = named(args.pool, args.id)
  by_hand(args.pool, args.id, resource)
  lib.retire(resource, now)
  return true
end)

lib.op('get_resource', { 'no-writes' }, function(args, now)
  return lib.resource_view(named(args.pool, args.id), now)
end)

lib.op('list_resources', { 'no-writes' }, function(args, now)
  local pool_record = lib.pool_named(args.pool)
  local names
  if pool_record.ids.z then
    names = lib.names({ lib.pool_ids(args.pool) }, args.after)
  else
    local ids, at = lib.ids_after(args.pool, args.after or '', BOUND.ITEMS_MAX), 0
    names = function()
      at = at + 1
      return ids[at]
    end
  end
  return lib.page(args, names, function(id)
    return lib.resource(args.pool, id)
  end, function(_, resource)
    return lib.resource_view(resource, now)
  end)
end)

lib.op('cool_resource', { 'write', 'allow-oom' }, function(args, now)
  local resource = named(args.pool, args.id)
  lib.lose_kept(resource)
  lib.cool(resource, args['for'] and now + args['for'] or args['until'], { 'cooled_by_hand' }, now)
  lib.refresh_resource(resource, now)
  return lib.resource_view(resource, now)
end)

lib.op('ban_resource', { 'write', 'allow-oom' }, function(args, now)
  local resource = named(args.pool, args.id)
  lib.ban(resource, args.reason or nil, now)
  return lib.resource_view(resource, now)
end)

-- Available again; ends no lease. Its uses count anew, or `max_uses` would ban it at once.
lib.op('restore_resource', { 'write', 'allow-oom' }, function(args, now)
  local resource = named(args.pool, args.id)
  local most = db.get(RECORD.pool, args.pool).settings.max_uses
  lib.set_resource_state(resource, RESOURCE.available, 0, 0, nil)
  lib.event(EVENT.resource_restored, args.pool, args.id)
  if most and resource.uses >= most then
    resource.uses = 0
  end
  lib.refresh_resource(resource, now)
  return lib.resource_view(resource, now)
end)
