-- Live leases: where they lie, and who holds how many. They never outlive `until`.
--
-- A job's lease is part of the job's life; one without a job is a record of its own. `e` orders all
-- of them by expiry, and its member is the lease's name, so that a name that is not there is lost.
-- A lease: {fence, seq, holder, granted_at, ttl, expires_at, deadline, limits = {{name, weight, cost}},
-- resources = {{pool, id}}, request, extended, again (answered to a repeat), seen_at, first (the ttl that it
-- was granted with, where an extend changed it), begins (its job had never run before)}.

-- The live lease of a name, or nil.
function T.lease(fence, seq)
  if seq == 0 then
    return db.get(RECORD.lease, text(fence))
  end
  local job = T.job(seq)
  local lease = job and job.lease
  if lease and lease.fence == fence then
    return lease, job
  end
end

-- Whether a lease lives. (Of what is in a block only the record is looked at.)
function T.is_live_lease(fence, seq)
  local k, at = T.block_of(seq)
  if k and not T.has_own_life(k, at) then
    return T.running_span(fence, seq) ~= nil
  end
  return T.lease(fence, seq) ~= nil
end

-- The names of the leases that a request was granted: of those in a run, which have one fence and one row number
-- after the other, too.
function T.leases_of_request(past)
  local names = T.lease_names(past.leases)
  for _, run in ipairs(past.runs or {}) do
    for i = 0, run[RUN_AT.many] - 1 do
      names[#names + 1] = T.lease_id(run[RUN_AT.fence] + i, run[RUN_AT.seq] + i)
    end
  end
  -- In the order in which they were granted.
  sort(names, T.less)
  return names
end

-- What a lease holds of a limit, or nil.
function T.held_limit(lease, limit)
  for _, held in ipairs(lease.limits) do
    if held[PERMIT_AT.limit] == limit then
      return held
    end
  end
end

-- What it holds of a pool under this id, or nil.
function T.held_resource(lease, pool, id)
  for _, held in ipairs(lease.resources) do
    if held[HELD_AT.pool] == pool and held[HELD_AT.id] == id then
      return held
    end
  end
end

-- It changed.
function T.lease_changed(job)
  if job then
    T.dirty(job)
  end
end

function T.set_expiry(lease, at)
  lease.expires_at = at
  T.timer_set(KEY.expiries, at, T.lease_id(lease.fence, lease.seq))
end

-- Until when a lease lives that is granted or heard of now: never long beyond its deadline.
function T.expiry(ttl, deadline, now)
  local at = now + ttl
  return deadline and min(at, deadline + floor(ttl / 4)) or at
end

-- So many leases of this ttl live from now on.
function T.more_live(n, ttl, now)
  local space = db.space
  if space.live == 0 then
    -- Nobody had to tick before: the engine was not deaf.
    space.pulse = now
  end
  space.live = space.live + n
  T.note_ttl(ttl, now)
end

-- What a holder holds: {leases, suspects}; one without a name is told apart by ''.
function T.holding(holder)
  return db.get(RECORD.holder, holder or '')
end

-- It holds so many more, all suspects or none.
function T.hold(holder, n, suspect)
  local held = T.holding(holder) or db.put(RECORD.holder, holder or '', { leases = 0, suspects = 0 })
  held.leases = held.leases + n
  held.suspects = held.suspects + (suspect and n or 0)
end

function T.unhold(holder, n, suspect)
  local held = T.holding(holder)
  held.leases = held.leases - n
  held.suspects = held.suspects - (suspect and n or 0)
  if held.leases == 0 then
    db.drop(RECORD.holder, holder or '')
  end
end

-- ---- Who works: {host, pid, version, queues = {number = moment}, seen_at, waiting} ----

-- Who asked for a queue, by when he did last: so that they are counted without being looked at.
function T.workers_of(queue)
  return 'qw:' .. text(queue)
end

-- A worker called.
function T.see_worker(worker, queues, now)
  for _, queue in ipairs(queues) do
    db.get(RECORD.queue, queue).asked_at = now
  end
  if not worker or not worker.id then
    return
  end
  local w = db.get(RECORD.worker, worker.id)
  if not w then
    w = db.put(RECORD.worker, worker.id, { queues = {}, waiting = 0 })
    Z.add('wn', 0, worker.id)
    T.timer_set('we', now + B.WORKER_US, worker.id)
  end
  w.host, w.pid = worker.host or w.host, worker.pid or w.pid
  w.version, w.seen_at = worker.version or w.version, now
  for _, queue in ipairs(queues) do
    w.queues[queue] = now
    Z.add(T.workers_of(queue), now, worker.id)
  end
end

-- A worker gave a sign of life by one of its leases.
function T.hear_worker(id, now)
  local w = id and db.get(RECORD.worker, id)
  if w then
    w.seen_at = now
  end
end

function T.tick_worker(id, now)
  local w = db.get(RECORD.worker, id)
  if not w then
    return
  end
  local ends = w.seen_at + B.WORKER_US
  if ends > now or w.waiting > 0 then
    T.timer_set('we', ends > now and ends or now + B.WORKER_US, id)
    for queue, at in pairs(w.queues) do
      if at + B.WORKER_US <= now then
        w.queues[queue] = nil
        Z.rem(T.workers_of(queue), id)
      end
    end
  else
    for queue in pairs(w.queues) do
      Z.rem(T.workers_of(queue), id)
    end
    db.drop(RECORD.worker, id)
    Z.rem('wn', id)
  end
end
