-- Live leases: where they lie, and who holds how many. They never outlive `until`.
--
-- A job's lease is part of the job's life; one without a job is a record of its own. `e` orders all
-- of them by expiry, and its member is the lease's name, so that a name that is not there is lost.
-- A lease: {fence, seq, holder, granted_at, ttl, expires_at, deadline, limits = {{name, weight, cost}},
-- resources = {{pool, id}}, request, extended, again (answered to a repeat), seen_at, first (the ttl that it
-- was granted with, where an extend changed it), begins (its job had never run before)}.

-- The live lease of a name, or nil.
function lib.lease(fence, seq)
  if seq == 0 then
    return db.get(RECORD.lease, text(fence))
  end
  local job = lib.job(seq)
  local lease = job and job.lease
  if lease and lease.fence == fence then
    return lease, job
  end
end

-- Whether a lease lives. (Of what is in a block only the record is looked at.)
function lib.is_live_lease(fence, seq)
  local block, at = lib.block_of(seq)
  if block and not lib.has_own_life(block, at) then
    return lib.running_span(fence, seq) ~= nil
  end
  return lib.lease(fence, seq) ~= nil
end

-- The names of the leases that a request was granted: of those in a run, which have one fence and one row number
-- after the other, too.
function lib.leases_of_request(past)
  local names = lib.lease_names(past.leases)
  for _, run in ipairs(past.runs or {}) do
    for i = 0, run[RUN_AT.many] - 1 do
      names[#names + 1] = lib.lease_id(run[RUN_AT.fence] + i, run[RUN_AT.seq] + i)
    end
  end
  -- In the order in which they were granted.
  sort(names, lib.less)
  return names
end

-- What a lease holds of a limit, or nil.
function lib.held_limit(lease, limit)
  for _, held in ipairs(lease.limits) do
    if held[PERMIT_AT.limit] == limit then
      return held
    end
  end
end

-- What it holds of a pool under this id, or nil.
function lib.held_resource(lease, pool, id)
  for _, held in ipairs(lease.resources) do
    if held[HELD_AT.pool] == pool and held[HELD_AT.id] == id then
      return held
    end
  end
end

-- It changed.
function lib.lease_changed(job)
  if job then
    lib.dirty(job)
  end
end

function lib.set_expiry(lease, at)
  lease.expires_at = at
  lib.timer_set(KEY.expiries, at, lib.lease_id(lease.fence, lease.seq))
end

-- Until when a lease lives that is granted or heard of now: never long beyond its deadline.
function lib.expiry(ttl, deadline, now)
  local at = now + ttl
  return deadline and min(at, deadline + floor(ttl / 4)) or at
end

-- So many leases of this ttl live from now on.
function lib.more_live(n, ttl, now)
  local space = db.space
  if space.live == 0 then
    -- Nobody had to tick before: the engine was not deaf.
    space.pulse = now
  end
  space.live = space.live + n
  lib.note_ttl(ttl, now)
end

-- What a holder holds: {leases, suspects}; one without a name is told apart by ''.
function lib.holding(holder)
  return db.get(RECORD.holder, holder or '')
end

-- It holds so many more, all suspects or none.
function lib.hold(holder, n, suspect)
  local held = lib.holding(holder) or db.put(RECORD.holder, holder or '', { leases = 0, suspects = 0 })
  held.leases = held.leases + n
  held.suspects = held.suspects + (suspect and n or 0)
end

function lib.unhold(holder, n, suspect)
  local held = lib.holding(holder)
  held.leases = held.leases - n
  held.suspects = held.suspects - (suspect and n or 0)
  if held.leases == 0 then
    db.drop(RECORD.holder, holder or '')
  end
end

-- ---- Who works: {host, pid, version, queues = {number = moment}, seen_at, waiting} ----

-- Who asked for a queue, by when he did last: so that they are counted without being looked at.
function lib.workers_of(queue)
  return 'qw:' .. text(queue)
end

-- A worker called.
function lib.see_worker(worker, queues, now)
  for _, queue in ipairs(queues) do
    db.get(RECORD.queue, queue).asked_at = now
  end
  if not worker or not worker.id then
    return
  end
  local worker_record = db.get(RECORD.worker, worker.id)
  if not worker_record then
    worker_record = db.put(RECORD.worker, worker.id, { queues = {}, waiting = 0 })
    sets.add('wn', 0, worker.id)
    lib.timer_set('we', now + BOUND.WORKER_US, worker.id)
  end
  worker_record.host, worker_record.pid = worker.host or worker_record.host, worker.pid or worker_record.pid
  worker_record.version, worker_record.seen_at = worker.version or worker_record.version, now
  for _, queue in ipairs(queues) do
    worker_record.queues[queue] = now
    sets.add(lib.workers_of(queue), now, worker.id)
  end
end

-- A worker gave a sign of life by one of its leases.
function lib.hear_worker(id, now)
  local worker_record = id and db.get(RECORD.worker, id)
  if worker_record then
    worker_record.seen_at = now
  end
end

function lib.tick_worker(id, now)
  local worker_record = db.get(RECORD.worker, id)
  if not worker_record then
    return
  end
  local ends = worker_record.seen_at + BOUND.WORKER_US
  if ends > now or worker_record.waiting > 0 then
    lib.timer_set('we', ends > now and ends or now + BOUND.WORKER_US, id)
    for queue, at in pairs(worker_record.queues) do
      if at + BOUND.WORKER_US <= now then
        worker_record.queues[queue] = nil
        sets.rem(lib.workers_of(queue), id)
      end
    end
  else
    for queue in pairs(worker_record.queues) do
      sets.rem(lib.workers_of(queue), id)
    end
    db.drop(RECORD.worker, id)
    sets.rem('wn', id)
  end
end
