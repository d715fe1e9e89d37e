-- Flows in a copy, and whom jobs wait for: what is shown of them, and what is put.
--
-- A child brings its parents, behind all jobs. What stands with a parent (followers, edges, that it is held, that its end is
-- told) is built anew. Nobody is told before the copy is opened: the first call after that goes on with it.

-- Hashes of rows that one page looks through, and parents on it, of which each is a few commands for who puts it.
local CHUNKS, PARENTS = 256, 1000

-- ---- Shown ----

-- The rows in a hash that have a list of parents, above one.
local function rows_with_parents(chunk, above)
  local first = chunk * lib.CHUNK_ROWS
  local _, key = lib.job_home(first)
  local rows = {}
  for _, field in ipairs(call('HKEYS', db.prefix .. key .. PART.parents)) do
    -- The field of a later piece of a list is no number.
    local n = tonumber(field)
    if n and first + n > above then
      rows[#rows + 1] = first + n
    end
  end
  sort(rows)
  return rows
end

-- A parent of a job. One that has not let it go yet, though it does not wait any more, has told it.
local function show_parent(job, parent)
  local row, id, flow = parent[PARENT_AT.row], parent[PARENT_AT.id], parent[PARENT_AT.flow]
  local open = lib.is_edge_open(parent, job.seq, job.kin[KIN_AT.turn])
  local waits = open and job.state == STATE.dependent
  if flow then
    return { flow = flow, open = waits }
  elseif not row or not lib.job(row) then
    return { id = id, gone = true }
  end
  return { id = id, open = waits, told = not waits and (open or lib.is_told(row, job.seq)) }
end

local function row_of(parent)
  return parent[PARENT_AT.row]
end

local function show_kin(job)
  local kin, list, parents = job.kin, {}, {}
  for at, parent in lib.each_parent(job.seq, kin[KIN_AT.parents], 0) do
    list[at] = parent
  end
  lib.each_with_row(list, row_of, function(parent)
    parents[#parents + 1] = show_parent(job, parent)
  end)
  return {
    id = job.id, parents = parents, runs = kin[KIN_AT.runs], above = kin[KIN_AT.above], follows = kin[KIN_AT.follows],
  }
end

-- How jobs stand to their parents, behind a row: at most so many, and the last row that was looked at, if there may be
-- more.
function lib.show_copied_kin(after, most)
  local from, items, parents = floor((after + 1) / lib.CHUNK_ROWS), {}, 0
  local chunks = call('ZRANGEBYSCORE', db.prefix .. 'ch', from, '+inf', 'LIMIT', 0, CHUNKS)
  for _, name in ipairs(chunks) do
    for _, seq in ipairs(rows_with_parents(tonumber(name), after)) do
      local job = lib.job(seq)
      -- A list outlives its row while its parents are let go.
      if job and job.kin then
        items[#items + 1], parents = show_kin(job), parents + job.kin[KIN_AT.parents]
      end
      db.jobs[seq] = nil
      if #items >= most or parents >= PARENTS then
        return items, seq
      end
    end
  end
  return items, #chunks == CHUNKS and (tonumber(chunks[CHUNKS]) + 1) * lib.CHUNK_ROWS - 1 or nil
end

function lib.show_copied_flow(name)
  local flow_record = db.get(RECORD.flow, name)
  return flow_record and {
    flow = name, succeeded = flow_record.succeeded, failed = flow_record.failed, cancelled = flow_record.cancelled,
    rows = flow_record.members.n, cancelling = flow_record.cancelling ~= nil, created_at = flow_record.created_at,
    finished_at = flow_record.finished_at,
  }
end

-- ---- Put ----

-- A job that belongs to a flow. How members ended comes with the flow.
function lib.put_copied_member(job, now)
  if lib.is_live(job) then
    lib.flow_gets(job.flow, job.seq, now)
  else
    lib.flow_gets_row(job.flow, job.seq, now)
  end
end

-- Reads the rows of the ids that a job names.
local function read_ids(parents)
  local named = {}
  for at, came in ipairs(parents) do
    if came.b then
      named[#named + 1] = { came.id, came.b }
    end
    if #named == BOUND.ITEMS_MAX or at == #parents then
      lib.known_ids(named)
      named = {}
    end
  end
end

-- A parent as its child's list has it.
local function parent_of(came)
  if came.flow then
    return { false, false, came.flow }
  end
  return { came.b and lib.seq_of(came.id, came.b) or false, came.id }
end

-- Who waits for a parent that has ended was not told at the source: the target does it.
local function tell_if_ended(parent, live)
  local row, flow = parent[PARENT_AT.row], parent[PARENT_AT.flow]
  if flow then
    local flow_record = db.get(RECORD.flow, flow)
    if flow_record.unfinished.n == 0 then
      lib.tell_end(lib.awaited_flow(flow), flow_record)
    end
  elseif not live[row] then
    lib.tell_end(lib.awaited_job(row), lib.parent(row))
  end
end

-- A job that waits stands nowhere before its parents come.
function lib.put_copied_kin(new, now)
  local seq = lib.seq_of(new.id, new.b)
  local job = seq and lib.job(seq)
  if not job then
    return
  end
  read_ids(new.parents)
  local parents, open, live = {}, {}, {}
  for at, came in ipairs(new.parents) do
    local parent = parent_of(came)
    parents[at] = parent
    if came.open and (parent[PARENT_AT.row] or came.flow) then
      open[#open + 1] = parent
    end
  end
  lib.each_with_row(parents, row_of, function(parent)
    local row = parent[PARENT_AT.row]
    local there = row and lib.job(row)
    if there and lib.is_live(there) then
      live[row] = 'open'
    end
  end)
  lib.give_kin(job, parents, new.run or false, new.above or false)
  -- One whose holder was asked to stop has ended on the way.
  if new.follows and lib.is_live(job) then
    lib.name_parents(job, live)
  end
  lib.open_edges(job, open, now)
  for at, came in ipairs(new.parents) do
    local row = parents[at][PARENT_AT.row]
    if came.told and row then
      lib.add_told(row, seq)
    end
  end
  for _, parent in ipairs(open) do
    tell_if_ended(parent, live)
  end
  if job.state == STATE.dependent then
    lib.go_from(job, now)
  end
  lib.dirty(job)
end

-- One that is not there has no member any more, and nobody waits for it.
function lib.put_copied_flow(new)
  local flow_record = db.get(RECORD.flow, new.flow)
  if not flow_record then
    return
  end
  for _, field in ipairs({ 'succeeded', 'failed', 'cancelled', 'created_at', 'finished_at' }) do
    flow_record[field] = new[field]
  end
  if new.cancelling and flow_record.unfinished.n > 0 then
    lib.begin_cancelling(new.flow, flow_record)
  end
end
