-- pools: what holds for each resource of a pool.
--
-- put_pool {name, quarantine, cooldown, rate = {count, per, burst}, max_uses, pick} -> {view, created}
-- patch_pool {name, any of these | false} -> {view, created}     delete_pool {name} -> true
-- get_pool {name} -> view     list_pools {max, after} -> {items, next}
-- Refusals: pool_not_found, in_use (held, or its deletion is not done).
-- Cost: a few reads and writes; a change of settings and a deletion also some for each resource, of
-- which one step does at most a thousand, and for each door, of which it does at most 32: what is left is done by
-- ticks, a portion each.

function T.pool_not_found(name)
  T.refuse('pool_not_found', { pool = name })
end

-- The pool that a call names, or a refusal.
function T.pool_named(name)
  local p = db.get(RECORD.pool, name)
  if not p or not p.settings then
    T.pool_not_found(name)
  end
  return p
end

local FIELDS = { 'quarantine', 'cooldown', 'rate', 'max_uses', 'pick' }
local DEFAULTS = { quarantine = 0, cooldown = 0, pick = 'lru' }

local function same(a, b)
  return a and a.quarantine == b.quarantine and a.cooldown == b.cooldown and a.max_uses == b.max_uses
    and a.pick == b.pick and T.same_rate(a.rate, b.rate)
end

-- A pool that was deleted has no settings; while some of its resources are still to go, it is nobody's.
function T.is_going(p)
  return p ~= nil and not p.settings and p.ids.n > 0
end

-- Sets a pool, made if it is not there; whether it is new.
function T.set_pool(name, settings, now)
  local p = T.pool_for(name)
  if T.is_going(p) then
    T.refuse('pool_being_deleted', { pool = name })
  end
  local old = p.settings
  if not same(old, settings) then
    p.settings = settings
    T.pool_changed(name, now)
  end
  return not old
end

-- The pool of a sync or an add, made if it is not there.
function T.pool_made(name, now)
  local p = db.get(RECORD.pool, name)
  if not p or not p.settings then
    local settings = {}
    for _, field in ipairs(FIELDS) do
      settings[field] = DEFAULTS[field]
    end
    T.set_pool(name, settings, now)
  end
  return db.get(RECORD.pool, name)
end

local function put(name, given, now)
  local settings = {}
  for _, field in ipairs(FIELDS) do
    settings[field] = given[field] or DEFAULTS[field]
  end
  local created = T.set_pool(name, settings, now)
  return { view = T.pool_view(name), created = created }
end

T.op('put_pool', { 'write' }, function(args, now)
  return put(args.name, args, now)
end)

T.op('patch_pool', { 'write' }, function(args, now)
  local p, given = db.get(RECORD.pool, args.name), {}
  local old = p and p.settings or DEFAULTS
  for _, field in ipairs(FIELDS) do
    if args[field] == nil then
      given[field] = old[field]
    else
      given[field] = args[field]
    end
  end
  return put(args.name, given, now)
end)

T.op('get_pool', { 'no-writes' }, function(args)
  T.pool_named(args.name)
  return T.pool_view(args.name)
end)

T.op('list_pools', { 'no-writes' }, function(args)
  return T.page(args, T.names({ 'pn' }, args.after), function(name)
    local p = db.get(RECORD.pool, name)
    return p and p.settings and p or nil
  end, T.pool_view)
end)

-- ---- In steps ----

-- The ids of a pool's resources behind `after`, in order, at most `most`. Of a large pool it tells
-- those that were stored before this call.
function T.ids_after(name, after, most)
  local p = db.get(RECORD.pool, name)
  if p.ids.z then
    local from = after ~= '' and '(' .. after or '-'
    return call('ZRANGEBYLEX', db.prefix .. T.pool_ids(name), from, '+', 'LIMIT', 0, most)
  end
  local ids = {}
  for id in O.each(p.ids, T.pool_ids(name)) do
    if after == '' or T.less(after, id) then
      ids[#ids + 1] = id
    end
  end
  return ids
end

-- All ids of a pool that is not large; nil if it is.
function T.all_ids(name)
  local p = db.get(RECORD.pool, name)
  if p.ids.n > B.ITEMS_MAX then
    return nil
  end
  local ids = {}
  for id in O.each(p.ids, T.pool_ids(name)) do
    ids[#ids + 1] = id
  end
  return ids
end

-- A pool's settings changed: paces are computed anew.
function T.pool_changed(name, now)
  local ids = T.all_ids(name)
  if not ids then
    T.go_on({ 'paces', name, '' }, now)
    return
  end
  for _, id in ipairs(ids) do
    T.repace(T.resource(name, id), now)
  end
  T.retry_pool_misfits(name, now)
end

-- A step {'paces', pool, the last id that was done}.
function T.step_paces(step, now)
  local name = step[STEP_AT.of]
  local p = db.get(RECORD.pool, name)
  if not p or not p.settings then
    return true
  end
  local ids = T.ids_after(name, step[STEP_AT.at], B.TICK_MAX)
  for _, id in ipairs(ids) do
    local r = T.resource(name, id)
    if r then
      T.repace(r, now)
    end
    step[STEP_AT.at] = id
  end
  if p.ids.z and #ids == B.TICK_MAX then
    return false
  end
  T.retry_pool_misfits(name, now)
  return true
end

-- ---- Delete ----

-- Removes resources of a deleted pool: all, or a portion of many; whether all are gone.
local function remove_some(name)
  local p = db.get(RECORD.pool, name)
  -- It is not to be forgotten before its last word here.
  p.uses = p.uses + 1
  for _ = 1, p.ids.n > B.ITEMS_MAX and B.TICK_MAX or p.ids.n do
    local id = O.first(p.ids, T.pool_ids(name))
    T.remove_resource(T.resource(name, id))
  end
  p.uses = p.uses - 1
  return p.ids.n == 0
end

-- A step {'pool', name}.
function T.step_pool(step)
  local name = step[STEP_AT.of]
  if not T.is_going(db.get(RECORD.pool, name)) then
    return true
  end
  local done = remove_some(name)
  T.drop_pool_if_idle(name)
  return done
end

-- Its jobs wait with `never_fits` until it is there again.
T.op('delete_pool', { 'write', 'allow-oom' }, function(args, now)
  local name = args.name
  local p = T.pool_named(name)
  if p.leased > 0 then
    T.refuse('pool_held', { pool = name, held = p.leased })
  end
  if p.sync then
    T.end_sync(p, now)
  end
  p.settings = nil
  if not remove_some(name) then
    T.go_on({ 'pool', name }, now)
  end
  T.all_pool_doors_due(name, now)
  if p.mark then
    T.drop_mark(p.mark.lane, now)
  end
  T.drop_pool_if_idle(name)
  return true
end)
