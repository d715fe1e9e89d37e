-- The jobs that a settle pushes: stored before its lease is ended, in the same step.
--
-- Except one under the id of the very job that is settled, where that job goes with its end: its id is free only
-- then. It never refuses after the first of them is stored.

-- The job of a lease, if such a settle finishes it and nothing of it is kept: {seq, id}; or nil.
function lib.goes_with_its_end(job, item)
  if not job then
    return nil
  end
  local shape = db.get(RECORD.shape, job.shape)
  local most = shape.retry[RETRY_AT.max_attempts]
  local is_finished = job.cancel or item.o == OUTCOME.succeeded
    or item.o == OUTCOME.failed and (item.last or most > 0 and job.ended + 1 >= most)
  if is_finished and shape.retain == 0 then
    return { seq = job.seq, id = job.id }
  end
end

-- Those that are stored before the end and those after it, and the place in the item of each.
local function split(jobs, goes)
  local before, after = { at = {} }, { at = {} }
  for place, job in ipairs(jobs) do
    local part = goes and job[NEW_JOB_AT.id] == goes.id and after or before
    part[#part + 1], part.at[#part.at + 1] = job, place
  end
  return before, after
end

-- Checks them in the order in which they are stored; a refusal names the place in the item.
function lib.check_follow_ups(jobs, shapes, goes, now)
  local before, after = split(jobs, goes)
  local many, order = #before, {}
  for i = 1, #jobs do
    order[i] = before[i] or after[i - many]
  end
  local ok, no = pcall(lib.plan_push, order, shapes, false, now, goes)
  if ok then
    return
  end
  if type(no) == 'table' and no.no then
    local index = no.no.index
    local place = index and (before.at[index + 1] or after.at[index + 1 - many])
    no.no.pointer = '/push' .. (place and '/' .. text(place - 1) or '') .. (no.no.pointer or '')
    no.no.index = nil
  end
  error(no, 0)
end

-- Stores those that come before the end: what lib.push_after_end goes on with; or nil if an earlier item of the
-- same call has taken their room.
function lib.push_before_end(item, shapes, goes, default_retry, now)
  local before, after = split(item.push, goes)
  local ok, plans = true, nil
  if goes then
    ok, plans = pcall(lib.check_follow_ups, item.push, shapes, goes, now)
  end
  if ok then
    ok, plans = pcall(lib.plan_push, before, shapes, false, now)
  end
  if not ok then
    if type(plans) == 'table' and plans.no then
      return nil
    end
    error(plans, 0)
  end
  return { before = before, after = after, done = lib.push(before, shapes, plans, default_retry, true, now) }
end

-- Stores the others; what became of all, in the order of the item.
function lib.push_after_end(follow_ups, shapes, job, default_retry, now)
  local before, after, all = follow_ups.before, follow_ups.after, {}
  local function put(part, done)
    for i, place in ipairs(part.at) do
      all[place] = done[i]
    end
  end
  put(before, follow_ups.done)
  if after[1] then
    local known = { db.see(RECORD.shape, job.shape).qn, job.state, job.created_at, job.finished_at }
    for _, one in ipairs(follow_ups.done) do
      -- A duplicate of the job that goes now is shown as what is known of it.
      one.ended = one.seq == job.seq and known or nil
    end
    local plans = lib.plan_push(after, shapes, false, now)
    put(after, lib.push(after, shapes, plans, default_retry, true, now))
  end
  return all
end

-- A repeated settle pushes nothing again; it shows what its jobs are, where they are kept.
function lib.pushed_before(jobs, now)
  local done = {}
  for _, job in ipairs(jobs or {}) do
    local seq = lib.seq_of(job[NEW_JOB_AT.id], job[NEW_JOB_AT.b])
    local there = seq and lib.job(seq)
    if there and (lib.is_live(there) or there.kept_until > now) then
      done[#done + 1] = { seq = seq, id = job[NEW_JOB_AT.id], dup = true }
    end
  end
  return done
end
