-- push: stores jobs, all or none, each once by its id and by its unique key.
--
-- args: {shapes, jobs, dr = default retry, whole, fresh = no job of it was ever sent before, kin = who of them waits for
-- whom (ops/after)}. A job is {id, b (text), body, bytes, shape, more}; `more` is what is not usual: {at | dl, ex, u, f =
-- its flow, run = any end of a parent will do}. Or {blocks, spec, dr,
-- whole, fresh}: jobs of one shape with nothing unusual, each with an id of its own, as they may be blocks: for each
-- {ids, parts}, `parts` being {b, how many of the ids in a row lie there, …}, and beside the arguments their
-- texts with an index, and the ids behind them (machine/blocks). If one of them is there already nothing is stored, and the reply is
-- {known = true}: they are to be sent as jobs. Replies one {seq, id, dup, rep, unasked, job, ended} each, or, if all were
-- stored one after the other, {n, unasked, stored}: `stored` shows blocks if they are asked for with `whole`
-- (machine/short_push: show_stored_together, lives).
-- Refusals: unknown names and what never fits, unique_conflict, queue_full, those of ops/after. Cost: about twenty commands
-- for a call of any length, and, but for `fresh`, a read for each job.

-- A job as it came, with names.
local function named(new, shapes)
  local more = new[NEW_JOB_AT.more] or {}
  local spec = shapes[new[NEW_JOB_AT.shape]]
  return {
    id = new[NEW_JOB_AT.id], b = new[NEW_JOB_AT.b], body = new[NEW_JOB_AT.body], n = new[NEW_JOB_AT.bytes],
    spec = spec, q = spec.q,
    at = more.at, dl = more.dl, ex = more.ex, u = more.u,
  }
end

local function check_limit(need, at)
  local name, weight, cost = need[NEED_AT.name], need[NEED_AT.weight], need[NEED_AT.cost]
  local settings = lib.setting_of(name)
  if not settings then
    local template = lib.template(name)
    if template then
      lib.refuse('need_limit_and_template_unknown', { limit = name, template = template }, at .. '/limit')
    end
    lib.refuse('need_limit_unknown', { limit = name }, at .. '/limit')
  end
  local cap = settings.concurrency
  if cap and cap > 0 and weight > cap then
    lib.refuse('need_weight_never_fits', { weight = weight, concurrency = cap, limit = name }, at .. '/weight')
  end
  local burst = settings.rate and settings.rate[RATE_AT.burst]
  if burst and cost > burst then
    lib.refuse('need_cost_never_fits', { cost = cost, burst = burst, limit = name }, at .. '/cost')
  end
end

local function check_pool(need, at)
  local pool, id = need[NEED_AT.name], need[NEED_AT.id]
  local pool_record = db.get(RECORD.pool, pool)
  if not pool_record or not pool_record.settings then
    lib.refuse('need_pool_unknown', { pool = pool }, at .. '/pool')
  end
  if id and not lib.resource(pool, id) then
    lib.refuse('need_resource_unknown', { pool = pool, resource = id }, at .. '/id')
  end
end

-- Refuses an unknown limit, pool or resource, a weight above the cap, a cost above the burst, and what is
-- named twice.
function lib.check_needs(needs, pointer)
  local seen = {}
  for index, need in ipairs(needs) do
    local name = need[NEED_AT.kind] .. need[NEED_AT.name]
    if seen[name] then
      local at = pointer .. '/' .. text(index - 1)
      if need[NEED_AT.kind] == NEED.limit then
        lib.refuse('need_limit_twice', { limit = need[NEED_AT.name] }, at)
      end
      lib.refuse('need_pool_twice', { pool = need[NEED_AT.name] }, at)
    end
    seen[name] = true
  end
  for index, need in ipairs(needs) do
    local at = pointer .. '/' .. text(index - 1)
    if need[NEED_AT.kind] == NEED.limit then
      check_limit(need, at)
    else
      check_pool(need, at)
    end
  end
end

local function conflict(key, holder)
  lib.refuse('job_key_taken', { key = key, holder = holder.id }, '/unique/key')
end

-- Checks the needs that a job would have, once for all that say the same.
function lib.check_spec(spec)
  if spec.checked then
    return
  end
  spec.checked = true
  if spec.needs then
    lib.check_needs(spec.needs, '/needs')
  else
    local queue = lib.find_queue(spec.q)
    local needs = queue and lib.queue_settings(queue).needs
    if needs then
      lib.check_needs(needs, '')
    end
  end
end

local STORE = { 'store' }

-- What a push would do with one job: 'store' (the finished job of the same id whose time is over, or nil),
-- 'duplicate' (seq, id, what is known of it if it was replaced before), 'earlier' (index; its id if it is the same push),
-- 'replace' or 'revive' (seq). `goes`: {seq, id} of a job that is
-- gone by the time when what has its id is stored. `brought`: the rows that the same settle stored before, which to a unique
-- key are earlier items of one array.
local function plan_one(job, seen_ids, seen_keys, now, goes, brought)
  goes = goes and goes.id == job.id and goes or nil
  local seq = not goes and lib.seq_of(job.id, job.b)
  local there, over = seq and lib.job(seq), nil
  if there then
    if lib.is_there(there, now) then
      return { 'duplicate', seq, job.id }
    end
    -- No tick has forgotten it yet.
    over = seq
  end
  if seen_ids[job.id] then
    return { 'earlier', seen_ids[job.id], job.id }
  end
  local past = lib.replaced_before(job.id, job.u, now)
  if past then
    return { 'duplicate', past.seq, past.id, past.known }
  end
  lib.check_spec(job.spec)
  local unique, store = job.u, over and { 'store', over } or STORE
  if not unique then
    return store
  end
  local key, on_conflict = unique[UNIQUE_AT.key], unique[UNIQUE_AT.on_conflict]
  if seen_keys[key] then
    return { 'earlier', seen_keys[key] }
  end
  local holder = lib.key_holder(key)
  local gone = holder and goes and holder.seq == goes.seq
  if not holder or not (holder.by_job and not gone or holder.till and holder.till > now) then
    return store
  end
  there = not gone and lib.job(holder.seq)
  if on_conflict == CONFLICT.keep then
    return { 'duplicate', holder.seq, holder.id }
  end
  local is_of_other_queue = on_conflict == CONFLICT.replace and there and db.see(RECORD.shape, there.shape).qn ~= job.q
  if brought and brought[holder.seq] and (on_conflict == CONFLICT.reject or is_of_other_queue) then
    return { 'duplicate', holder.seq, holder.id }
  elseif on_conflict == CONFLICT.reject then
    conflict(key, holder)
  elseif not there then
    return store
  elseif is_of_other_queue then
    conflict(key, holder)
  elseif there.state == STATE.running then
    return { 'duplicate', holder.seq, holder.id }
  elseif lib.is_live(there) then
    return { 'replace', holder.seq }
  end
  return { 'revive', holder.seq }
end

-- Whether a queue takes so many more; if not, how many it takes, and how many wait.
function lib.has_room(name, more)
  local queue = lib.find_queue(name)
  local queue_record = queue and db.get(RECORD.queue, queue)
  local most = queue_record and lib.queue_settings(queue).max_waiting
  local waiting = queue_record and queue_record.waiting + queue_record.scheduled + queue_record.dependent
  if most and waiting + more > most then
    return false, most, waiting
  end
  return true
end

local function check_room(name, more)
  local fits, most, waiting = lib.has_room(name, more)
  if not fits then
    lib.refuse('queue_full', { queue = name, most = most, waiting = waiting })
  end
end

-- Which item of a list a refusal is about.
function lib.at_item(index, act, ...)
  local ok, result = pcall(act, ...)
  if ok then
    return result
  end
  if type(result) == 'table' and result.no and not result.no.index then
    result.no.index = index - 1
  end
  error(result, 0)
end

-- Whether a queue takes any number of jobs.
local function takes_any_number(name)
  local queue = lib.find_queue(name)
  return not (queue and lib.queue_settings(queue).max_waiting)
end

-- What counts the jobs that a call brings to each of its queues, and refuses those beyond what one takes.
local function room_checker()
  local waiting, takes_any = {}, {}
  return function(index, queue)
    local more = (waiting[queue] or 0) + 1
    waiting[queue] = more
    if more == 1 then
      takes_any[queue] = takes_any_number(queue)
    end
    if not takes_any[queue] then
      lib.at_item(index, check_room, queue, more)
    end
  end
end

-- Checks a push without changing anything; what is to be done with each job, and the fates of those that are new, if
-- they have to do with others or with flows. `goes` and `brought` as in plan_one, `kin` and `heir` as in ops/after.
function lib.plan_push(jobs, shapes, fresh, now, goes, kin, heir, brought)
  local plans, seen_ids, seen_keys = {}, {}, {}
  local known, take_room = fresh and {} or lib.known_ids(jobs), room_checker()
  -- A job that is cancelled at its push takes no room, so that is known first.
  local has_kin = lib.has_kin(jobs, kin, heir)
  for index, new in ipairs(jobs) do
    local plan, queue
    local id = new[NEW_JOB_AT.id]
    if not new[NEW_JOB_AT.more] and not known[id] and not seen_ids[id] then
      seen_ids[id] = index
      local spec = shapes[new[NEW_JOB_AT.shape]]
      if not spec.checked then
        lib.at_item(index, lib.check_spec, spec)
      end
      plan, queue = STORE, spec.q
    else
      local job = named(new, shapes)
      plan, queue = lib.at_item(index, plan_one, job, seen_ids, seen_keys, now, goes, brought), job.q
      -- A push that replaces is known by its id as one that stores a job is.
      if plan[PLAN_AT.what] ~= 'duplicate' and not plan[PLAN_AT.id]
        and (plan[PLAN_AT.what] ~= 'earlier' or lib.may_replace(job.u)) then
        seen_ids[job.id] = index
      end
      if job.u and plan[PLAN_AT.what] ~= 'duplicate' and plan[PLAN_AT.what] ~= 'earlier' then
        seen_keys[job.u[UNIQUE_AT.key]] = index
      end
    end
    if plan[PLAN_AT.what] == 'store' and not has_kin then
      take_room(index, queue)
    end
    plans[index] = plan
  end
  if not has_kin then
    return plans
  end
  local fates = lib.fates(jobs, plans, kin, heir, now)
  for index, plan in ipairs(plans) do
    if plan[PLAN_AT.what] == 'store' and not fates[index].cancelled then
      take_room(index, shapes[jobs[index][NEW_JOB_AT.shape]].q)
    end
  end
  return plans, fates
end

local function moment(job, now)
  return job.at or now + (job.dl or 0)
end

-- A new job waits for its parents, or goes where it belongs; or it is cancelled at its push.
local function meet_fate(job, fate, now)
  if job.flow then
    lib.flow_gets(job.flow, job.seq, now)
  end
  lib.pushed_event(db.see(RECORD.shape, job.shape).qn, job.id, 1, job.flow, job.origin and job.origin[ORIGIN_AT.schedule])
  if fate.cancelled then
    if job.kin then
      lib.name_parents(job, fate.rows)
    end
    lib.cancelled_event(job, fate.error)
    lib.finish(job, STATE.cancelled, nil, fate.error, now)
    return
  end
  lib.take_key(job, now)
  lib.watch_expiry(job)
  if job.kin then
    lib.name_parents(job, fate.rows)
    lib.open_edges(job, fate.open, now)
  end
  lib.go_from(job, now)
end

-- The fate of most jobs.
local FREE = { parents = {} }

-- Stores a job. One whose `at` is over is ready; it may be older than the job. `fate`: as in ops/after; nil for most.
function lib.store_job(new, default_retry, now, fate)
  fate = fate or FREE
  local number = lib.shape_for(lib.shape_of(new.spec, default_retry), now)
  local job = lib.new_job({
    id = new.id, b = new.b, body = new.body, shape = number, created_at = now,
    run_at = moment(new, now), expires_at = new.ex, bytes = new.n, unique = new.u, origin = new.origin,
    flow = fate.flow, state = STATE.scheduled,
  })
  if fate.parents[1] then
    lib.give_kin(job, fate.parents, fate.runs, fate.above)
  end
  if job.origin then
    lib.schedule_job_lives(job)
  end
  -- Its row says all of a job that has nothing unusual.
  local key_goes_first = new.u and new.u[UNIQUE_AT.ends] == UNTIL.start
  job.plain = not (new.ex or key_goes_first or new.origin or job.flow or job.kin) and job.run_at <= now
  job.run_at = job.plain and now or job.run_at
  meet_fate(job, fate, now)
  return job
end

-- The job that is there gets the new content, and its attempts start again; its id stays.
-- `begins`: the holder was finished, so that a new wait begins.
local function replace_job(job, new, default_retry, begins, now)
  local shape = lib.shape_of(new.spec, default_retry)
  local old = db.get(RECORD.shape, job.shape)
  -- What `replace` does not name stays: retry, timeout and retain of the job that is there.
  shape.retry, shape.timeout, shape.retain = old.retry, old.timeout, old.retain
  lib.stop_waiting(job, now)
  lib.reshape(job, shape, now)
  if job.expires_at then
    lib.timer_clear('ex', lib.pad(job.seq))
  end
  job.expires_at = new.ex
  lib.watch_expiry(job)
  job.ended, job.lost, job.released, job.undelivered = 0, 0, 0, 0
  job.keeps, job.started_at, job.wait = false, nil, 0
  job.run_at = moment(new, now)
  if new.u then
    -- The wait began with the first push of the key that is not over yet. That push keeps its own delay.
    local began = begins and now or job.unique and job.unique[UNIQUE_AT.began]
    if not begins then
      job.run_at = lib.bounded(new.u, job.run_at, began or job.created_at, now)
    end
    job.unique = lib.key_of_wait(new.u, began)
  end
  lib.take_key(job, now)
  job.body, job.error, job.dirty_head, job.plain = new.body, nil, true, nil
  lib.set_job_part(job, PART.progress, nil)
  lib.dirty(job)
  lib.job_event(EVENT.job_replaced, job)
  lib.go_from(job, now)
end

-- Gives a job that waits nowhere another shape.
function lib.reshape(job, shape, now)
  local old = job.shape
  job.shape = lib.shape_for(shape, now)
  local shape_record = db.get(RECORD.shape, old)
  shape_record.rows = shape_record.rows - 1
  lib.release_shape(old, 1)
  lib.drop_shape_if_idle(old)
  job.dirty_head = true
  lib.dirty(job)
end

-- A finished job lives again: it waits nowhere yet. Its attempts start again, its errors are kept. Those of its children
-- that were not told of its end wait for the next.
function lib.revive(job, now)
  lib.kin_live_again(job, now)
  lib.unkeep_finished(job, true)
  lib.use_shape(db.get(RECORD.shape, job.shape), now)
  job.state, job.arrival, job.run_at, job.started_at, job.finished_at = STATE.scheduled, 0, now, nil, nil
  if job.expires_at and job.expires_at <= now then
    job.expires_at = nil
  end
  job.wait, job.ended, job.lost, job.released, job.undelivered = 0, 0, 0, 0, 0
  job.cancel, job.keeps = false, false
  job.error, job.kept_until = nil, 0
  if job.origin then
    lib.schedule_job_lives(job)
  end
  lib.set_job_part(job, PART.result, nil)
  lib.dirty(job)
end

-- Whether a job that is stored may go the short way: it has nothing unusual, or it comes alone and has nothing but a unique
-- key until its end. (Others of its array may have the same key.)
local function goes_short(jobs, index)
  local more = jobs[index][NEW_JOB_AT.more]
  return not more or not jobs[2] and lib.has_key_alone(more)
end

-- Does what was planned; the answers. `again`: the jobs are looked at again in this call, and not only shown at its end.
-- `fates`: if they have any. `short` gets the row and the shape of each that went the short way, in turn.
function lib.push(jobs, shapes, plans, default_retry, again, now, fates, short)
  local done = {}
  local from = 1
  while from <= #jobs do
    -- As many go the short way as stand side by side.
    local to = from
    while not (again or fates) and to <= #jobs and plans[to] == STORE and goes_short(jobs, to) do
      to = to + 1
    end
    if to > from then
      lib.store_plain(jobs, shapes, from, to - 1, default_retry, now, short)
      -- All of a call are told by the first.
      local all_alike = to - from == #jobs and #shapes == 1 and not short
      for index = from, all_alike and from or to - 1 do
        local new = jobs[index]
        done[index] = { id = new[NEW_JOB_AT.id], unasked = shapes[new[NEW_JOB_AT.shape]].unasked or nil }
      end
      from = to
    else
      local fate = fates and fates[from]
      done[from] = lib.push_one(named(jobs[from], shapes), plans[from], done, default_retry, now, fate)
      from = from + 1
    end
  end
  return done
end

function lib.push_one(new, plan, done, default_retry, now, fate)
  local queue = lib.queue_for(new.q, now)
  local answer
  if plan[PLAN_AT.what] == 'store' then
    if plan[PLAN_AT.of] then
      lib.forget_finished(lib.job(plan[PLAN_AT.of]))
    end
    local job = lib.store_job(new, default_retry, now, fate)
    answer = { seq = job.seq, id = job.id }
  elseif plan[PLAN_AT.what] == 'duplicate' then
    answer = { seq = plan[PLAN_AT.of], id = plan[PLAN_AT.id], dup = true, past = plan[PLAN_AT.past] }
  elseif plan[PLAN_AT.what] == 'earlier' then
    local first = done[plan[PLAN_AT.of]]
    answer = { seq = first.seq, id = first.id, dup = true }
    -- What the same call stored a moment ago may be replaced as any other, and as any other never by a job
    -- of another queue. It may have been cancelled at its push.
    local job = lib.may_replace(new.u) and not plan[PLAN_AT.id] and lib.live(first.seq)
    if job and db.see(RECORD.shape, job.shape).qn == new.q then
      replace_job(job, new, default_retry, false, now)
      lib.remember_replacing(new.id, job, now)
      answer.rep = true
    end
  else
    local job = lib.job(plan[PLAN_AT.of])
    local begins = plan[PLAN_AT.what] == 'revive'
    if begins then
      -- It waits for nobody in this life, and follows nobody.
      lib.revive(job, now)
    end
    replace_job(job, new, default_retry, begins, now)
    lib.remember_replacing(new.id, job, now)
    answer = { seq = job.seq, id = job.id, dup = true, rep = true }
  end
  answer.unasked = lib.is_unasked(queue, now) or nil
  answer.key = new.u and new.u[UNIQUE_AT.key]
  return answer
end

-- Shows a pushed job; of one whose row is gone and whose key is held yet, what is known of it.
function lib.show_pushed(one)
  local job = lib.job(one.seq)
  if job then
    one.job = lib.show(job)
  elseif one.key and not one.ended then
    local holder = lib.key_holder(one.key)
    one.ended = holder and holder.seq == one.seq and holder.ended or nil
  end
end

-- Shows pushed jobs, those that went the short way as they were stored.
local function show_all(done, plans, short)
  local nth, shown, puts = 1, {}, {}
  for index, one in ipairs(done) do
    if not one.seq and not one.dup then
      local seq, shape = short[nth], short[nth + 1]
      one.job = lib.show_stored_short(seq, shape, puts)
      nth, shown[index] = nth + 2, one.job
    elseif one.seq then
      lib.show_pushed(one)
    else
      -- It names one of the same call.
      one.job = shown[plans[index][PLAN_AT.of]]
    end
  end
end

-- Whether nobody asked for a queue within the last minute.
function lib.is_unasked(queue, now)
  local asked = db.get(RECORD.queue, queue).asked_at
  return not asked or asked + BOUND.WORKER_US <= now
end

-- Jobs of one shape with nothing unusual.
local function push_blocks(args, now)
  if not args.fresh and lib.is_one_known(args.blocks) then
    return { known = true }
  end
  local spec, many = args.spec, 0
  for _, came in ipairs(args.blocks) do
    many = many + #came[1]
  end
  lib.at_item(1, lib.check_spec, spec)
  if not takes_any_number(spec.q) then
    for index = 1, many do
      lib.at_item(index, check_room, spec.q, index)
    end
  end
  local queue = lib.find_queue(spec.q)
  local may_be_granted = queue and lib.has_takers(queue)
  local number, firsts = lib.store_blocks(spec, args.blocks, args.dr, now)
  local reply = { n = many, unasked = spec.unasked or nil }
  if args.whole then
    lib.later(function()
      reply.stored = lib.show_stored_together(number, firsts, now)
      if may_be_granted then
        reply.stored.lives = lib.show_lives_given(args.blocks, firsts)
      end
    end)
  end
  return reply
end

-- Whether all were stored: then one answer is that of all.
local function all_stored(plans)
  for _, plan in ipairs(plans) do
    if plan[PLAN_AT.what] ~= 'store' then
      return false
    end
  end
  return true
end

lib.op('push', { 'write' }, function(args, now)
  if args.blocks then
    return push_blocks(args, now)
  end
  local jobs, shapes = args.jobs, args.shapes
  local plans, fates = lib.plan_push(jobs, shapes, args.fresh, now, nil, args.kin)
  local short = args.whole and {} or nil
  local done = lib.push(jobs, shapes, plans, args.dr, false, now, fates, short)
  if short then
    lib.later(function()
      show_all(done, plans, short)
    end)
  elseif #shapes == 1 and all_stored(plans) then
    return { n = #jobs, unasked = done[1].unasked }
  end
  return done
end, { directly = lib.push_directly })
