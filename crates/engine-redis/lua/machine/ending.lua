-- The end of a lease: a settle, a reap, a timeout, a force are one step. Everything it held returns
-- together, and the job goes where its outcome sends it.
--
-- An end is {kind, …}: 'succeeded' {result}, 'failed' {error, retry_in, last}, 'snoozed' {at, wait},
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
  T.timer_set('ste', now + B.STUB_US, text(fence))
end

-- Ends a live lease. What it held returns, its job goes on: {state, run_at} of the job, or nil.
function T.end_lease(lease, job, ending, now)
  local name = T.lease_id(lease.fence, lease.seq)
  local kind = ending.kind
  db.space.live = db.space.live - 1
  T.timer_clear(KEY.expiries, name)
  if lease.deadline then
    T.timer_clear('dl', name)
  end
  T.return_needs(lease, name, ending, now)
  T.unhold(lease.holder, 1, job ~= nil and job.lost > 0)
  if not job then
    db.drop(RECORD.lease, text(lease.fence))
    if kind ~= 'undelivered' then
      remember_end(lease.fence, SETTLE[kind] and OUTCOME.released or OUTCOME.lost, now)
    end
    return nil
  end
  if T.learns(now) and not SETTLE[kind] then
    -- Nor is this one claimed again; a settle is remembered with the job.
    remember_end(lease.fence, OUTCOME.lost, now)
  end
  job.lease = nil
  local q = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
  q.running = q.running - 1
  -- Nobody received the grant of its first run, so that has not begun. Where another took its key meanwhile it
  -- stays one that has begun: it has no claim to the key any more.
  if lease.begins and (kind == 'unheard' or kind == 'undelivered') and T.retake_key(job, now) then
    job.started_at = nil
  end
  return T.end_run(job, lease.fence, ending, now)
end

-- The permits that a lease of this name holds come back; `gap` and `quarantine`: which rests they owe.
function T.return_limits(limits, name, gap, quarantine, now)
  for _, held in ipairs(limits) do
    T.return_permits(held[PERMIT_AT.limit], held[PERMIT_AT.weight], name, gap, quarantine, now)
  end
end

function T.return_needs(lease, name, ending, now)
  local gap = lease.seq == 0 or not BACK[ending.kind]
  T.return_limits(lease.limits, name, gap, UNCLEAN[ending.kind], now)
  for _, held in ipairs(lease.resources) do
    local r = T.resource(held[HELD_AT.pool], held[HELD_AT.id])
    if r then
      local p = db.get(RECORD.pool, held[HELD_AT.pool])
      local cooldown = p.settings and p.settings.cooldown or 0
      local quarantine = UNCLEAN[ending.kind] and p.settings and p.settings.quarantine or 0
      local rest = max(cooldown, quarantine)
      if rest > 0 then
        local why = UNCLEAN[ending.kind] and quarantine >= cooldown and 'quarantine' or 'cooldown'
        T.cool(r, now + rest, why, now)
      end
      T.release_resource(r, name, now)
    end
  end
end

function T.end_run(job, fence, ending, now)
  local retry = db.get(RECORD.shape, job.shape).retry
  local kind = ending.kind
  local outcome, settled = OUTCOME_OF[kind], SETTLE[kind]
  job.state, job.wait = STATE.scheduled, 0
  local attempt = job.ended + 1
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
    T.add_error(job, attempt, now, why, OUTCOME.failed)
    local spent = retry[RETRY_AT.max_attempts] > 0 and job.ended >= retry[RETRY_AT.max_attempts]
    if ending.last or spent then
      finish = STATE.failed
    else
      wait = ending.retry_in or T.backoff(retry, job.id, job.ended)
      run_at = now + wait
    end
  elseif kind == 'snoozed' then
    run_at, wait = ending.at, ending.wait
  elseif kind == 'released' or kind == 'unheard' and job.undelivered + 1 < B.UNDELIVERED_MAX then
    job.released = job.released + 1
    if job.released >= 2 then
      wait, keeps = B.RELEASE_AGAIN_US, true
      run_at = now + wait
    end
  elseif kind == 'lost' or kind == 'unheard' then
    job.lost = job.lost + 1
    if retry[RETRY_AT.max_lost] > 0 and job.lost >= retry[RETRY_AT.max_lost] then
      finish, why = STATE.failed, 'poison'
    else
      wait, keeps = min(B.SECOND_US * 2 ^ min(job.lost, 32), B.SUSPECT_US_MAX), true
      run_at = now + wait
    end
  end
  if kind == 'lost' then
    T.add_error(job, attempt, now, { 'holder_stopped' }, OUTCOME.lost)
  elseif kind == 'unheard' then
    T.add_error(job, attempt, now, { 'grant_never_received' }, OUTCOME.undelivered)
    -- A supervisor that restarts a worker under its old name looks the same, and must not hide a job that
    -- kills its workers: so many count as one that was lost.
    job.undelivered = (job.undelivered + 1) % B.UNDELIVERED_MAX
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
    if #settles == B.SETTLES_KEPT then
      remove(settles, 1)
    end
    settles[#settles + 1] = { fence, outcome, became[1], became[2] or false }
  end
  if finish then
    T.finish(job, finish, result, why, now)
  elseif run_at then
    job.run_at, job.wait, job.keeps = run_at, wait, keeps
    if why then
      job.error = why
    end
    T.watch_expiry(job)
    if run_at > now then
      T.schedule(job)
    else
      T.make_ready(job, now)
    end
  else
    job.keeps = true
    T.watch_expiry(job)
    T.make_ready(job, now)
  end
  return became
end

-- An unfinished job that is not running may expire.
function T.watch_expiry(job)
  if job.expires_at then
    T.timer_set('ex', job.expires_at, T.pad(job.seq))
  end
end

-- The job waits for its `run_at`.
function T.schedule(job)
  job.state = STATE.scheduled
  T.timer_set('due', job.run_at, T.pad(job.seq))
  local q = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
  q.scheduled = q.scheduled + 1
  T.dirty(job)
end

-- The job stands in its lane: at its old place if it keeps it, else as the last to arrive.
function T.make_ready(job, now)
  if not (job.keeps and job.arrival > 0) then
    job.arrival = T.next_arrival()
  end
  local lane = T.lane_of_job(job)
  job.keeps, job.wait, job.state = false, 0, STATE.ready
  T.dirty(job)
  T.enter_lane(lane, job.arrival, job.seq, now)
end

-- Takes a job that is not running out of where it waits.
function T.stop_waiting(job, now)
  if job.state == STATE.scheduled then
    if Z.score('due', T.pad(job.seq)) then
      T.timer_clear('due', T.pad(job.seq))
      local q = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
      q.scheduled = q.scheduled - 1
    end
  elseif job.state == STATE.ready then
    local lane = T.lane_of_job(job)
    job.state, job.lane = STATE.scheduled, nil
    T.leave_lane(lane, job.arrival, job.seq, now)
  end
end

local COUNTED = { S = 'succeeded', F = 'failed', C = 'cancelled' }

-- Finished jobs are ordered by when they go. A member of the order is the number of a row, 6 bytes, or those
-- of many that ended in one call, or the name of a span. Who lives again, or is forgotten before, may still be named there: only
-- who is finished and kept until that very moment is meant.
function T.kept_name(seq)
  return struct.pack('>I6', seq)
end

function T.kept_seqs(member)
  local seqs = T.kept_span(member)
  if seqs then
    return seqs
  end
  seqs = {}
  for at = 1, #member, 6 do
    seqs[#seqs + 1] = struct.unpack('>I6', member, at)
  end
  return seqs
end

-- The set that orders finished jobs by when they go, and the number of its byte budget.
function T.kept_class(state)
  if state == STATE.failed then
    return 'ff', KEPT_AT.failed
  end
  return 'fo', KEPT_AT.others
end

-- The job is finished: only its row knows it from now on.
function T.finish(job, state, result, why, now)
  local shape = db.get(RECORD.shape, job.shape)
  local retain = shape.retain
    or (state == STATE.failed and B.RETAIN_FAILED_US or B.RETAIN_SUCCEEDED_US)
  local q = db.get(RECORD.queue, shape.q)
  q[COUNTED[state]] = q[COUNTED[state]] + 1
  q.used_at = max(q.used_at, now)
  T.forget_live(job)
  job.state, job.finished_at, job.kept_until = state, now, now + retain
  job.bytes = job.bytes + (result and #result or 0)
  if result then
    T.set_job_part(job, PART.result, result)
  end
  if why then
    job.error = why
  elseif state == STATE.succeeded then
    job.error = nil
  end
  local set, class = T.kept_class(state)
  T.timer_set(set, job.kept_until, T.kept_name(job.seq))
  local kept = db.space.kept
  kept[class] = kept[class] + job.bytes
  if job.unique then
    T.drop_key(job.unique[UNIQUE_AT.key], job.seq, { shape.qn, state, job.created_at, now }, now)
  end
  T.dirty(job)
end

-- Takes a job out of what is kept of live ones, but its lane, which it has left.
function T.forget_live(job)
  if job.expires_at then
    T.timer_clear('ex', T.pad(job.seq))
  end
  T.release_shape(job.shape, 1)
end

-- A finished job is not kept as one any more: it goes, or lives again.
function T.unkeep_finished(job)
  local set, class = T.kept_class(job.state)
  T.timer_clear(set, T.kept_name(job.seq))
  local kept = db.space.kept
  kept[class] = max(kept[class] - job.bytes, 0)
  local queue = T.find_queue(db.see(RECORD.shape, job.shape).qn)
  if queue then
    local q = db.get(RECORD.queue, queue)
    q[COUNTED[job.state]] = max(q[COUNTED[job.state]] - 1, 0)
    T.freed_queue(queue)
  end
end

-- A finished job goes for good.
function T.forget_finished(job)
  T.unkeep_finished(job)
  T.delete_job(job)
end

-- What the holder says of a resource it gives back, before it is given back: {pool, id, word, for,
-- until, reason}.
function T.judge(r, verdict, now)
  if verdict[VERDICT_AT.word] == VERDICT.cool then
    local lasts = verdict[VERDICT_AT.lasts]
    local till = lasts and now + lasts or verdict[VERDICT_AT.till]
    T.cool(r, till, { 'cooled_by_holder' }, now)
  elseif verdict[VERDICT_AT.word] == VERDICT.ban then
    T.ban(r, verdict[VERDICT_AT.reason] or { 'banned_by_holder' }, now)
  end
end

-- The wait after attempt `attempt` (from 1) failed. Jitter is no randomness: it is spread by the job's
-- id and the attempt, so that a repeat comes to the same moment.
function T.backoff(retry, id, attempt)
  local kind, jitter = retry[RETRY_AT.kind], retry[RETRY_AT.jitter]
  local a, b = retry[RETRY_AT.base], retry[RETRY_AT.most]
  local wait
  if kind == BACKOFF.exponential then
    wait = a == 0 and 0 or min(a * 2 ^ min(attempt - 1, 62), b)
  elseif kind == BACKOFF.fixed then
    wait = a
  else
    wait = a[min(attempt, #a)] or 0
  end
  if not jitter then
    return wait
  end
  local half = floor(wait / 2)
  local head = tonumber(sub(redis.sha1hex(id .. ':' .. text(attempt)), 1, 8), 16)
  -- (wait - half) * head >> 32, in two halves: the product is above 2^53.
  local spread = wait - half
  local high, low = floor(head / 65536), head % 65536
  local upper = spread * high
  local exact = floor((floor(upper / 65536) * 65536 * 65536 + (upper % 65536) * 65536 + spread * low)
    / 4294967296)
  return half + exact
end
