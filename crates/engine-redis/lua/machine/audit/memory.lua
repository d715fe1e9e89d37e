-- The audit of what is remembered beside jobs and leases: unique keys, requests, stubs, places, waiting
-- calls, workers.
--
-- It only reads. What is remembered has an end, or somebody who needs it.

local audit = lib.audit

function audit.key(key)
  local name = { 'unique_key', key }
  local holder = db.get(RECORD.unique_key, key)
  audit.spend(2)
  audit.check_timer('uke', key, holder.till, name)
  audit.add('keys_that_end', 'all', holder.till and 1 or 0)
  audit.check(holder.by_job or holder.till, 'key_of_nobody', name)
  local job = lib.job(holder.seq)
  if job then
    audit.check(job.id == holder.id, 'key_of_other_job', name)
    audit.check(not holder.by_job or lib.is_live(job) and job.unique and job.unique[UNIQUE_AT.key] == key,
      'key_not_held_by_job', name)
    db.jobs[holder.seq] = nil
  else
    -- A span of its own outlives the job.
    audit.check(not holder.by_job, 'key_of_gone_job', name)
  end
end

function audit.request(id)
  audit.spend(1)
  audit.check(sets.score('rqe', id), 'kept_for_ever', { 'request', id })
end

function audit.replacing(id)
  local past = db.get(RECORD.replacing, id)
  local name = { 'replacing', id }
  audit.spend(2)
  audit.check_timer('rpe', id, past.till, name)
  local job = lib.job(past.seq)
  audit.check(past.id ~= id and (not job or job.id == past.id), 'replaced_other_job', name)
  db.jobs[past.seq] = nil
end

function audit.stub(fence)
  audit.spend(1)
  audit.check(sets.score('ste', fence), 'kept_for_ever', { 'stub', fence })
end

function audit.place(place)
  local kept = db.get(RECORD.place, place)
  audit.spend(1)
  audit.check(sets.score('ple', place), 'kept_for_ever', { 'place', place })
  audit.add('uses_held', 'all', #kept.needs)
end

function audit.taker(id)
  local taker = db.get(RECORD.waiting_call, id)
  local name = { 'waiting_call', id }
  audit.spend(2)
  audit.check_wait(id, taker.till, name)
  for _, queue in ipairs(taker.queues) do
    audit.check(db.get(RECORD.queue, queue) and sets.score(lib.takers_of(queue), id),
      'waits_unknown_to_queue', name)
  end
  audit.add('takers', 'all', 1)
  audit.add('waits', taker.worker or '', 1)
end

function audit.awaited(name)
  local awaited = db.get(RECORD.awaited, name)
  audit.spend(1)
  if name == AWAITED.total then
    return
  end
  local what
  if byte(name) == AWAITED_BYTE.flow then
    what = { 'awaited_flow', sub(name, 2) }
    audit.check(lib.look_at_flow(sub(name, 2)), 'awaited_and_ended', what)
    audit.add('awaited_flows', 'all', 1)
  else
    local seq = tonumber(sub(name, 2))
    what = { 'awaited_job', sub(name, 2) }
    audit.check(lib.live(seq), 'awaited_and_ended', what)
    db.jobs[seq] = nil
    audit.check(sets.score('awj', text(seq)) == seq, 'in_no_list', what)
    audit.add('awaited_jobs', 'all', 1)
  end
  local at = sets.score('awt', name)
  for _, registered in ipairs(awaited.processes) do
    audit.spend(0.1)
    local till = registered[AWAITS_AT.till]
    audit.check(at and at >= till, 'wait_differs', what, at or false, till)
    audit.add('awaiting_calls', 'all', registered[AWAITS_AT.calls])
  end
end

function audit.worker(id)
  local worker_record = db.get(RECORD.worker, id)
  local name = { 'worker', id }
  audit.spend(2)
  audit.check(sets.score('wn', id) and sets.score('we', id), 'in_no_list', name)
  for queue, at in pairs(worker_record.queues) do
    audit.spend(0.1)
    audit.check(sets.score(lib.workers_of(queue), id) == at, 'not_counted_at_queue', name, queue)
  end
  local waits = audit.sums and audit.sum_of('waits', id)
  audit.check(not waits or waits == worker_record.waiting, 'calls_differ', name, waits or 0, worker_record.waiting)
  audit.add('workers', 'all', 1)
end

-- The processes that may be sent parcels are among those that tick.
function audit.processes()
  local kept = call('HGETALL', db.prefix .. KEY.processes)
  for i = 1, #kept, 2 do
    local name = { 'process', kept[i] }
    audit.try(name, function()
      local sent, read = lib.parcels_in(kept[i + 1])
      audit.check(sets.score('pr', kept[i]), 'in_no_list', name)
      audit.check(read <= sent, 'parcels_unsent', name, read, sent)
    end)
    audit.spend(1)
  end
  return true
end

function audit.holder(id)
  local held = db.get(RECORD.holder, id)
  audit.spend(1)
  local name = { 'holder', id }
  audit.check(held.leases > 0, 'holds_nothing', name)
  if audit.sums then
    local leases, suspects = audit.sum_of('leases', id), audit.sum_of('suspects', id)
    audit.check(not leases or leases == held.leases, 'leases_differ', name, held.leases,
      leases or 0)
    audit.check(not suspects or suspects == held.suspects, 'suspects_differ', name,
      held.suspects, suspects or 0)
  end
  audit.add('holders', 'all', held.leases)
end
