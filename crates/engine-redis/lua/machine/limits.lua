-- Limits: what fits, what is taken, what comes back.
--
-- `in_use` is the sum of the weights of live leases and of nothing else. Rates are GCRA (ITU-T I.371):
-- one theoretical arrival time, moved by whole grants so that rounding happens once per grant.
-- A rate is {count, per, burst}. Nothing here decides who is next.

local FOREVER = 9007199254740991
lib.FOREVER = FOREVER

local function holders(name)
  return 'lh:' .. name
end
local function resting(name)
  return 'lr:' .. name
end
lib.limit_holders, lib.limit_resting = holders, resting

-- The time that `n` tokens of a rate take: one rounding per grant, not per token. Exact: n * per is
-- below 2^53, as was checked when the rate was set.
function lib.tokens(rate, n)
  local us, count = n * rate[RATE_AT.per], max(rate[RATE_AT.count], 1)
  local whole = floor(us / count)
  -- The quotient is rounded to a double; the product is exact.
  local rest = us - whole * count
  return rest > 0 and whole + 1 or whole
end

-- When `n` tokens fit at the earliest; at or before `now` if they fit now.
function lib.rate_fits_at(rate, tat, n, now)
  return max(max(tat, now) + lib.tokens(rate, n) - lib.tokens(rate, rate[RATE_AT.burst]), 0)
end

-- The limit of this name, made if it is not there.
function lib.limit_for(name)
  local limit_record = db.get(RECORD.limit, name)
  if not limit_record then
    limit_record = db.put(RECORD.limit, name, {
      uses = 0, in_use = 0, holders = inner.new(), resting = inner.new(), resting_sum = 0, external = 0, tat = 0,
      touched_at = 0,
    })
    sets.add('Ln', 0, name)
  end
  return limit_record
end

-- Whether anybody or anything points to a limit, or a permit is in use.
local function is_held(name, limit_record)
  return limit_record.uses > 0 or limit_record.in_use > 0 or limit_record.resting_sum > 0 or limit_record.gauged
    or limit_record.mark
    or db.get(RECORD.door, DOOR.limit .. name)
end

-- Whether nothing but an observation or a pause is left of a limit that nobody has set any more.
local function is_left_over(name, limit_record)
  return (limit_record.external > 0 or limit_record.paused_until) and not is_held(name, limit_record)
    and not lib.setting_of(name)
end

-- Drops a limit that nobody needs and that remembers nothing.
function lib.drop_limit_if_idle(name)
  local limit_record = db.get(RECORD.limit, name)
  if not limit_record or is_held(name, limit_record) then
    return
  end
  if limit_record.external > 0 or max(limit_record.tat, limit_record.paused_until or 0) > db.space.last then
    -- It is remembered until its debt is over, or its observation.
    lib.arm_limit(name)
    return
  end
  if limit_record.timer then
    lib.timer_clear('lt', name)
  end
  db.drop(RECORD.limit, name)
  sets.rem('Ln', name)
end

-- The template of a name's family, or nil.
function lib.template(name)
  local colon = find(name, ':', 1, true)
  if colon then
    return sub(name, 1, colon) .. '*'
  end
end

local LOCK = { concurrency = 1 }

-- The setting that holds for a name, and the template it comes from.
function lib.setting_of(name)
  local own = db.see(RECORD.limit_setting, name)
  if own then
    return own
  end
  local colon = find(name, ':', 1, true)
  if not colon then
    return nil
  end
  local template = sub(name, 1, colon) .. '*'
  local settings = db.see(RECORD.limit_setting, template)
  if settings then
    return settings, template
  elseif template == 'lock:*' then
    return LOCK, template
  end
end

-- Whether `weight` permits and `cost` tokens fit now, what others reserve left alone.
function lib.limit_fit(name, weight, cost, lane, now)
  local settings = lib.setting_of(name)
  if not settings then
    return 'never'
  end
  local limit_record = db.get(RECORD.limit, name)
  local mark = limit_record.mark
  local kept, kept_cost = 0, 0
  if mark and mark.lane ~= lane then
    kept, kept_cost = mark.weight, mark.cost
  end
  local cap, rate = settings.concurrency, settings.rate
  if cap and cap > 0 and weight > cap then
    return 'never'
  end
  if rate and cost > rate[RATE_AT.burst] then
    return 'never'
  end
  local at = 0
  if cap then
    local learns = lib.learns(now)
    if learns then
      return 'no', learns
    end
  end
  if limit_record.paused_until and limit_record.paused_until > now then
    if limit_record.paused_until == FOREVER then
      return 'no'
    end
    at = limit_record.paused_until
  end
  if not lib.gauge_may_be_used(name, limit_record, now) then
    -- The next reading makes the door due, and so does an attempt that fails.
    return 'no'
  end
  -- By time alone only resting permits and an observation's end can free it; both have timers of
  -- their own, which make the door due.
  if cap and limit_record.in_use + limit_record.resting_sum + limit_record.external + weight + kept > cap then
    return 'no'
  end
  if rate and cost > 0 then
    at = max(at, lib.rate_fits_at(rate, limit_record.tat, min(cost + kept_cost, rate[RATE_AT.burst]), now))
  end
  if at > now then
    return 'no', at
  end
  return 'yes'
end

-- Takes permits and tokens for a lease; what was booked.
function lib.take_limit(name, weight, cost, now)
  local settings = lib.setting_of(name)
  local limit_record = db.get(RECORD.limit, name)
  limit_record.in_use = limit_record.in_use + weight
  lib.order_gauge(name)
  local rate = settings and settings.rate
  if rate then
    limit_record.tat = max(limit_record.tat, now) + lib.tokens(rate, cost)
    return cost
  end
  return 0
end

-- How long a permit may rest at most; 0 without a concurrency.
function lib.longest_rest(settings)
  if not (settings and settings.concurrency) then
    return 0
  end
  return max(settings.gap or 0, settings.quarantine or 0)
end

-- Permits rest until then.
function lib.rest_until(name, limit_record, weight, till)
  -- Several may come back in one moment: the number keeps them apart.
  inner.add(limit_record.resting, resting(name), till, text(db.number()) .. ':' .. text(weight))
  limit_record.resting_sum = limit_record.resting_sum + weight
  lib.arm_limit(name)
end

-- Gives the permits of a lease back: at once, or after the longer of the rests that they owe: `gap` says whether that of
-- a gap; `unsettled`, of a lease whose end was no settle, when it was granted, for then its run may go on.
function lib.return_permits(name, weight, lease, gap, unsettled, now)
  local settings = lib.setting_of(name)
  local limit_record = db.get(RECORD.limit, name)
  inner.rem(limit_record.holders, limit_record.holders.z and holders(name), lease)
  limit_record.in_use = limit_record.in_use - weight
  local rest = 0
  if settings and settings.concurrency then
    rest = max(gap and settings.gap or 0, unsettled and settings.quarantine or 0)
  end
  if limit_record.gauged then
    lib.rest_for_gauge(name, limit_record, weight, unsettled or nil, now + rest, now)
  elseif rest > 0 then
    lib.rest_until(name, limit_record, weight, now + rest)
  end
  if limit_record.gauged or rest > 0 then
    lib.recheck_marks_of(name, now)
  end
  lib.door_due(DOOR.limit .. name)
  if limit_record.uses == 0 then
    lib.drop_limit_if_idle(name)
  end
end

-- Corrects what a grant booked to what was spent.
function lib.correct_cost(name, booked, spent, now)
  local settings = lib.setting_of(name)
  local rate = settings and settings.rate
  if not rate then
    return
  end
  local limit_record = db.get(RECORD.limit, name)
  if spent >= booked then
    limit_record.tat = limit_record.tat + lib.tokens(rate, spent) - lib.tokens(rate, booked)
  else
    local back = lib.tokens(rate, booked) - lib.tokens(rate, spent)
    limit_record.tat = max(max(limit_record.tat - back, 0), min(now, limit_record.tat))
  end
  lib.door_due(DOOR.limit .. name)
end

-- Sets the limit's timer to the next moment at which time changes it.
function lib.arm_limit(name)
  local limit_record = db.get(RECORD.limit, name)
  local _, next_at = inner.first(limit_record.resting, resting(name))
  local function sooner(at)
    next_at = next_at and min(next_at, at) or at
  end
  if limit_record.external_until then
    sooner(limit_record.external_until)
  end
  if limit_record.paused_until and limit_record.paused_until < FOREVER then
    sooner(limit_record.paused_until)
  end
  if limit_record.gauged then
    local attempt_ends, rest_ends = lib.gauge_moments(name)
    if attempt_ends then
      sooner(attempt_ends)
    end
    if rest_ends then
      sooner(rest_ends)
    end
  end
  if limit_record.uses == 0 and limit_record.in_use == 0 and limit_record.tat > db.space.last then
    sooner(limit_record.tat)
  end
  if is_left_over(name, limit_record) then
    sooner(limit_record.touched_at + BOUND.FORGET_US)
  end
  if limit_record.timer == next_at then
    return
  end
  if next_at then
    lib.timer_set('lt', next_at, name)
  else
    lib.timer_clear('lt', name)
  end
  limit_record.timer = next_at
end

-- Ends what time ends at a limit: rests, an observation, a pause.
function lib.tick_limit(name, now)
  local limit_record = db.get(RECORD.limit, name)
  limit_record.timer = nil
  for _ = 1, BOUND.STEPS_MAX do
    local member, at = inner.first(limit_record.resting, resting(name))
    if not member or at > now then
      break
    end
    inner.rem(limit_record.resting, resting(name), member)
    limit_record.resting_sum = limit_record.resting_sum - tonumber(sub(member, find(member, ':', 1, true) + 1))
  end
  if limit_record.external_until and limit_record.external_until <= now then
    limit_record.external_until, limit_record.external = nil, 0
  end
  if limit_record.paused_until and limit_record.paused_until <= now then
    limit_record.paused_until = nil
  end
  if limit_record.gauged then
    lib.tick_gauge(name, limit_record, now)
  end
  if is_left_over(name, limit_record) and limit_record.touched_at + BOUND.FORGET_US <= now then
    limit_record.external, limit_record.external_until, limit_record.paused_until = 0, nil, nil
  end
  lib.arm_limit(name)
  lib.door_due(DOOR.limit .. name)
  lib.drop_limit_if_idle(name)
end

-- Families whose template changed, in the order in which they are gone through; the one that is, is not
-- among them: {"family:", the last limit that was done}. One that changes again meanwhile comes again.
local FAMILIES = 'fam'

-- A setting changed: all doors that it governs are due, a template's one by one.
function lib.setting_changed(name, now)
  if sub(name, -2) == ':*' then
    local families, family = db.space.families, sub(name, 1, -2)
    if not inner.score(families, FAMILIES, family) then
      inner.add(families, FAMILIES, db.number(), family)
    end
  elseif db.get(RECORD.limit, name) then
    lib.limit_setting_changed(name, now)
  end
end

function lib.limit_setting_changed(name, now)
  local settings = lib.setting_of(name)
  local limit_record = db.get(RECORD.limit, name)
  local rate = settings and settings.rate
  if rate then
    limit_record.tat = min(limit_record.tat, now + lib.tokens(rate, rate[RATE_AT.burst]))
  end
  -- A rest that has begun is not longer than the setting says from now on.
  lib.cut_rests(name, limit_record, now + lib.longest_rest(settings))
  lib.arm_limit(name)
  local door = DOOR.limit .. name
  if db.get(RECORD.door, door) then
    lib.retry_misfits(door)
    lib.door_due(door)
  end
  lib.recheck_marks_of(name, now)
  -- What is left of it goes in a day, or stays from now on.
  lib.arm_limit(name)
end

-- Whether the change of a template has still to come to a limit.
function lib.is_in_family(name)
  local template, space = lib.template(name), db.space
  local family = template and sub(template, 1, -2)
  return family ~= nil and (space.family and space.family[FAMILY_AT.name] == family
    or inner.score(space.families, FAMILIES, family) ~= nil)
end

-- One step through the family of a changed template; false if there is none.
function lib.step_family()
  local space = db.space
  local front = space.family
  if not front then
    local family = inner.first(space.families, FAMILIES)
    if not family then
      return false
    end
    inner.rem(space.families, FAMILIES, family)
    front = { family, '' }
    space.family = front
  end
  -- Names of the family sort together, from "family:" on. What this call made itself may be missed:
  -- it was made under the new setting.
  local from = front[FAMILY_AT.at] == '' and '[' .. front[FAMILY_AT.name] or '(' .. front[FAMILY_AT.at]
  local name = call('ZRANGEBYLEX', db.prefix .. 'Ln', from, '+', 'LIMIT', 0, 1)[1]
  if name and sub(name, 1, #front[FAMILY_AT.name]) == front[FAMILY_AT.name] then
    front[FAMILY_AT.at] = name
    if db.get(RECORD.limit, name) then
      lib.limit_setting_changed(name, db.space.last)
    end
  else
    space.family = nil
  end
  return true
end
