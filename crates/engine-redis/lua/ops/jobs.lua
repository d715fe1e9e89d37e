-- get, cancel, delete, retry, run now and patch: what is said of one job by its id or key, or of many.
--
-- A reference is {id, b} or {key}. Replies the stored job. Refusals: job_not_found, wrong_state,
-- unique_conflict. Cost: a few commands each.

lib.op('get_job', { 'no-writes' }, function(args)
  return lib.show(lib.must_name(args))
end)

local function cancel_live(job, now)
  if job.state == STATE.running then
    job.cancel = true
    lib.dirty(job)
  else
    lib.stop_waiting(job, now)
    lib.finish(job, STATE.cancelled, nil, nil, now)
  end
end

lib.op('cancel_job', { 'write', 'allow-oom' }, function(args, now)
  local job = lib.must_name(args)
  if lib.is_live(job) then
    cancel_live(job, now)
  elseif job.state ~= STATE.cancelled then
    lib.wrong_state('job_not_cancellable', job)
  end
  return lib.show(job)
end)

-- Those of these that live and were not asked to stop yet; how many.
lib.op('cancel_jobs', { 'write', 'allow-oom' }, function(args, now)
  lib.load_jobs(args.seqs)
  local done = 0
  for _, seq in ipairs(args.seqs) do
    local job = lib.live(seq)
    if job and not job.cancel then
      cancel_live(job, now)
      done = done + 1
    end
  end
  return done
end)

lib.op('delete_job', { 'write', 'allow-oom' }, function(args, now)
  local job = lib.must_name(args)
  if job.state == STATE.running then
    lib.wrong_state('job_not_deletable', job)
  end
  if lib.is_live(job) then
    lib.stop_waiting(job, now)
    lib.forget_live(job)
    lib.delete_job(job)
  else
    lib.forget_finished(job)
  end
  if job.unique then
    lib.forget_key(job.unique[UNIQUE_AT.key], job.seq)
  end
  return true
end)

local function retried(job, now)
  lib.revive(job, now)
  lib.take_key(job, now)
  lib.watch_expiry(job)
  lib.make_ready(job, now)
end

-- Why a finished job may not be retried: a refusal, or nil.
local function check_retry(job, now)
  if job.state == STATE.succeeded then
    lib.wrong_state('job_succeeded', job)
  end
  local holder = job.unique and lib.key_holder(job.unique[UNIQUE_AT.key])
  if holder and lib.key_is_held(holder, now) and holder.seq ~= job.seq then
    lib.refuse('job_key_taken_meanwhile', { key = job.unique[UNIQUE_AT.key], holder = holder.id })
  end
end

lib.op('retry_job', { 'write' }, function(args, now)
  local job = lib.must_name(args)
  if lib.is_live(job) then
    lib.wrong_state('job_not_retryable', job)
  end
  if args.finished_at and args.finished_at ~= job.finished_at then
    lib.wrong_state('job_ended_otherwise', job)
  end
  check_retry(job, now)
  retried(job, now)
  return lib.show(job)
end)

-- Whether it may be retried.
local function may_retry(job, now)
  local ok, no = pcall(check_retry, job, now)
  if not ok and not (type(no) == 'table' and no.no) then
    error(no, 0)
  end
  return ok
end

lib.op('retry_jobs', { 'write' }, function(args, now)
  lib.load_jobs(args.seqs)
  local done = 0
  for _, seq in ipairs(args.seqs) do
    local job = lib.job(seq)
    if job and not lib.is_live(job) and may_retry(job, now) then
      retried(job, now)
      done = done + 1
    end
  end
  return done
end)

lib.op('run_job_now', { 'write', 'allow-oom' }, function(args, now)
  local job = lib.must_name(args)
  if not lib.is_live(job) then
    lib.wrong_state('job_not_runnable', job)
  end
  if job.state == STATE.scheduled then
    lib.stop_waiting(job, now)
    job.run_at = now
    lib.make_ready(job, now)
  end
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
  if job.run_at > now then
    lib.schedule(job)
  else
    lib.make_ready(job, now)
  end
  return lib.show(job)
end)
