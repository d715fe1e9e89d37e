-- tick: the only step that ends or starts what time ends or starts.
--
-- Reaps, deadlines, due jobs, due doors, reservations, purges: at most so many of each, oldest first;
-- what is left is due now. No other call does due work, so a settle that comes before the tick that
-- would reap is honoured, however late it is. Leases are reaped only as far as the clock can be trusted
-- (sight.lua).

-- The ends of leases, ordered by moment.
local ENDS = { KEY.expiries, 'dl' }
-- All other sets that are ordered by moment. A tick looks at the first of each.
local TIMERS = {
  'due', 'ex', 'dt', 'lt', 'rt', 'qp', 'uke', 'rqe', 'rpe', 'ste', 'ple', 'we', 'wt', 'awt', 'tu', 'imp',
  'sye', 'ff', 'fo', 'hk', 'sp',
}
-- The same without the ends of leases, and of what is remembered of those that ended: none of them is
-- claimed again.
local LEARNING = {
  'due', 'ex', 'dt', 'lt', 'rt', 'qp', 'uke', 'rqe', 'rpe', 'ple', 'we', 'wt', 'awt', 'tu', 'imp', 'ff', 'fo', 'sye',
  'hk', 'sp',
}
-- Those of them by which time alone may change what a lease call is answered.
local CHANGES = { 'due', 'ex', KEY.expiries, 'dl', 'dt', 'lt', 'rt', 'qp' }

sets.watch(ENDS)
sets.watch(TIMERS)
sets.watch({ 'mks' })

local function soonest(keys)
  local first
  for _, key in ipairs(keys) do
    local at = sets.lowest(key)
    if at and (not first or at < first) then
      first = at
    end
  end
  return first
end

-- The soonest moment at which time alone may change what a lease call is answered; or nil.
function lib.next_change()
  return soonest(CHANGES)
end

-- Whether finished jobs take more than their byte budget.
function lib.keeps_too_much()
  local space = db.space
  return space.kept[KEPT_AT.failed] + space.kept[KEPT_AT.others] > space.retain_bytes
end

-- When the next tick is due; or nil. `late`: a lease can be reaped this long (us) after its end by the clock, since
-- the clock is not trusted further; false, not at all.
function lib.next_due(late)
  local space = db.space
  if lib.is_pending() or space.steps or lib.has_untold() or lib.has_uncancelled() then
    return space.last
  end
  -- What was due while the namespace learns is due when it has learnt.
  local learns = lib.learns(space.last)
  local due = soonest(learns and LEARNING or TIMERS)
  local function sooner(at)
    due = due and min(due, at) or at
  end
  if learns then
    sooner(learns)
  end
  local ends = late and not learns and soonest(ENDS)
  if ends then
    sooner(ends + late)
  end
  if space.live > 0 then
    -- A process that vouches for nothing yet ticks as often: a gap between its ticks would count as deafness.
    sooner(late and space.pulse + BOUND.PULSE_US or min(space.pulse + BOUND.DEAF_US + 1, space.last + BOUND.PULSE_US))
  end
  if sets.lowest('mks') then
    sooner(space.last + BOUND.SECOND_US)
  end
  -- Moments of schedules are decided by `fire`: a tick tells that they are due. While they are, some process ticks once a
  -- second, in case the one that fires has died.
  local fires = lib.next_fire()
  if fires then
    sooner(fires > space.last and fires or space.last + BOUND.PULSE_US)
  end
  -- Gauges are claimed by a process that reads, after a tick that tells it.
  local gauge = lib.next_gauge()
  if gauge then
    sooner(gauge > space.last and gauge or space.last + BOUND.PULSE_US)
  end
  local again = lib.next_signalled()
  if again then
    sooner(again)
  end
  if lib.keeps_too_much() then
    sooner(space.last)
  end
  return due
end

-- One tick of a process with this sight. Returns now, and `late` as for lib.next_due.
function lib.tick(sight, proc)
  local now = lib.look_at_clock()
  local sure = lib.look_at_pulse(sight, proc, now)
  db.tick_left = BOUND.TICK_MAX
  lib.tick_jobs(now)
  if sure then
    lib.tick_leases(now, sure)
  end
  lib.tick_flows(now)
  lib.tick_doors(now)
  lib.tick_waits(now)
  lib.tick_marks(now)
  lib.tick_memory(now)
  lib.purge(now)
  lib.tick_tidy(now)
  lib.carry_on(now)
  return now, sure and now - sure
end

-- How much a tick may still do: TICK_MAX of all sets together, and some of each set in any case, so that a
-- flood of one holds no other up. (TICK_MAX of each kept the server busy for a fifth of a second.)
local function room()
  return max(db.tick_left, BOUND.STEPS_MAX)
end

-- Does something for all of a set that is due, bounded, until `act` says that it was enough.
local function each_due(key, now, act)
  for _ = 1, room() do
    local member, at = sets.take_due(key, now)
    if not member then
      return
    end
    db.tick_left = db.tick_left - 1
    if act(member, at) == 'enough' then
      return
    end
  end
end

-- Reads ahead the jobs of the first of a set that is due.
local function load_due(key, now, seq_of)
  if not sets.due(key, now) then
    return
  end
  local seqs = {}
  for member, at in sets.each(key) do
    if at > now or #seqs >= room() then
      break
    end
    local seq = seq_of(member)
    if seq > 0 then
      seqs[#seqs + 1] = seq
    end
  end
  if #seqs > 1 then
    lib.load_jobs(seqs)
  end
end

local function seq_of_lease(name)
  if lib.is_span(name) then
    return 0
  end
  local _, seq = lib.parse_lease(name)
  return seq
end

function lib.tick_jobs(now)
  load_due('due', now, tonumber)
  each_due('due', now, function(member)
    local job = lib.job(tonumber(member))
    local queue_record = db.get(RECORD.queue, db.see(RECORD.shape, job.shape).q)
    queue_record.scheduled = queue_record.scheduled - 1
    lib.make_ready(job, now)
    lib.job_event(EVENT.job_ready, job, 'due')
  end)
  load_due('ex', now, tonumber)
  each_due('ex', now, function(member)
    local job = lib.job(tonumber(member))
    lib.call_off(job, 'expired', now)
  end)
end

-- The leases of spans that are due are looked at one by one: so many spans as have enough for a tick.
local function scatter_due(sure)
  if not sets.due(KEY.expiries, sure) then
    return
  end
  local due, n, looked = {}, 0, 0
  for member, at in sets.each(KEY.expiries) do
    if at > sure or looked >= room() then
      break
    end
    looked = looked + 1
    if lib.is_span(member) then
      due[#due + 1] = { member, at }
    end
  end
  for _, item in ipairs(due) do
    if n >= room() then
      return
    end
    n = n + lib.scatter(unpack(item))
  end
end

-- A worker that lives and works extends each fifth of the ttl: one that is heard of in the second half and
-- never extended does not know of its lease. In the first half it may have asked once more before the job
-- killed it.
local function lost_end(lease)
  local worker = lease.holder and db.get(RECORD.worker, lease.holder)
  local half = lease.expires_at - floor(lease.ttl / 2)
  return not lease.extended and worker and worker.seen_at >= half and 'unheard' or 'lost'
end

-- Reaps what is due by `sure`, at `now`.
function lib.tick_leases(now, sure)
  local space = db.space
  if lib.learns(now) then
    lib.sooner(space.learns_until)
    return
  end
  if space.learns_until or space.gap and now > space.gap[GAP_AT.till] + BOUND.TTL_US_MAX then
    -- It has learnt: from now on ends of what was claimed are forgotten. Or nothing of before can live.
    space.learns_until, space.gap = nil, nil
  end
  scatter_due(sure)
  load_due(KEY.expiries, sure, seq_of_lease)
  each_due(KEY.expiries, sure, function(name, at)
    if lib.is_span(name) then
      -- For the next tick, which is due at once.
      sets.add(KEY.expiries, at, name)
      return
    end
    local lease, job = lib.lease(lib.parse_lease(name))
    if not lease then
      return
    end
    -- After a deaf time every lease lives at least one ttl of its own from then.
    local quiet = lease.seen_at <= space.deaf_at and space.deaf_at > 0
    local grace = space.deaf_at + lease.ttl
    if quiet and grace > at and grace > sure then
      lib.set_expiry(lease, grace)
      lib.lease_changed(job)
      return
    end
    local ending
    if lease.deadline and lease.deadline <= at then
      ending = { kind = 'timeout' }
    else
      ending = { kind = lost_end(lease) }
    end
    lib.end_lease(lease, job, ending, now)
  end)
  load_due('dl', sure, seq_of_lease)
  each_due('dl', sure, function(name)
    local lease, job = lib.lease(lib.parse_lease(name))
    if lease then
      lib.end_lease(lease, job, { kind = 'timeout' }, now)
    end
  end)
end

function lib.tick_doors(now)
  each_due('lt', now, function(name)
    lib.tick_limit(name, now)
  end)
  each_due('rt', now, function(key)
    lib.tick_resource(key, now)
  end)
  each_due('dt', now, function(door)
    local door_record = db.get(RECORD.door, door)
    if door_record then
      door_record.timer = nil
      lib.door_due(door)
    end
  end)
  each_due('qp', now, function(queue)
    db.get(RECORD.queue, tonumber(queue)).paused_until = nil
    db.touched[tonumber(queue)] = true
  end)
end

function lib.tick_waits(now)
  each_due('wt', now, function(taker)
    lib.tick_wait(taker, now)
  end)
  each_due('awt', now, function(name)
    lib.tick_awaited(name, now)
  end)
  each_due('tu', now, function(number)
    lib.tick_turn(tonumber(number), now)
  end)
  each_due('ple', now, lib.tick_place)
  lib.tick_signalled(now)
end

function lib.tick_memory(now)
  each_due('uke', now, lib.tick_key)
  local leases = 0
  each_due('rqe', now, function(id)
    leases = leases + lib.tick_request(id, now)
    return leases >= BOUND.LIST_SCAN_MAX and 'enough'
  end)
  each_due('rpe', now, lib.forget_replacing)
  if not lib.learns(now) then
    each_due('ste', now, function(fence)
      db.drop(RECORD.stub, fence)
    end)
  end
  each_due('sye', now, function(number)
    lib.tick_sync(number, now)
  end)
  each_due('we', now, function(id)
    lib.tick_worker(id, now)
  end)
end

-- ---- What nobody needs any more ----
--
-- 'hk' has what is to be looked at, by moment: 'g' and a queue's number, idle groups of it are to be forgotten; 'q' and
-- its number, whether anybody still needs it.

-- As soon as somebody ticks.
function lib.tidy_soon(what, queue)
  lib.timer_set('hk', db.space.last, what .. text(queue))
end

function lib.tick_tidy(now)
  for _ = 1, BOUND.STEPS_MAX do
    local member = sets.take_due('hk', now)
    local queue = member and tonumber(sub(member, 2))
    if not member then
      return
    elseif not db.get(RECORD.queue, queue) then
      -- It has gone meanwhile.
    elseif byte(member) == TIDY_BYTE.queue then
      lib.forget_unused_queue(queue, now)
    else
      lib.forget_void_groups(queue)
      lib.drop_hidden_queue_if_idle(queue)
      -- It may have forgotten as much as a tick may of anything.
      return
    end
  end
end

-- Forgets finished jobs of a member of their order, at most so many, and no more than until `over` bytes
-- have gone; what is left of it stands there again. How many it looked at, and what is still over.
local function forget_kept(set, member, at, most, over)
  local span = lib.kept_span(member)
  local seqs, n = span or lib.kept_seqs(sub(member, 1, most * 6)), 0
  local total = #seqs
  for i = total, most + 1, -1 do
    seqs[i] = nil
  end
  lib.load_jobs(seqs)
  for _, seq in ipairs(seqs) do
    if over <= 0 then
      break
    end
    n = n + 1
    local job = lib.job(seq)
    if job and job.kept_until == at and lib.kept_class(job.state) == set then
      over = over - job.bytes
      lib.forget_finished(job)
    end
  end
  if span then
    -- Who has gone is in the span no more.
    if n < total then
      sets.add(set, at, member)
    end
  elseif n * 6 < #member then
    sets.add(set, at, sub(member, n * 6 + 1))
  end
  return n, over
end

-- Finished jobs whose time is over go; and, beyond the byte budget, what would go soonest: failed jobs
-- own half of it, so that an hour of successes does not evict yesterday's failures.
function lib.purge(now)
  local space = db.space
  local function forget(set, till, over)
    local left = BOUND.TICK_MAX
    while left > 0 and over > 0 do
      local member, at = sets.take_due(set, till)
      if not member then
        return
      end
      local n
      n, over = forget_kept(set, member, at, left, over)
      left = left - n
    end
  end
  forget('ff', now, lib.FOREVER)
  forget('fo', now, lib.FOREVER)
  local kept, half = space.kept, floor(space.retain_bytes / 2)
  local over = kept[KEPT_AT.failed] + kept[KEPT_AT.others] - space.retain_bytes
  if over <= 0 then
    return
  end
  if kept[KEPT_AT.failed] > half then
    forget('ff', lib.FOREVER, min(over, kept[KEPT_AT.failed] - half))
  else
    forget('fo', lib.FOREVER, over)
  end
end
