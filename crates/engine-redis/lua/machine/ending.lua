-- The end of a lease: a settle, a reap, a timeout, a force are one step. Everything it held returns
-- together, and the job goes where its outcome sends it.
--
-- An end is {kind, …}: 'succeeded' {result}, 'failed' {error, retry_in, last},
-- 'snoozed' {at, wait, reset},
-- 'released'; and what nobody asked for: 'lost', 'timeout', 'forced', 'unheard' (reaped without any
-- extend although its worker was heard of late in its ttl: its grant was never received; every third
-- in a row counts as lost), 'undelivered' (as if it had not been granted, but for the quarantine).

-- What stands in a job's memory of its ends.
local OUTCOME_OF = {
  succeeded = OUTCOME.succeeded, failed = OUTCOME.failed, timeout = OUTCOME.failed, snoozed = OUTCOME.snoozed,
  released = OUTCOME.released, unheard = OUTCOME.released, undelivered = OUTCOME.released, lost = OUTCOME.lost,
  forced = OUTCOME.lost,
}
local UNCLEAN = { lost = true, timeout = true, forced = true, unheard = true, undelivered = true }
local SETTLE = { succeeded = true, failed = true, snoozed = true, released = true }
-- A job's `released` gives back untouched; nothing of the gap is owed.
local BACK = { released = true, unheard = true, undelivered = true }

local function remember_end(fence, how, now)
  db.put(RECORD.stub, text(fence), how)
  lib.timer_set('ste', now + BOUND.STUB_US, text(fence))
end

-- Ends a live lease. What it held returns, its job goes on: {state, run_at} of the job, or nil.
function lib.end_lease(lease, job, ending, now)
  local name = lib.lease_id(lease.fence, lease.seq)
  local kind = ending.kind
  db.space.live = db.space.live - 1
  lib.timer_clear(KEY.expiries, name)
  if lease.deadline then
    lib.timer_clear('dl', name)
  end
  lib.return_needs(lease, name, ending, now)
  lib.unhold(lease.holder, 1, job ~= nil and job.lost > 0)
  if not job then
    db.drop(RECORD.lease, text(lease.fence))
    if kind ~= 'undelivered' then
      remember_end(lease.fence, SETTLE[kind] and OUTCOME.released or OUTCOME.lost, now)
    end
    lib.lease_event(lease, OUTCOME_OF[kind])
    return nil
  end
  if lib.learns(now) and not SETTLE[kind] then
    -- Nor is this one claimed again; a settle is remembered with the job.
    remember_end(lease.fence, OUTCOME.lost, now)
  end
  job.lease = nil
  local queue_record = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
  queue_record.running = queue_record.running - 1
  -- Nobody received the grant of its first run, so that has not begun. Where another took its key meanwhile it
  -- stays one that has begun: it has no claim to the key any more.
  if lease.begins and (kind == 'unheard' or kind == 'undelivered') and lib.retake_key(job, now) then
    job.started_at = nil
  end
  return lib.end_run(job, lease, ending, now)
end

-- The permits that a lease of this name holds come back; `gap` and `unsettled` as for lib.return_permits.
function lib.return_limits(limits, name, gap, unsettled, now)
  for _, held in ipairs(limits) do
    lib.return_permits(held[PERMIT_AT.limit], held[PERMIT_AT.weight], name, gap, unsettled, now)
  end
end

function lib.return_needs(lease, name, ending, now)
  local gap = lease.seq == 0 or not BACK[ending.kind]
  lib.return_limits(lease.limits, name, gap, UNCLEAN[ending.kind] and lease.granted_at, now)
  for _, held in ipairs(lease.resources) do
    local resource = lib.resource(held[HELD_AT.pool], held[HELD_AT.id])
    if resource then
      local pool_record = db.get(RECORD.pool, held[HELD_AT.pool])
      local cooldown = pool_record.settings and pool_record.settings.cooldown or 0
      local quarantine = UNCLEAN[ending.kind] and pool_record.settings and pool_record.settings.quarantine or 0
      local rest = max(cooldown, quarantine)
      if rest > 0 then
        local why = UNCLEAN[ending.kind] and quarantine >= cooldown and 'quarantine' or 'cooldown'
        lib.cool(resource, now + rest, why, now)
      end
      lib.release_resource(resource, name, now)
    end
  end
end

function lib.end_run(job, lease, ending, now)
  local fence = lease.fence
  local retry = db.get(RECORD.shape, job.shape).retry
  local kind = ending.kind
  local outcome, settled = OUTCOME_OF[kind], SETTLE[kind]
  job.state, job.wait = STATE.scheduled, 0
  local attempt = job.ended + 1
  job.ended_unsettled = job.ended_unsettled or not settled or nil
  if settled or kind == 'timeout' then
    job.lost, job.undelivered = 0, 0
  end
  if not BACK[kind] then
    job.released = 0
  end
  -- Where it goes: finish (a state), later (run_at, wait, keeps, error), or back.
  local finish, run_at, wait, keeps, why, result
  wait, keeps = 0, false
  if kind == 'succeeded' then
    job.ended = job.ended + 1
    finish, result = STATE.succeeded, ending.result
  elseif kind == 'failed' or kind == 'timeout' then
    job.ended = job.ended + 1
    why = kind == 'timeout' and 'timeout' or ending.error
    lib.add_error(job, attempt, now, why, OUTCOME.failed)
    local spent = retry[RETRY_AT.max_attempts] > 0 and job.ended >= retry[RETRY_AT.max_attempts]
    if ending.last or spent then
      finish = STATE.failed
    else
      wait = ending.retry_in or lib.backoff(retry, job.id, job.ended)
      run_at = now + wait
    end
  elseif kind == 'snoozed' then
    run_at, wait = ending.at, ending.wait
    if ending.reset then
      job.ended = 0
    end
  elseif kind == 'released' or kind == 'unheard' and job.undelivered + 1 < BOUND.UNDELIVERED_MAX then
    job.released = job.released + 1
    if job.released >= 2 then
      wait, keeps = BOUND.RELEASE_AGAIN_US, true
      run_at = now + wait
    end
  elseif kind == 'lost' or kind == 'unheard' then
    job.lost = job.lost + 1
    if retry[RETRY_AT.max_lost] > 0 and job.lost >= retry[RETRY_AT.max_lost] then
      finish, why = STATE.failed, 'poison'
    else
      local queue = db.see(RECORD.shape, job.shape).q
      local longer = min(BOUND.SECOND_US * 2 ^ min(job.lost, 32), BOUND.SUSPECT_US_MAX)
      wait, keeps = lib.queue_settings(queue).lost_delay or longer, true
      run_at = now + wait
    end
  end
  -- What is noted goes before what the job ends with.
  local shown = why
  if kind == 'lost' then
    shown = { 'holder_stopped' }
    lib.add_error(job, attempt, now, { 'holder_stopped' }, OUTCOME.lost)
  elseif kind == 'unheard' then
    shown = { 'grant_never_received' }
    lib.add_error(job, attempt, now, { 'grant_never_received' }, OUTCOME.undelivered)
    -- A supervisor that restarts a worker under its old name looks the same, and must not hide a job that
    -- kills its workers: so many count as one that was lost.
    job.undelivered = (job.undelivered + 1) % BOUND.UNDELIVERED_MAX
  end
  -- A final failure stands against a cancel, and so does a success; every other end is one.
  if job.cancel and not (finish == STATE.succeeded
    or finish == STATE.failed and outcome == OUTCOME.failed and settled) then
    finish, result, why = STATE.cancelled, nil, nil
  end
  local became
  if finish then
    became = { finish }
  elseif run_at and run_at > now then
    became = { STATE.scheduled, run_at }
  else
    became = { STATE.ready, job.run_at }
  end
  if settled then
    local settles = job.settles
    if #settles == BOUND.SETTLES_KEPT then
      remove(settles, 1)
    end
    settles[#settles + 1] = { fence, outcome, became[1], became[2] or false, job.next_at }
    job.next_at = nil
  end
  lib.run_event(job, lease, attempt, outcome, became[1], became[2] or false, shown)
  if finish then
    lib.finish(job, finish, result, why, now)
  elseif run_at then
    job.run_at, job.wait, job.keeps = run_at, wait, keeps
    if why then
      job.error = why
    end
    lib.watch_expiry(job)
    if run_at > now then
      lib.schedule(job)
    else
      lib.make_ready(job, now)
    end
  else
    job.keeps = true
    lib.watch_expiry(job)
    lib.make_ready(job, now)
  end
  return became
end

-- A job that does not run is cancelled: it waits nowhere any more.
function lib.call_off(job, why, now)
  lib.stop_waiting(job, now)
  lib.cancelled_event(job, why)
  lib.finish(job, STATE.cancelled, nil, why, now)
end

-- An unfinished job that is not running may expire.
function lib.watch_expiry(job)
  if job.expires_at then
    lib.timer_set('ex', job.expires_at, lib.pad(job.seq))
  end
end

-- The job waits for its `run_at`.
function lib.schedule(job)
  job.state = STATE.scheduled
  lib.timer_set('due', job.run_at, lib.pad(job.seq))
  local queue_record = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
  queue_record.scheduled = queue_record.scheduled + 1
  lib.dirty(job)
end

-- The job stands in its lane: at its old place if it keeps it, else as the last to arrive.
function lib.make_ready(job, now)
  if not (job.keeps and job.arrival > 0) then
    job.arrival = lib.next_arrival()
  end
  local lane = lib.lane_of_job(job)
  job.keeps, job.wait, job.state = false, 0, STATE.ready
  lib.dirty(job)
  lib.enter_lane(lane, job.arrival, job.seq, now)
end

-- Takes a job that is not running out of where it waits.
function lib.stop_waiting(job, now)
  if job.state == STATE.scheduled then
    if sets.score('due', lib.pad(job.seq)) then
      lib.timer_clear('due', lib.pad(job.seq))
      local queue_record = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
      queue_record.scheduled = queue_record.scheduled - 1
    end
  elseif job.state == STATE.ready then
    local lane = lib.lane_of_job(job)
    job.state, job.lane = STATE.scheduled, nil
    lib.leave_lane(lane, job.arrival, job.seq, now)
  elseif job.state == STATE.dependent then
    job.state = STATE.scheduled
    local queue_record = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
    queue_record.dependent = queue_record.dependent - 1
  end
end

local COUNTED = { S = 'succeeded', F = 'failed', C = 'cancelled' }

local NAME_BYTES = 6

-- Finished jobs are ordered by when they go. A member of the order is the number of a row, 6 bytes, or those
-- of many that ended in one call, or the name of a span. A job that was forgotten before may still be
-- named there: only one that is finished and kept until that very moment is meant.
function lib.kept_name(seq)
  return struct.pack('>I6', seq)
end

function lib.kept_seqs(member)
  local seqs = lib.kept_span(member)
  if seqs then
    return seqs
  end
  seqs = {}
  for at = 1, #member, NAME_BYTES do
    seqs[#seqs + 1] = struct.unpack('>I6', member, at)
  end
  return seqs
end

-- The set that orders finished jobs by when they go, and the number of its byte budget.
function lib.kept_class(state)
  if state == STATE.failed then
    return 'ff', KEPT_AT.failed
  end
  return 'fo', KEPT_AT.others
end

-- A finished job is in the order of those that are kept, until its moment, and its bytes count.
function lib.enter_finished(job)
  local set, class = lib.kept_class(job.state)
  lib.timer_set(set, job.kept_until, lib.kept_name(job.seq))
  local kept = db.space.kept
  kept[class] = kept[class] + job.bytes
end

-- Takes one out of the names of those that ended with it in one call, if it is among them.
local function leave_others(set, at, name)
  for _, member in ipairs(sets.of_score(set, at)) do
    for from = 1, #member % NAME_BYTES == 0 and #member or 0, NAME_BYTES do
      if sub(member, from, from + NAME_BYTES - 1) == name then
        sets.rem(set, member)
        sets.add(set, at, sub(member, 1, from - 1) .. sub(member, from + NAME_BYTES))
        return
      end
    end
  end
end

-- It is no more. `stays`: its row does, and may come to the same moment again, where it must not be named twice.
function lib.leave_finished(job, stays)
  local set, class = lib.kept_class(job.state)
  local name = lib.kept_name(job.seq)
  if stays and not sets.score(set, name) then
    leave_others(set, job.kept_until, name)
  else
    lib.timer_clear(set, name)
  end
  local kept = db.space.kept
  kept[class] = max(kept[class] - job.bytes, 0)
end

-- Whether a finished job is kept for others, without end.
function lib.is_held(job)
  return job.kept_until >= lib.FOREVER
end

-- The job is finished: only its row knows it from now on.
function lib.finish(job, state, result, why, now)
  local shape = db.get(RECORD.shape, job.shape)
  local retain = shape.retain
    or (state == STATE.failed and BOUND.RETAIN_FAILED_US or BOUND.RETAIN_SUCCEEDED_US)
  local awaited = lib.is_awaited(job.seq)
  if awaited then
    retain = max(retain, BOUND.AWAITED_US)
  end
  local queue_record = db.get(RECORD.queue, shape.q)
  queue_record[COUNTED[state]] = queue_record[COUNTED[state]] + 1
  queue_record.used_at = max(queue_record.used_at, now)
  lib.forget_live(job)
  job.state, job.finished_at, job.kept_until = state, now, now + retain
  job.bytes = job.bytes + (result and #result or 0)
  if result then
    lib.set_job_part(job, PART.result, result)
  end
  if why then
    job.error = why
  elseif state == STATE.succeeded then
    job.error = nil
  end
  if lib.hold_at_end(job, job.kept_until) then
    job.kept_until = lib.FOREVER
  else
    lib.enter_finished(job)
  end
  if job.unique then
    lib.drop_key(job.unique[UNIQUE_AT.key], job.seq, { shape.qn, state, job.created_at, now }, now)
  end
  if job.origin then
    lib.schedule_job_ended(job, state, now)
  end
  lib.dirty(job)
  local its_end, parent = lib.awaited_job(job.seq), lib.parent(job.seq)
  if awaited then
    lib.notify_awaiting(its_end)
  end
  if parent then
    lib.tell_end(its_end, parent)
  end
  lib.kin_ended(job, state, now)
end

-- Takes a job out of what is kept of live ones, but its lane, which it has left.
function lib.forget_live(job)
  if job.expires_at then
    lib.timer_clear('ex', lib.pad(job.seq))
  end
  lib.release_shape(job.shape, 1)
end

-- A finished job is not kept as one any more: it goes, or lives again (`stays`).
function lib.unkeep_finished(job, stays)
  if not lib.is_held(job) then
    lib.leave_finished(job, stays)
  end
  local queue = lib.find_queue(db.see(RECORD.shape, job.shape).qn)
  if queue then
    local queue_record = db.get(RECORD.queue, queue)
    queue_record[COUNTED[job.state]] = max(queue_record[COUNTED[job.state]] - 1, 0)
    lib.freed_queue(queue)
  end
end

-- A finished job goes for good.
function lib.forget_finished(job)
  lib.unkeep_finished(job)
  lib.delete_job(job)
end

-- What the holder says of a resource it gives back, before it is given back: {pool, id, word, for,
-- until, reason}.
function lib.judge(resource, verdict, now)
  if verdict[VERDICT_AT.word] == VERDICT.cool then
    local lasts = verdict[VERDICT_AT.lasts]
    local till = lasts and now + lasts or verdict[VERDICT_AT.till]
    lib.cool(resource, till, { 'cooled_by_holder' }, now)
  elseif verdict[VERDICT_AT.word] == VERDICT.ban then
    lib.ban(resource, verdict[VERDICT_AT.reason] or { 'banned_by_holder' }, now)
  end
end

-- The wait after attempt `attempt` (from 1) failed. Jitter is no randomness: it is spread by the job's
-- id and the attempt, so that a repeat comes to the same moment.
function lib.backoff(retry, id, attempt)
  local kind, jitter = retry[RETRY_AT.kind], retry[RETRY_AT.jitter]
  local base, b = retry[RETRY_AT.base], retry[RETRY_AT.most]
  local wait
  if kind == BACKOFF.exponential then
    wait = base == 0 and 0 or min(base * 2 ^ min(attempt - 1, 62), b)
  elseif kind == BACKOFF.fixed then
    wait = base
  else
    wait = base[min(attempt, #base)] or 0
  end
  if not jitter then
    return wait
  end
  local half = floor(wait / 2)
  return half + lib.share(lib.hash_head(id .. ':' .. text(attempt)), wait - half)
end
