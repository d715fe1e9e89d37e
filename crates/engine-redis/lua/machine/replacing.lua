-- Pushes that replaced the content of a job, or let it live again, by their ids: {seq, id, till, known}. No job has such an id,
-- so a repeat finds here what the push did.

-- Whether a push gives its content to the job that holds its key. Only such a push is looked for, so no other reads more.
function lib.may_replace(unique)
  return unique and unique[UNIQUE_AT.on_conflict] == CONFLICT.replace
end

-- What the push of this id did that this one repeats; or nil.
function lib.replaced_before(id, unique, now)
  local past = lib.may_replace(unique) and db.get(RECORD.replacing, id)
  return past and past.till > now and past or nil
end

-- Remembers the push of this id, which gave a job its new content, and the job as the answer shows it.
function lib.remember_replacing(id, job, now)
  if id == job.id then
    return
  end
  local till = now + BOUND.REQUEST_US
  local queue = db.see(RECORD.shape, job.shape).qn
  db.put(RECORD.replacing, id, {
    seq = job.seq, id = job.id, till = till, known = { queue, job.state, job.created_at, job.run_at },
  })
  lib.timer_set('rpe', till, id)
end

function lib.forget_replacing(id)
  db.drop(RECORD.replacing, id)
end
