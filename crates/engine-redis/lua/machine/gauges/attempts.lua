-- When a gauge is read, and by whom: the order of attempts, and the claims of processes that read.

local gauges = lib.gauges
local ORDER, READERS = 'gz', 'gr'

gauges.ORDER = ORDER
sets.watch({ ORDER })

-- ---- When it is read ----

function gauges.stands_at(name)
  local door_record = db.get(RECORD.door, DOOR.limit .. name)
  return door_record and door_record.lines.n > 0
end

-- When an attempt begins while somebody stands at the door.
local function attempt_for_door(name, gauge, now)
  local asked_at = gauge.asked_at
  local soonest, at = asked_at + BOUND.GAUGE_CLAIM_US_MIN, asked_at + gauge.every
  if not gauges.may_be_used(gauge, now) and not gauges.has_failed(gauge, now) then
    at = min(at, max(soonest, gauges.counts_from(gauge)))
  end
  -- Only a reading that is asked later than this lets a permit go.
  local function lets_go_after(after)
    if after and after >= asked_at then
      at = min(at, max(soonest, after + 1))
    end
  end
  local _, ended_at = inner.after(gauge.rests, gauges.rests_at(name), asked_at - 1)
  lets_go_after(ended_at)
  for member, its_end in inner.each(gauge.doubts, gauges.doubts_at(name)) do
    lets_go_after(gauges.doubt_shown_after(gauge, lib.read_rest(member), its_end))
  end
  return at
end

-- When an attempt at this gauge is to begin; nil while one is claimed, or nobody needs it.
function lib.next_attempt(name, limit_record, gauge, now)
  local stands = gauges.stands_at(name)
  if gauge.claimed_at or not stands and limit_record.in_use == 0 then
    return nil
  elseif not gauge.asked_at then
    return now
  end
  return stands and attempt_for_door(name, gauge, now) or gauge.asked_at + gauge.every
end

-- Puts a gauge in its place in the order in which gauges are read; nothing of a limit without one. An attempt that has
-- begun stays: it fails if nobody claims it.
function lib.order_gauge(name)
  local limit_record = db.get(RECORD.limit, name)
  if not limit_record or not limit_record.gauged then
    return
  end
  local gauge, now = db.get(RECORD.gauge, name), db.space.last
  local due = gauge.due
  local next_at = lib.next_attempt(name, limit_record, gauge, now)
  if next_at then
    next_at = due and due <= now and due or max(next_at, now)
  end
  if next_at == due then
    return
  elseif next_at then
    lib.timer_set(ORDER, next_at, name)
  else
    lib.timer_clear(ORDER, name)
  end
  gauge.due = next_at
  lib.arm_limit(name)
end

-- The soonest moment at which a process that reads has a gauge to claim; or nil.
function lib.next_gauge()
  return sets.lowest(ORDER)
end

-- ---- Who reads ----

-- These read gauges, as their process says. Those that did not say so for a while are forgotten.
function lib.hear_readers(readers, now)
  for _, reader in ipairs(readers or {}) do
    sets.add(READERS, now, reader)
  end
  for _ = 1, BOUND.STEPS_MAX do
    local reader, said_at = sets.first(READERS)
    if not reader or said_at + BOUND.GAUGE_READER_US > now then
      return
    end
    sets.rem(READERS, reader)
  end
end

-- Whether a process leaves this gauge to others now.
local function passes_over(gauge, reader, now)
  local bad = gauge.bad and gauge.bad[reader]
  return bad and bad.passed_over_until > now
end

-- Whether a process that reads now does not leave this gauge to others.
local function others_can(gauge, reader, now)
  for other, said_at in sets.each(READERS) do
    -- (What was said later than now was said before the clock was set back.)
    if other ~= reader and said_at <= now and said_at + BOUND.GAUGE_READER_US > now and not passes_over(gauge, other, now) then
      return true
    end
  end
  return false
end

-- Notes how an attempt of a process went.
function gauges.tell_of(gauge, reader, failed_at)
  local all = gauge.bad
  if not failed_at then
    if all then
      all[reader] = nil
      gauge.bad = next(all) and all or nil
    end
    return
  end
  -- Nobody reads for more processes than this; what is forgotten is only that one failed.
  local n = 0
  for _ in pairs(all or {}) do
    n = n + 1
  end
  if not all or n > BOUND.GAUGE_CLAIMS_MAX then
    all = {}
    gauge.bad = all
  end
  local bad = all[reader] or { failures = 0, passed_over_until = 0 }
  all[reader] = bad
  bad.failures = bad.failures + 1
  if bad.failures >= BOUND.GAUGE_FAILURES_MAX then
    bad.passed_over_until = failed_at + BOUND.GAUGE_PASSED_OVER_US
  end
end

-- Claims the gauges that are due for a process that reads: {limit, number, asked_at, said} each. One that failed leaves a
-- gauge to those that did not.
function lib.claim_gauges(reader, now)
  local due, claims = {}, {}
  if sets.due(ORDER, now) then
    for name, at in sets.each(ORDER) do
      if at > now or #due >= BOUND.TICK_MAX then
        break
      end
      due[#due + 1] = name
    end
  end
  for _, name in ipairs(due) do
    if #claims == BOUND.GAUGE_CLAIMS_MAX then
      break
    end
    local gauge = db.get(RECORD.gauge, name)
    if not lib.next_attempt(name, db.get(RECORD.limit, name), gauge, now) then
      -- Nobody needs it any more.
      lib.order_gauge(name)
    elseif not (passes_over(gauge, reader, now) and others_can(gauge, reader, now)) then
      gauge.number = gauge.number + 1
      gauge.claimed_at, gauge.reader, gauge.asked_at = now, reader, now
      claims[#claims + 1] = { name, gauge.number, now, gauge.said }
      lib.order_gauge(name)
      lib.arm_limit(name)
    end
  end
  return claims
end
