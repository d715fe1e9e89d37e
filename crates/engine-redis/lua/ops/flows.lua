-- Parents and children of a job, and flows: shown, waited for, called off.
--
-- list_parents   {id, b | key, full, max, bytes = what the page may still take, after = a place} -> {items, next}, in the
--   order of `after` of the job: {id, state, error, finished_at, result}, {id, gone} of one that is not there, {flow, counts}
--   of a flow
-- list_children  {id, b | key, max, after = a row} -> {items = {{id, state, runs}}, next}, by row
-- list_flows     {max, after} -> {items, next}: by name
-- get_flow, cancel_flow {flow} -> view     wait_flow {flow, proc, wait (us)} -> view, and the number of a registration,
--   none if the flow is finished or the process has to look by itself
-- A view is {flow, counts = {unfinished, succeeded, failed, cancelled}, cancelling, created_at, finished_at}.
-- Refusals: job_not_found, flow_not_found, awaited_by_too_many. Cost: of lists a read or two for each item; of a cancel as
-- for each of 256 jobs; otherwise a few commands.

-- So many are looked at together.
local ROWS = 64

-- ---- Parents ----

local function counts_of(flow_record)
  return {
    unfinished = flow_record and flow_record.unfinished.n or 0, succeeded = flow_record and flow_record.succeeded or 0,
    failed = flow_record and flow_record.failed or 0, cancelled = flow_record and flow_record.cancelled or 0,
  }
end

-- A parent as it is shown, and the bytes of its result and its error.
local function show_parent(parent, full)
  local row, flow = parent[PARENT_AT.row], parent[PARENT_AT.flow]
  if flow then
    return { flow = flow, counts = counts_of(db.see(RECORD.flow, flow)) }, 0
  end
  local job = row and lib.job(row)
  if not job then
    return { id = parent[PARENT_AT.id], gone = true }, 0
  end
  local ended = not lib.is_live(job)
  local result = full and ended and job.life and lib.job_part(job, PART.result)
  local err = ended and job.error or nil
  return {
    id = job.id, state = ended and job.state or lib.state_of(job), error = err,
    finished_at = ended and job.finished_at or nil, result = result and lib.blob(result) or nil,
  }, (result and #result or 0) + (err and #err or 0)
end

lib.op('list_parents', { 'no-writes' }, function(args)
  local job = lib.must_name(args)
  local parents, done = job.kin and job.kin[KIN_AT.parents] or 0, args.after or 0
  local most, all, seqs, items, bytes = min(args.max, ROWS), {}, {}, {}, 0
  for at, parent in lib.each_parent(job.seq, parents, done) do
    all[#all + 1], seqs[#seqs + 1] = parent, parent[PARENT_AT.row] or nil
    if at - done >= most then
      break
    end
  end
  lib.load_jobs(seqs)
  for i, parent in ipairs(all) do
    local n
    items[i], n = show_parent(parent, args.full)
    bytes = bytes + n
    if bytes >= args.bytes then
      break
    end
  end
  local to = done + #items
  return { items = items, next = to < parents and text(to) or nil }
end)

-- ---- Children ----

-- The rows of the children of a job above one, both those that wait and those that were told, in order.
local function children_above(seq, record, from, most)
  local rows = {}
  for _, some in ipairs({
    inner.some_after(record.open, lib.open_edges_key(seq), from, most),
    inner.some_after(record.told, lib.told_key(seq), from, most),
  }) do
    for _, edge in ipairs(some) do
      rows[#rows + 1] = edge[1]
    end
  end
  sort(rows)
  for i = #rows, most + 1, -1 do
    rows[i] = nil
  end
  return rows
end

lib.op('list_children', { 'no-writes' }, function(args)
  local job = lib.must_name(args)
  local record, items, last = lib.parent(job.seq), {}, args.after or 0
  if not record then
    return { items = items }
  end
  local most = min(args.max, ROWS)
  local rows = children_above(job.seq, record, last, most + 1)
  lib.load_jobs(rows)
  for i = 1, min(#rows, most) do
    local child = lib.job(rows[i])
    last = rows[i]
    -- One whose row is gone is no child any more.
    if child then
      local state = lib.is_live(child) and lib.state_of(child) or child.state
      items[#items + 1] = { id = child.id, state = state, runs = child.kin and child.kin[KIN_AT.runs] or false }
    end
  end
  return { items = items, next = #rows > most and text(last) or nil }
end)

-- ---- Flows ----

local function view(name, flow_record)
  local finished = flow_record.unfinished.n == 0
  return {
    flow = name, counts = counts_of(flow_record), cancelling = flow_record.cancelling ~= nil,
    created_at = flow_record.created_at, finished_at = finished and flow_record.finished_at or nil,
  }
end

local function named(name)
  local flow_record = db.get(RECORD.flow, name)
  if not flow_record then
    lib.refuse('flow_not_found', { flow = name })
  end
  return flow_record
end

lib.op('list_flows', { 'no-writes' }, function(args)
  return lib.page(args, lib.names({ lib.FLOW_NAMES }, args.after), function(name)
    return db.see(RECORD.flow, name)
  end, view)
end)

lib.op('get_flow', { 'no-writes' }, function(args)
  return view(args.flow, named(args.flow))
end)

lib.op('wait_flow', { 'write' }, function(args, now)
  local flow_record = named(args.flow)
  local shown = view(args.flow, flow_record)
  if flow_record.unfinished.n > 0 then
    shown.number = lib.await(lib.awaited_flow(args.flow), args.proc, now + args.wait)
  end
  return shown
end)

lib.op('cancel_flow', { 'write', 'allow-oom' }, function(args, now)
  local flow_record = named(args.flow)
  lib.cancel_flow(args.flow, flow_record, now)
  return view(args.flow, flow_record)
end)
