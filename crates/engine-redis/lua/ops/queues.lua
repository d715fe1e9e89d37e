-- queues: defaults, shares, pause, delete.
--
-- put_queue {name, needs, retry, timeout, retain, max_waiting, lost_delay, shares} -> {view, created}
-- patch_queue {name, any of these | false} -> {view, created}     delete_queue {name} -> true
-- get_queue, resume_queue {name}, pause_queue {name, for | until | neither} -> view
-- list_queues {max, after} -> {items, next}
-- Refusals: queue_not_found, not_empty; a put also what `check_needs` refuses, below /needs.
-- Cost: a few reads and writes, and a few for each open lane's head (bounded).
-- Pause, resume and delete work when the store is full.

local FIELDS = { 'needs', 'retry', 'timeout', 'retain', 'max_waiting', 'lost_delay', 'shares' }

local function named(name)
  local number = lib.find_queue(name)
  if not number or db.see(RECORD.queue, number).hidden then
    lib.refuse('queue_not_found', { queue = name })
  end
  return number
end

-- What a setting says: an empty list says no more than nothing.
local function said(setting)
  return not (type(setting) == 'table' and next(setting) == nil) and setting or nil
end

local function has_settings(number, settings)
  local old = lib.queue_settings(number)
  for _, field in ipairs(FIELDS) do
    if not same(said(old[field]), said(settings[field])) then
      return false
    end
  end
  return true
end

-- given: all settings; what is nil is the default.
local function put(name, given, now)
  lib.check_needs(given.needs or {}, '/needs')
  local number = lib.find_queue(name)
  local created = not number or db.see(RECORD.queue, number).hidden or false
  number = lib.queue_for(name, now)
  local settings = {}
  for _, field in ipairs(FIELDS) do
    settings[field] = given[field] or nil
  end
  if created or not has_settings(number, settings) then
    lib.event(EVENT.queue_changed, name)
  end
  lib.set_queue_settings(number, settings)
  return { view = lib.queue_view(number, now), created = created }
end

lib.op('put_queue', { 'write' }, function(args, now)
  return put(args.name, args, now)
end)

lib.op('patch_queue', { 'write' }, function(args, now)
  local number = lib.find_queue(args.name)
  local old, given = number and lib.queue_settings(number) or {}, {}
  for _, field in ipairs(FIELDS) do
    if args[field] == nil then
      given[field] = old[field]
    else
      given[field] = args[field]
    end
  end
  return put(args.name, given, now)
end)

lib.op('get_queue', { 'no-writes' }, function(args, now)
  return lib.queue_view(named(args.name), now)
end)

lib.op('list_queues', { 'no-writes' }, function(args, now)
  return lib.page(args, lib.names({ 'ql' }, args.after), function(name)
    local number = lib.find_queue(name)
    return number and not db.see(RECORD.queue, number).hidden and number or nil
  end, function(_, number)
    return lib.queue_view(number, now)
  end)
end)

-- ---- Pause ----

local function clear_pause(number)
  local queue_record = db.get(RECORD.queue, number)
  if queue_record.paused_until then
    lib.timer_clear('qp', text(number))
    queue_record.paused_until = nil
  end
end

lib.op('pause_queue', { 'write', 'allow-oom' }, function(args, now)
  local number = lib.queue_for(args.name, now)
  local queue_record = db.get(RECORD.queue, number)
  local till = args['for'] and now + args['for'] or args['until'] or lib.FOREVER
  -- The later moment holds.
  till = max(queue_record.paused_until or 0, till)
  clear_pause(number)
  if till > now then
    queue_record.paused_until = till
    if till < lib.FOREVER then
      lib.timer_set('qp', till, text(number))
    end
    lib.drop_marks_of_queue(number, now)
    lib.event(EVENT.queue_paused, args.name, till)
  end
  return lib.queue_view(number, now)
end)

lib.op('resume_queue', { 'write', 'allow-oom' }, function(args, now)
  local number = named(args.name)
  local till = db.see(RECORD.queue, number).paused_until
  if till and till > now then
    lib.event(EVENT.queue_resumed, args.name)
  end
  clear_pause(number)
  db.touched[number] = true
  return lib.queue_view(number, now)
end)

-- ---- Delete ----

local function forget_settings(number)
  local queue_record = db.get(RECORD.queue, number)
  if queue_record.set then
    queue_record.set = nil
    db.drop(RECORD.queue_setting, text(number))
  end
end

-- Takes a queue out of what is there; nothing points to it. Its number is never given again, so what a
-- worker remembers of it means nothing.
local function drop_queue(number)
  local queue_record = db.get(RECORD.queue, number)
  local entry = ENTRY.queue .. text(number)
  lib.unsignal(number)
  if queue_record.place then
    lib.leave_door(entry)
  end
  lib.clear_out(entry)
  maps.drop('qn:' .. shard(queue_record.name), queue_record.name)
  sets.rem('ql', queue_record.name)
  db.drop(RECORD.queue, number)
  sets.rem('hk', TIDY.queue .. text(number))
  db.touched[number] = nil
  if queue_record.limit then
    local limit_record = db.get(RECORD.limit, queue_record.limit)
    limit_record.uses = limit_record.uses - 1
    lib.drop_limit_if_idle(queue_record.limit)
  end
end

-- Whether a queue holds nothing: no job (a finished one that is kept counts), no caller that waits for it, no group
-- whose time is still remembered.
local function is_idle(number)
  local queue_record = db.get(RECORD.queue, number)
  for _ in pairs(queue_record.priorities) do
    return false
  end
  local its = queue_record
  return its.waiting + its.scheduled + its.dependent + its.running + its.succeeded + its.failed + its.cancelled == 0
    and not lib.has_takers(number)
end

-- Whether every setting is the default.
local function is_unset(number)
  for _, value in pairs(lib.queue_settings(number)) do
    if type(value) ~= 'table' then
      return false
    end
    for _ in pairs(value) do
      return false
    end
  end
  return true
end

-- Whether a queue was deleted and nobody needs it any more. (The queue of callers stays.)
local function is_left_over(number)
  return number ~= CALLERS and db.get(RECORD.queue, number).hidden and is_idle(number)
end

-- A queue that was deleted goes as soon as nobody needs it; meanwhile it is hidden.
function lib.drop_hidden_queue_if_idle(number)
  if is_left_over(number) then
    drop_queue(number)
  end
end

-- To be called when a finished job of a queue went, or a call that waited for it. A deleted queue that nobody needs any
-- more goes with the next tick; not at once, since the call that freed it may still name it.
function lib.freed_queue(number)
  if is_left_over(number) then
    lib.tidy_soon(TIDY.queue, number)
  end
end

-- A queue that holds nothing and that nobody has set is forgotten a day after its last use; otherwise every name that
-- was ever pushed to would stay for ever.
function lib.forget_unused_queue(number, now)
  local queue_record = db.get(RECORD.queue, number)
  local ends = queue_record.used_at + BOUND.FORGET_US
  if is_idle(number) and (queue_record.hidden or ends <= now and not queue_record.paused_until
    and is_unset(number)) then
    forget_settings(number)
    drop_queue(number)
    return
  end
  lib.timer_set('hk', max(ends, now + BOUND.FORGET_AGAIN_US), TIDY.queue .. text(number))
end

lib.op('delete_queue', { 'write', 'allow-oom' }, function(args, now)
  local number = named(args.name)
  local queue_record = db.get(RECORD.queue, number)
  local unfinished = queue_record.waiting + queue_record.scheduled + queue_record.dependent + queue_record.running
  if unfinished > 0 then
    lib.refuse('queue_not_empty', { queue = args.name, unfinished = unfinished })
  end
  lib.event(EVENT.queue_deleted, args.name)
  -- Finished jobs are kept, and who waits for the queue goes on waiting, so what goes is what was set,
  -- not the entry that these still need.
  forget_settings(number)
  queue_record.asked_at, queue_record.hidden = nil, true
  clear_pause(number)
  local ranks = {}
  for rank in pairs(queue_record.priorities) do
    ranks[#ranks + 1] = rank
  end
  sort(ranks)
  for _, rank in ipairs(ranks) do
    lib.void_turns(number, rank)
  end
  lib.drop_hidden_queue_if_idle(number)
  return true
end)
