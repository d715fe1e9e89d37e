-- The audit of what is remembered beside jobs and leases: unique keys, requests, stubs, places, waiting
-- calls, workers.
--
-- It only reads. What is remembered has an end, or somebody who needs it.

local A = T.audit

function A.key(key)
  local name = 'the unique key \3' .. key .. '\3'
  local holder = db.get('uk', key)
  A.spend(2)
  A.check_timer('uke', key, holder.till, name)
  A.add('keys_that_end', 'all', holder.till and 1 or 0)
  A.check(holder.by_job or holder.till, '%s is held by nobody', name)
  local job = T.job(holder.seq)
  if job then
    A.check(job.id == holder.id, '%s is held by another job', name)
    A.check(not holder.by_job or T.is_live(job) and job.unique and job.unique[1] == key,
      '%s is held by a job that does not hold it', name)
    db.jobs[holder.seq] = nil
  else
    -- A span of its own outlives the job.
    A.check(not holder.by_job, '%s is held by the life of a job that is not there', name)
  end
end

function A.request(id)
  A.spend(1)
  A.check(Z.score('rqe', id), 'the request \3%s\3 is remembered for ever', id)
end

function A.stub(fence)
  A.spend(1)
  A.check(Z.score('ste', fence), 'the stub %s is remembered for ever', fence)
end

function A.place(place)
  local kept = db.get('pl', place)
  A.spend(1)
  A.check(Z.score('ple', place), 'the place \3%s\3 is kept for ever', place)
  A.add('uses_held', 'all', #kept.needs)
end

function A.taker(id)
  local taker = db.get('tk', id)
  local name = 'the waiting call \3' .. id .. '\3'
  A.spend(2)
  A.check_wait(id, taker.till, name)
  for _, queue in ipairs(taker.queues) do
    A.check(db.get('q', queue) and Z.score(T.takers_of(queue), id),
      '%s waits for a queue that does not know it', name)
  end
  A.add('takers', 'all', 1)
  A.add('waits', taker.worker or '', 1)
end

function A.worker(id)
  local w = db.get('w', id)
  local name = 'worker \3' .. id .. '\3'
  A.spend(2)
  A.check(Z.score('wn', id) and Z.score('we', id), '%s is in no list', name)
  for queue, at in pairs(w.queues) do
    A.spend(0.1)
    A.check(Z.score(T.workers_of(queue), id) == at, '%s is not counted at queue %d', name, queue)
  end
  local waits = A.sums and A.sum_of('waits', id)
  A.check(not waits or waits == w.waiting, '%s: %d calls wait, it says %d', name, waits or 0, w.waiting)
  A.add('workers', 'all', 1)
end

function A.holder(id)
  local held = db.get('ho', id)
  A.spend(1)
  local name = 'holder \3' .. id .. '\3'
  A.check(held.leases > 0, '%s holds nothing', name)
  if A.sums then
    local leases, suspects = A.sum_of('leases', id), A.sum_of('suspects', id)
    A.check(not leases or leases == held.leases, '%s: %d leases are cached, %d are', name, held.leases,
      leases or 0)
    A.check(not suspects or suspects == held.suspects, '%s: %d suspects are cached, %d are', name,
      held.suspects, suspects or 0)
  end
  A.add('holders', 'all', held.leases)
end
