-- The clock: what is seen of it, and what follows when it was set back far.
--
-- A clock that is far behind is accepted, and what is stored further ahead than its own length is cut. All there
-- is may have to be looked at for that, so of much a call does a portion, and ticks go on with it: until then
-- what was not reached ends later than it should, and never sooner.

function lib.look_at_clock()
  local space, clock = db.space, db.clock
  local behind = max(space.last - clock, 0)
  if behind > BOUND.CLOCK_BEHIND_ACCEPT_US then
    space.behind = 0
    lib.set_back(clock)
    lib.event(EVENT.clock_behind, behind, false)
  elseif behind > BOUND.CLOCK_BEHIND_LOUD_US then
    if space.behind == 0 then
      lib.event(EVENT.clock_behind, behind, false)
    end
    space.behind = behind
  else
    space.behind = 0
  end
  return lib.advance()
end

local function cut_lease(name, clock)
  local lease, job = lib.lease(lib.parse_lease(name))
  -- What was granted before the clock that is accepted ends within its ttl from then.
  if not lease or max(lease.granted_at, lease.seen_at) <= clock and lease.expires_at <= clock + lease.ttl then
    return
  end
  local most = clock + lease.ttl
  if lease.expires_at > most then
    lib.set_expiry(lease, most)
  end
  if lease.deadline then
    local longest = clock + lease.deadline - lease.granted_at
    if lease.deadline > longest then
      lease.deadline = longest
      lib.timer_set('dl', longest, name)
    end
  end
  lease.granted_at, lease.seen_at = min(lease.granted_at, clock), min(lease.seen_at, clock)
  lib.lease_changed(job)
end

local function cut_delay(member, clock)
  local job = lib.job(tonumber(member))
  if job and job.state == STATE.scheduled and job.wait > 0 and job.run_at > clock + job.wait then
    job.run_at = clock + job.wait
    lib.timer_set('due', job.run_at, member)
    lib.dirty(job)
  end
end

-- Some of what rests at a limit; whether that was all.
function lib.cut_rests(name, limit_record, longest)
  local key, rests, most = lib.limit_resting(name), {}, BOUND.TICK_MAX
  if limit_record.resting.z then
    rests = call('ZRANGEBYSCORE', db.prefix .. key, '(' .. text(longest), '+inf', 'LIMIT', 0, most)
  else
    for member, at in inner.each(limit_record.resting, key) do
      if at > longest then
        rests[#rests + 1] = member
      end
    end
  end
  for _, member in ipairs(rests) do
    inner.move(limit_record.resting, key, longest, member)
  end
  return #rests < most
end

local function cut_limit(name, clock)
  local settings = lib.setting_of(name) or {}
  local limit_record = db.get(RECORD.limit, name)
  if not limit_record then
    return true
  end
  if settings.rate then
    limit_record.tat = min(limit_record.tat, clock + lib.tokens(settings.rate, settings.rate[RATE_AT.burst]))
  end
  local all = lib.cut_rests(name, limit_record, clock + lib.longest_rest(settings))
  if limit_record.gauged then
    lib.set_gauge_back(name, clock)
  end
  lib.arm_limit(name)
  lib.door_due(DOOR.limit .. name)
  return all
end

local function cut_timer(door, at, clock)
  local door_record = db.get(RECORD.door, door)
  at = min(at, clock)
  lib.timer_set('dt', at, door)
  if door_record then
    door_record.timer = at
  end
end

-- A step: {'back', the clock that was accepted, number of the part, where it goes on in it, the run of the
-- server in which the cursor of a scan holds}. Each part does a portion: how many it looked at, and whether it
-- is done; 'later' if only another call can go on, since this one reads what was stored before it.

local function scan(key, step, act)
  local found = call('ZSCAN', db.prefix .. key, step[BACK_STEP_AT.cursor] ~= '' and step[BACK_STEP_AT.cursor] or '0',
    'COUNT', BOUND.TICK_MAX)
  local n = 0
  for i = 1, #found[2], 2 do
    if n >= BOUND.ITEMS_MAX then
      -- The same place again: what was cut is found cut.
      return n, 'later'
    end
    n = n + (act(found[2][i], tonumber(found[2][i + 1])) or 1)
  end
  step[BACK_STEP_AT.cursor] = found[1]
  return n, found[1] == '0'
end

local PARTS = {
  function(step, clock)
    return scan(KEY.expiries, step, function(name, at)
      if not lib.is_span(name) then
        cut_lease(name, clock)
      elseif sets.score(KEY.expiries, name) then
        -- The leases of a span are one by one from now on.
        local names = lib.leases_named(name)
        lib.scatter(name, at)
        for _, one in ipairs(names) do
          cut_lease(one, clock)
        end
        return #names
      end
    end)
  end,
  function(step, clock)
    return scan('due', step, function(member)
      cut_delay(member, clock)
    end)
  end,
  function(step, clock)
    local from = step[BACK_STEP_AT.cursor] ~= '' and '(' .. step[BACK_STEP_AT.cursor] or '-'
    local names = call('ZRANGEBYLEX', db.prefix .. 'Ln', from, '+', 'LIMIT', 0, BOUND.TICK_MAX)
    for n, name in ipairs(names) do
      if not cut_limit(name, clock) then
        return n, 'later'
      end
      step[BACK_STEP_AT.cursor] = name
    end
    return #names, #names < BOUND.TICK_MAX
  end,
  -- Behind a pool and an id in it: pool by pool.
  function(step, clock)
    local at = step[BACK_STEP_AT.cursor]
    local pool, after = at and at[1], at and at[2]
    if not pool then
      local from = after and '(' .. after or '-'
      pool, after = call('ZRANGEBYLEX', db.prefix .. 'pn', from, '+', 'LIMIT', 0, 1)[1], ''
      if not pool then
        return 0, true
      end
    end
    local ids = db.get(RECORD.pool, pool) and lib.ids_after(pool, after, BOUND.TICK_MAX) or {}
    for _, id in ipairs(ids) do
      local resource = lib.resource(pool, id)
      if resource then
        resource['until'] = min(resource['until'], clock + resource.rest)
        lib.repace(resource, clock)
      end
      after = id
    end
    step[BACK_STEP_AT.cursor] = #ids >= BOUND.TICK_MAX and { pool, after } or { false, pool }
    return #ids + 1, false
  end,
  function(step, clock)
    return scan('dt', step, function(door, at)
      cut_timer(door, at, clock)
    end)
  end,
  function(step, clock)
    local from = step[BACK_STEP_AT.cursor] ~= '' and '(' .. step[BACK_STEP_AT.cursor] or '-'
    local ids = call('ZRANGEBYLEX', db.prefix .. 'sl', from, '+', 'LIMIT', 0, BOUND.TICK_MAX)
    for _, id in ipairs(ids) do
      lib.set_schedule_back(id, clock)
      step[BACK_STEP_AT.cursor] = id
    end
    return #ids, #ids < BOUND.TICK_MAX
  end,
  function(step, clock)
    return scan('awt', step, function(name)
      lib.cut_awaited(name, clock)
    end)
  end,
}

-- Does about so much of it; whether all is done.
local function back_some(step, left)
  local run = db.space.run or false
  if step[BACK_STEP_AT.run] ~= run then
    -- A cursor of another run means nothing here: the part begins anew, what was cut stays as it is.
    step[BACK_STEP_AT.cursor], step[BACK_STEP_AT.run] = '', run
  end
  while left > 0 do
    if step[BACK_STEP_AT.cursor] == '' and step[BACK_STEP_AT.part] == 4 then
      step[BACK_STEP_AT.cursor] = { false, false }
    end
    local n, done = PARTS[step[BACK_STEP_AT.part]](step, step[BACK_STEP_AT.clock])
    left = left - n
    if done == 'later' then
      return false
    elseif done then
      step[BACK_STEP_AT.part], step[BACK_STEP_AT.cursor] = step[BACK_STEP_AT.part] + 1, ''
      if step[BACK_STEP_AT.part] > #PARTS then
        return true
      end
    end
  end
  return false
end

function lib.step_back(step)
  return back_some(step, BOUND.TICK_MAX)
end

-- The clock is accepted although it is behind.
function lib.set_back(clock)
  local space = db.space
  space.last, space.deaf_at, space.pulse = clock, clock, clock
  space.recovered_at = space.recovered_at and min(space.recovered_at, clock)
  local step = { 'back', clock, 1, '', space.run or false }
  if not back_some(step, BOUND.ITEMS_MAX) then
    lib.go_on(step, clock)
  end
end
