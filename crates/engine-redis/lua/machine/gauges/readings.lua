-- What a reading says of work outside, and what an attempt that failed means.

local gauges = lib.gauges

-- ---- What is read ----

-- What follows from every change of what is known of a gauge.
function gauges.changed(name, now)
  lib.order_gauge(name)
  lib.arm_limit(name)
  lib.recheck_marks_of(name, now)
  lib.door_due(DOOR.limit .. name)
end

-- Whether the address must show by now what was granted then.
local function is_shown(gauge, granted_at, asked_at)
  return granted_at + gauge.lag < asked_at
end

-- The weight of our leases that the address must show by now. A fence follows the clock, and is never before the grant:
-- what is shown for sure is known without looking.
local function seen(name, limit_record, gauge, asked_at)
  local key, sum = lib.limit_holders(name), limit_record.in_use
  local member, fence = inner.after(limit_record.holders, key, asked_at - gauge.lag - 1)
  while member do
    local lease = lib.lease(lib.parse_lease(member))
    if lease and not is_shown(gauge, lease.granted_at, asked_at) then
      local held = lib.held_limit(lease, name)
      sum = sum - (held and held[PERMIT_AT.weight] or 0)
    end
    member, fence = inner.after(limit_record.holders, key, fence)
  end
  return sum
end

-- How many of these runs are work outside. Of the runs with the id of a job that holds the limit one is ours, unless it
-- may be the run of a holder that died before.
local function not_ours(name, limit_record, gauge, ids, asked_at)
  local listed, seqs, outside = {}, {}, #ids
  for i = 1, #ids do
    listed[ids[i]] = true
  end
  for member in inner.each(limit_record.holders, lib.limit_holders(name)) do
    local _, seq = lib.parse_lease(member)
    if seq > 0 then
      seqs[#seqs + 1] = seq
    end
  end
  lib.load_jobs(seqs)
  for _, seq in ipairs(seqs) do
    local job = lib.job(seq)
    if job and listed[job.id] and job.lease
      and (not job.ended_unsettled or is_shown(gauge, job.lease.granted_at, asked_at)) then
      outside = outside - 1
    end
  end
  return outside
end

-- A good reading: what it counted, and what of that is work outside.
local function was_read(name, limit_record, gauge, asked_at, sum, external, now)
  local changed = limit_record.external ~= external
  limit_record.external = external
  gauge.read_at, gauge.sum = asked_at, sum
  local failed = gauge.failed_at
  gauge.failing_since, gauge.failed_at, gauge.error = nil, nil, nil
  gauges.tell_of(gauge, gauge.reader)
  gauge.reader = nil
  if failed then
    lib.event(EVENT.gauge_read_again, name)
  end
  if changed then
    lib.event(EVENT.limit_observed, name, false, external)
  end
  gauges.end_rests(name, limit_record, gauge, asked_at, function(rest, ended_at)
    return gauges.doubt_shown_after(gauge, rest, ended_at) < asked_at
  end, now)
  gauges.changed(name, now)
end

-- Whether two errors are the same: texts, or notes.
local function same_error(one, other)
  return one == other
    or type(one) == 'table' and type(other) == 'table' and concat(one) == concat(other)
end

-- An attempt failed that began at `asked_at`; `reader` is nil if nobody claimed it.
function gauges.failed(name, gauge, reader, asked_at, why, now)
  gauge.asked_at, gauge.claimed_at, gauge.reader = asked_at, nil, nil
  local told = same_error(gauge.error, why)
  gauge.failing_since, gauge.failed_at, gauge.error = gauge.failing_since or now, now, why
  if reader then
    gauges.tell_of(gauge, reader, now)
  end
  if not told then
    lib.event(EVENT.gauge_failed, name, why)
  end
  gauges.changed(name, now)
end

-- Takes the answer to a claim, {name, number, asked_at, and sum, ids or why}; one whose claim is over is dropped without
-- a word.
function lib.take_reading(reading, now)
  local name, asked_at = reading.name, reading.asked_at
  local limit_record = db.get(RECORD.limit, name)
  local gauge = limit_record and limit_record.gauged and db.get(RECORD.gauge, name)
  if not gauge or gauge.claimed_at ~= asked_at or gauge.number ~= reading.number then
    return
  end
  gauge.claimed_at = nil
  local sum, external
  if reading.sum and gauge.source == GAUGE.count then
    sum = min(reading.sum, BOUND.GAUGE_SUM_MAX)
    external = max(sum - seen(name, limit_record, gauge, asked_at), 0)
  elseif reading.ids and gauge.source == GAUGE.scrapyd then
    sum = #reading.ids
    external = not_ours(name, limit_record, gauge, reading.ids, asked_at)
  else
    gauges.failed(name, gauge, gauge.reader, asked_at, reading.why or { 'gauge_of_other_kind' }, now)
    return
  end
  was_read(name, limit_record, gauge, asked_at, sum, min(external, BOUND.COUNT_MAX), now)
end
