-- pools: what holds for each resource of a pool.
--
-- put_pool {name, quarantine, cooldown, rate = {count, per, burst}, max_uses, pick} -> {view, created}
-- patch_pool {name, any of these | false} -> {view, created}     delete_pool {name} -> true
-- get_pool {name} -> view     list_pools {max, after} -> {items, next}
-- Refusals: pool_not_found, in_use (held, or its deletion is not done).
-- Cost: a few reads and writes; a change of settings and a deletion also some for each resource, of
-- which one step does at most a thousand, and for each door, of which it does at most 32: what is left is done by
-- ticks, a portion each.

function lib.pool_not_found(name)
  lib.refuse('pool_not_found', { pool = name })
end

-- The pool that a call names, or a refusal.
function lib.pool_named(name)
  local pool_record = db.get(RECORD.pool, name)
  if not pool_record or not pool_record.settings then
    lib.pool_not_found(name)
  end
  return pool_record
end

local FIELDS = { 'quarantine', 'cooldown', 'rate', 'max_uses', 'pick' }
local DEFAULTS = { quarantine = 0, cooldown = 0, pick = 'lru' }

local function same(one, other)
  return one and one.quarantine == other.quarantine and one.cooldown == other.cooldown
    and one.max_uses == other.max_uses
    and one.pick == other.pick and lib.same_rate(one.rate, other.rate)
end

-- A pool that was deleted has no settings; while some of its resources are still to go, it is nobody's.
function lib.is_going(pool_record)
  return pool_record ~= nil and not pool_record.settings and pool_record.ids.n > 0
end

-- Sets a pool, made if it is not there; whether it is new.
function lib.set_pool(name, settings, now)
  local pool_record = lib.pool_for(name)
  if lib.is_going(pool_record) then
    lib.refuse('pool_being_deleted', { pool = name })
  end
  local old = pool_record.settings
  if not same(old, settings) then
    pool_record.settings = settings
    lib.event(EVENT.pool_changed, name)
    lib.pool_changed(name, now)
  end
  return not old
end

-- The pool of a sync or an add, made if it is not there.
function lib.pool_made(name, now)
  local pool_record = db.get(RECORD.pool, name)
  if not pool_record or not pool_record.settings then
    local settings = {}
    for _, field in ipairs(FIELDS) do
      settings[field] = DEFAULTS[field]
    end
    lib.set_pool(name, settings, now)
  end
  return db.get(RECORD.pool, name)
end

local function put(name, given, now)
  local settings = {}
  for _, field in ipairs(FIELDS) do
    settings[field] = given[field] or DEFAULTS[field]
  end
  local created = lib.set_pool(name, settings, now)
  return { view = lib.pool_view(name), created = created }
end

lib.op('put_pool', { 'write' }, function(args, now)
  return put(args.name, args, now)
end)

lib.op('patch_pool', { 'write' }, function(args, now)
  local pool_record, given = db.get(RECORD.pool, args.name), {}
  local old = pool_record and pool_record.settings or DEFAULTS
  for _, field in ipairs(FIELDS) do
    if args[field] == nil then
      given[field] = old[field]
    else
      given[field] = args[field]
    end
  end
  return put(args.name, given, now)
end)

lib.op('get_pool', { 'no-writes' }, function(args)
  lib.pool_named(args.name)
  return lib.pool_view(args.name)
end)

lib.op('list_pools', { 'no-writes' }, function(args)
  return lib.page(args, lib.names({ 'pn' }, args.after), function(name)
    local pool_record = db.get(RECORD.pool, name)
    return pool_record and pool_record.settings and pool_record or nil
  end, lib.pool_view)
end)

-- ---- In steps ----

-- The ids of a pool's resources behind `after`, in order, at most `most`. Of a large pool it tells
-- those that were stored before this call.
function lib.ids_after(name, after, most)
  local pool_record = db.get(RECORD.pool, name)
  if pool_record.ids.z then
    local from = after ~= '' and '(' .. after or '-'
    return call('ZRANGEBYLEX', db.prefix .. lib.pool_ids(name), from, '+', 'LIMIT', 0, most)
  end
  local ids = {}
  for id in inner.each(pool_record.ids, lib.pool_ids(name)) do
    if after == '' or lib.less(after, id) then
      ids[#ids + 1] = id
    end
  end
  return ids
end

-- All ids of a pool that is not large; nil if it is.
function lib.all_ids(name)
  local pool_record = db.get(RECORD.pool, name)
  if pool_record.ids.n > BOUND.ITEMS_MAX then
    return nil
  end
  local ids = {}
  for id in inner.each(pool_record.ids, lib.pool_ids(name)) do
    ids[#ids + 1] = id
  end
  return ids
end

-- A pool's settings changed: paces are computed anew.
function lib.pool_changed(name, now)
  local ids = lib.all_ids(name)
  if not ids then
    lib.go_on({ 'paces', name, '' }, now)
    return
  end
  for _, id in ipairs(ids) do
    lib.repace(lib.resource(name, id), now)
  end
  lib.retry_pool_misfits(name, now)
end

-- A step {'paces', pool, the last id that was done}.
function lib.step_paces(step, now)
  local name = step[STEP_AT.of]
  local pool_record = db.get(RECORD.pool, name)
  if not pool_record or not pool_record.settings then
    return true
  end
  local ids = lib.ids_after(name, step[STEP_AT.at], BOUND.TICK_MAX)
  for _, id in ipairs(ids) do
    local resource = lib.resource(name, id)
    if resource then
      lib.repace(resource, now)
    end
    step[STEP_AT.at] = id
  end
  if pool_record.ids.z and #ids == BOUND.TICK_MAX then
    return false
  end
  lib.retry_pool_misfits(name, now)
  return true
end

-- ---- Delete ----

-- Removes resources of a deleted pool: all, or a portion of many; whether all are gone.
local function remove_some(name)
  local pool_record = db.get(RECORD.pool, name)
  -- It is not to be forgotten before its last word here.
  pool_record.uses = pool_record.uses + 1
  for _ = 1, pool_record.ids.n > BOUND.ITEMS_MAX and BOUND.TICK_MAX or pool_record.ids.n do
    local id = inner.first(pool_record.ids, lib.pool_ids(name))
    lib.remove_resource(lib.resource(name, id))
  end
  pool_record.uses = pool_record.uses - 1
  return pool_record.ids.n == 0
end

-- A step {'pool', name}.
function lib.step_pool(step)
  local name = step[STEP_AT.of]
  if not lib.is_going(db.get(RECORD.pool, name)) then
    return true
  end
  local done = remove_some(name)
  lib.drop_pool_if_idle(name)
  return done
end

-- Its jobs wait with `never_fits` until it is there again.
lib.op('delete_pool', { 'write', 'allow-oom' }, function(args, now)
  local name = args.name
  local pool_record = lib.pool_named(name)
  if pool_record.leased > 0 then
    lib.refuse('pool_held', { pool = name, held = pool_record.leased })
  end
  lib.event(EVENT.pool_deleted, name)
  if pool_record.sync then
    lib.end_sync(pool_record, now)
  end
  pool_record.settings = nil
  if not remove_some(name) then
    lib.go_on({ 'pool', name }, now)
  end
  lib.all_pool_doors_due(name, now)
  if pool_record.mark then
    lib.drop_mark(pool_record.mark.lane, now)
  end
  lib.drop_pool_if_idle(name)
  return true
end)
