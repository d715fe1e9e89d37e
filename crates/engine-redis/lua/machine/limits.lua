-- Limits: what fits, what is taken, what comes back.
--
-- `in_use` is the sum of the weights of live leases and of nothing else. Rates are GCRA (ITU-T I.371):
-- one theoretical arrival time, moved by whole grants so that rounding happens once per grant.
-- A rate is {count, per, burst}. Nothing here decides who is next.

local FOREVER = 9007199254740991
T.FOREVER = FOREVER

local function holders(name)
  return 'lh:' .. name
end
local function resting(name)
  return 'lr:' .. name
end
T.limit_holders, T.limit_resting = holders, resting

-- The time that `n` tokens of a rate take: one rounding per grant, not per token. Exact: n * per is
-- below 2^53, as was checked when the rate was set.
function T.tokens(rate, n)
  local us, count = n * rate[RATE_AT.per], max(rate[RATE_AT.count], 1)
  local whole = floor(us / count)
  -- The quotient is rounded to a double; the product is exact.
  local rest = us - whole * count
  return rest > 0 and whole + 1 or whole
end

-- When `n` tokens fit at the earliest; at or before `now` if they fit now.
function T.rate_fits_at(rate, tat, n, now)
  return max(max(tat, now) + T.tokens(rate, n) - T.tokens(rate, rate[RATE_AT.burst]), 0)
end

-- The limit of this name, made if it is not there.
function T.limit_for(name)
  local l = db.get(RECORD.limit, name)
  if not l then
    l = db.put(RECORD.limit, name, {
      uses = 0, in_use = 0, holders = O.new(), resting = O.new(), resting_sum = 0, external = 0, tat = 0,
      touched_at = 0,
    })
    Z.add('Ln', 0, name)
  end
  return l
end

-- Whether anybody or anything points to a limit, or a permit is in use.
local function is_held(name, l)
  return l.uses > 0 or l.in_use > 0 or l.resting.n > 0 or l.mark or db.get(RECORD.door, DOOR.limit .. name)
end

-- Whether nothing but an observation or a pause is left of a limit that nobody has set any more.
local function is_left_over(name, l)
  return (l.external > 0 or l.paused_until) and not is_held(name, l) and not T.setting_of(name)
end

-- Drops a limit that nobody needs and that remembers nothing.
function T.drop_limit_if_idle(name)
  local l = db.get(RECORD.limit, name)
  if not l or is_held(name, l) then
    return
  end
  if l.external > 0 or max(l.tat, l.paused_until or 0) > db.space.last then
    -- It is remembered until its debt is over, or its observation.
    T.arm_limit(name)
    return
  end
  if l.timer then
    T.timer_clear('lt', name)
  end
  db.drop(RECORD.limit, name)
  Z.rem('Ln', name)
end

-- The template of a name's family, or nil.
function T.template(name)
  local colon = find(name, ':', 1, true)
  if colon then
    return sub(name, 1, colon) .. '*'
  end
end

local LOCK = { concurrency = 1 }

-- The setting that holds for a name, and the template it comes from.
function T.setting_of(name)
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
function T.limit_fit(name, weight, cost, lane, now)
  local settings = T.setting_of(name)
  if not settings then
    return 'never'
  end
  local l = db.get(RECORD.limit, name)
  local mark = l.mark
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
    local learns = T.learns(now)
    if learns then
      return 'no', learns
    end
  end
  if l.paused_until and l.paused_until > now then
    if l.paused_until == FOREVER then
      return 'no'
    end
    at = l.paused_until
  end
  -- By time alone only resting permits and an observation's end can free it; both have timers of
  -- their own, which make the door due.
  if cap and l.in_use + l.resting_sum + l.external + weight + kept > cap then
    return 'no'
  end
  if rate and cost > 0 then
    at = max(at, T.rate_fits_at(rate, l.tat, min(cost + kept_cost, rate[RATE_AT.burst]), now))
  end
  if at > now then
    return 'no', at
  end
  return 'yes'
end

-- Takes permits and tokens for a lease; what was booked.
function T.take_limit(name, weight, cost, now)
  local settings = T.setting_of(name)
  local l = db.get(RECORD.limit, name)
  l.in_use = l.in_use + weight
  local rate = settings and settings.rate
  if rate then
    l.tat = max(l.tat, now) + T.tokens(rate, cost)
    return cost
  end
  return 0
end

-- How long a permit may rest at most; 0 without a concurrency.
function T.longest_rest(settings)
  if not (settings and settings.concurrency) then
    return 0
  end
  return max(settings.gap or 0, settings.quarantine or 0)
end

-- Gives the permits of a lease back: at once, or after the longer of the rests that they owe (`gap`, `quarantine`:
-- whether).
function T.return_permits(name, weight, lease, gap, quarantine, now)
  local settings = T.setting_of(name)
  local l = db.get(RECORD.limit, name)
  O.rem(l.holders, l.holders.z and holders(name), lease)
  l.in_use = l.in_use - weight
  local rest = 0
  if settings and settings.concurrency then
    rest = max(gap and settings.gap or 0, quarantine and settings.quarantine or 0)
  end
  if rest > 0 then
    -- Several may come back in one moment: the number keeps them apart.
    O.add(l.resting, resting(name), now + rest, text(db.number()) .. ':' .. text(weight))
    l.resting_sum = l.resting_sum + weight
    T.arm_limit(name)
    T.recheck_marks_of(name, now)
  end
  T.door_due(DOOR.limit .. name)
  if l.uses == 0 then
    T.drop_limit_if_idle(name)
  end
end

-- Corrects what a grant booked to what was spent.
function T.correct_cost(name, booked, spent, now)
  local settings = T.setting_of(name)
  local rate = settings and settings.rate
  if not rate then
    return
  end
  local l = db.get(RECORD.limit, name)
  if spent >= booked then
    l.tat = l.tat + T.tokens(rate, spent) - T.tokens(rate, booked)
  else
    local back = T.tokens(rate, booked) - T.tokens(rate, spent)
    l.tat = max(max(l.tat - back, 0), min(now, l.tat))
  end
  T.door_due(DOOR.limit .. name)
end

-- Sets the limit's timer to the next moment at which time changes it.
function T.arm_limit(name)
  local l = db.get(RECORD.limit, name)
  local _, next_at = O.first(l.resting, resting(name))
  local function sooner(at)
    next_at = next_at and min(next_at, at) or at
  end
  if l.external_until then
    sooner(l.external_until)
  end
  if l.paused_until and l.paused_until < FOREVER then
    sooner(l.paused_until)
  end
  if l.uses == 0 and l.in_use == 0 and l.tat > db.space.last then
    sooner(l.tat)
  end
  if is_left_over(name, l) then
    sooner(l.touched_at + B.FORGET_US)
  end
  if l.timer == next_at then
    return
  end
  if next_at then
    T.timer_set('lt', next_at, name)
  else
    T.timer_clear('lt', name)
  end
  l.timer = next_at
end

-- Ends what time ends at a limit: rests, an observation, a pause.
function T.tick_limit(name, now)
  local l = db.get(RECORD.limit, name)
  l.timer = nil
  for _ = 1, B.STEPS_MAX do
    local member, at = O.first(l.resting, resting(name))
    if not member or at > now then
      break
    end
    O.rem(l.resting, resting(name), member)
    l.resting_sum = l.resting_sum - tonumber(sub(member, find(member, ':', 1, true) + 1))
  end
  if l.external_until and l.external_until <= now then
    l.external_until, l.external = nil, 0
  end
  if l.paused_until and l.paused_until <= now then
    l.paused_until = nil
  end
  if is_left_over(name, l) and l.touched_at + B.FORGET_US <= now then
    l.external, l.external_until, l.paused_until = 0, nil, nil
  end
  T.arm_limit(name)
  T.door_due(DOOR.limit .. name)
  T.drop_limit_if_idle(name)
end

-- Families whose template changed, in the order in which they are gone through; the one that is, is not
-- among them: {"family:", the last limit that was done}. One that changes again meanwhile comes again.
local FAMILIES = 'fam'

-- A setting changed: all doors that it governs are due, a template's one by one.
function T.setting_changed(name, now)
  if sub(name, -2) == ':*' then
    local families, family = db.space.families, sub(name, 1, -2)
    if not O.score(families, FAMILIES, family) then
      O.add(families, FAMILIES, db.number(), family)
    end
  elseif db.get(RECORD.limit, name) then
    T.limit_setting_changed(name, now)
  end
end

function T.limit_setting_changed(name, now)
  local settings = T.setting_of(name)
  local l = db.get(RECORD.limit, name)
  local rate = settings and settings.rate
  if rate then
    l.tat = min(l.tat, now + T.tokens(rate, rate[RATE_AT.burst]))
  end
  -- A rest that has begun is not longer than the setting says from now on.
  T.cut_rests(name, l, now + T.longest_rest(settings))
  T.arm_limit(name)
  local door = DOOR.limit .. name
  if db.get(RECORD.door, door) then
    T.retry_misfits(door)
    T.door_due(door)
  end
  T.recheck_marks_of(name, now)
  -- What is left of it goes in a day, or stays from now on.
  T.arm_limit(name)
end

-- Whether the change of a template has still to come to a limit.
function T.is_in_family(name)
  local template, space = T.template(name), db.space
  local family = template and sub(template, 1, -2)
  return family ~= nil and (space.family and space.family[FAMILY_AT.name] == family
    or O.score(space.families, FAMILIES, family) ~= nil)
end

-- One step through the family of a changed template; false if there is none.
function T.step_family()
  local space = db.space
  local front = space.family
  if not front then
    local family = O.first(space.families, FAMILIES)
    if not family then
      return false
    end
    O.rem(space.families, FAMILIES, family)
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
      T.limit_setting_changed(name, db.space.last)
    end
  else
    space.family = nil
  end
  return true
end
