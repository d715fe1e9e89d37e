-- Flows: what belongs together, how much of it is unfinished, and how it is called off as a whole.
--
-- A flow is a record by its name: how many members ended and how, the rows of its members, those of them that are
-- unfinished, the edges of jobs that wait for it as a whole, its place among those whose end is being told. It is there
-- while a member's row is, or somebody waits for it. Sets: 'fln' all names, score 0; 'fc' those that are being called off;
-- 'fm:NAME', 'fu:NAME', 'fe:NAME' members, unfinished ones and edges of one that has many, by row.

local NAMES, CANCELLING = 'fln', 'fc'

sets.watch({ CANCELLING })

lib.FLOW_NAMES = NAMES

function lib.flow_members_key(name)
  return 'fm:' .. name
end

function lib.flow_unfinished_key(name)
  return 'fu:' .. name
end

function lib.flow_edges_key(name)
  return 'fe:' .. name
end

-- The name of the end of a flow.
function lib.awaited_flow(name)
  return AWAITED.flow .. name
end

-- Something of a flow went: whether any of it is left is looked at in the end.
function lib.touch_flow(name)
  db.flows[name] = true
end

-- The flow, which begins now if it is not there.
function lib.flow_for(name, now)
  local flow_record = db.get(RECORD.flow, name)
  if not flow_record then
    flow_record = db.put(RECORD.flow, name, {
      succeeded = 0, failed = 0, cancelled = 0, created_at = now, finished_at = now, members = inner.new(),
      unfinished = inner.new(), open = inner.new(),
    })
    sets.add(NAMES, 0, name)
  end
  return flow_record
end

-- Whether a flow counts as a failed parent.
function lib.flow_has_failed(flow_record)
  return flow_record.failed > 0 or flow_record.cancelled > 0
end

-- Where a flow stands as a parent; nil if it is not there.
function lib.look_at_flow(name)
  local flow_record = db.get(RECORD.flow, name)
  if not flow_record then
    return nil
  elseif flow_record.unfinished.n > 0 then
    return 'open'
  end
  return lib.flow_has_failed(flow_record) and 'failed' or 'done'
end

-- Whether members of a flow are being called off.
function lib.is_cancelling(name)
  local flow_record = db.get(RECORD.flow, name)
  return flow_record and flow_record.cancelling and true or false
end

-- ---- Members ----

local COUNTED = { [STATE.succeeded] = 'succeeded', [STATE.failed] = 'failed', [STATE.cancelled] = 'cancelled' }

-- The row of a member is there; the flow, which has it.
function lib.flow_gets_row(name, seq, now)
  local flow_record = lib.flow_for(name, now)
  inner.add(flow_record.members, lib.flow_members_key(name), seq, text(seq))
  return flow_record
end

-- A job was stored: its flow has a member more.
function lib.flow_gets(name, seq, now)
  local flow_record = lib.flow_gets_row(name, seq, now)
  inner.add(flow_record.unfinished, lib.flow_unfinished_key(name), seq, text(seq))
end

-- A finished member leaves the count of those that ended as it did.
function lib.flow_uncounts(name, state)
  local flow_record = db.get(RECORD.flow, name)
  if flow_record then
    local count = COUNTED[state]
    flow_record[count] = max(flow_record[count] - 1, 0)
  end
end

-- A finished member lives again.
function lib.flow_member_lives(name, seq, was, now)
  local flow_record = lib.flow_for(name, now)
  lib.flow_uncounts(name, was)
  inner.add(flow_record.unfinished, lib.flow_unfinished_key(name), seq, text(seq))
end

local function stop_cancelling(name, flow_record)
  if flow_record.cancelling then
    flow_record.cancelling = nil
    sets.rem(CANCELLING, name)
  end
end

-- A member ended in this state; nil: it is deleted while it lives.
function lib.flow_member_ended(name, seq, state, now)
  local flow_record = db.get(RECORD.flow, name)
  if not flow_record then
    return
  end
  inner.rem(flow_record.unfinished, lib.flow_unfinished_key(name), text(seq))
  if state then
    local count = COUNTED[state]
    flow_record[count] = flow_record[count] + 1
  end
  if flow_record.unfinished.n > 0 then
    return
  end
  stop_cancelling(name, flow_record)
  flow_record.finished_at, db.ended_flows[name] = now, true
  local its_end = lib.awaited_flow(name)
  lib.notify_awaiting(its_end)
  lib.tell_end(its_end, flow_record)
end

-- At the end of a call, when children were told: flows that have ended in it, unless they got a member again.
function lib.tell_ended_flows()
  local names = {}
  for name in pairs(db.ended_flows) do
    names[#names + 1] = name
  end
  if names[1] then
    db.ended_flows = {}
    sort(names, lib.less)
  end
  for _, name in ipairs(names) do
    local flow_record = db.get(RECORD.flow, name)
    if flow_record and flow_record.unfinished.n == 0 then
      lib.event(EVENT.flow_finished, name,
        { flow_record.unfinished.n, flow_record.succeeded, flow_record.failed, flow_record.cancelled })
    end
  end
end

-- The row of a member goes; a finished one counts on.
function lib.flow_loses_row(name, seq)
  local flow_record = db.get(RECORD.flow, name)
  if flow_record then
    inner.rem(flow_record.members, lib.flow_members_key(name), text(seq))
    lib.touch_flow(name)
  end
end

-- Flows of which nothing is left go at the end of the step in which it went.
function lib.drop_idle_flows()
  for name in pairs(db.flows) do
    local flow_record = db.get(RECORD.flow, name)
    if flow_record and flow_record.members.n == 0 and flow_record.open.n == 0
      and not lib.is_awaited_by_name(lib.awaited_flow(name)) then
      db.drop(RECORD.flow, name)
      sets.rem(NAMES, name)
    end
  end
  db.flows = {}
end

-- ---- Cancel ----

-- Whether a tick has to go on with a flow that is called off.
function lib.has_uncancelled()
  return sets.lowest(CANCELLING) ~= nil
end

-- From the first that is unfinished on.
function lib.begin_cancelling(name, flow_record)
  flow_record.cancelling = 0
  sets.add(CANCELLING, 0, name)
end

-- A portion of those that are unfinished, oldest first.
local function cancel_some(name, flow_record, now)
  local key = lib.flow_unfinished_key(name)
  local some, seqs = inner.some_after(flow_record.unfinished, key, flow_record.cancelling, BOUND.TOLD_AT_ONCE), {}
  for i, member in ipairs(some) do
    seqs[i] = member[1]
  end
  lib.load_jobs(seqs)
  for _, seq in ipairs(seqs) do
    lib.cancel_live(lib.job(seq), now)
  end
  if flow_record.cancelling then
    local last = seqs[#seqs]
    if last and inner.after(flow_record.unfinished, key, last) then
      flow_record.cancelling = last
      lib.sooner(now)
    else
      stop_cancelling(name, flow_record)
    end
  end
end

-- Calls off what is unfinished of a flow: a portion now, the rest by ticks.
function lib.cancel_flow(name, flow_record, now)
  if flow_record.unfinished.n == 0 then
    return
  end
  lib.begin_cancelling(name, flow_record)
  cancel_some(name, flow_record, now)
end

-- Goes on with the first of those that are being called off.
function lib.tick_flows(now)
  if lib.has_uncancelled() then
    local name = sets.first(CANCELLING)
    cancel_some(name, db.get(RECORD.flow, name), now)
  end
end
