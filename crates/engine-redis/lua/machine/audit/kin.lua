-- The audit of jobs that wait for others, and of flows: what is counted beside the edges agrees with them.
--
-- It only reads. Of followers, edges and members that many have, sums are compared; of one alone what stands beside it.

local audit = lib.audit

-- A child whose edge a parent holds open: whether it waits in that turn.
local function waits_in_turn(job, turn)
  return job and job.state == STATE.dependent and job.kin[KIN_AT.turn] == turn
end

-- The open edges of a parent, or of a flow.
local function check_edges(record, key, its_end, ended, name)
  audit.check_set(record.open, key, { 'open_edges' }, name)
  audit.check(not ended or record.open.n == 0 or record.place, 'ended_and_not_telling', name, record.open.n)
  audit.check(sets.score('tell', its_end) == record.place, 'telling_differs', name)
  audit.check(not record.place or record.open.n > 0, 'tells_nobody', name)
  for edge, child in audit.some(record.open, key) do
    local job = lib.job(child)
    if waits_in_turn(job, lib.turn_of_edge(edge)) then
      audit.add('edges_of', child, 1)
    else
      -- One that has ended is passed over until it has let all its parents go.
      audit.check(db.get(RECORD.leaving, text(child)), 'edge_to_nobody', name, { 'job_row', child })
      audit.spend(0.1)
    end
    db.jobs[child] = nil
  end
  if record.open.n > audit.MANY then
    audit.miss('edges_of')
  end
  audit.add('told_ends', 'all', record.place and 1 or 0)
end

-- What is kept of a parent, by its row.
function audit.parent(row)
  local seq = tonumber(row)
  local name, record, job = { 'job_row', seq }, db.get(RECORD.parent, seq), lib.job(seq)
  audit.spend(3)
  if not audit.check(record, 'known_by_name_only', name) or not audit.check(job, 'parent_without_row', name) then
    return
  end
  local ended = not lib.is_live(job)
  db.jobs[seq] = nil
  check_edges(record, lib.open_edges_key(seq), lib.awaited_job(seq), ended, name)
  audit.check_set(record.told, lib.told_key(seq), { 'told_children' }, name)
  audit.check((record.ended ~= nil) == (ended and record.followers > 0), 'held_differs', name, record.followers)
  audit.check(not ended or lib.is_held(job) == (record.ended ~= nil), 'held_differs', name, record.followers)
  audit.check((sets.score(lib.HELD_FAILED, row) ~= nil) == (record.ended == STATE.failed), 'held_failed_differs', name)
  audit.add('held_failed', 'all', record.ended == STATE.failed and 1 or 0)
  local named = audit.sums and audit.sum_of('named', seq)
  audit.check(not named or named == record.followers, 'followers_differ', name, record.followers, named or 0)
  audit.add('followers', 'all', record.followers)
  audit.add('parents', 'all', 1)
end

-- A job with parents: it is counted at each that it names and whose row is there, from a place of its list on.
local function add_named(seq, parents, done, name)
  for _, parent in lib.each_parent(seq, parents, done) do
    audit.spend(0.1)
    local row = parent[PARENT_AT.row]
    if row and lib.parent(row) then
      audit.add('named', row, 1)
    elseif row then
      audit.check(not lib.job(row), 'follower_unknown', name, row)
      db.jobs[row] = nil
    end
  end
end

-- A live job, as far as it waits for others or belongs to a flow.
function audit.live_kin(job, name)
  local kin = job.kin
  if kin then
    local list = maps.get(lib.job_parents_home(job.seq))
    if audit.check(list, 'parents_missing', name) and kin[KIN_AT.follows] then
      add_named(job.seq, kin[KIN_AT.parents], 0, name)
    end
    audit.check((kin[KIN_AT.open] > 0) == (job.state == STATE.dependent), 'dependent_differs', name, kin[KIN_AT.open])
    audit.add('open_edges', 'all', kin[KIN_AT.open])
  else
    audit.check(job.state ~= STATE.dependent, 'dependent_differs', name, 0)
  end
  if job.flow then
    local flow_record = db.get(RECORD.flow, job.flow)
    local key = lib.flow_unfinished_key(job.flow)
    audit.check(flow_record and inner.score(flow_record.unfinished, key, text(job.seq)), 'flow_unknowing', name, job.flow)
    audit.add('unfinished_of_flow', job.flow, 1)
  end
end

-- A job's row, as far as it belongs to a flow.
function audit.member(job, name)
  if job.flow then
    local flow_record = db.get(RECORD.flow, job.flow)
    local key = lib.flow_members_key(job.flow)
    audit.check(flow_record and inner.score(flow_record.members, key, text(job.seq)), 'flow_unknowing', name, job.flow)
    audit.add('rows_of_flow', job.flow, 1)
  end
end

-- A job that has not let all its parents go.
function audit.leaving(seq, leaving_record)
  local name = { 'job_row', tonumber(seq) }
  audit.spend(1)
  audit.check(sets.score('leave', seq), 'in_no_list', name)
  add_named(tonumber(seq), leaving_record.parents, leaving_record.done, name)
  audit.add('leaving', 'all', 1)
end

-- A flow, after all rows were looked at.
function audit.flow(name)
  local what, flow_record = { 'flow', name }, db.get(RECORD.flow, name)
  audit.spend(3)
  if not audit.check(flow_record, 'known_by_name_only', what) then
    return
  end
  local unfinished, members = flow_record.unfinished, flow_record.members
  audit.check_set(unfinished, lib.flow_unfinished_key(name), { 'unfinished_members' }, what)
  audit.check_set(members, lib.flow_members_key(name), { 'members' }, what)
  check_edges(flow_record, lib.flow_edges_key(name), lib.awaited_flow(name), unfinished.n == 0, what)
  audit.check((sets.score('fc', name) ~= nil) == (flow_record.cancelling ~= nil), 'cancelling_differs', what)
  if audit.sums then
    local live, rows = audit.sum_of('unfinished_of_flow', name), audit.sum_of('rows_of_flow', name)
    audit.check(not live or live == unfinished.n, 'unfinished_differ', what, unfinished.n, live or 0)
    audit.check(not rows or rows == members.n, 'members_differ', what, members.n, rows or 0)
  end
  audit.add('flows', 'all', 1)
end

-- How many edges of a job are open, once the edges of all parents and flows were looked at.
function audit.edge_sums()
  local sums = audit.sums
  local each = sums and sums['edges_of'] ~= 'missed' and sums['edges_of/']
  if sums and sums['edges_of'] ~= 'missed' then
    audit.check_same(audit.total('open_edges'), audit.total('edges_of'), { 'open_edges_by_parents' })
  end
  for child, n in pairs(each and each.of or {}) do
    local job = lib.job(tonumber(child))
    local cached = job and job.kin and job.kin[KIN_AT.open] or 0
    audit.check(cached == n, 'edges_differ', { 'job_row', tonumber(child) }, cached, n)
    db.jobs[tonumber(child)] = nil
    audit.spend(0.1)
  end
  return true
end
