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
-- tick applies at most `B.TICK_MAX`, some milliseconds.
--
-- A staged set is a record 'sy' {pool, version, meant, phase, cursor, live, done}: phase 'count',
-- 'apply', 'retire', 'done'. Its ids are in order in 'sx:NUMBER', what they stand for in 'sv:NUMBER:SHARD'.

local FORGET = 'sye'

local function staged_ids(number)
  return 'sx:' .. text(number)
end
local function staged_in(number, id)
  return 'sv:' .. text(number) .. ':' .. shard(id)
end

-- ---- Steps ----
-- What is too much for one call is carried on by ticks: {kind, what, …}, one portion of the first at
-- a time.

-- The step of this kind for this, if it is there.
function T.step_of(kind, what)
  for _, step in ipairs(db.space.steps or {}) do
    if step[STEP_AT.kind] == kind and step[STEP_AT.of] == what then
      return step
    end
  end
end

-- Adds a step, once.
function T.go_on(step, now)
  local space = db.space
  local steps = space.steps or {}
  space.steps = steps
  T.sooner(now)
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
    return T.step_sync(step, now)
  elseif step[STEP_AT.kind] == 'paces' then
    return T.step_paces(step, now)
  elseif step[STEP_AT.kind] == 'pool' then
    return T.step_pool(step, now)
  elseif step[STEP_AT.kind] == 'due' or step[STEP_AT.kind] == 'again' then
    return T.step_doors(step)
  elseif step[STEP_AT.kind] == 'back' then
    return T.step_back(step)
  end
  return T.step_staged(step)
end

-- One portion of the step for this, or of the first.
function T.carry_on(now, kind, what)
  local space = db.space
  for i, step in ipairs(space.steps or {}) do
    if not kind or step[STEP_AT.kind] == kind and step[STEP_AT.of] == what then
      if step_once(step, now) then
        remove(space.steps, i)
        if #space.steps == 0 then
          space.steps = nil
        end
      else
        T.sooner(now)
      end
      return
    end
  end
end

-- ---- Staging ----

local function check_version(p, version)
  local last = p and p.version or 0
  if version and version < last then
    T.refuse('sync_older_version', { given = version, last = last }, '/query/version')
  end
end

local function keep_for_a_while(number, now)
  T.timer_set(FORGET, now + B.REQUEST_US, text(number))
end

local function begin(pool, version, now)
  local number = db.number()
  db.put(RECORD.sync, number, { pool = pool, version = version })
  keep_for_a_while(number, now)
  return number
end

local function stage(number, resources)
  for _, new in ipairs(resources) do
    Z.add(staged_ids(number), 0, new.id)
    M.set(staged_in(number, new.id), new.id,
      cmsgpack.pack({ new.data or 'null', new.tags or {}, new.slots or 1 }))
  end
end

-- Something was said of a resource after the set was decided: the set's word on it goes.
function T.unstage(number, id)
  if Z.score(staged_ids(number), id) then
    Z.rem(staged_ids(number), id)
    M.drop(staged_in(number, id), id)
  end
end

-- A step {'staged', number}: drops some of a staged set whose time is over.
function T.step_staged(step)
  local number = step[STEP_AT.of]
  local ids = {}
  for id in Z.each(staged_ids(number)) do
    ids[#ids + 1] = id
    if #ids == B.TICK_MAX then
      break
    end
  end
  for _, id in ipairs(ids) do
    Z.rem(staged_ids(number), id)
    M.set(staged_in(number, id), id, nil)
  end
  return #ids < B.TICK_MAX
end

local function staged(args)
  local s = db.get(RECORD.sync, args.sync)
  if not s or s.pool ~= args.pool then
    T.refuse('sync_gone', { sync = args.sync, pool = args.pool })
  end
  return s
end

-- The time of a staged set is over: it was applied, or its caller is gone.
function T.tick_sync(member, now)
  local number = tonumber(member)
  local s = db.get(RECORD.sync, number)
  if not s then
    return
  end
  local p = db.get(RECORD.pool, s.pool)
  if p and p.sync == number then
    keep_for_a_while(number, now)
  else
    db.drop(RECORD.sync, number)
    T.go_on({ 'staged', number }, now)
  end
end

-- ---- Decision ----

-- Refuses what may be the answer of a query that failed, unless it is meant.
local function check_meant(pool, empty, there, retires)
  if empty then
    T.refuse('sync_empty_set', { pool = pool }, '')
  elseif retires * 2 > there then
    T.refuse('sync_retires_most', { retires = retires, there = there }, '')
  end
end

-- Resources of a pool that do not retire already.
local function live_in(p)
  return p and p.ids.n - (p.retiring or 0) or 0
end

local function is_live(pool, id)
  local r = T.resource(pool, id)
  return r ~= nil and not r.retiring
end

local function new_counts()
  return { added = 0, updated = 0, unchanged = 0, retired = 0, retiring = 0 }
end

local function finish(p, version)
  if version then
    p.version = version
  end
  p.generation = p.generation + 1
end

-- The staged set is meant: it will be applied, whatever becomes of who asked.
local function decide(number, s, now)
  local p = T.pool_made(s.pool, now)
  finish(p, s.version)
  p.sync, s.phase, s.done = number, 'apply', new_counts()
  T.go_on({ 'sync', number }, now)
end

local function reply(number, s)
  local answer = { done = s.phase == 'done', sync = number }
  for word, n in pairs(s.done or new_counts()) do
    answer[word] = n
  end
  return answer
end

-- ---- Applying ----

-- Retires a resource that the set does not name.
local function retire_absent(r, done, now)
  if not r.retiring and T.retire(r, now) then
    done.retired = done.retired + 1
  else
    done.retiring = done.retiring + 1
  end
end

-- The pool hands out again.
function T.end_sync(p, now)
  local number = p.sync
  local s = db.get(RECORD.sync, number)
  p.sync = nil
  s.phase, s.cursor = 'done', nil
  keep_for_a_while(number, now)
  T.all_pool_doors_due(s.pool, now)
end

-- A step {'sync', number}: a portion of what is left.
function T.step_sync(step, now)
  local number = step[STEP_AT.of]
  local s = db.get(RECORD.sync, number)
  local p = s and db.get(RECORD.pool, s.pool)
  if not p or p.sync ~= number then
    return true
  end
  local done, left = s.done, B.TICK_MAX
  if s.phase == 'apply' then
    local ids = {}
    for id in Z.each(staged_ids(number)) do
      ids[#ids + 1] = id
      if #ids == left then
        break
      end
    end
    for _, id in ipairs(ids) do
      local key = staged_in(number, id)
      local new = cmsgpack.unpack(M.get(key, id))
      local what = T.upsert_resource(s.pool, { id = id, data = new[1], tags = new[2], slots = new[3] }, now)
      done[what] = done[what] + 1
      Z.rem(staged_ids(number), id)
      M.drop(key, id)
    end
    if #ids > 0 then
      -- The ids of the pool are read as they are stored, so they are retired in a call that added none.
      return false
    end
    s.phase, s.cursor = 'retire', ''
  end
  local ids = T.ids_after(s.pool, s.cursor, left)
  for _, id in ipairs(ids) do
    local r = T.resource(s.pool, id)
    if r and r.generation ~= p.generation then
      retire_absent(r, done, now)
    end
    s.cursor = id
  end
  if p.ids.z and #ids == left then
    return false
  end
  T.end_sync(p, now)
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
  local p = T.pool_made(args.pool, now)
  local done = new_counts()
  for _, new in ipairs(args.resources) do
    local what = T.upsert_resource(args.pool, new, now)
    done[what] = done[what] + 1
  end
  for _, id in ipairs(ids) do
    if not named[id] then
      retire_absent(T.resource(args.pool, id), done, now)
    end
  end
  finish(p, args.version)
  return reply(0, { phase = 'done', done = done })
end

T.op('sync_resources', { 'write' }, function(args, now)
  local p = db.get(RECORD.pool, args.pool)
  check_version(p, args.version)
  if not args.meant and #args.resources == 0 then
    check_meant(args.pool, true)
  end
  if not p or not p.sync and not T.is_going(p) then
    local ids = p and T.all_ids(args.pool) or not p and {}
    if ids then
      return sync_at_once(args, ids, now)
    end
  end
  -- The pool is large, or busy: the set is staged, and `sync_end` goes on with it.
  local number = begin(args.pool, args.version, now)
  db.get(RECORD.sync, number).meant = args.meant
  stage(number, args.resources)
  return reply(number, db.get(RECORD.sync, number))
end)

T.op('sync_begin', { 'write' }, function(args, now)
  check_version(db.get(RECORD.pool, args.pool), args.version)
  return { sync = begin(args.pool, args.version, now) }
end)

T.op('sync_items', { 'write' }, function(args, now)
  local s = staged(args)
  if s.phase == 'apply' or s.phase == 'retire' or s.phase == 'done' then
    T.refuse('sync_ended', { sync = args.sync })
  end
  stage(args.sync, args.resources)
  -- What was counted counts anew.
  s.phase = nil
  keep_for_a_while(args.sync, now)
  return true
end)

-- Counts how many of the staged set are there already, a portion at a time; whether all are counted.
local function count_some(number, s)
  if s.phase ~= 'count' then
    s.phase, s.cursor, s.live = 'count', '', 0
  end
  local ids = call('ZRANGEBYLEX', db.prefix .. staged_ids(number),
    s.cursor ~= '' and '(' .. s.cursor or '-', '+', 'LIMIT', 0, B.ITEMS_MAX)
  for _, id in ipairs(ids) do
    if is_live(s.pool, id) then
      s.live = s.live + 1
    end
    s.cursor = id
  end
  return #ids < B.ITEMS_MAX
end

T.op('sync_end', { 'write' }, function(args, now)
  local s = staged(args)
  local number = args.sync
  if s.phase == 'done' then
    return reply(number, s)
  end
  keep_for_a_while(number, now)
  local p = db.get(RECORD.pool, s.pool)
  if p and p.sync == number then
    T.carry_on(now, 'sync', number)
    return reply(number, s)
  end
  if args.meant ~= nil then
    s.meant = args.meant
  end
  s.version = args.version or s.version
  if p and p.sync then
    T.carry_on(now, 'sync', p.sync)
    return reply(number, s)
  elseif T.is_going(p) then
    T.carry_on(now, 'pool', s.pool)
    return reply(number, s)
  end
  check_version(p, s.version)
  if not s.meant then
    local empty = not Z.first(staged_ids(number))
    if empty then
      check_meant(s.pool, true)
    end
    -- To count is a call's work of its own, and so is to apply.
    local there = live_in(p)
    if there > 0 then
      if not count_some(number, s) then
        return reply(number, s)
      end
      check_meant(s.pool, false, there, max(there - s.live, 0))
    end
  end
  decide(number, s, now)
  return reply(number, s)
end)
