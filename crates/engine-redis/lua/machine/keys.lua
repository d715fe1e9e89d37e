-- Unique keys: {seq, id, till, by_job, ended}. Held by a job's life, or in any case until a moment, or both.

function lib.key_holder(key)
  return db.get(RECORD.unique_key, key)
end

-- Whether somebody holds it now.
function lib.key_is_held(holder, now)
  return holder.by_job or (holder.till and holder.till > now)
end

local function set_key(key, holder)
  local old = db.get(RECORD.unique_key, key)
  if old and old.till then
    lib.timer_clear('uke', key)
  end
  if holder then
    db.put(RECORD.unique_key, key, holder)
    if holder.till then
      lib.timer_set('uke', holder.till, key)
    end
  else
    db.drop(RECORD.unique_key, key)
  end
end

-- Whether nothing is unusual in a job that is pushed but when it is to run, and a unique key that it holds until its end and
-- no longer.
function lib.has_key_or_moment_alone(more)
  local unique = more.u
  return not (more.ex or more.f or more.run)
    and not (unique and (unique[UNIQUE_AT.ends] ~= UNTIL.finish or unique[UNIQUE_AT.hold]))
end

-- Whether such a key is all that is unusual in it.
function lib.has_key_alone(more)
  return more.u and not (more.at or more.dl) and lib.has_key_or_moment_alone(more)
end

-- A job takes a key that nobody holds.
function lib.take_key(job, now)
  local unique = job.unique
  if unique then
    local till = unique[UNIQUE_AT.hold] and now + unique[UNIQUE_AT.hold] or nil
    set_key(unique[UNIQUE_AT.key], { seq = job.seq, id = job.id, till = till, by_job = true })
  end
end

-- When a job may run whose content a push with this key replaces, if the push wants `wanted`: no later than the key
-- lets it be after the wait began, and never before now.
function lib.bounded(unique, wanted, began, now)
  local within = unique[UNIQUE_AT.within]
  return within and min(wanted, max(began + within, now)) or wanted
end

-- The key that a push says, with the moment at which the wait began, unless that was the job's own push.
function lib.key_of_wait(unique, began)
  if not began then
    return unique
  end
  local key = {}
  for at = 1, UNIQUE_AT.within do
    key[at] = unique[at] or false
  end
  key[UNIQUE_AT.began] = began
  return key
end

-- The job holds its key by its life no more. `ended`: what is known of it from now on, if it is finished,
-- {queue, state, created_at, finished_at}; its row may go before the key's time is over.
function lib.drop_key(key, seq, ended, now)
  local holder = db.get(RECORD.unique_key, key)
  if not holder or holder.seq ~= seq then
    return
  end
  if holder.till and holder.till > now then
    holder.by_job, holder.ended = false, ended
  else
    set_key(key, nil)
  end
end

-- The first run of a job is taken back since nobody heard of it: a key until its start is its own again, unless
-- another took it meanwhile. Whether that one did not.
function lib.retake_key(job, now)
  local unique = job.unique
  if not unique or unique[UNIQUE_AT.ends] ~= UNTIL.start then
    return true
  end
  local holder = db.get(RECORD.unique_key, unique[UNIQUE_AT.key])
  if holder and holder.seq == job.seq then
    -- Its time is not over, so it held the key all the while.
    holder.by_job = true
  elseif holder and lib.key_is_held(holder, now) then
    return false
  else
    set_key(unique[UNIQUE_AT.key], { seq = job.seq, id = job.id, by_job = true })
  end
  return true
end

-- The time of a key is over; its job may hold it still.
function lib.tick_key(key)
  local holder = db.get(RECORD.unique_key, key)
  if holder then
    holder.till = nil
    if not holder.by_job then
      db.drop(RECORD.unique_key, key)
    end
  end
end

-- A job that is forgotten holds no key, whatever time was asked for.
function lib.forget_key(key, seq)
  local holder = db.get(RECORD.unique_key, key)
  if holder and holder.seq == seq then
    set_key(key, nil)
  end
end
