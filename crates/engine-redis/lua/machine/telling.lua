-- The end of a parent is told to its children, and a job that has ended lets its parents go: 256 of either in one call,
-- and the rest by later calls and ticks.
--
-- Sets: 'tell' whose end is being told, jobs and flows by the names of their ends, in the order of their ends; 'leave'
-- the rows of jobs that have not let all their parents go, in that order. Which wait it was, how many parents there
-- are and how many it has let go is in a record by the row; whom it waited for is in its list, which outlives its row
-- until then. A child that is not told yet is dependent.
--
-- The namespace's own record says whether one of these sets has anything (`untold`), so that no call asks for a key that
-- is not there: while a slot moves to another node of a cluster, whoever does is refused.

local TELL, LEAVE = 'tell', 'leave'

sets.watch({ TELL, LEAVE })

-- ---- Who is told ----

-- A parent has ended: those that wait for it are told, behind those of earlier ends.
function lib.tell_end(name, record)
  if record.open.n > 0 and not record.place then
    record.place = db.number()
    sets.add(TELL, record.place, name)
    db.space.untold = true
  end
end

-- Nothing is left to tell, or it is unfinished again: then those that are not told yet wait for its new end.
function lib.stop_telling(name, record)
  if record.place then
    sets.rem(TELL, name)
    record.place = nil
  end
end

-- Whether those who wait for a finished job are still being told.
function lib.is_telling(job)
  local record = lib.parent(job.seq)
  return record ~= nil and record.place ~= nil
end

-- The first whose end is told: its name, its record, and as what its children name it. A flow that has unfinished
-- members again keeps the rest waiting.
local function next_to_tell()
  while sets.lowest(TELL) do
    local name = sets.first(TELL)
    local of = sub(name, 2)
    if byte(name) == AWAITED_BYTE.job then
      return lib.parent(tonumber(of)), { tonumber(of), false }
    end
    local flow_record = db.get(RECORD.flow, of)
    if flow_record.unfinished.n == 0 then
      return flow_record, { false, false, of }
    end
    lib.stop_telling(name, flow_record)
  end
end

-- Whether a parent counts as failed.
local function has_failed(record, parent)
  if parent[PARENT_AT.flow] then
    return lib.flow_has_failed(record)
  end
  return record.ended and record.ended ~= STATE.succeeded
end

-- One child, whose edge is closed by now; it is passed over if it does not wait in that turn any more.
local function tell_child(record, parent, child, turn, failed, now)
  local job = lib.job(child)
  if not job or job.state ~= STATE.dependent or job.kin[KIN_AT.turn] ~= turn then
    return
  end
  if failed and not job.kin[KIN_AT.runs] then
    if parent[PARENT_AT.row] then
      record.cancelled = record.cancelled + 1
    end
    lib.call_off(job, 'parent_failed', now)
    return
  end
  job.kin[KIN_AT.open] = job.kin[KIN_AT.open] - 1
  lib.dirty(job)
  if job.kin[KIN_AT.open] == 0 then
    lib.stop_waiting(job, now)
    -- It arrives now, not when it was pushed.
    job.run_at = max(job.run_at, now)
    lib.go_from(job, now)
    if job.run_at <= now then
      lib.job_event(EVENT.job_ready, job, 'parents')
    end
  end
end

-- Up to so many children of a parent; how many.
local function tell_some(record, parent, most, now)
  local row = parent[PARENT_AT.row]
  local key = row and lib.open_edges_key(row) or lib.flow_edges_key(parent[PARENT_AT.flow])
  local edges, seqs = inner.some_after(record.open, key, 0, most), {}
  for i, edge in ipairs(edges) do
    seqs[i] = edge[1]
  end
  lib.load_jobs(seqs)
  for _, edge in ipairs(edges) do
    local child, turn = edge[1], lib.turn_of_edge(edge[2])
    local failed = has_failed(record, parent)
    lib.close_edge(parent, child, turn)
    tell_child(record, parent, child, turn, failed, now)
  end
  return #edges
end

-- ---- Who lets go ----

-- A job lets one of its parents go.
local function let_go(parent, child, turn)
  lib.close_edge(parent, child, turn)
  local row = parent[PARENT_AT.row]
  if row then
    lib.unname(row)
  end
end

-- As many parents as the call may still let go, behind so many; how many are free of it then.
local function let_some_go(seq, turn, parents, done)
  for at, parent in lib.each_parent(seq, parents, done) do
    if db.lets_go <= 0 then
      break
    end
    db.lets_go, done = db.lets_go - 1, at
    let_go(parent, seq, turn)
  end
  return done
end

-- Whether a job that ended before has not let all its parents go.
local function some_leave()
  return db.space.untold and sets.lowest(LEAVE) ~= nil
end

-- A job has ended: those that it named are free of it. Who came first lets go first.
function lib.let_parents_go(job)
  local kin, done = job.kin, 0
  local turn, parents = kin[KIN_AT.turn], kin[KIN_AT.parents]
  if not some_leave() then
    done = let_some_go(job.seq, turn, parents, 0)
  end
  if done < parents then
    sets.add(LEAVE, db.number(), text(job.seq))
    db.space.untold = true
    db.put(RECORD.leaving, text(job.seq), { turn = turn, parents = parents, done = done })
  end
end

local function has_let_go(name, leaving_record)
  sets.rem(LEAVE, name)
  db.drop(RECORD.leaving, name)
  if leaving_record.gone then
    lib.forget_parents(tonumber(name), leaving_record.parents)
  end
end

-- A job lives again before it has let all its parents go: the rest goes now.
function lib.finish_leaving(job)
  local name = text(job.seq)
  local leaving_record = job.kin and some_leave() and db.get(RECORD.leaving, name)
  if not leaving_record then
    return
  end
  for _, parent in lib.each_parent(job.seq, leaving_record.parents, leaving_record.done) do
    let_go(parent, job.seq, leaving_record.turn)
  end
  has_let_go(name, leaving_record)
end

-- Whether a job whose row goes has not let all its parents go; then its list goes once it has.
function lib.goes_while_leaving(seq)
  local leaving_record = some_leave() and db.get(RECORD.leaving, text(seq))
  if leaving_record then
    leaving_record.gone = true
  end
  return leaving_record and true or false
end

-- ---- The end of a call ----

-- Whether a tick has to go on with what calls left.
function lib.has_untold()
  return db.space.untold and (sets.lowest(TELL) ~= nil or sets.lowest(LEAVE) ~= nil)
end

-- Children are told and parents are let go, a portion of each.
local function tell_portion(now)
  local left = BOUND.TOLD_AT_ONCE
  while left > 0 do
    local record, parent = next_to_tell()
    if not record then
      break
    end
    left = left - tell_some(record, parent, left, now)
  end
  while db.lets_go > 0 and sets.lowest(LEAVE) do
    local name = sets.first(LEAVE)
    local leaving_record = db.get(RECORD.leaving, name)
    leaving_record.done = let_some_go(tonumber(name), leaving_record.turn, leaving_record.parents, leaving_record.done)
    if leaving_record.done == leaving_record.parents then
      has_let_go(name, leaving_record)
    end
  end
  db.space.untold = lib.has_untold() or nil
end

-- At the end of a call, before the doors: children are told, parents are let go.
function lib.tell_ends(now)
  if db.space.untold then
    tell_portion(now)
  end
  db.lets_go = BOUND.TOLD_AT_ONCE
  lib.tell_ended_flows()
  lib.drop_idle_flows()
  if lib.has_untold() then
    lib.sooner(now)
  end
end
