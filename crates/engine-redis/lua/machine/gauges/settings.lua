-- A gauge is set and taken away, time ends what it ends at it, and what views show of it.

local gauges = lib.gauges

-- ---- Settings ----

-- The same gauge without anything that was learnt of it.
local function new_gauge(given)
  return {
    said = given.said, source = given.source, every = given.every, lag = given.lag, stale = given.stale,
    on_stale = given.on_stale, fresh = given.fresh, number = 0, rests = inner.new(), doubts = inner.new(),
  }
end

-- What a limit was given as its gauge; or nil.
function lib.gauge_of(name)
  local limit_record = db.get(RECORD.limit, name)
  return limit_record and limit_record.gauged and db.get(RECORD.gauge, name) or nil
end

-- The gauge of a copy: nothing is known of it yet.
function lib.put_copied_gauge(name, given)
  lib.limit_for(name).gauged = true
  db.put(RECORD.gauge, name, new_gauge(given))
end

-- Gives a limit this gauge, or none; whether that is another one than before. The same again does nothing.
function lib.set_gauge(name, given, now)
  local old = lib.gauge_of(name)
  if (old and old.said) == (given and given.said or nil) then
    return false
  end
  local limit_record = lib.limit_for(name)
  if old and old.due then
    lib.timer_clear(gauges.ORDER, name)
  end
  -- What was observed or read of another gauge says nothing any more.
  limit_record.external, limit_record.external_until = 0, nil
  if given then
    local gauge = new_gauge(given)
    if old then
      gauge.number, gauge.rests, gauge.doubts = old.number, old.rests, old.doubts
    end
    db.put(RECORD.gauge, name, gauge)
    limit_record.gauged = true
  else
    gauges.end_rests(name, limit_record, old, lib.FOREVER, function()
      return true
    end, now)
    db.drop(RECORD.gauge, name)
    limit_record.gauged = nil
  end
  gauges.changed(name, now)
  return true
end

-- ---- Time ----

-- When an attempt that nobody answers, or nobody claims, has failed; or nil.
local function attempt_ends(gauge)
  local began = gauge.claimed_at or gauge.due
  return began and began + BOUND.GAUGE_ATTEMPT_US
end

-- When the first permit stops resting although the gauge is not read; or nil. That is `lag` after the end of its lease: a
-- run that has ended is shown by then, and so is one that was granted before.
local function kept_rest_ends(name, gauge)
  if gauge.on_stale ~= ON_STALE.keep or not gauge.read_at then
    return nil
  end
  local _, rest = inner.first(gauge.rests, gauges.rests_at(name))
  local _, doubt = inner.first(gauge.doubts, gauges.doubts_at(name))
  local first = rest and doubt and min(rest, doubt) or rest or doubt
  return first and max(first + gauge.lag, gauge.read_at + gauge.stale)
end

-- The moments at which time changes a gauge: two, each may be nil.
function lib.gauge_moments(name)
  local gauge = db.get(RECORD.gauge, name)
  return attempt_ends(gauge), kept_rest_ends(name, gauge)
end

-- Ends what time ends at a gauge: an attempt without an answer, rests that no reading ends.
function lib.tick_gauge(name, limit_record, now)
  local gauge = db.get(RECORD.gauge, name)
  local ends = attempt_ends(gauge)
  if ends and ends <= now then
    if gauge.claimed_at then
      gauges.failed(name, gauge, gauge.reader, gauge.claimed_at, { 'gauge_unanswered' }, now)
    elseif limit_record.in_use > 0 or gauges.stands_at(name) then
      local began = gauge.due
      lib.timer_clear(gauges.ORDER, name)
      gauge.due = nil
      gauges.failed(name, gauge, nil, began, { 'gauge_unclaimed' }, now)
    else
      lib.order_gauge(name)
    end
  end
  if gauge.on_stale == ON_STALE.keep and gauges.is_stale(gauge, now) then
    local before = now - gauge.lag
    gauges.end_rests(name, limit_record, gauge, before + 1, function(_, ended_at)
      return ended_at <= before
    end, now)
  end
end

-- The same moments of a set, none of them after `clock`; what a member becomes.
local function cut_ends(set, key, clock, become)
  local late = {}
  for member, ended_at in inner.each(set, key) do
    late[#late + 1] = { member, ended_at }
  end
  for _, one in ipairs(late) do
    local member, ended_at = unpack(one)
    local cut = become(member, ended_at)
    if cut ~= member or ended_at > clock then
      inner.rem(set, key, member)
      inner.add(set, key, min(ended_at, clock), cut)
    end
  end
end

-- The clock was set back: nothing was asked, failed or ended later than now.
function lib.set_gauge_back(name, clock)
  local gauge = db.get(RECORD.gauge, name)
  local function cut(at)
    return at and min(at, clock)
  end
  gauge.claimed_at, gauge.read_at, gauge.asked_at = cut(gauge.claimed_at), cut(gauge.read_at), cut(gauge.asked_at)
  gauge.failing_since, gauge.failed_at = cut(gauge.failing_since), cut(gauge.failed_at)
  local function become(member, ended_at)
    local rest, number = lib.read_rest(member), member:match('^%d+')
    local till = min(rest['until'], clock + rest['until'] - ended_at)
    local granted_at = rest.granted_at and ':' .. text(min(rest.granted_at, clock)) or ''
    return number .. ':' .. text(rest.weight) .. ':' .. text(till) .. granted_at
  end
  cut_ends(gauge.rests, gauges.rests_at(name), clock, become)
  cut_ends(gauge.doubts, gauges.doubts_at(name), clock, become)
  for _, bad in pairs(gauge.bad or {}) do
    bad.passed_over_until = min(bad.passed_over_until, clock + BOUND.GAUGE_PASSED_OVER_US)
  end
  if gauge.due then
    lib.timer_clear(gauges.ORDER, name)
    gauge.due = nil
  end
  lib.order_gauge(name)
end

-- ---- What is shown ----

-- A gauge as views have it: {its JSON, when the last good reading was asked, what it counted, what of that is outside,
-- when reading failed last, why}; or nil.
function lib.show_gauge(name, limit_record)
  local gauge = limit_record.gauged and db.see(RECORD.gauge, name)
  if not gauge then
    return nil
  end
  local read_at = gauge.read_at or false
  return {
    gauge.said, read_at, read_at and gauge.sum, read_at and limit_record.external, gauge.failed_at or false,
    gauge.error or false,
  }
end

-- The JSON of a gauge; or nil.
function lib.said_gauge(name)
  local gauge = lib.gauge_of(name)
  return gauge and gauge.said
end
