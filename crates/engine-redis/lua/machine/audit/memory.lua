-- The audit of what is remembered beside jobs and leases: unique keys, requests, stubs, places, waiting
-- calls, workers.
--
-- It only reads. What is remembered has an end, or somebody who needs it.

local A = T.audit

function A.key(key)
  local name = { 'unique_key', key }
  local holder = db.get(RECORD.unique_key, key)
  A.spend(2)
  A.check_timer('uke', key, holder.till, name)
  A.add('keys_that_end', 'all', holder.till and 1 or 0)
  A.check(holder.by_job or holder.till, 'key_of_nobody', name)
  local job = T.job(holder.seq)
  if job then
    A.check(job.id == holder.id, 'key_of_other_job', name)
    A.check(not holder.by_job or T.is_live(job) and job.unique and job.unique[UNIQUE_AT.key] == key,
      'key_not_held_by_job', name)
    db.jobs[holder.seq] = nil
  else
    -- A span of its own outlives the job.
    A.check(not holder.by_job, 'key_of_gone_job', name)
  end
end

function A.request(id)
  A.spend(1)
  A.check(Z.score('rqe', id), 'kept_for_ever', { 'request', id })
end

function A.stub(fence)
  A.spend(1)
  A.check(Z.score('ste', fence), 'kept_for_ever', { 'stub', fence })
end

function A.place(place)
  local kept = db.get(RECORD.place, place)
  A.spend(1)
  A.check(Z.score('ple', place), 'kept_for_ever', { 'place', place })
  A.add('uses_held', 'all', #kept.needs)
end

function A.taker(id)
  local taker = db.get(RECORD.waiting_call, id)
  local name = { 'waiting_call', id }
  A.spend(2)
  A.check_wait(id, taker.till, name)
  for _, queue in ipairs(taker.queues) do
    A.check(db.get(RECORD.queue, queue) and Z.score(T.takers_of(queue), id),
      'waits_unknown_to_queue', name)
  end
  A.add('takers', 'all', 1)
  A.add('waits', taker.worker or '', 1)
end

function A.worker(id)
  local w = db.get(RECORD.worker, id)
  local name = { 'worker', id }
  A.spend(2)
  A.check(Z.score('wn', id) and Z.score('we', id), 'in_no_list', name)
  for queue, at in pairs(w.queues) do
    A.spend(0.1)
    A.check(Z.score(T.workers_of(queue), id) == at, 'not_counted_at_queue', name, queue)
  end
  local waits = A.sums and A.sum_of('waits', id)
  A.check(not waits or waits == w.waiting, 'calls_differ', name, waits or 0, w.waiting)
  A.add('workers', 'all', 1)
end

function A.holder(id)
  local held = db.get(RECORD.holder, id)
  A.spend(1)
  local name = { 'holder', id }
  A.check(held.leases > 0, 'holds_nothing', name)
  if A.sums then
    local leases, suspects = A.sum_of('leases', id), A.sum_of('suspects', id)
    A.check(not leases or leases == held.leases, 'leases_differ', name, held.leases,
      leases or 0)
    A.check(not suspects or suspects == held.suspects, 'suspects_differ', name,
      held.suspects, suspects or 0)
  end
  A.add('holders', 'all', held.leases)
end
