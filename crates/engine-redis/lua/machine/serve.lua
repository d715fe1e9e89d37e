-- The end of a call: ends are told to those who wait for them (machine/telling), what events made due is opened, and who
-- waits for what opened is granted it or told.
--
-- What opens is granted to calls that wait (machine/parcels); what cannot be granted so signals as many of them as it
-- has units for, and the queue is looked at again soon. All of it is bounded: doors that are left are stepped, and
-- queues that are left are looked at, by the next tick.

local LOOK_AGAIN_US = 20000
-- Queues that are looked at again at a moment, in `m` itself while they are few.
local SIGNALLED = 'sig'

-- Whether the next of a queue may go now, and at how many it looked; what may not stands at its door.
-- Bounded: what is left is looked at again.
local function next_may_go(queue, now)
  for looks = 1, BOUND.STEPS_MAX do
    if not lib.queue_is_open(queue, now) then
      return false, looks
    end
    local lane = lib.next_lane(queue, true)
    if not lane then
      return false, looks
    elseif lib.may_go(lane, now) then
      return true, looks
    end
  end
  return true, BOUND.STEPS_MAX
end

-- A queue is looked at again then: a signal may be lost, or there was too much to look at.
local function look_again(queue, at)
  local set, member = db.space.signalled, text(queue)
  inner.place(set, SIGNALLED, inner.score(set, SIGNALLED, member), at, member)
  lib.sooner(at)
end

-- It need not be looked at again: somebody asks for it.
function lib.unsignal(queue)
  local set, member = db.space.signalled, text(queue)
  if set.n > 0 then
    inner.rem_known(set, SIGNALLED, member)
  end
end

-- When the next of them is looked at again; or nil.
function lib.next_signalled()
  local _, at = inner.first(db.space.signalled, SIGNALLED)
  return at
end

-- Those whose moment has come are looked at by this call, at most so many.
function lib.tick_signalled(now)
  local set = db.space.signalled
  for _ = 1, BOUND.TICK_MAX do
    local member, at = inner.first(set, SIGNALLED)
    if not member or at > now then
      return
    end
    inner.rem(set, SIGNALLED, member)
    db.touched[tonumber(member)] = true
  end
end

-- What is open in a queue is for those who wait for it, when they ask or at the next tick.
function lib.leave_to_waiting(queue)
  db.left[queue] = true
  db.signalled = db.signalled or {}
  db.signalled[queue] = true
end

-- Signals takers of a queue in which something may go, one for each unit.
local function signal_takers(queue, now)
  local units = db.units[queue] or 1
  while units > 0 do
    local id = sets.first(lib.takers_of(queue))
    if not id then
      break
    end
    local taker = db.get(RECORD.waiting_call, id)
    units = units - taker.most
    lib.forget_taker(id)
    lib.tell(taker.proc, id)
    lib.leave_to_waiting(queue)
  end
  look_again(queue, now + LOOK_AGAIN_US)
end

-- What events have made due is opened, in so many steps at most; whether all of it is.
local function open_pending(most, now)
  for _ = 1, min(most, db.steps) do
    if not lib.is_pending() then
      return true
    end
    db.steps = db.steps - 1
    lib.step_pending(now)
  end
  if lib.is_pending() then
    lib.sooner(now)
    return false
  end
  return true
end

-- Grants what may go in a queue to those who wait for it, or signals them.
local function serve_takers(queue, now)
  while lib.has_takers(queue) and not db.left[queue] do
    -- What is about to be opened may come before what is open.
    if not open_pending(db.steps, now) or db.steps <= 0 then
      lib.leave_to_waiting(queue)
      look_again(queue, now)
      return
    end
    local open, looks = next_may_go(queue, now)
    if not open then
      return
    end
    local granted = lib.grant_to_waiting(queue, now)
    if not granted then
      signal_takers(queue, now)
      return
    end
    db.steps = db.steps - looks - granted
  end
end

-- Those of the queues of which this call has signalled no taker.
function lib.not_signalled(queues)
  if not db.signalled then
    return queues
  end
  local free = {}
  for _, queue in ipairs(queues) do
    if not db.signalled[queue] then
      free[#free + 1] = queue
    end
  end
  return free
end

-- The queues that were touched since this was last asked, in order.
local function newly_touched()
  local queues = {}
  for queue in pairs(db.touched) do
    queues[#queues + 1] = queue
    db.opened[queue] = true
  end
  if queues[1] then
    db.touched = {}
    sort(queues)
  end
  return queues
end

-- What events have made due is opened, as far as bounded work goes; then who waits is granted it or told.
function lib.serve(now)
  lib.tell_ends(now)
  db.steps, db.opened, db.left = BOUND.TICK_MAX, {}, {}
  open_pending(BOUND.STEPS_MAX, now)
  -- To open and to grant may touch others.
  for _ = 1, BOUND.STEPS_MAX do
    local queues = newly_touched()
    if #queues == 0 then
      return
    end
    for _, queue in ipairs(queues) do
      if queue == CALLERS then
        lib.offer_turns(now)
      elseif db.get(RECORD.queue, queue) then
        serve_takers(queue, now)
      end
    end
  end
  for _, queue in ipairs(newly_touched()) do
    look_again(queue, now)
  end
end
