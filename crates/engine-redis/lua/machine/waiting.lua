-- Calls that wait: takers of queues, and callers who stand in line for needs alone.
--
-- A taker is a lease call that waits now, registered for its queues. What opens is granted to takers
-- (machine/parcels), or signals as many of them as it has units for; the signal is a hint, and who is signalled asks
-- again. A caller stands in a lane of the queue `CALLERS`; when his lane opens he has a turn of one second to ask
-- again. Nothing is granted here.

local TURN_US = 1000000
local SILENT_US = 3000000
-- A process that could not end the wait of its call has given it up after so long.
local LEFT_US = 10000000

local function takers(queue)
  return 'tq:' .. text(queue)
end
lib.takers_of = takers

-- So much opened for a queue.
function lib.unit(queue, n)
  db.units[queue] = (db.units[queue] or 0) + n
end

function lib.has_takers(queue)
  return (db.get(RECORD.queue, queue).takers or 0) > 0
end

local function count_takers(queues, by)
  for _, queue in ipairs(queues) do
    local queue_record = db.get(RECORD.queue, queue)
    local n = (queue_record.takers or 0) + by
    queue_record.takers = n > 0 and n or nil
  end
end

local function count_waiting(worker, by)
  local worker_record = worker and db.get(RECORD.worker, worker)
  if worker_record then
    worker_record.waiting = max(worker_record.waiting + by, 0)
  end
end

-- Where a process listens.
function lib.channel_of(proc)
  return db.prefix .. 'w:' .. proc
end

-- Tells a process something; the name of a call alone, that it should be repeated.
local function tell(proc, what)
  db.said[#db.said + 1] = { lib.channel_of(proc), what }
end
lib.tell = tell

-- A lease call for jobs waits: {queues, most, worker, proc, ttl, till, request}.
function lib.wait_for_jobs(id, taker)
  lib.forget_taker(id)
  local order = db.number()
  for _, queue in ipairs(taker.queues) do
    sets.add(takers(queue), order, id)
  end
  count_takers(taker.queues, 1)
  count_waiting(taker.worker, 1)
  lib.timer_set('wt', taker.till, id)
  db.put(RECORD.waiting_call, id, taker)
  lib.name_wait(taker.request, id)
end

-- Whether a call has waited; then it waits no more.
function lib.forget_taker(id)
  local taker = db.get(RECORD.waiting_call, id)
  if not taker then
    return false
  end
  for _, queue in ipairs(taker.queues) do
    sets.rem(takers(queue), id)
  end
  count_takers(taker.queues, -1)
  for _, queue in ipairs(taker.queues) do
    lib.freed_queue(queue)
  end
  count_waiting(taker.worker, -1)
  lib.timer_clear('wt', id)
  db.drop(RECORD.waiting_call, id)
  lib.unname_wait(taker.request, id)
  return true
end

-- The call under its request id that waits is over, since another waits in its place: its process is told, and the
-- call finds this when it asks again.
local function give_way(id, proc, now)
  db.put(RECORD.waiting_call, id, { queues = {}, over = true, proc = proc, till = now })
  lib.timer_set('wt', now, id)
  tell(proc, id)
end

-- The same request that comes by another call takes the waiting one's place over. Whether this call is one whose
-- place was taken.
function lib.taken_over(args, kind, now)
  local taker = args.taker
  if not taker then
    return false
  end
  local own = db.get(RECORD.waiting_call, taker)
  if own then
    lib.forget_taker(taker)
    if own.over then
      return true
    end
  end
  local name = kind == 'jobs' and args.rq or args.place or args.rq
  local first = name and lib.first_wait(name)
  local other = first and first ~= taker and db.get(RECORD.waiting_call, first)
  if other then
    lib.forget_taker(first)
    give_way(first, other.proc, now)
  end
  return false
end

-- The call that waits by a request id; or nil.
function lib.first_wait(name)
  return maps.get('wr:' .. shard(name), name)
end

-- Who waits by a request id: told apart when it comes again.
function lib.name_wait(name, taker)
  if name then
    maps.put('wr:' .. shard(name), name, taker)
  end
end

function lib.unname_wait(name, taker)
  if name and lib.first_wait(name) == taker then
    maps.drop('wr:' .. shard(name), name)
  end
end

-- ---- Callers for needs alone ----
-- A caller: {taker, proc, lane, arrival, worker, ttl, request, place, since, till, turn}

local function caller_of(place)
  return tonumber(maps.get('cp:' .. shard(place), place))
end

-- The lanes that are open in the callers' queue, in order, at most so many.
local function open_lanes(most)
  local lanes = {}
  local turns = lib.callers().priorities[0]
  if turns then
    for turn in inner.each(turns.open, lib.turns_open(CALLERS, 0)) do
      local group = tonumber(sub(turn, 18))
      for bundle in inner.each(db.get(RECORD.group, group).open, lib.group_open(group)) do
        local bundle_record = db.get(RECORD.bundle, tonumber(bundle))
        for lane, arrival in inner.each(bundle_record.open, lib.bundle_open(tonumber(bundle))) do
          lanes[#lanes + 1] = { tonumber(lane), arrival }
          if #lanes >= most then
            return lanes
          end
        end
      end
    end
  end
  sort(lanes, function(one, other)
    return one[2] < other[2]
  end)
  return lanes
end

local function share_a_need(a, b)
  for _, lane_record in ipairs(db.see(RECORD.lane, a).needs) do
    for _, its_lane in ipairs(db.see(RECORD.lane, b).needs) do
      if lane_record[NEED_AT.kind] == its_lane[NEED_AT.kind]
        and lane_record[NEED_AT.name] == its_lane[NEED_AT.name] then
        return true
      end
    end
  end
  return false
end

-- The first of each open lane has a turn; who is silent is skipped.
function lib.offer_turns(now)
  for _, open in ipairs(open_lanes(BOUND.STEPS_MAX)) do
    local lane = open[1]
    for _ = 1, BOUND.STEPS_MAX do
      local lane_record = db.get(RECORD.lane, lane)
      local _, number = nil, nil
      if lane_record and not lane_record.place then
        _, number = lib.head(lane)
      end
      local caller = number and db.get(RECORD.caller, number)
      if not caller or caller.turn and caller.turn > now then
        break
      end
      if not lib.may_go(lane, now) then
        break
      elseif lib.is_silent(caller.proc, now) then
        lib.leave_line(number, now)
      else
        caller.turn = now + TURN_US
        lib.timer_set('tu', caller.turn, text(number))
        tell(caller.proc, caller.taker)
        break
      end
    end
  end
end

function lib.is_silent(proc, now)
  local seen = sets.score('pr', proc)
  return not seen or seen + SILENT_US < now
end

-- A turn is over: who did not take it goes to the end of the line.
function lib.tick_turn(number, now)
  local caller = db.get(RECORD.caller, number)
  if not caller or not caller.turn then
    return
  end
  caller.turn = nil
  local lane = caller.lane
  local _, first = lib.head(lane)
  if first == number and not lib.is_blocked(lane) then
    local needs = db.get(RECORD.lane, lane).needs
    lib.use_needs(needs)
    lib.leave_lane(lane, caller.arrival, number, now)
    caller.arrival = lib.next_arrival()
    caller.lane = lib.lane_for({ queue = CALLERS, priority = 0, needs = needs, suspect = false })
    lib.enter_lane(caller.lane, caller.arrival, number, now)
    lib.drop_needs(needs)
    db.touched[CALLERS] = true
  end
end

-- A caller asks, and stands in line if he may not go: the lease, or nil, his number, and whether the bounded
-- work was not enough to tell.
-- ask: {taker, proc, worker, ttl, request, place, till, needs (in order)}
function lib.call(ask, now)
  lib.callers()
  -- Without a name of its own it is told again by its call.
  local number
  if ask.place then
    number = caller_of(ask.place)
  else
    number = lib.caller_by_taker(ask.taker)
  end
  local before = number and db.see(RECORD.caller, number)
  local first, proc = before and before.taker, before and before.proc
  if number and not lib.same_needs(db.get(RECORD.lane, before.lane).needs, ask.needs) then
    lib.leave_line(number, now)
    number = nil
  elseif number then
    lib.forget_wait(number)
  end
  if first and first ~= ask.taker then
    give_way(first, proc, now)
  end
  if not number then
    local kept = ask.place and db.get(RECORD.place, ask.place)
    if kept then
      lib.timer_clear('ple', ask.place)
      db.drop(RECORD.place, ask.place)
    end
    lib.use_needs(ask.needs)
    if kept then
      lib.drop_needs(kept.needs)
    end
    local same = kept and lib.same_needs(kept.needs, ask.needs)
    number = db.number()
    local lane = lib.lane_for({ queue = CALLERS, priority = 0, needs = ask.needs, suspect = false })
    local arrival = same and kept.arrival or lib.next_arrival()
    db.put(RECORD.caller, number, { lane = lane, arrival = arrival, since = same and kept.since or now })
    if ask.place then
      maps.put('cp:' .. shard(ask.place), ask.place, text(number))
    end
    lib.enter_lane(lane, arrival, number, now)
  end
  local caller = db.get(RECORD.caller, number)
  caller.taker, caller.proc, caller.worker, caller.ttl = ask.taker, ask.proc, ask.worker, ask.ttl
  caller.request, caller.place, caller.till = ask.request, ask.place, ask.till
  maps.put('ct:' .. shard(ask.taker), ask.taker, text(number))
  lib.name_wait(ask.place, ask.taker)
  count_waiting(ask.worker, 1)
  lib.timer_set('wt', ask.till, ask.taker)
  local lease, tired = lib.try_caller(number, now)
  if lease then
    return lease
  end
  -- His turn is over: he took it.
  if caller.turn then
    lib.timer_clear('tu', text(number))
    caller.turn = nil
  end
  local lane_record = db.get(RECORD.lane, caller.lane)
  local place = lane_record.place or db.get(RECORD.bundle, lane_record.bundle).place
  local line = place and lib.find_line(place.door, CALLERS)
  if line and line.waiting > BOUND.LINE_MAX then
    lib.refuse('lease_line_full', { most = BOUND.LINE_MAX })
  end
  return nil, number, tired
end

function lib.same_needs(a, b)
  return cmsgpack.pack(a) == cmsgpack.pack(b)
end

-- Tries a caller who is the first of an open lane, unless an earlier lane that is open wants the same: the
-- lease, or nil and whether the bounded work was not enough.
function lib.try_caller(number, now)
  local caller = db.get(RECORD.caller, number)
  for _ = 1, BOUND.TICK_MAX do
    if lib.is_pending() then
      lib.step_pending(now)
    else
      local lane = caller.lane
      local lane_record = db.get(RECORD.lane, lane)
      local _, first = lib.head(lane)
      if first ~= number or lane_record.place or db.see(RECORD.bundle, lane_record.bundle).place then
        return nil
      end
      for _, open in ipairs(open_lanes(BOUND.STEPS_MAX)) do
        if open[1] == lane then
          break
        elseif share_a_need(open[1], lane) then
          db.touched[CALLERS] = true
          return nil
        end
      end
      local needs = lane_record.needs
      local lease = lib.try_lane(lane, caller, now)
      if lease then
        lib.forget_caller(number)
        lib.drop_needs(needs)
        -- The next in line may go too.
        db.touched[CALLERS] = true
        return lease
      end
    end
  end
  return nil, true
end

-- The call that a caller waits by.
function lib.forget_wait(number)
  local caller = db.get(RECORD.caller, number)
  maps.drop('ct:' .. shard(caller.taker), caller.taker)
  lib.unname_wait(caller.place, caller.taker)
  lib.timer_clear('wt', caller.taker)
  count_waiting(caller.worker, -1)
end

function lib.forget_caller(number)
  local caller = db.get(RECORD.caller, number)
  lib.forget_wait(number)
  if caller.place then
    maps.drop('cp:' .. shard(caller.place), caller.place)
  end
  if caller.turn then
    lib.timer_clear('tu', text(number))
  end
  db.drop(RECORD.caller, number)
end

-- A caller leaves the line; his place is kept for a while if he has a name for it.
function lib.leave_line(number, now)
  local caller = db.get(RECORD.caller, number)
  local needs = db.get(RECORD.lane, caller.lane).needs
  lib.leave_lane(caller.lane, caller.arrival, number, now)
  lib.forget_caller(number)
  if caller.place then
    lib.timer_set('ple', now + BOUND.PLACE_US, caller.place)
    db.put(RECORD.place, caller.place, { arrival = caller.arrival, since = caller.since, needs = needs })
  else
    lib.drop_needs(needs)
  end
end

function lib.tick_place(place)
  local kept = db.get(RECORD.place, place)
  if kept then
    db.drop(RECORD.place, place)
    lib.drop_needs(kept.needs)
  end
end

-- The wait of a call is over, by the store's clock. Its process ends it by itself, and tells its caller
-- what was waited for; only who is silent is put out, and a call that its process has forgotten.
function lib.tick_wait(id, now)
  local number = lib.caller_by_taker(id)
  local call = db.get(RECORD.waiting_call, id) or number and db.get(RECORD.caller, number)
  if not call then
    return
  end
  if not lib.is_silent(call.proc, now) and call.till + LEFT_US > now then
    lib.timer_set('wt', now + BOUND.SECOND_US, id)
  elseif not lib.forget_taker(id) then
    lib.leave_line(number, now)
  end
end

-- The caller who waits by this call; or nil.
function lib.caller_by_taker(taker)
  return tonumber(maps.get('ct:' .. shard(taker), taker))
end
