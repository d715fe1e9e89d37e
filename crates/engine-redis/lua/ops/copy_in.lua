-- copy_in: an unfinished copy is filled page by page, and opened. See docs/decisions/018-copy.md.
--
-- copy_begin {copy, fence, arrival, used} -> {whole, pages, next}: begins, or says how far it is
-- copy_in {copy, page, next, section, items, shapes} -> {pages}: page number `page`, from 0 on; one that
--   is there already changes nothing
-- copy_open {copy} -> true: it is whole, and served from now on
-- copy_drop {} -> true: it is given up; its keys are about to go
-- Refusals: not_empty (something is there already), wrong_state (no such copy, or another wrote to it).
-- Cost: as a push of so many jobs.
--
-- All goes through the same functions as what clients do, so lanes, sums and timers are those of any
-- namespace. How many pages are in is written in the same step as the page. Until it is opened every
-- other call is refused, and nothing is granted or ended.

local function begun(mark)
  return { whole = false, pages = mark[1] or 0, next = mark[2] or false }
end

lib.op('copy_begin', { 'write' }, function(args)
  local frozen, mark = lib.copy_mark()
  if frozen == 'into:' .. args.copy then
    return begun(mark)
  elseif not frozen and maps.get(KEY.meta, 'copied') == args.copy then
    return { whole = true, pages = 0, next = false }
  elseif frozen or not lib.is_untouched() then
    lib.refuse(frozen and 'copy_target_taken' or 'copy_target_used')
  end
  local space = db.space
  space.fence, space.arrival = max(space.fence, args.fence), max(space.arrival, args.arrival)
  space.used = max(space.used, args.used)
  lib.set_copy_mark('into:' .. args.copy, { 0, false })
  return begun({})
end, { copies = true })

local function must_be_this(args)
  local frozen, mark = lib.copy_mark()
  if frozen ~= 'into:' .. args.copy then
    lib.refuse('copy_target_not_part')
  end
  return mark
end

-- ---- Things ----

local IN = {}

function IN.queues(new, now)
  local number = lib.queue_for(new.name, now)
  local queue_record, settings = db.get(RECORD.queue, number), {}
  for _, field in ipairs({ 'needs', 'retry', 'timeout', 'retain', 'max_waiting', 'lost_delay', 'shares' }) do
    settings[field] = new[field]
  end
  lib.set_queue_settings(number, settings)
  queue_record.since, queue_record.skipped = new.since, new.skipped
  local till = new.paused_until
  if till and till > now then
    queue_record.paused_until = till
    if till < lib.FOREVER then
      lib.timer_set('qp', till, text(number))
    end
  end
end

function IN.settings(new)
  db.put(RECORD.limit_setting, new.name, {
    concurrency = new.concurrency, rate = new.rate, gap = new.gap, quarantine = new.quarantine,
  })
  sets.add('lsn', 0, new.name)
  if new.gauge then
    lib.put_copied_gauge(new.name, new.gauge)
  end
end

-- Permits rest: until a moment, or as `unshown` says until a reading shows what their run has become.
local function rest(name, limit_record, at, weight, unshown)
  if not unshown then
    lib.rest_until(name, limit_record, weight, at)
    return
  end
  local ended_at, granted_at, till, its_weight = unpack(unshown)
  if limit_record.gauged then
    lib.add_gauge_rest(name, limit_record,
      { ended_at = ended_at, granted_at = granted_at or nil, weight = its_weight, ['until'] = till })
  else
    lib.rest_until(name, limit_record, its_weight, till)
  end
end

function IN.limits(new)
  local limit_record = lib.limit_for(new.name)
  limit_record.tat, limit_record.paused_until = new.tat, new.paused_until
  limit_record.external, limit_record.external_until, limit_record.touched_at = new.external, new.external_until,
    db.space.last
  for _, one in ipairs(new.resting) do
    rest(new.name, limit_record, one[1], one[2])
  end
  for _, one in ipairs(new.unshown or {}) do
    rest(new.name, limit_record, nil, nil, one)
  end
  lib.arm_limit(new.name)
  lib.drop_limit_if_idle(new.name)
end

function IN.leases(new)
  local limit_record = lib.limit_for(new.name)
  rest(new.name, limit_record, new.at, new.weight, new.unshown)
  lib.arm_limit(new.name)
end

-- The group is idle until a job of it comes.
function IN.turns(new)
  local queue = lib.find_queue(new.q)
  if not queue then
    return
  end
  local queue_record, rank = db.get(RECORD.queue, queue), -new.pr
  local turns = queue_record.priorities[rank]
  if not turns then
    turns = lib.new_turns()
    queue_record.priorities[rank] = turns
  end
  turns.v, turns.top = max(turns.v, new.v), max(turns.top, new.v, new.own)
  local name = lib.group_key(queue, rank, new.g)
  local at = 'gn:' .. shard(name)
  if maps.get(at, name) then
    return
  end
  local group = db.number()
  db.put(RECORD.group, group, {
    queue = queue, priority = new.pr, name = new.g, own = new.own, open = inner.new(), bundles = 0, idle = true,
  })
  turns.groups = turns.groups + 1
  maps.put(at, name, text(group))
  inner.add(turns.idle, lib.turns_idle(queue, rank), new.own, text(group))
end

function IN.pools(new)
  local pool_record = lib.pool_for(new.name)
  pool_record.settings = {
    quarantine = new.quarantine, cooldown = new.cooldown, rate = new.rate, max_uses = new.max_uses,
    pick = new.pick,
  }
  pool_record.version, pool_record.generation = new.version, new.generation
end

function IN.resources(new, now)
  local pool_record = db.get(RECORD.pool, new.pool)
  if not pool_record or not pool_record.settings or lib.resource(new.pool, new.id) then
    return
  end
  local resource = lib.add_resource(new.pool, new.id, new.tags, new.slots)
  local key, field = lib.data_home(new.pool, new.id)
  maps.put(key, field, new.data)
  lib.set_resource_state(resource, new.state, new.till, new.rest, new.reason)
  resource.uses, resource.used, resource.last_used_at, resource.tat = new.uses, new.used, new.last_used_at, new.tat
  resource.generation = new.generation
  local rate = pool_record.settings.rate
  if rate then
    resource.paced_until = lib.rate_fits_at(rate, resource.tat, 1, now)
  end
  lib.refresh_resource(resource, now)
end

local function hold_key(key, holder)
  local till = holder.till
  db.put(RECORD.unique_key, key, holder)
  if till then
    lib.timer_set('uke', till, key)
  end
end

local FINISHED = { S = 'succeeded', F = 'failed', C = 'cancelled' }

-- What of a job that is kept stands beside its row.
local function keep_finished(job, queue)
  local set, class = lib.kept_class(job.state)
  lib.timer_set(set, job.kept_until, lib.kept_name(job.seq))
  local kept, queue_record = db.space.kept, db.get(RECORD.queue, queue)
  kept[class] = kept[class] + job.bytes
  queue_record[FINISHED[job.state]] = queue_record[FINISHED[job.state]] + 1
end

-- A job that was pushed, is ready and has nothing unusual: its row says it all.
local function is_plain(new)
  return new.st == STATE.ready and new.at == new.cr and not (new.ex or new.u or new.sa or new.err or new.e or new.p or new.og or new.f)
    and new.n + new.l + new.rel + new.und + new.w == 0 and not (new.ca or new.kp or new.eu)
end

function IN.jobs(new, now, shapes)
  if lib.seq_of(new.id, new.b) then
    return
  end
  local spec = shapes[new.sh]
  local known = lib.find_queue(spec.qn)
  local hidden = not known or db.get(RECORD.queue, known).hidden
  local number = lib.shape_for(spec, now)
  local job = lib.new_job({
    id = new.id, b = new.b, body = new.body, shape = number, created_at = new.cr, run_at = new.at,
    expires_at = new.ex, bytes = new.by, unique = new.u, origin = new.og, flow = new.f, state = new.st,
  })
  job.arrival, job.started_at, job.finished_at, job.kept_until = new.ar, new.sa, new.fa, new.ku
  job.wait, job.ended, job.lost, job.released = new.w, new.n, new.l, new.rel
  job.undelivered = new.und
  job.cancel, job.keeps, job.error, job.ended_unsettled = new.ca, new.kp, new.err, new.eu or nil
  job.plain = is_plain(new)
  for part, value in pairs({ r = new.r, p = new.p, e = new.e and cmsgpack.pack(new.e) }) do
    lib.set_job_part(job, part, value)
  end
  if new.h then
    local ended = FINISHED[job.state] and { spec.qn, job.state, job.created_at, job.finished_at }
    hold_key(new.u[UNIQUE_AT.key], {
      seq = job.seq, id = job.id, till = new.h[2] or nil, by_job = new.h[1], ended = ended or nil,
    })
  end
  lib.dirty(job)
  if job.flow then
    lib.put_copied_member(job, now)
  end
  if new.cc then
    lib.put_cancelled_children(job.seq, new.cc)
  end
  if FINISHED[job.state] then
    local queue = db.get(RECORD.shape, number).q
    lib.release_shape(number, 1)
    -- A queue that was deleted stays so, whatever is kept of it.
    db.get(RECORD.queue, queue).hidden = hidden or nil
    keep_finished(job, queue)
    return
  end
  if job.origin then
    lib.schedule_job_lives(job)
  end
  lib.watch_expiry(job)
  if job.state == STATE.scheduled then
    lib.schedule(job)
  elseif job.state ~= STATE.dependent then
    lib.enter_lane(lib.lane_of_job(job), job.arrival, job.seq, now)
  end
end

function IN.keys(new)
  if not db.get(RECORD.unique_key, new.key) then
    -- No job has the number 0.
    hold_key(new.key, { seq = 0, id = new.id, till = new.till, by_job = false, ended = new.ended })
  end
end

IN.kin, IN.flows = lib.put_copied_kin, lib.put_copied_flow

IN.schedules = lib.put_copied_schedule

function IN.sets(new)
  db.put(RECORD.synced_set, new.owner, { version = new.version })
end

lib.op('copy_in', { 'write' }, function(args, now)
  local mark = must_be_this(args)
  if mark[1] == args.page + 1 then
    return { pages = mark[1] }
  elseif mark[1] ~= args.page then
    lib.refuse('copy_page_out_of_turn', { there = mark[1], page = args.page })
  end
  local put = IN[args.section]
  for _, item in ipairs(args.items) do
    put(item, now, args.shapes)
  end
  lib.set_copy_mark('into:' .. args.copy, { args.page + 1, args.next })
  return { pages = args.page + 1 }
end, { copies = true })

lib.op('copy_open', { 'write', 'allow-oom' }, function(args)
  if not lib.copy_mark() and maps.get(KEY.meta, 'copied') == args.copy then
    return true
  end
  must_be_this(args)
  lib.set_copy_mark(nil, nil)
  maps.set(KEY.meta, 'copied', args.copy)
  return true
end, { copies = true })

lib.op('copy_drop', { 'write', 'allow-oom' }, function()
  local frozen, mark = lib.copy_mark()
  local what = frozen and sub(frozen, 1, 5)
  if what ~= 'into:' and what ~= 'drop:' then
    lib.refuse('copy_nothing_to_give_up')
  end
  lib.set_copy_mark('drop:' .. sub(frozen, 6), mark)
  return true
end, { copies = true })
