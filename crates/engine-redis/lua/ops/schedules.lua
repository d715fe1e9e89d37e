-- schedules: put, delete, pause, resume, run-now, `next_in`; and how they are shown. The whole set of an owner is in
-- ops/sync_schedules: what it says of a schedule comes before a call that changes this one.
--
-- put_schedule {id, owner, timing, overlap, catch_up, catch_up_max, job (machine/firing), plan = the first moments of a
--   cron expression, {from, moments, last, data}, revision = that of the schedule which the settings were made of}
--   -> {view, created}, or {again} if it has another revision by now
-- get_schedule, resume_schedule {id}, pause_schedule {id, for | until | neither} -> view     delete_schedule {id} -> true
-- list_schedules {owner, max, after} -> {items, next}
-- run_schedule_now {id, job, b, dr} -> a pushed job
-- plan {plans}, fire {dr}: of who ticks; see machine/firing.
-- Refusals: schedule_not_found, never_fires, what a push refuses of its needs below /job.

local function named(id)
  local schedule_record = db.get(RECORD.schedule, id)
  if not schedule_record or schedule_record.shell then
    lib.refuse('schedule_not_found', { schedule = id })
  end
  return schedule_record
end

-- ---- How they are shown ----

-- What happens next, and of it a moment or a job.
local function coming(id, schedule_record, now)
  local till = lib.pause_of(schedule_record, now)
  local _, due = lib.next_known(id, schedule_record)
  if till then
    return 'paused', till < lib.FOREVER and till or false
  elseif lib.has_ended(id, schedule_record) then
    return 'ended'
  elseif schedule_record.awaits then
    return 'waits', schedule_record.last_made or false
  elseif not due then
    return 'planned'
  elseif due <= now then
    return 'due'
  end
  return 'fires', due
end

local function view(id, now)
  local schedule_record = db.see(RECORD.schedule, id)
  local its = schedule_record
  local what, of = coming(id, its, now)
  local till, moved = lib.pause_of(its, now), its.moved
  return {
    id = id, owner = its.owner, timing = its.timing, overlap = its.overlap, catch_up = its.catch_up,
    catch_up_max = its.catch_up_max, job = lib.blob(maps.get(lib.scheduled_job_home(id))), what = what, of = of,
    after = max(min(its.cursor, lib.FOREVER), now), moved = moved and moved > its.cursor and moved or nil, anchor = moved,
    paused_until = till, ended = lib.has_ended(id, its), unfinished = its.unfinished, last_at = its.last_at,
    last_job = its.last_job, ended_job = its.ended_job, ended_state = its.ended_state, ended_at = its.ended_at,
    succeeded_at = its.succeeded_at, fired = its.fired, skipped = its.skipped, missed = its.missed,
    created_at = its.created_at, changed_at = its.changed_at, revision = its.revision,
  }
end

lib.op('get_schedule', { 'no-writes' }, function(args, now)
  named(args.id)
  return view(args.id, now)
end)

lib.op('list_schedules', { 'no-writes' }, function(args, now)
  local key = args.owner and 'so:' .. args.owner or 'sl'
  return lib.page(args, lib.names({ key }, args.after), function(id)
    local schedule_record = db.see(RECORD.schedule, id)
    return schedule_record and not schedule_record.shell
  end, function(id)
    return view(id, now)
  end)
end)

-- ---- Put ----

-- What a push would refuse of the job that it makes.
function lib.check_scheduled(job)
  local spec = { q = job[SCHEDULED_AT.queue], needs = job[SCHEDULED_AT.needs] or nil }
  local ok, no = pcall(lib.check_spec, spec)
  if ok then
    return
  end
  if type(no) == 'table' and no.no and no.no.pointer then
    no.no.pointer = '/job' .. no.no.pointer
  end
  error(no, 0)
end

-- Where the cursor of a new timing stands: now, but just before a start of the last minute that the schedule did not have
-- before, so that "from now on" fires at once.
local function first_cursor(starts_at, started_at, now)
  if starts_at and starts_at ~= started_at and starts_at <= now and now - starts_at <= BOUND.STARTED_LATELY_US then
    return starts_at - 1
  end
  return now
end

-- Refuses a new timing without a moment from now on.
function lib.check_fires(id, old, args, now)
  local timing = args.timing
  if old and same(old.timing, timing) then
    return
  end
  local plan, never = args.plan, nil
  if timing[TIMING_AT.every] then
    local probe = lib.new_shell()
    probe.timing = timing
    probe.cursor = first_cursor(timing[TIMING_AT.starts_at], old and old.timing[TIMING_AT.starts_at], now)
    never = lib.has_ended(id, probe)
  else
    never = plan and plan.last and not plan.moments[1]
  end
  if never then
    lib.refuse('never_fires', {}, timing[TIMING_AT.every] and '/every' or '/cron')
  end
end

local function set_owner(id, schedule_record, owner)
  if schedule_record.owner == owner then
    return
  end
  if schedule_record.owner then
    sets.rem('so:' .. schedule_record.owner, id)
  end
  if owner then
    sets.add('so:' .. owner, 0, id)
  end
  schedule_record.owner = owner
end

-- The one that is there and seen; or nil.
function lib.there_is_schedule(id)
  local schedule_record = db.get(RECORD.schedule, id)
  return schedule_record and not schedule_record.shell and schedule_record or nil
end

-- Whether a schedule has these settings.
function lib.has_schedule_settings(id, schedule_record, args, packed)
  return schedule_record.owner == args.owner and schedule_record.overlap == args.overlap
    and schedule_record.catch_up == args.catch_up and schedule_record.catch_up_max == args.catch_up_max
      and same(schedule_record.timing, args.timing) and maps.get(lib.scheduled_job_home(id)) == packed
end

-- Makes a schedule what these settings say; the same again do nothing. Whether anything changed.
function lib.set_schedule(id, args, now)
  local schedule_record = lib.schedule_or_shell(id)
  local is_new, packed = schedule_record.shell, cmsgpack.pack(args.job)
  if not is_new and lib.has_schedule_settings(id, schedule_record, args, packed) then
    return false
  end
  local had_ended = not is_new and lib.has_ended(id, schedule_record)
  lib.leave_orders(id, schedule_record)
  if is_new then
    local fresh = lib.emptied(schedule_record)
    fresh.shell, fresh.created_at = nil, now
    schedule_record = db.put(RECORD.schedule, id, fresh)
    sets.add('sl', 0, id)
  end
  local before = not is_new and schedule_record.timing[TIMING_AT.starts_at] or nil
  local new_timing = is_new or not same(schedule_record.timing, args.timing)
  local overlap_changed = schedule_record.overlap ~= args.overlap
  set_owner(id, schedule_record, args.owner)
  schedule_record.overlap, schedule_record.catch_up, schedule_record.catch_up_max =
    args.overlap, args.catch_up, args.catch_up_max
  schedule_record.revision = schedule_record.revision + 1
  maps.put(lib.scheduled_job_home(id), id, packed)
  if new_timing then
    local version = lib.next_arrival()
    schedule_record.version, schedule_record.era, schedule_record.changed_at = version, version, now
    schedule_record.timing, schedule_record.moved, schedule_record.awaits = args.timing, nil, nil
    local cursor = max(first_cursor(args.timing[TIMING_AT.starts_at] or nil, before, now), schedule_record.decided)
    lib.begin_after(schedule_record, lib.pause_of(schedule_record, now) or cursor)
    if args.plan then
      lib.take_first_plan(schedule_record, args.plan, now)
    end
    schedule_record.wanted_at = nil
  elseif overlap_changed then
    schedule_record.awaits = nil
  end
  lib.order_schedule(id, schedule_record, overlap_changed and not new_timing and now or nil, now)
  lib.event(EVENT.schedule_changed, id)
  lib.tell_schedule_end(id, schedule_record, had_ended)
  return true
end

lib.op('put_schedule', { 'write' }, function(args, now)
  lib.set_word_first(args.id, now)
  local old = lib.there_is_schedule(args.id)
  if args.revision then
    if not old then
      lib.refuse('schedule_not_found', { schedule = args.id })
    elseif old.revision ~= args.revision then
      return { again = true }
    end
  end
  lib.check_scheduled(args.job)
  lib.check_fires(args.id, old, args, now)
  lib.set_schedule(args.id, args, now)
  return { view = view(args.id, now), created = not old }
end)

-- ---- Delete, pause, resume ----

function lib.delete_schedule(id, schedule_record)
  lib.event(EVENT.schedule_deleted, id)
  lib.leave_orders(id, schedule_record)
  set_owner(id, schedule_record, nil)
  sets.rem('sl', id)
  maps.drop(lib.scheduled_job_home(id), id)
  if schedule_record.unfinished == 0 then
    db.drop(RECORD.schedule, id)
    return
  end
  db.put(RECORD.schedule, id, lib.emptied(schedule_record))
end

lib.op('delete_schedule', { 'write', 'allow-oom' }, function(args, now)
  lib.set_word_first(args.id, now)
  lib.delete_schedule(args.id, named(args.id))
  return true
end)

-- A pause begins, changes or is ended: what lies before its end does not count.
local function begin_again(id, schedule_record, till, now)
  lib.leave_orders(id, schedule_record)
  schedule_record.version, schedule_record.paused_until = lib.next_arrival(), till
  schedule_record.awaits, schedule_record.wanted_at = nil, nil
  lib.begin_after(schedule_record, max(till or now, schedule_record.decided))
  lib.order_schedule(id, schedule_record, nil, now)
end

lib.op('pause_schedule', { 'write', 'allow-oom' }, function(args, now)
  lib.set_word_first(args.id, now)
  local schedule_record = named(args.id)
  local till = args['for'] and now + args['for'] or args['until'] or lib.FOREVER
  till = till > now and till or nil
  if till ~= lib.pause_of(schedule_record, now) then
    if till then
      lib.event(EVENT.schedule_paused, args.id, till)
    else
      lib.event(EVENT.schedule_resumed, args.id)
    end
    begin_again(args.id, schedule_record, till, now)
  end
  return view(args.id, now)
end)

lib.op('resume_schedule', { 'write', 'allow-oom' }, function(args, now)
  lib.set_word_first(args.id, now)
  local schedule_record = named(args.id)
  if lib.pause_of(schedule_record, now) then
    lib.event(EVENT.schedule_resumed, args.id)
    begin_again(args.id, schedule_record, nil, now)
  end
  return view(args.id, now)
end)

-- ---- run-now ----

-- The job that is there already is made ready, as run-now of a job does it.
local function run_unfinished_now(id, schedule_record, now)
  local seq = lib.seq_of(schedule_record.last_made, schedule_record.last_made_b)
  local job = seq and lib.live(seq)
  if not job then
    lib.refuse('schedule_job_ended', { schedule = id, job = schedule_record.last_made })
  end
  lib.run_now(job, now)
  local queue = db.see(RECORD.shape, job.shape).q
  return { seq = seq, id = job.id, dup = true, unasked = lib.is_unasked(queue, now) or nil }
end

lib.op('run_schedule_now', { 'write' }, function(args, now)
  local schedule_record = named(args.id)
  local seq = lib.seq_of(args.job, args.b)
  local known = seq and lib.job(seq)
  known = known and lib.is_there(known, now)
  local one
  if not known and schedule_record.overlap ~= OVERLAP.allow and schedule_record.unfinished > 0 then
    one = run_unfinished_now(args.id, schedule_record, now)
  else
    local scheduled = lib.scheduled_job(args.id)
    local lasts = scheduled[SCHEDULED_AT.expires_in]
    local origin = { args.id, false, schedule_record.era }
    local new = lib.made_by_schedule(scheduled, args.job, now, lasts and now + lasts or nil, origin, args.b)
    local plans = lib.plan_push({ { new.id, new.b, new.body, new.n, 1, {} } }, { new.spec }, false, now)
    one = lib.push_one(new, plans[1], {}, args.dr, now)
  end
  lib.later(function()
    lib.show_pushed(one)
  end)
  return one
end)

-- ---- next_in ----

-- A job of a schedule, by its id, says when the next moment is. When that is, if it says anything; false if the schedule has no
-- moment any more, nil if the word of this job means nothing.
function lib.move_schedule(origin, job, next_in, now)
  local id = origin[ORIGIN_AT.schedule]
  local schedule_record = lib.there_is_schedule(id)
  if not schedule_record or schedule_record.era ~= origin[ORIGIN_AT.era] then
    return nil
  end
  lib.leave_orders(id, schedule_record)
  schedule_record.version = lib.next_arrival()
  local had_ended = lib.has_ended(id, schedule_record)
  local n, first = lib.due_moments(id, schedule_record, now)
  if n then
    local newest = lib.due_moment(id, schedule_record, first, n)
    local skipped = n + lib.decide(id, schedule_record, first, n)
    schedule_record.skipped = schedule_record.skipped + skipped
    lib.skipped_some(id, newest, 'overlap', skipped)
  end
  local starts_at = schedule_record.timing[TIMING_AT.starts_at]
  local moved = max(lib.round_up(now + next_in), starts_at and lib.round_up(starts_at) or 0)
  schedule_record.awaits, schedule_record.wanted_at, schedule_record.moved = nil, nil, moved
  local cursor = max(lib.pause_of(schedule_record, now) or now, schedule_record.decided)
  lib.begin_after(schedule_record, cursor)
  local following = not lib.has_ended(id, schedule_record) and moved
  lib.order_schedule(id, schedule_record, nil, now)
  if following then
    lib.event(EVENT.schedule_moved, id, job, following)
  end
  lib.tell_schedule_end(id, schedule_record, had_ended)
  return following
end

-- ---- Of who ticks ----

lib.op('plan', { 'write', 'allow-oom' }, function(args, now)
  for _, plan in ipairs(args.plans) do
    lib.plan(plan, now)
  end
  return true
end)

-- A full store makes schedules late, never itself fuller: it may not write then.
lib.op('fire', { 'write' }, function(args, now)
  lib.fire(args.dr, now)
  local at = lib.next_fire()
  return { more = at ~= nil and at <= now }
end)
