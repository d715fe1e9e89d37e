-- What becomes of pushed jobs that wait for others or belong to a flow, and of such a job that is retried: decided before
-- anything is changed, parents first, so that no job of a call is looked at before those it waits for.
--
-- `kin` of a call, as Rust computed it from the call alone: {parents = for each item a list of what it names, order = the
-- items in the order in which they are decided}. What is named: {at = its place in `after`, from 0, gone = what is not
-- there counts as done, and item | id, b | key | flow}. `heir`: {flow, called_off} of a job whose settle pushes.
-- The fate of a new job: {parents, runs, above, flow, open = those of its parents that are unfinished, rows = what is
-- known of their rows (lib.name_parents), cancelled = it is cancelled at its push, error}.
-- Refusals: unknown_parent, unknown_parent_flow, above_flow; of a retry parent_ended, parent_flow_failed,
-- above_flow_by_retry. Cost: the read of a row for each parent, and a few commands for each hundred of them.

local WORDS = STATE_WORDS

-- So many rows are read together; those that only this looks at are let go before the next come, since they come with
-- their payloads.
local ROWS = 64

-- Calls `act` with each of a list, having read the rows that `row_of` says.
function lib.each_with_row(list, row_of, act)
  for from = 1, #list, ROWS do
    local seqs, to = {}, min(from + ROWS - 1, #list)
    for at = from, to do
      local row = row_of(list[at])
      if row and db.jobs[row] == nil then
        seqs[#seqs + 1] = row
      end
    end
    lib.load_jobs(seqs)
    for at = from, to do
      act(list[at])
    end
    for _, seq in ipairs(seqs) do
      local job = db.jobs[seq]
      if job and not (job.dirty or job.dirty_head or job.deleted) then
        db.jobs[seq] = nil
      end
    end
  end
end

-- Where the job of a row stands as a parent, and the job; nil if it is not there.
local function look_at_row(row, now)
  local job = row and lib.job(row)
  if not job or not lib.is_there(job, now) then
    return nil
  elseif lib.is_live(job) then
    return 'open', job
  end
  return job.state == STATE.succeeded and 'done' or 'failed', job
end

-- ---- A push ----

-- The job that stands for each item: {row, id, new = the new item that it is, lives = it lives again by this call}.
local function items_of(jobs, plans)
  local items, seq = {}, db.space.seq
  for index, plan in ipairs(plans) do
    local what, of = plan[PLAN_AT.what], plan[PLAN_AT.of]
    if what == 'store' then
      seq = seq + 1
      items[index] = { row = seq, id = jobs[index][NEW_JOB_AT.id], new = index }
    elseif what == 'earlier' then
      items[index] = items[of]
    else
      items[index] = { row = of, id = plan[PLAN_AT.id] or lib.job(of).id, lives = what == 'revive' }
    end
  end
  return items
end

-- Reads the numbers of ids that will be asked for.
local function read_ids(kin)
  local named = {}
  for _, parents in ipairs(kin.parents) do
    for _, ref in ipairs(parents) do
      if ref.id then
        named[#named + 1] = { ref.id, ref.b }
      end
      if #named == BOUND.ITEMS_MAX then
        lib.known_ids(named)
        named = {}
      end
    end
  end
  lib.known_ids(named)
end

-- The row of what is named, where it is a job that was there before the call, and its id.
local function row_of_named(deciding, ref)
  if ref.item then
    local item = deciding.items[ref.item]
    return not item.new and item.row or nil, item.id
  elseif ref.id then
    return lib.seq_of(ref.id, ref.b), ref.id
  elseif ref.key then
    local holder = lib.key_holder(ref.key)
    if holder and lib.key_is_held(holder, deciding.now) then
      return holder.seq, holder.id
    end
  end
end

-- Where a flow stands, the new items of the call counted; nil if it is not there.
local function look_at_flow(deciding, flow)
  local new, stands = deciding.members[flow], lib.look_at_flow(flow)
  if new and new.open > 0 then
    return 'open'
  elseif new and new.cancelled > 0 and stands ~= 'open' then
    return 'failed'
  end
  return stands
end

-- The parent that is named, where it stands, whether it is above a flow, and its own flow; nil if it is not there.
local function look(deciding, ref)
  if ref.flow then
    local stands = look_at_flow(deciding, ref.flow)
    return stands and { false, false, ref.flow }, stands, true
  end
  local item = ref.item and deciding.items[ref.item]
  if item and item.new then
    local fate = deciding.fates[item.new]
    return { item.row, item.id }, fate.cancelled and 'failed' or 'open', not fate.cancelled and fate.above, fate.flow
  end
  local row, id = row_of_named(deciding, ref)
  local stands, job = look_at_row(row, deciding.now)
  if not stands then
    return nil
  elseif item and item.lives then
    stands = 'open'
  end
  return { row, id }, stands, stands == 'open' and lib.is_above(job), job.flow
end

-- What is shown of a parent that was not there; of a key that nobody holds there is nothing to show.
local function gone(ref)
  if ref.flow then
    return { false, false, ref.flow }
  end
  return ref.id and { false, ref.id } or nil
end

local function refuse_unknown(deciding, ref)
  local at = '/after/' .. text(ref.at)
  if ref.flow then
    lib.refuse('unknown_parent_flow', { flow = ref.flow }, at)
  end
  local named = ref.key and 'key:' .. ref.key or ref.id or deciding.items[ref.item].id
  lib.refuse('unknown_parent', { job = named }, at)
end

-- Puts a parent among those that were named before; whether it is a new one.
local function is_named_first(seen, parent)
  local of, name = seen.rows, parent[PARENT_AT.row]
  if parent[PARENT_AT.flow] then
    of, name = seen.flows, parent[PARENT_AT.flow]
  elseif not name then
    of, name = seen.ids, parent[PARENT_AT.id]
  end
  local first = not of[name]
  of[name] = true
  return first
end

-- Whether a flow is being called off, so that what is pushed into it is cancelled.
local function is_called_off(heir, flow)
  return lib.is_cancelling(flow) or heir and heir.called_off and heir.flow == flow
end

local function decide(deciding, index)
  local more = deciding.jobs[index][NEW_JOB_AT.more] or {}
  local fate = { parents = {}, open = {}, rows = {}, runs = more.run or false, above = false }
  local seen, failed, inherited = { rows = {}, ids = {}, flows = {} }, false, nil
  lib.each_with_row(deciding.kin.parents[index] or {}, function(ref)
    return (row_of_named(deciding, ref))
  end, function(ref)
    local parent, stands, above, flow = look(deciding, ref)
    if not parent and not ref.gone then
      refuse_unknown(deciding, ref)
    end
    parent = parent or gone(ref)
    if not parent or not is_named_first(seen, parent) then
      return
    end
    inherited = inherited or flow
    fate.above = fate.above or above or parent[PARENT_AT.flow] and true or false
    local row, item = parent[PARENT_AT.row], ref.item and deciding.items[ref.item]
    if stands == 'open' then
      fate.open[#fate.open + 1] = parent
    end
    if row then
      fate.rows[row] = item and item.new and 'new' or stands == 'open' and 'open' or nil
    end
    failed = failed or stands == 'failed'
    fate.parents[#fate.parents + 1] = parent
  end)
  if fate.above and more.f then
    lib.refuse('above_flow', { flow = more.f }, '/flow')
  end
  local heir = deciding.heir
  if not fate.above then
    fate.flow = more.f or inherited or heir and heir.flow or nil
  end
  if failed and not fate.runs then
    fate.cancelled, fate.error = true, 'parent_failed'
  elseif fate.flow and is_called_off(heir, fate.flow) then
    fate.cancelled = true
  end
  if fate.flow then
    local new = deciding.members[fate.flow] or { open = 0, cancelled = 0 }
    deciding.members[fate.flow] = new
    local count = fate.cancelled and 'cancelled' or 'open'
    new[count] = new[count] + 1
  end
  deciding.fates[index] = fate
end

-- Whether a push has to do with other jobs than its own, or with flows.
function lib.has_kin(jobs, kin, heir)
  if kin or heir then
    return true
  end
  for _, new in ipairs(jobs) do
    local more = new[NEW_JOB_AT.more]
    if more and more.f then
      return true
    end
  end
  return false
end

-- The fates of the new items of a push, by their places.
function lib.fates(jobs, plans, kin, heir, now)
  local deciding = {
    jobs = jobs, kin = kin or { parents = {} }, heir = heir, now = now, items = items_of(jobs, plans), fates = {},
    members = {},
  }
  read_ids(deciding.kin)
  for _, index in ipairs(kin and kin.order or lib.places(#jobs)) do
    if plans[index][PLAN_AT.what] == 'store' then
      lib.at_item(index, decide, deciding, index)
    end
  end
  return deciding.fates
end

-- Some items of a call as a call of their own, `places` being theirs: what they name of the others goes by their ids, and
-- may be gone by then. (It was checked before the first of them was stored.)
function lib.part_of_kin(kin, jobs, places)
  if not kin then
    return nil
  end
  local part, at_of = { parents = {}, order = {} }, {}
  for at, place in ipairs(places) do
    at_of[place] = at
  end
  local whole = #places == #jobs
  for at, place in ipairs(places) do
    local parents = {}
    for i, ref in ipairs(kin.parents[place] or {}) do
      local there, other = ref.item and at_of[ref.item], ref.item and jobs[ref.item]
      parents[i] = {
        at = ref.at, gone = ref.gone or not whole, item = there, key = ref.key, flow = ref.flow,
        id = other and not there and other[NEW_JOB_AT.id] or ref.id, b = other and not there and other[NEW_JOB_AT.b] or ref.b,
      }
    end
    part.parents[at] = parents
  end
  for _, place in ipairs(kin.order) do
    part.order[#part.order + 1] = at_of[place]
  end
  return part
end

-- ---- A retry ----

-- How a finished job would wait for its parents if it lived again: {open, above, rows}. Refuses what it may not.
function lib.parents_of_retry(job, now)
  local kin, found, all = job.kin, { open = {}, above = false, rows = {} }, {}
  for at, parent in lib.each_parent(job.seq, kin[KIN_AT.parents], 0) do
    all[at] = parent
  end
  lib.each_with_row(all, function(parent)
    return parent[PARENT_AT.row] or nil
  end, function(parent)
    local row, flow = parent[PARENT_AT.row], parent[PARENT_AT.flow]
    local stands, there
    if flow then
      stands, found.above = lib.look_at_flow(flow), true
    elseif row then
      stands, there = look_at_row(row, now)
    end
    if stands == 'open' then
      found.open[#found.open + 1] = parent
      found.rows[row or 0] = 'open'
      found.above = found.above or there ~= nil and lib.is_above(there)
    elseif stands == 'failed' and not kin[KIN_AT.runs] then
      if flow then
        lib.refuse('parent_flow_failed', { job = job.id, flow = flow })
      end
      lib.refuse('parent_ended', { job = job.id, parent = there.id, state = WORDS[there.state] })
    end
  end)
  if found.above and job.flow then
    lib.refuse('above_flow_by_retry', { job = job.id, flow = job.flow })
  end
  return found
end
