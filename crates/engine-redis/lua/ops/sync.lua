-- sync: makes a set from outside the whole set of a pool; and the steps that large work is done in.
--
-- sync_resources {pool, resources (at most 1,000), meant, version} -> synced
-- sync_begin {pool, version} -> {sync = number}
-- sync_items {pool, sync, resources (at most 1,000)} -> true
-- sync_end {pool, sync, meant, version} -> synced; called until `done`
-- synced = {done, sync, added, updated, unchanged, retired, retiring}
-- Refusals: stale_sync (a version below the last, or a number that is not known), empty_set,
-- retires_most. They change nothing; what was sent is forgotten a minute after its last call.
--
-- A small set for a small pool is one step. A larger one is staged beside the pool, where nobody sees
-- it; the first `sync_end` that has counted what it would retire decides, and from then on it is
-- applied, by ticks too, whoever asked for it. Meanwhile the pool hands out nothing: what is granted
-- is of the old set or of the new one. One set is applied at a time; the next waits for it undecided.
-- A sync changes data, tags and slots and nothing else.
-- Cost: a few reads and writes for each resource. A call stages or counts at most 1,000; a call or a
-- tick applies at most `BOUND.TICK_MAX`, some milliseconds.
--
-- A staged set (machine/staged) of a pool is a record {pool, version, meant, phase, cursor, live, done}: phase 'count',
-- 'apply', 'retire', 'done'.

-- ---- Steps ----
-- What is too much for one call is carried on by ticks: {kind, what, …}, one portion of the first at
-- a time.

-- The step of this kind for this, if it is there.
function lib.step_of(kind, what)
  for _, step in ipairs(db.space.steps or {}) do
    if step[STEP_AT.kind] == kind and step[STEP_AT.of] == what then
      return step
    end
  end
end

-- Adds a step, once.
function lib.go_on(step, now)
  local space = db.space
  local steps = space.steps or {}
  space.steps = steps
  lib.sooner(now)
  for i, other in ipairs(steps) do
    if other[STEP_AT.kind] == step[STEP_AT.kind] and other[STEP_AT.of] == step[STEP_AT.of] then
      steps[i] = step
      return
    end
  end
  steps[#steps + 1] = step
end

local function step_once(step, now)
  if step[STEP_AT.kind] == 'sync' then
    return lib.step_sync(step, now)
  elseif step[STEP_AT.kind] == 'schedules' then
    return lib.step_schedules(step, now)
  elseif step[STEP_AT.kind] == 'zones' then
    return lib.step_zones(step, now)
  elseif step[STEP_AT.kind] == 'paces' then
    return lib.step_paces(step, now)
  elseif step[STEP_AT.kind] == 'pool' then
    return lib.step_pool(step, now)
  elseif step[STEP_AT.kind] == 'due' or step[STEP_AT.kind] == 'again' then
    return lib.step_doors(step)
  elseif step[STEP_AT.kind] == 'back' then
    return lib.step_back(step)
  end
  return lib.step_staged(step)
end

-- One portion of the step for this, or of the first.
function lib.carry_on(now, kind, what)
  local space = db.space
  for i, step in ipairs(space.steps or {}) do
    if not kind or step[STEP_AT.kind] == kind and step[STEP_AT.of] == what then
      if step_once(step, now) then
        remove(space.steps, i)
        if #space.steps == 0 then
          space.steps = nil
        end
      else
        lib.sooner(now)
      end
      return
    end
  end
end

-- ---- Staging ----

local function check_version(pool_record, version)
  local last = pool_record and pool_record.version or 0
  if version and version < last then
    lib.refuse('sync_older_version', { given = version, last = last }, '/query/version')
  end
end

local function stage(number, resources)
  for _, new in ipairs(resources) do
    lib.stage(number, new.id, cmsgpack.pack({ new.data or 'null', new.tags or {}, new.slots or 1 }))
  end
end

local function staged(args)
  local sync_record = db.get(RECORD.sync, args.sync)
  if not sync_record or sync_record.pool ~= args.pool then
    lib.refuse('sync_gone', { sync = args.sync, pool = args.pool })
  end
  return sync_record
end

-- ---- Decision ----

-- Refuses what may be the answer of a query that failed, unless it is meant.
local function check_meant(pool, empty, there, retires)
  if empty then
    lib.refuse('sync_empty_set', { pool = pool }, '')
  elseif retires * 2 > there then
    lib.refuse('sync_retires_most', { retires = retires, there = there }, '')
  end
end

-- Resources of a pool that do not retire already.
local function live_in(pool_record)
  return pool_record and pool_record.ids.n - (pool_record.retiring or 0) or 0
end

local function is_live(pool, id)
  local resource = lib.resource(pool, id)
  return resource ~= nil and not resource.retiring
end

local function new_counts()
  return { added = 0, updated = 0, unchanged = 0, retired = 0, retiring = 0 }
end

local function finish(pool_record, version)
  if version then
    pool_record.version = version
  end
  pool_record.generation = pool_record.generation + 1
end

-- The staged set is meant: it will be applied, whatever becomes of who asked.
local function decide(number, sync_record, now)
  local pool_record = lib.pool_made(sync_record.pool, now)
  finish(pool_record, sync_record.version)
  pool_record.sync, sync_record.phase, sync_record.done = number, 'apply', new_counts()
  lib.go_on({ 'sync', number }, now)
  lib.event(EVENT.pool_synced, sync_record.pool)
end

local function reply(number, sync_record)
  return lib.staged_reply(number, sync_record.phase == 'done', sync_record.done or new_counts())
end

-- ---- Applying ----

-- Retires a resource that the set does not name.
local function retire_absent(resource, done, now)
  if not resource.retiring and lib.retire(resource, now) then
    done.retired = done.retired + 1
  else
    done.retiring = done.retiring + 1
  end
end

-- The pool hands out again.
function lib.end_sync(pool_record, now)
  local number = pool_record.sync
  local sync_record = db.get(RECORD.sync, number)
  pool_record.sync = nil
  sync_record.phase, sync_record.cursor = 'done', nil
  lib.keep_staged(number, now)
  lib.all_pool_doors_due(sync_record.pool, now)
end

-- A step {'sync', number}: a portion of what is left.
function lib.step_sync(step, now)
  local number = step[STEP_AT.of]
  local sync_record = db.get(RECORD.sync, number)
  local pool_record = sync_record and db.get(RECORD.pool, sync_record.pool)
  if not pool_record or pool_record.sync ~= number then
    return true
  end
  local done, left = sync_record.done, BOUND.TICK_MAX
  if sync_record.phase == 'apply' then
    local ids = lib.staged_ids(number, left)
    for _, id in ipairs(ids) do
      local new = cmsgpack.unpack(lib.take_staged(number, id))
      local what = lib.upsert_resource(sync_record.pool, { id = id, data = new[1], tags = new[2], slots = new[3] }, now)
      done[what] = done[what] + 1
    end
    if #ids > 0 then
      -- The ids of the pool are read as they are stored, so they are retired in a call that added none.
      return false
    end
    sync_record.phase, sync_record.cursor = 'retire', ''
  end
  local ids = lib.ids_after(sync_record.pool, sync_record.cursor, left)
  for _, id in ipairs(ids) do
    local resource = lib.resource(sync_record.pool, id)
    if resource and resource.generation ~= pool_record.generation then
      retire_absent(resource, done, now)
    end
    sync_record.cursor = id
  end
  if pool_record.ids.z and #ids == left then
    return false
  end
  lib.end_sync(pool_record, now)
  return true
end

-- ---- Operations ----

-- A small set for a small pool, in one step; `ids` are those of the pool.
local function sync_at_once(args, ids, now)
  local named, live, there = {}, 0, live_in(db.get(RECORD.pool, args.pool))
  for _, new in ipairs(args.resources) do
    if not named[new.id] and is_live(args.pool, new.id) then
      live = live + 1
    end
    named[new.id] = true
  end
  if not args.meant then
    check_meant(args.pool, #args.resources == 0, there, there - live)
  end
  local pool_record = lib.pool_made(args.pool, now)
  local done = new_counts()
  for _, new in ipairs(args.resources) do
    local what = lib.upsert_resource(args.pool, new, now)
    done[what] = done[what] + 1
  end
  for _, id in ipairs(ids) do
    if not named[id] then
      retire_absent(lib.resource(args.pool, id), done, now)
    end
  end
  finish(pool_record, args.version)
  lib.event(EVENT.pool_synced, args.pool)
  return reply(0, { phase = 'done', done = done })
end

lib.op('sync_resources', { 'write' }, function(args, now)
  local pool_record = db.get(RECORD.pool, args.pool)
  check_version(pool_record, args.version)
  if not args.meant and #args.resources == 0 then
    check_meant(args.pool, true)
  end
  if not pool_record or not pool_record.sync and not lib.is_going(pool_record) then
    local ids = pool_record and lib.all_ids(args.pool) or not pool_record and {}
    if ids then
      return sync_at_once(args, ids, now)
    end
  end
  -- The pool is large, or busy: the set is staged, and `sync_end` goes on with it.
  local number = lib.begin_staged({ pool = args.pool, version = args.version }, now)
  db.get(RECORD.sync, number).meant = args.meant
  stage(number, args.resources)
  return reply(number, db.get(RECORD.sync, number))
end)

lib.op('sync_begin', { 'write' }, function(args, now)
  check_version(db.get(RECORD.pool, args.pool), args.version)
  return { sync = lib.begin_staged({ pool = args.pool, version = args.version }, now) }
end)

lib.op('sync_items', { 'write' }, function(args, now)
  local sync_record = staged(args)
  if sync_record.phase == 'apply' or sync_record.phase == 'retire' or sync_record.phase == 'done' then
    lib.refuse('sync_ended', { sync = args.sync })
  end
  stage(args.sync, args.resources)
  -- What was counted counts anew.
  sync_record.phase = nil
  lib.keep_staged(args.sync, now)
  return true
end)

-- Counts how many of the staged set are there already, a portion at a time; whether all are counted.
local function count_some(number, sync_record)
  if sync_record.phase ~= 'count' then
    sync_record.phase, sync_record.cursor, sync_record.live = 'count', '', 0
  end
  local ids = lib.staged_after(number, sync_record.cursor, BOUND.ITEMS_MAX)
  for _, id in ipairs(ids) do
    if is_live(sync_record.pool, id) then
      sync_record.live = sync_record.live + 1
    end
    sync_record.cursor = id
  end
  return #ids < BOUND.ITEMS_MAX
end

lib.op('sync_end', { 'write' }, function(args, now)
  local sync_record = staged(args)
  local number = args.sync
  if sync_record.phase == 'done' then
    return reply(number, sync_record)
  end
  lib.keep_staged(number, now)
  local pool_record = db.get(RECORD.pool, sync_record.pool)
  if pool_record and pool_record.sync == number then
    lib.carry_on(now, 'sync', number)
    return reply(number, sync_record)
  end
  if args.meant ~= nil then
    sync_record.meant = args.meant
  end
  sync_record.version = args.version or sync_record.version
  if pool_record and pool_record.sync then
    lib.carry_on(now, 'sync', pool_record.sync)
    return reply(number, sync_record)
  elseif lib.is_going(pool_record) then
    lib.carry_on(now, 'pool', sync_record.pool)
    return reply(number, sync_record)
  end
  check_version(pool_record, sync_record.version)
  if not sync_record.meant then
    local empty = not lib.staged_ids(number, 1)[1]
    if empty then
      check_meant(sync_record.pool, true)
    end
    -- To count is a call's work of its own, and so is to apply.
    local there = live_in(pool_record)
    if there > 0 then
      if not count_some(number, sync_record) then
        return reply(number, sync_record)
      end
      check_meant(sync_record.pool, false, there, max(there - sync_record.live, 0))
    end
  end
  decide(number, sync_record, now)
  return reply(number, sync_record)
end)
