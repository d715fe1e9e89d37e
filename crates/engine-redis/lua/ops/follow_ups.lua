-- The jobs that a settle pushes: stored before its lease is ended, in the same step.
--
-- Except one under the id of the very job that is settled, where that job goes with its end, since its id is free only
-- then, and those that wait for that one. It never refuses after the first of them is stored.

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

-- Whether a follow-up waits for one of those that are stored after the end.
local function waits_for_one(parents, is_after)
  for _, ref in ipairs(parents or {}) do
    if ref.item and is_after[ref.item] then
      return true
    end
  end
  return false
end

-- Which follow-ups are stored after the end: the one that takes the id of the settled job, and those that wait for it.
local function stored_after(jobs, kin, goes)
  local is_after, more = {}, goes ~= nil
  for place, job in ipairs(goes and jobs or {}) do
    is_after[place] = job[NEW_JOB_AT.id] == goes.id or nil
  end
  while more and kin do
    more = false
    for place in ipairs(jobs) do
      if not is_after[place] and waits_for_one(kin.parents[place], is_after) then
        is_after[place], more = true, true
      end
    end
  end
  return is_after
end

-- Those that are stored before the end and those after it, {place in the item, …}.
local function split(jobs, kin, goes)
  local is_after, before, after = stored_after(jobs, kin, goes), {}, {}
  for place in ipairs(jobs) do
    local part = is_after[place] and after or before
    part[#part + 1] = place
  end
  return before, after
end

local function jobs_at(jobs, places)
  local some = {}
  for i, place in ipairs(places) do
    some[i] = jobs[place]
  end
  return some
end

-- The flow of a settled job, to which what it pushes belongs: {flow, called_off}; or nil.
function lib.heir_of(job)
  return job and job.flow and { flow = job.flow, called_off = job.cancel or false } or nil
end

-- Those of so many items that are stored first are decided first, each part in its order: of those with one unique key the
-- first that is stored is the job, and it may be a later item of the call.
local function decide_first(kin, many)
  local first, last = {}, {}
  for _, at in ipairs(kin.order) do
    local part = at <= many and first or last
    part[#part + 1] = at
  end
  for _, at in ipairs(last) do
    first[#first + 1] = at
  end
  kin.order = first
end

-- Checks them in the order in which they are stored; a refusal names the place in the item.
function lib.check_follow_ups(item, shapes, goes, heir, now)
  local jobs = item.push
  local order, after = split(jobs, item.kin, goes)
  local many = #order
  for _, place in ipairs(after) do
    order[#order + 1] = place
  end
  local stored, kin = jobs_at(jobs, order), lib.part_of_kin(item.kin, jobs, order)
  if kin then
    decide_first(kin, many)
  end
  local ok, no = pcall(lib.plan_push, stored, shapes, false, now, goes, kin, heir)
  if ok then
    return
  end
  if type(no) == 'table' and no.no then
    local index = no.no.index
    local place = index and order[index + 1]
    no.no.pointer = '/push' .. (place and '/' .. text(place - 1) or '') .. (no.no.pointer or '')
    no.no.index = nil
  end
  error(no, 0)
end

-- Stores some of them.
local function push_some(item, places, shapes, plans, fates, default_retry, now)
  return lib.push(jobs_at(item.push, places), shapes, plans, default_retry, true, now, fates)
end

-- Plans some of them, behind those that are `brought` already.
local function plan_some(item, places, shapes, heir, now, brought)
  local jobs, kin = item.push, lib.part_of_kin(item.kin, item.push, places)
  return lib.plan_push(jobs_at(jobs, places), shapes, false, now, nil, kin, heir, brought)
end

-- Stores those that come before the end: what lib.push_after_end goes on with; or nil if an earlier item of the
-- same call has taken their room.
function lib.push_before_end(item, shapes, goes, heir, default_retry, now)
  local before, after = split(item.push, item.kin, goes)
  local ok, plans, fates = true, nil, nil
  if goes then
    ok, plans = pcall(lib.check_follow_ups, item, shapes, goes, heir, now)
  end
  if ok then
    ok, plans, fates = pcall(plan_some, item, before, shapes, heir, now)
  end
  if not ok then
    if type(plans) == 'table' and plans.no then
      return nil
    end
    error(plans, 0)
  end
  return {
    before = before, after = after, heir = heir,
    done = push_some(item, before, shapes, plans, fates, default_retry, now),
  }
end

-- Stores the others; what became of all, in the order of the item.
function lib.push_after_end(item, follow_ups, shapes, job, default_retry, now)
  local before, after, all = follow_ups.before, follow_ups.after, {}
  local function put(places, done)
    for i, place in ipairs(places) do
      all[place] = done[i]
    end
  end
  put(before, follow_ups.done)
  if after[1] then
    local known = { db.see(RECORD.shape, job.shape).qn, job.state, job.created_at, job.finished_at }
    local brought = {}
    for _, one in ipairs(follow_ups.done) do
      brought[one.seq] = one.rep or not one.dup or nil
      -- A duplicate of the job that goes now is shown as what is known of it.
      one.ended = one.seq == job.seq and known or nil
    end
    local plans, fates = plan_some(item, after, shapes, follow_ups.heir, now, brought)
    put(after, push_some(item, after, shapes, plans, fates, default_retry, now))
  end
  return all
end

-- A repeated settle pushes nothing again; it shows what its jobs are, where they are kept, and those whose content they
-- replaced.
function lib.pushed_before(jobs, now)
  local done = {}
  for _, job in ipairs(jobs or {}) do
    local seq = lib.seq_of(job[NEW_JOB_AT.id], job[NEW_JOB_AT.b])
    local there = seq and lib.job(seq)
    if there and lib.is_there(there, now) then
      done[#done + 1] = { seq = seq, id = job[NEW_JOB_AT.id], dup = true }
    else
      local more = job[NEW_JOB_AT.more]
      local past = more and lib.replaced_before(job[NEW_JOB_AT.id], more.u, now)
      if past then
        done[#done + 1] = { seq = past.seq, id = past.id, dup = true, past = past.known }
      end
    end
  end
  return done
end
