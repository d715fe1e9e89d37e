-- sync_schedules: makes a set from outside the whole set of an owner's schedules.
--
-- sync_schedules {owner, items (at most BOUND.TICK_MAX, any order), meant, version} -> synced
-- sync_schedules_begin {owner, version} -> {sync = number}
-- sync_schedules_items {owner, sync, after, items (at most BOUND.ITEMS_MAX, in the order of their ids, all of them behind
--   `after`), last} -> {after, whole, again}
-- sync_schedules_end {owner, sync, meant, version} -> synced; called until `done`
-- synced = {done, sync, again, added, updated, unchanged, deleted}
-- Refusals: schedule_of_another_owner, schedule_of_no_owner, never_fires, what a push refuses of its needs below /job;
-- schedules_older_version, schedules_empty_set, schedules_deletes_most, schedules_sync_gone. They change nothing.
--
-- A small set of an owner with few schedules is one step. A larger one is compared with what is there, portion by portion in
-- the order of ids, and only what differs is staged (machine/staged): what a schedule is to be, or '' if the set does not
-- name it. `sync_schedules_end` decides once, and then it is applied, by ticks too, whoever asked for it. So a set of a
-- million of which a thousand changed writes a thousand.
--
-- `after`: up to which id it was compared; a portion that comes again changes nothing. What is there must not become another
-- set's meanwhile: each decision stamps the owner's record anew, and who finds another stamp than at its begin is answered
-- `again` and compares from the start. One set of an owner is applied at a time.
-- Cost: a call compares at most BOUND.ITEMS_MAX items with as many ids, and ends with the item that is the TICK_MAXth to be
-- staged; a call or a tick applies at most BOUND.TICK_MAX.

local function set_of(owner)
  return db.get(RECORD.synced_set, owner)
end

local function check_version(owner, version)
  local set_record = set_of(owner)
  local last = set_record and set_record.version or 0
  if version and version < last then
    lib.refuse('schedules_older_version', { given = version, last = last }, '/query/version')
  end
end

local function check_item(item, owner, now)
  local old = lib.there_is_schedule(item.id)
  if old and not old.owner then
    lib.refuse('schedule_of_no_owner', { schedule = item.id }, '/id')
  elseif old and old.owner ~= owner then
    lib.refuse('schedule_of_another_owner', { schedule = item.id, owner = old.owner }, '/id')
  end
  lib.check_scheduled(item.job)
  lib.check_fires(item.id, old, item, now)
end

-- Refuses what may be the answer of a query that failed.
local function check_meant(owner, is_empty, there, deletes)
  if is_empty then
    lib.refuse('schedules_empty_set', { owner = owner }, '')
  elseif deletes * 2 > there then
    lib.refuse('schedules_deletes_most', { deletes = deletes, there = there }, '')
  end
end

local function reply(number, sync_record)
  return lib.staged_reply(number, sync_record.is_done or false, sync_record.done)
end

local function new_counts()
  return { added = 0, updated = 0, unchanged = 0, deleted = 0 }
end

-- Makes one schedule what the set says: these settings, or nothing. Who belongs to somebody else by now is left alone.
local function apply(id, owner, item, done, now)
  local old = lib.there_is_schedule(id)
  if old and old.owner ~= owner then
    return
  elseif item then
    local what = not lib.set_schedule(id, item, now) and 'unchanged' or old and 'updated' or 'added'
    done[what] = done[what] + 1
  elseif old then
    lib.delete_schedule(id, old)
    done.deleted = done.deleted + 1
  end
end

-- ---- In one step ----

-- The ids of an owner's schedules, if they are few; else nil.
local function few_there(owner)
  local ids = {}
  for id in lib.names({ 'so:' .. owner }) do
    if #ids == BOUND.TICK_MAX then
      return nil
    end
    ids[#ids + 1] = id
  end
  return ids
end

local function sync_at_once(args, there, now)
  local owner, wanted, absent = args.owner, {}, {}
  for index, item in ipairs(args.items) do
    wanted[item.id] = true
    lib.at_item(index, check_item, item, owner, now)
  end
  for _, id in ipairs(there) do
    if not wanted[id] then
      absent[#absent + 1] = id
    end
  end
  if not args.meant then
    check_meant(owner, not args.items[1], #there, #absent)
  end
  local done = new_counts()
  for _, item in ipairs(args.items) do
    item.owner = owner
    apply(item.id, owner, item, done, now)
  end
  for _, id in ipairs(absent) do
    apply(id, owner, nil, done, now)
  end
  local set_record = set_of(owner)
  if set_record then
    set_record.stamp = db.number()
    set_record.version = args.version or set_record.version
  elseif args.version then
    db.put(RECORD.synced_set, owner, { version = args.version })
  end
  return lib.staged_reply(0, true, done)
end

-- ---- Comparing ----

local function begin(owner, now)
  local set_record = set_of(owner) or db.put(RECORD.synced_set, owner, {})
  set_record.stamp = set_record.stamp or db.number()
  return lib.begin_staged({ owner = owner, stamp = set_record.stamp, after = '', there = 0, items = 0, absent = 0,
    done = new_counts() }, now)
end

local function begun(args, now)
  local sync_record = db.get(RECORD.sync, args.sync)
  if not sync_record or sync_record.owner ~= args.owner then
    lib.refuse('schedules_sync_gone', { sync = args.sync, owner = args.owner })
  end
  lib.keep_staged(args.sync, now)
  return sync_record
end

-- Another set was decided since it began.
local function is_stale(sync_record)
  local set_record = set_of(sync_record.owner)
  return not set_record or set_record.stamp ~= sync_record.stamp
end

-- The schedules of an owner behind an id, up to one (nil: to the end), and whether these are all.
local function there_between(owner, after, upto)
  local ids = {}
  for id in lib.names({ 'so:' .. owner }, after ~= '' and after or nil) do
    if upto and lib.less(upto, id) then
      break
    elseif #ids == BOUND.ITEMS_MAX then
      return ids, false
    end
    ids[#ids + 1] = id
  end
  return ids, true
end

-- Compares items with what is there up to an id (nil: to the end), and stages those that differ. Which were wanted, and,
-- if so many differ that the rest is for the next call, the last that was compared.
local function stage_items(number, sync_record, items, upto, now)
  local owner, done, wanted, staged = sync_record.owner, sync_record.done, {}, 0
  for index, item in ipairs(items) do
    if upto and lib.less(upto, item.id) then
      break
    elseif staged == BOUND.TICK_MAX then
      return wanted, items[index - 1].id
    end
    wanted[item.id] = true
    lib.at_item(index, check_item, item, owner, now)
    item.owner = owner
    sync_record.items = sync_record.items + 1
    local old = lib.there_is_schedule(item.id)
    if old and lib.has_schedule_settings(item.id, old, item, cmsgpack.pack(item.job)) then
      done.unchanged = done.unchanged + 1
    else
      lib.stage(number, item.id, cmsgpack.pack(item))
      staged = staged + 1
    end
  end
  return wanted
end

-- Compares a portion of a set with what is there, and stages what differs.
local function compare(number, sync_record, items, last, now)
  local upto = not last and items[#items].id or nil
  local there, are_all = there_between(sync_record.owner, sync_record.after, upto)
  if not are_all then
    upto = there[#there]
  end
  local wanted, cut = stage_items(number, sync_record, items, upto, now)
  upto = cut or upto
  for _, id in ipairs(there) do
    if upto and lib.less(upto, id) then
      break
    end
    sync_record.there = sync_record.there + 1
    if not wanted[id] then
      sync_record.absent = sync_record.absent + 1
      lib.stage(number, id, '')
    end
  end
  sync_record.after, sync_record.whole = upto or sync_record.after, last and are_all and not cut
end

-- ---- Applying ----

local function apply_staged(number, sync_record, id, now)
  local value = lib.take_staged(number, id)
  apply(id, sync_record.owner, value ~= '' and cmsgpack.unpack(value) or nil, sync_record.done, now)
end

-- A step {'schedules', number}: a portion of a set that was decided.
function lib.step_schedules(step, now)
  local number = step[STEP_AT.of]
  local sync_record = db.get(RECORD.sync, number)
  local ids = lib.staged_ids(number, BOUND.TICK_MAX)
  for _, id in ipairs(ids) do
    apply_staged(number, sync_record, id, now)
  end
  if #ids == BOUND.TICK_MAX then
    return false
  end
  set_of(sync_record.owner).sync = nil
  sync_record.is_done = true
  lib.keep_staged(number, now)
  return true
end

-- A schedule is to be changed: what decided sets say of it comes first.
function lib.set_word_first(id, now)
  for _, step in ipairs(db.space.steps or {}) do
    local number = step[STEP_AT.of]
    if step[STEP_AT.kind] == 'schedules' and lib.is_staged(number, id) then
      apply_staged(number, db.get(RECORD.sync, number), id, now)
    end
  end
end

-- The time of a staged set is over: nobody else knows of its owner's record, if no version was said.
function lib.forget_set(owner)
  local set_record = set_of(owner)
  if set_record and not set_record.version and not set_record.sync then
    db.drop(RECORD.synced_set, owner)
  end
end

-- ---- Operations ----

lib.op('sync_schedules', { 'write' }, function(args, now)
  check_version(args.owner, args.version)
  local set_record = set_of(args.owner)
  local there = not (set_record and set_record.sync) and few_there(args.owner)
  if there then
    return sync_at_once(args, there, now)
  end
  local number = begin(args.owner, now)
  return reply(number, db.get(RECORD.sync, number))
end)

lib.op('sync_schedules_begin', { 'write' }, function(args, now)
  check_version(args.owner, args.version)
  return { sync = begin(args.owner, now) }
end)

-- What is there is another set's for a moment.
local function is_busy(owner, now)
  local set_record = set_of(owner)
  if set_record and set_record.sync then
    lib.carry_on(now, 'schedules', set_record.sync)
    return true
  end
end

lib.op('sync_schedules_items', { 'write' }, function(args, now)
  local sync_record = begun(args, now)
  if not is_busy(args.owner, now) then
    if is_stale(sync_record) then
      return { after = '', again = true }
    elseif args.after == sync_record.after and not sync_record.whole then
      compare(args.sync, sync_record, args.items, args.last, now)
    end
  end
  return { after = sync_record.after, whole = sync_record.whole }
end)

lib.op('sync_schedules_end', { 'write' }, function(args, now)
  local sync_record, number = begun(args, now), args.sync
  if sync_record.is_done or is_busy(args.owner, now) then
    return reply(number, sync_record)
  elseif is_stale(sync_record) then
    local answer = reply(number, sync_record)
    answer.again = true
    return answer
  end
  check_version(args.owner, args.version)
  if not args.meant then
    check_meant(args.owner, sync_record.items == 0, sync_record.there, sync_record.absent)
  end
  local set_record = set_of(args.owner)
  set_record.sync, set_record.stamp = number, db.number()
  set_record.version = args.version or set_record.version
  lib.go_on({ 'schedules', number }, now)
  return reply(number, sync_record)
end)
