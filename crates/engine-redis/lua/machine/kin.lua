-- Jobs that wait for others: whom they wait for, and what is kept of those.
--
-- The truth is the set of open edges, kept with the parents: who waits, and in which turn of its waiting. A child knows
-- how many of its edges are open, a parent how many unfinished jobs name it (its followers); both are counted in the
-- step that changes them. A finished parent with followers is held: no order of finished jobs has it, and its bytes do
-- not count.
--
-- A job with parents has `kin` in its life. Whom it waits for is a list in pieces, in the hash of its parents beside its
-- row, since a fan-in of thousands would otherwise write its list with each step of it. What is kept of a parent is a
-- record by its row number: followers, children that its failure cancelled, how it ended and until when it is kept once
-- nobody follows it, its place among those whose end is being told, its open edges, and the children that were told.
-- Sets: 'par' the rows with such a record, 'hf' those of them that are held and failed, by row; 'co:ROW' and 'ch:ROW' open edges and told children of one that has many.

local PARENTS, HELD_FAILED = 'par', 'hf'

sets.watch({ PARENTS })

lib.PARENTS, lib.HELD_FAILED = PARENTS, HELD_FAILED

-- ---- The parents of a job ----

-- Where a piece of the list lies, the first being 0.
local function list_home(seq, piece)
  local _, key, n = lib.job_home(seq)
  return key .. PART.parents, piece == 0 and n or n .. ':' .. text(piece)
end

-- Where it begins.
function lib.job_parents_home(seq)
  return list_home(seq, 0)
end

function lib.set_parents(seq, parents)
  for from = 1, #parents, BOUND.AFTER_SHOWN do
    local key, field = list_home(seq, (from - 1) / BOUND.AFTER_SHOWN)
    maps.set(key, field, cmsgpack.pack({ unpack(parents, from, min(from + BOUND.AFTER_SHOWN - 1, #parents)) }))
  end
end

function lib.forget_parents(seq, many)
  for from = 1, many, BOUND.AFTER_SHOWN do
    local key, field = list_home(seq, (from - 1) / BOUND.AFTER_SHOWN)
    maps.set(key, field, nil)
  end
end

-- The first parents of a job, packed, as its view shows them; or nil.
function lib.first_parents(job)
  return job.kin and maps.get(list_home(job.seq, 0))
end

-- Walks the list behind so many: for place, parent in lib.each_parent(seq, many, done) do.
function lib.each_parent(seq, many, done)
  local at, piece, list = done, nil, nil
  return function()
    if at >= many then
      return nil
    end
    local wanted = floor(at / BOUND.AFTER_SHOWN)
    if wanted ~= piece then
      local packed = maps.get(list_home(seq, wanted))
      piece, list = wanted, packed and cmsgpack.unpack(packed) or {}
    end
    at = at + 1
    return at, list[at - wanted * BOUND.AFTER_SHOWN]
  end
end

-- A job waits or waited for these; none counts it as a follower yet.
function lib.give_kin(job, parents, runs, above)
  job.kin = { 0, 0, runs, above, #parents, false }
  lib.set_parents(job.seq, parents)
end

-- Whether a job is above a flow: it waits for one, or an unfinished parent did when that was looked at last.
function lib.is_above(job)
  return job.kin and job.kin[KIN_AT.above] or false
end

-- ---- What is kept of a parent ----

-- The record of a parent; or nil.
function lib.parent(seq)
  if sets.lowest(PARENTS) and sets.score(PARENTS, text(seq)) then
    return db.get(RECORD.parent, seq)
  end
end

-- Whether there is one, in a direct call.
function lib.is_parent_directly(seq)
  return not sets.is_known_empty(PARENTS) and call('ZSCORE', db.prefix .. PARENTS, text(seq)) and true or false
end

local function parent_for(seq)
  local record = lib.parent(seq)
  if not record then
    record = db.put(RECORD.parent, seq, { followers = 0, cancelled = 0, open = inner.new(), told = inner.new() })
    sets.add(PARENTS, seq, text(seq))
  end
  return record
end

local function drop_parent(seq)
  db.drop(RECORD.parent, seq)
  sets.rem(PARENTS, text(seq))
end

-- Nothing of it is kept while nothing is known.
function lib.drop_parent_if_idle(seq, record)
  if record.followers == 0 and record.cancelled == 0 and record.open.n == 0 and record.told.n == 0 then
    drop_parent(seq)
  end
end

function lib.open_edges_key(seq)
  return 'co:' .. text(seq)
end

function lib.told_key(seq)
  return 'ch:' .. text(seq)
end

-- ---- Followers ----

-- What is kept of a parent says that it is held. Of failed jobs a set says it too: they are counted, and no order of
-- finished jobs has them meanwhile.
local function be_held(seq, record, state, till)
  record.ended, record.till = state, till
  if state == STATE.failed then
    sets.add(HELD_FAILED, seq, text(seq))
  end
end

local function be_free(seq, record)
  if record.ended == STATE.failed then
    sets.rem(HELD_FAILED, text(seq))
  end
  record.ended, record.till = nil, nil
end

-- A job ends that is kept until then: whether it is held, since others name it.
function lib.hold_at_end(job, till)
  local record = lib.parent(job.seq)
  if not record or record.followers == 0 then
    return false
  end
  be_held(job.seq, record, job.state, till)
  return true
end

-- A job that had ended when it was named is kept from now on.
local function hold_finished(job, record)
  if record.ended then
    return
  end
  be_held(job.seq, record, job.state, job.kept_until)
  lib.leave_finished(job, true)
  job.kept_until = lib.FOREVER
  lib.dirty(job)
end

-- Nobody names a finished job any more: from now on it is kept as any other.
local function release(seq, record)
  local job, till = record.ended and lib.job(seq), record.till
  be_free(seq, record)
  if job then
    job.kept_until = till
    lib.enter_finished(job)
    lib.dirty(job)
  end
end

-- Each job that this one names, and whose row is there, has a follower more. `known`: rows of which it is known that their
-- jobs are unfinished ('open'), or that this call stores them, maybe later ('new'); the others are looked at.
function lib.name_parents(job, known)
  job.kin[KIN_AT.follows] = true
  for _, parent in lib.each_parent(job.seq, job.kin[KIN_AT.parents], 0) do
    local row = parent[PARENT_AT.row]
    local there = row and known[row] ~= 'open' and lib.job(row)
    if there or row and known[row] then
      local record = parent_for(row)
      record.followers = record.followers + 1
      if there and not lib.is_live(there) then
        hold_finished(there, record)
      end
    end
  end
end

-- A follower less of the parent of this row.
function lib.unname(row)
  local record = lib.parent(row)
  if not record then
    return
  end
  record.followers = max(record.followers - 1, 0)
  if record.followers == 0 then
    release(row, record)
    lib.drop_parent_if_idle(row, record)
  end
end

-- A finished job lives again. What its end did to its children stays, and is answered.
function lib.forget_cancelled_children(seq)
  local record = lib.parent(seq)
  if not record then
    return 0
  end
  local cancelled = record.cancelled
  record.cancelled = 0
  lib.drop_parent_if_idle(seq, record)
  return cancelled
end

-- So many of its children were cancelled by its failure.
function lib.put_cancelled_children(seq, cancelled)
  parent_for(seq).cancelled = cancelled
end

-- The first of these children that is unfinished, of those that stand first.
local function first_unfinished(edges, key)
  for _, edge in ipairs(inner.some_after(edges, key, 0, BOUND.TOLD_AT_ONCE)) do
    local child = lib.live(edge[1])
    if child then
      return child
    end
  end
end

-- Whether unfinished jobs name a job.
function lib.is_followed(job)
  local record = lib.parent(job.seq)
  return record ~= nil and record.followers > 0
end

-- Refuses to forget a job that unfinished ones name.
function lib.check_unfollowed(job)
  local record = lib.parent(job.seq)
  if not record or record.followers == 0 then
    return
  end
  local waits = first_unfinished(record.open, lib.open_edges_key(job.seq))
  local told = first_unfinished(record.told, lib.told_key(job.seq))
  local child = waits and told and (waits.seq < told.seq and waits or told) or waits or told
  if child then
    lib.refuse('job_followed_by', { job = job.id, child = child.id })
  end
  lib.refuse('job_followed', { job = job.id })
end

-- ---- Edges ----

-- An edge is named by its child's row and the turn of its waiting.
local function edge_name(child, turn)
  return struct.pack('>I6I4', child, turn)
end

function lib.turn_of_edge(name)
  return (struct.unpack('>I4', name, 7))
end

-- What has the edges of a parent, and the key of its open ones; or nil.
local function edges_of(parent)
  local row = parent[PARENT_AT.row]
  if row then
    return lib.parent(row), lib.open_edges_key(row)
  end
  local flow = parent[PARENT_AT.flow]
  if flow then
    return db.get(RECORD.flow, flow), lib.flow_edges_key(flow)
  end
end

-- Whether the edge of a child to this parent is open.
function lib.is_edge_open(parent, child, turn)
  local record, key = edges_of(parent)
  return record and inner.score(record.open, key, edge_name(child, turn)) ~= nil or false
end

local function told_name(child)
  return struct.pack('>I6', child)
end

-- Whether a child that does not wait any more is among those that the parent of this row shows.
function lib.is_told(row, child)
  local record = lib.parent(row)
  return record and inner.score(record.told, lib.told_key(row), told_name(child)) ~= nil or false
end

-- It is from now on.
function lib.add_told(row, child)
  inner.add(parent_for(row).told, lib.told_key(row), child, told_name(child))
end

-- A job waits for these in its present turn.
function lib.open_edges(job, parents, now)
  local name = edge_name(job.seq, job.kin[KIN_AT.turn])
  for _, parent in ipairs(parents) do
    local row, flow = parent[PARENT_AT.row], parent[PARENT_AT.flow]
    if row then
      local record = parent_for(row)
      inner.rem_known(record.told, lib.told_key(row), told_name(job.seq))
      inner.add(record.open, lib.open_edges_key(row), job.seq, name)
    else
      inner.add(lib.flow_for(flow, now).open, lib.flow_edges_key(flow), job.seq, name)
    end
  end
  job.kin[KIN_AT.open] = #parents
end

-- Takes an open edge away; of a job it stays among the children that it shows. Whether it was open.
function lib.close_edge(parent, child, turn)
  local record, key = edges_of(parent)
  if not record or not inner.rem_known(record.open, key, edge_name(child, turn)) then
    return false
  end
  local row, flow = parent[PARENT_AT.row], parent[PARENT_AT.flow]
  if record.open.n == 0 then
    lib.stop_telling(row and lib.awaited_job(row) or lib.awaited_flow(flow), record)
  end
  if row then
    lib.add_told(row, child)
  else
    lib.touch_flow(flow)
  end
  return true
end

-- ---- Where a job goes ----

-- A job that waits nowhere yet waits for its parents.
local function depend(job)
  job.state = STATE.dependent
  local queue_record = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
  queue_record.dependent = queue_record.dependent + 1
  lib.dirty(job)
end

-- A job that waits nowhere yet goes where it belongs: it waits on for its parents, for its moment, or in line.
function lib.go_from(job, now)
  if job.kin and job.kin[KIN_AT.open] > 0 then
    depend(job)
  elseif job.run_at > now then
    lib.schedule(job)
  else
    lib.make_ready(job, now)
  end
end

-- ---- Ends ----

-- A job has ended in this state, or is deleted while it lives: what it waited for, and what it belongs to, is free of it.
function lib.kin_ended(job, state, now)
  if job.kin and job.kin[KIN_AT.follows] then
    lib.let_parents_go(job)
    job.kin[KIN_AT.open], job.kin[KIN_AT.follows] = 0, false
  end
  if job.flow then
    lib.flow_member_ended(job.flow, job.seq, state, now)
  end
end

-- A finished job lives again, and waits for nobody yet: nobody is told of its end any more, nor is it held.
function lib.kin_live_again(job, now)
  lib.finish_leaving(job)
  local record = lib.parent(job.seq)
  if record then
    lib.stop_telling(lib.awaited_job(job.seq), record)
    be_free(job.seq, record)
  end
  if job.flow then
    lib.flow_member_lives(job.flow, job.seq, job.state, now)
  end
end

-- The row of a job goes, and with it what is kept of it as a parent, and whom it waited for.
function lib.forget_kin(job)
  local record = lib.parent(job.seq)
  if record then
    lib.stop_telling(lib.awaited_job(job.seq), record)
    be_free(job.seq, record)
    if record.open.z then
      sets.drop(lib.open_edges_key(job.seq))
    end
    if record.told.z then
      sets.drop(lib.told_key(job.seq))
    end
    drop_parent(job.seq)
  end
  if job.kin and not lib.goes_while_leaving(job.seq) then
    lib.forget_parents(job.seq, job.kin[KIN_AT.parents])
  end
  if job.flow then
    lib.flow_loses_row(job.flow, job.seq)
  end
end
