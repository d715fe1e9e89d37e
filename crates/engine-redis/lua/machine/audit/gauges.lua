-- The audit of a gauge: what rests at it, and that it is read if somebody needs it.

local audit = lib.audit

-- The permits that rest in a set of a gauge, and whether they are too many to be added up.
local function resting(set, key, what, name)
  audit.check_set(set, key, what, name)
  local sum = 0
  for member in audit.some(set, key) do
    sum = sum + lib.read_rest(member).weight
  end
  return sum, set.n > audit.MANY
end

-- The permits that rest at the gauge of a limit, and whether they are too many to be added up.
function audit.gauge(limit, limit_record, name)
  local gauge = db.get(RECORD.gauge, limit) or nil
  audit.spend(1)
  if not audit.check((gauge ~= nil) == (limit_record.gauged or false), 'gauge_unknown', name) or not gauge then
    return 0, false
  end
  audit.check(db.get(RECORD.limit_setting, limit), 'gauge_of_unset', name)
  audit.check(gauge.due or not lib.next_attempt(limit, limit_record, gauge, db.space.last), 'gauge_stranded', name)
  audit.check(not (gauge.due and gauge.claimed_at), 'gauge_due_and_claimed', name)
  audit.check_timer(lib.gauges.ORDER, limit, gauge.due, name)
  audit.add('gauges', 'all', 1)
  audit.add('gauges_due', 'all', gauge.due and 1 or 0)
  local rests, many = resting(gauge.rests, lib.gauges.rests_at(limit), { 'gauge_rests' }, name)
  local doubts, more = resting(gauge.doubts, lib.gauges.doubts_at(limit), { 'gauge_doubts' }, name)
  return rests + doubts, many or more
end
