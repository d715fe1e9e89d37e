-- get, cancel, delete, retry, run now and patch: what is said of one job by its id or key, or of many.
--
-- A reference is {id, b} or {key}. Replies the stored job. Refusals: job_not_found, wrong_state,
-- unique_conflict. Cost: a few commands each.
--
-- A change of many takes {seqs, queue, states, ended_from, ended_before, flow, schedule, seen} and replies {done,
-- stopped_at, later = the first that could not be retried yet, since its children are being told of its end}. The caller
-- has looked at these jobs; here each is compared once more with as much of the filter as Lua knows. `seen` has a mark of
-- each job's content, where the filter asks for kind, label or error: the call stops in front of the first job whose
-- content is another by now, and the caller looks at it again. Cost: as for each of them, at most 256.

lib.op('get_job', { 'no-writes' }, function(args)
  return lib.show(lib.must_name(args))
end)

-- Asks a job that runs to stop; cancels any other that lives.
function lib.cancel_live(job, now)
  if job.state ~= STATE.running then
    lib.call_off(job, nil, now)
  elseif not job.cancel then
    job.cancel = true
    lib.dirty(job)
    lib.cancel_event(job)
  end
end

lib.op('cancel_job', { 'write', 'allow-oom' }, function(args, now)
  local job = lib.must_name(args)
  if lib.is_live(job) then
    lib.cancel_live(job, now)
  elseif job.state ~= STATE.cancelled then
    lib.wrong_state('job_not_cancellable', job)
  end
  return lib.show(job)
end)

-- Changes those of many that match still: `change` says whether it did. `not_yet` says of a job that it cannot be changed
-- now, but soon: the first of those is answered.
local function change_many(args, change, not_yet)
  local states, done, later = lib.asked_states(args), 0, nil
  lib.load_jobs(args.seqs)
  for nth, seq in ipairs(args.seqs) do
    local job = lib.job(seq)
    if job and args.seen and lib.content_mark(job) ~= args.seen[nth] then
      return { done = done, stopped_at = seq, later = later }
    end
    if job and not_yet and not_yet(job) then
      later = later or seq
    elseif job and lib.is_wanted(job, args, states) and change(job) then
      done = done + 1
    end
  end
  return { done = done, later = later }
end

lib.op('cancel_jobs', { 'write', 'allow-oom' }, function(args, now)
  return change_many(args, function(job)
    -- Asking a second time would not stop it sooner.
    if not lib.is_live(job) or job.cancel then
      return false
    end
    lib.cancel_live(job, now)
    return true
  end)
end)

-- Cancels a job that does not run, and forgets it; or forgets one that has ended.
local function delete(job, now)
  lib.job_event(EVENT.job_deleted, job)
  if lib.is_live(job) then
    lib.stop_waiting(job, now)
    lib.forget_live(job)
    lib.kin_ended(job, nil, now)
    lib.delete_job(job)
    if job.origin then
      lib.schedule_job_ended(job, nil, now)
    end
    if lib.is_awaited(job.seq) then
      lib.notify_awaiting(lib.awaited_job(job.seq))
    end
  else
    if job.flow then
      lib.flow_uncounts(job.flow, job.state)
    end
    lib.forget_finished(job)
  end
  if job.unique then
    lib.forget_key(job.unique[UNIQUE_AT.key], job.seq)
  end
end

lib.op('delete_job', { 'write', 'allow-oom' }, function(args, now)
  local job = lib.must_name(args)
  if job.state == STATE.running then
    lib.wrong_state('job_not_deletable', job)
  end
  lib.check_unfollowed(job)
  delete(job, now)
  return true
end)

lib.op('delete_jobs', { 'write', 'allow-oom' }, function(args, now)
  return change_many(args, function(job)
    if job.state == STATE.running or lib.is_followed(job) then
      return false
    end
    delete(job, now)
    return true
  end)
end)

-- `waits`: for whom, as ops/after found it; nil for a job without parents. How many children its failure had cancelled.
local function retried(job, waits, now)
  local cancelled = lib.forget_cancelled_children(job.seq)
  lib.revive(job, now)
  lib.take_key(job, now)
  lib.watch_expiry(job)
  if waits then
    local kin = job.kin
    kin[KIN_AT.turn], kin[KIN_AT.above] = kin[KIN_AT.turn] + 1, waits.above
    lib.name_parents(job, waits.rows)
    lib.open_edges(job, waits.open, now)
  end
  lib.go_from(job, now)
  if job.state == STATE.dependent then
    lib.job_event(EVENT.job_changed, job)
  else
    lib.job_event(EVENT.job_ready, job, 'retry')
  end
  return cancelled
end

-- Refuses a finished job that may not be retried; how it will wait for its parents, if it has any.
local function check_retry(job, now)
  if job.state == STATE.succeeded then
    lib.wrong_state('job_succeeded', job)
  end
  local holder = job.unique and lib.key_holder(job.unique[UNIQUE_AT.key])
  if holder and lib.key_is_held(holder, now) and holder.seq ~= job.seq then
    lib.refuse('job_key_taken_meanwhile', { key = job.unique[UNIQUE_AT.key], holder = holder.id })
  end
  if lib.is_telling(job) then
    lib.refuse('job_still_telling', { job = job.id })
  end
  return job.kin and lib.parents_of_retry(job, now)
end

lib.op('retry_job', { 'write' }, function(args, now)
  local job = lib.must_name(args)
  if lib.is_live(job) then
    lib.wrong_state('job_not_retryable', job)
  end
  if args.finished_at and args.finished_at ~= job.finished_at then
    lib.wrong_state('job_ended_otherwise', job)
  end
  local cancelled = retried(job, check_retry(job, now), now)
  local shown = lib.show(job)
  shown[SHOWN_AT.cancelled] = cancelled > 0 and cancelled or nil
  return shown
end)

-- Whether it may be retried, and how it will wait for its parents.
local function may_retry(job, now)
  local ok, waits = pcall(check_retry, job, now)
  if not ok and not (type(waits) == 'table' and waits.no) then
    error(waits, 0)
  end
  return ok, waits
end

lib.op('retry_jobs', { 'write' }, function(args, now)
  return change_many(args, function(job)
    local may, waits = not lib.is_live(job), nil
    if may then
      may, waits = may_retry(job, now)
    end
    if may then
      retried(job, waits, now)
    end
    return may
  end, lib.is_telling)
end)

-- A live job waits for its moment no longer.
function lib.run_now(job, now)
  if job.state == STATE.scheduled then
    lib.stop_waiting(job, now)
    job.run_at = now
    lib.make_ready(job, now)
    lib.job_event(EVENT.job_ready, job, 'run_now')
  end
end

lib.op('run_job_now', { 'write', 'allow-oom' }, function(args, now)
  local job = lib.must_name(args)
  if not lib.is_live(job) then
    lib.wrong_state('job_not_runnable', job)
  elseif job.state == STATE.dependent then
    lib.refuse('job_waits_for_parents', { job = job.id })
  end
  lib.run_now(job, now)
  return lib.show(job)
end)

-- patch_job: a reference and any of pr, g, needs, timeout, ex, at | dl | now, body with n and was. `false`
-- resets. The job keeps its age in the order, unless the moment at which it may run is changed.
-- Refusals: also stale_body, if the body is not `was` any more.
lib.op('patch_job', { 'write' }, function(args, now)
  local job = lib.must_name(args)
  if job.state == STATE.running or not lib.is_live(job) then
    lib.wrong_state('job_not_changeable', job)
  end
  local old = db.get(RECORD.shape, job.shape)
  local queue = lib.find_queue(old.qn)
  local settings = queue and lib.queue_settings(queue) or {}
  local new = {
    qn = old.qn, pr = old.pr, group = old.group, needs = old.needs, retry = old.retry, timeout = old.timeout,
    retain = old.retain,
  }
  if args.pr ~= nil then
    new.pr = args.pr or 0
  end
  if args.g ~= nil then
    new.group = args.g or nil
  end
  if args.needs ~= nil then
    new.needs = args.needs or settings.needs or {}
  end
  if args.timeout ~= nil then
    new.timeout = args.timeout or settings.timeout
  end
  local other_needs = not lib.same_needs(new.needs, old.needs)
  if other_needs then
    lib.check_needs(new.needs, '/needs')
  end
  if args.body then
    if args.was ~= lib.body(job) then
      lib.refuse('stale_body')
    end
    job.body, job.dirty_head = args.body, true
    job.bytes = args.n or job.bytes
    lib.dirty(job)
  end
  -- All is checked; from here on it changes.
  if args.ex ~= nil then
    if job.expires_at then
      lib.timer_clear('ex', lib.pad(job.seq))
    end
    job.expires_at = args.ex or nil
    lib.watch_expiry(job)
    lib.dirty(job)
  end
  local timed = args.at or args.dl or args.now
  local reshaped = other_needs or new.pr ~= old.pr or new.group ~= old.group or new.timeout ~= old.timeout
  if reshaped or timed or args.body or args.ex ~= nil then
    lib.job_event(EVENT.job_changed, job)
  end
  if not reshaped and not timed then
    return lib.show(job)
  end
  local waited = job.state == STATE.ready
  lib.stop_waiting(job, now)
  if reshaped then
    lib.reshape(job, new, now)
  end
  if timed then
    job.run_at, job.wait, job.keeps = args.at or now + (args.dl or 0), 0, false
  else
    -- Its arrival is its age: a higher priority, another group, other needs put it into another line,
    -- where it stands by that age.
    job.keeps = job.keeps or waited
  end
  lib.go_from(job, now)
  return lib.show(job)
end)
