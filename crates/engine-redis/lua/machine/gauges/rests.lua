-- Gauges: when each is read, what a reading says of work outside, and which permits rest until the next one.
--
-- In use are the permits of live leases, those that rest, and `external`. Every run of ours is in one of the first two
-- until a reading was asked that shows what has become of it, so none falls between two counts. Nothing here reads.
--
-- The gauge of a limit is a record by the limit's name, and the limit's own says `gauged`: {said (its JSON, which only
-- Rust reads), source, every, lag, stale, on_stale, fresh; number, asked_at, due; claimed_at, reader; read_at, sum;
-- failing_since, failed_at, error; bad}. `rests` are permits whose lease was settled, and `doubts` those of which it was
-- not, so that their run may not even have begun; both by the end of the lease. A member is {number, weight, until} and
-- {number, weight, until, granted_at}, with colons between; `until` is the end of the gap or the quarantine that they
-- owe besides. Doubts are few, and looked at one by one.
-- Sets: 'gz' has when each attempt begins or has begun unclaimed, 'gr' which processes read and when they said so.

local gauges = {}
lib.gauges = gauges

local function rests_at(name)
  return 'gs:' .. name
end
local function doubts_at(name)
  return 'gd:' .. name
end
gauges.rests_at, gauges.doubts_at = rests_at, doubts_at

-- ---- Rests ----

-- What a member of rests or of doubts says.
function lib.read_rest(member)
  local weight, till, granted_at = member:match('^%d+:(%d+):(%d+):?(%d*)$')
  return { weight = tonumber(weight), ['until'] = tonumber(till), granted_at = tonumber(granted_at) }
end

-- A reading that is asked later than this shows what has become of a run that was granted then.
function gauges.doubt_shown_after(gauge, rest, ended_at)
  return max(ended_at, rest.granted_at + gauge.lag)
end

-- The gauge keeps a permit no longer; a gap or a quarantine may.
local function rest_shown(name, limit_record, rest, now)
  limit_record.resting_sum = limit_record.resting_sum - rest.weight
  if rest['until'] > now then
    lib.rest_until(name, limit_record, rest.weight, rest['until'])
  end
end

-- Ends rests that ended before a moment, and doubts of which `is_over` says so.
function gauges.end_rests(name, limit_record, gauge, ended_before, is_over, now)
  local rests, doubts = gauge.rests, gauge.doubts
  while true do
    local member, ended_at = inner.first(rests, rests_at(name))
    if not member or ended_at >= ended_before then
      break
    end
    inner.rem(rests, rests_at(name), member)
    rest_shown(name, limit_record, lib.read_rest(member), now)
  end
  local over = {}
  for member, ended_at in inner.each(doubts, doubts_at(name)) do
    if is_over(lib.read_rest(member), ended_at) then
      over[#over + 1] = member
    end
  end
  for _, member in ipairs(over) do
    inner.rem(doubts, doubts_at(name), member)
    rest_shown(name, limit_record, lib.read_rest(member), now)
  end
end

-- Permits rest at a gauge: {ended_at, granted_at (of one that was not settled), weight, until}.
function lib.add_gauge_rest(name, limit_record, rest)
  local gauge = db.get(RECORD.gauge, name)
  local member = text(db.number()) .. ':' .. text(rest.weight) .. ':' .. text(rest['until'])
  if rest.granted_at then
    inner.add(gauge.doubts, doubts_at(name), rest.ended_at, member .. ':' .. text(rest.granted_at))
  else
    inner.add(gauge.rests, rests_at(name), rest.ended_at, member)
  end
  limit_record.resting_sum = limit_record.resting_sum + rest.weight
end

-- Tells of each rest of a limit's gauge, and when its lease ended.
function lib.each_gauge_rest(name, limit_record, tell)
  local gauge = limit_record.gauged and db.get(RECORD.gauge, name)
  if not gauge then
    return
  end
  for member, ended_at in inner.each(gauge.rests, rests_at(name)) do
    tell(lib.read_rest(member), ended_at)
  end
  for member, ended_at in inner.each(gauge.doubts, doubts_at(name)) do
    tell(lib.read_rest(member), ended_at)
  end
end

-- How many permits of a limit rest at its gauge.
function lib.gauge_resting(name, limit_record)
  local sum = 0
  lib.each_gauge_rest(name, limit_record, function(rest)
    sum = sum + rest.weight
  end)
  return sum
end

-- A permit came back: it rests until a reading shows what has become of its run.
function lib.rest_for_gauge(name, limit_record, weight, unsettled, till, now)
  lib.add_gauge_rest(name, limit_record, { ended_at = now, granted_at = unsettled, weight = weight, ['until'] = till })
  lib.order_gauge(name)
  lib.arm_limit(name)
end

-- ---- What may be granted on it ----

-- Only a reading that was asked after this says anything of what was granted before the store forgot.
function gauges.counts_from(gauge)
  local recovered_at = db.space.recovered_at
  return recovered_at and recovered_at + gauge.lag or 0
end

-- Whether the last good reading counts as `on_stale` says.
function gauges.is_stale(gauge, now)
  return gauge.read_at and gauge.read_at + gauge.stale <= now
end

-- Whether the last attempt failed a short time ago: until that is over the next one keeps to `every`.
function gauges.has_failed(gauge, now)
  return gauge.failed_at and gauge.failed_at + gauge.every + BOUND.GAUGE_ATTEMPT_US > now
end

-- Whether a permit may be granted on what is known: a reading that is fresh, or an older one for a while after an attempt
-- at a new one failed.
function gauges.may_be_used(gauge, now)
  local read_at = gauge.read_at
  if not read_at or read_at < gauges.counts_from(gauge) then
    return false
  end
  return read_at + gauge.fresh >= now
    or gauges.has_failed(gauge, now) and (gauge.on_stale == ON_STALE.keep or not gauges.is_stale(gauge, now))
end

-- The same for a limit; one without a gauge always may.
function lib.gauge_may_be_used(name, limit_record, now)
  return not limit_record.gauged or gauges.may_be_used(db.get(RECORD.gauge, name), now)
end
