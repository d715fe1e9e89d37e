-- The moments of a schedule: which is next, which are due, where it stands in the order in which schedules fire, and
-- whether it wants a plan.
--
-- A schedule is a record by its id. Its timing is {cron, zone, every, starts_at, ends_at, jitter}, false for what is
-- not there; the job that each moment makes lies apart, as Rust packed it (maps 'sj:…'), since it is long and rarely
-- read. Its plan is {moment, due, passed, …}. Sets: 'sd' the order in which schedules fire, by their place; 'sp' those
-- that want a plan, by when they asked; 'sw' those with a due moment that waits for their own jobs or for a plan; 'sl' all ids, and
-- 'so:OWNER' those of an owner, score 0; 'sq' those that were paused when they last changed, by the end of the pause: one
-- that is over stays until the schedule changes, since a pause that ends by itself is no step.
-- A calendar is nowhere here: an interval is arithmetic, and of a cron expression only what was planned is known.

sets.watch({ 'sp', 'sd' })

-- `floor(head * whole / 2^32)`, in two halves: the product is above 2^53. `whole` is below 2^37.
function lib.share(head, whole)
  local high, low = floor(head / 65536), head % 65536
  local upper = whole * high
  return floor((floor(upper / 65536) * 4294967296 + (upper % 65536) * 65536 + whole * low) / 4294967296)
end

-- The first 32 bits of SHA-1.
function lib.hash_head(said)
  return tonumber(sub(redis.sha1hex(said), 1, 8), 16)
end

-- Whole seconds of a moment, and the first whole second at or after it. (`%` is not exact for such numbers.)
local function seconds(at)
  return (at - math.fmod(at, BOUND.SECOND_US)) / BOUND.SECOND_US
end

function lib.round_up(at)
  local rest = math.fmod(at, BOUND.SECOND_US)
  return rest == 0 and at or at + BOUND.SECOND_US - rest
end

-- A moment in whole seconds, as the ids of jobs have it: 2026-12-01T08:00:00Z. Days become a date by the algorithm of
-- Howard Hinnant's `civil_from_days`.
local function written(at)
  local s = seconds(at)
  local days = floor(s / 86400)
  local z = days + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local day = doy - floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  local rest = s - days * 86400
  return format('%04d-%02d-%02dT%02d:%02d:%02dZ', year, month, day, floor(rest / 3600), floor(rest / 60) % 60,
    rest % 60)
end

-- The id of the job that a schedule makes at a moment.
function lib.moment_id(id, at)
  return id .. '@' .. written(at)
end

-- When a moment is due: at most `jitter` late, and always before the moment that follows it.
local function due_of(id, moment, following, jitter)
  local whole = following and min(jitter, following - moment) or jitter
  if whole == 0 then
    return moment
  end
  return moment + lib.share(lib.hash_head(lib.moment_id(id, moment)), whole)
end

function lib.is_cron(schedule_record)
  return schedule_record.timing[TIMING_AT.cron] and true or false
end

-- How many of the due moments may fire.
function lib.keeps(schedule_record)
  return schedule_record.catch_up == CATCH_UP.all and schedule_record.catch_up_max or 1
end

-- Until when it is paused; or nil.
function lib.pause_of(schedule_record, now)
  local till = schedule_record.paused_until
  return till and till > now and till or nil
end

-- The moment from which an interval counts.
local function anchor_of(id, schedule_record)
  local timing = schedule_record.timing
  local starts_at, every = timing[TIMING_AT.starts_at], timing[TIMING_AT.every]
  if schedule_record.moved then
    return schedule_record.moved
  elseif starts_at then
    return lib.round_up(starts_at)
  end
  return lib.share(lib.hash_head(id), every / BOUND.SECOND_US) * BOUND.SECOND_US
end

-- The first moment of an interval after another one; or nil.
local function interval_after(id, schedule_record, after)
  local timing = schedule_record.timing
  local every, ends_at = timing[TIMING_AT.every], timing[TIMING_AT.ends_at]
  local following = anchor_of(id, schedule_record)
  if after >= following then
    local steps = floor((seconds(after) - following / BOUND.SECOND_US) / (every / BOUND.SECOND_US)) + 1
    following = following + steps * every
  end
  if following > (ends_at or lib.FOREVER) or following >= lib.FOREVER then
    return nil
  end
  return following
end

-- A moment of an interval with its jitter; one that a `next_in` set has none.
local function interval_due(id, schedule_record, moment)
  if schedule_record.moved == moment then
    return moment
  end
  local timing = schedule_record.timing
  local following = moment + timing[TIMING_AT.every]
  local ends_at = timing[TIMING_AT.ends_at]
  if ends_at and following > ends_at then
    following = nil
  end
  return due_of(id, moment, following, timing[TIMING_AT.jitter])
end

-- The next moment that is not decided, as far as it is known: moment, due; or nil.
function lib.next_known(id, schedule_record)
  if lib.is_cron(schedule_record) then
    return unpack(schedule_record.plan, 1, 2)
  end
  local moment = interval_after(id, schedule_record, schedule_record.cursor)
  if moment then
    return moment, interval_due(id, schedule_record, moment)
  end
end

-- Whether no moment is left.
function lib.has_ended(id, schedule_record)
  if lib.is_cron(schedule_record) then
    return schedule_record.planned_all and #schedule_record.plan == 0 or false
  end
  return schedule_record.paused_until ~= lib.FOREVER
    and not interval_after(id, schedule_record, schedule_record.cursor)
end

-- The moments that are due: how many, and the first; or nil.
function lib.due_moments(id, schedule_record, now)
  if lib.is_cron(schedule_record) then
    local plan, n = schedule_record.plan, 0
    while plan[n * 3 + 2] and plan[n * 3 + 2] <= now do
      n = n + 1
    end
    if n > 0 then
      return n, (unpack(plan, 1, 1))
    end
    return nil
  end
  local first = interval_after(id, schedule_record, schedule_record.cursor)
  if not first or interval_due(id, schedule_record, first) > now then
    return nil
  end
  local timing = schedule_record.timing
  local every = timing[TIMING_AT.every]
  local last = min(timing[TIMING_AT.ends_at] or now, now)
  local n = floor((seconds(last) - first / BOUND.SECOND_US) / (every / BOUND.SECOND_US)) + 1
  -- The jitter of the newest may lie ahead; that of the one before it never leads beyond it.
  if n > 1 and interval_due(id, schedule_record, first + (n - 1) * every) > now then
    n = n - 1
  end
  return n, first
end

-- The nth of the due moments, from 1: moment, due.
function lib.due_moment(id, schedule_record, first, n)
  if lib.is_cron(schedule_record) then
    local plan = schedule_record.plan
    return plan[n * 3 - 2], plan[n * 3 - 1]
  end
  local moment = first + (n - 1) * schedule_record.timing[TIMING_AT.every]
  return moment, interval_due(id, schedule_record, moment)
end

-- Takes the first n of the plan out; the sum of what they passed.
local function drain_plan(schedule_record, n)
  local plan, left, passed = schedule_record.plan, {}, 0
  for i = 1, n do
    passed = passed + plan[i * 3]
  end
  for i = n * 3 + 1, #plan do
    left[#left + 1] = plan[i]
  end
  schedule_record.plan = left
  return passed
end

-- Takes the first n of the due moments out: they are decided. How many more lay between them, which were not kept when
-- they were planned.
function lib.decide(id, schedule_record, first, n)
  if n == 0 then
    return 0
  end
  local last, passed = lib.due_moment(id, schedule_record, first, n), 0
  if lib.is_cron(schedule_record) then
    passed = drain_plan(schedule_record, n)
    -- It is a moment as the others from now on. (An interval counts from it.)
    if schedule_record.moved and schedule_record.moved <= last then
      schedule_record.moved = nil
    end
  end
  schedule_record.cursor = max(schedule_record.cursor, last)
  schedule_record.decided = max(schedule_record.decided, last)
  return passed
end

-- Whether it wants a plan: fewer than two planned moments lie ahead, and more may follow.
local function wants_plan(schedule_record, now)
  if not lib.is_cron(schedule_record) or schedule_record.shell or schedule_record.planned_all
    or schedule_record.paused_until == lib.FOREVER then
    return false
  end
  local plan = schedule_record.plan
  local n = #plan
  return not (n >= 6 and plan[n - 4] > now)
end

-- The plan is this moment alone, if the schedule does not end before it.
function lib.plan_moved(schedule_record, moved)
  local ends_at = schedule_record.timing[TIMING_AT.ends_at]
  local beyond = ends_at and moved > ends_at or false
  schedule_record.planned_all = beyond
  schedule_record.plan = beyond and {} or { moved, moved, 0 }
end

-- Forgets what was planned, and lets no moment up to `cursor` count. A moment that a `next_in` set counts if it lies
-- behind it.
function lib.begin_after(schedule_record, cursor)
  schedule_record.cursor, schedule_record.plan, schedule_record.planned_all = cursor, {}, false
  local moved = schedule_record.moved
  if moved and lib.is_cron(schedule_record) and moved > cursor then
    lib.plan_moved(schedule_record, moved)
  end
end

-- Takes further moments, {moment, due, passed, …}. Of those that are more than a plan may hold the oldest leave, and the
-- one after them counts them.
function lib.extend_plan(schedule_record, moments, last)
  local plan = schedule_record.plan
  for i = 1, #moments do
    plan[#plan + 1] = moments[i]
  end
  schedule_record.planned_all = last
  local over = #plan / 3 - BOUND.PLAN_AHEAD - lib.keeps(schedule_record)
  if over > 0 then
    local left = drain_plan(schedule_record, over) + over
    local ahead = schedule_record.plan
    ahead[3] = ahead[3] + left
  end
end

-- Takes the plan that came with a new timing, {from, moments, last, data}: moments up to the cursor are cut off, and a
-- plan that was computed from a moment after the cursor is of no use.
function lib.take_first_plan(schedule_record, plan, now)
  local cursor, moments = schedule_record.cursor, {}
  if plan.from > cursor or #schedule_record.plan > 0 then
    return
  end
  for i = 1, #plan.moments, 3 do
    if plan.moments[i] > cursor then
      local n = #moments
      moments[n + 1], moments[n + 2] = plan.moments[i], plan.moments[i + 1]
      moments[n + 3] = n == 0 and 0 or plan.moments[i + 2]
    end
  end
  local some, last = lib.of_known_zones(schedule_record, moments, plan.last, plan.data, now)
  lib.note_zones(schedule_record, plan.data)
  lib.extend_plan(schedule_record, some, last)
end

-- The last moment that is known: the last that is planned, otherwise the cursor.
function lib.last_known(schedule_record)
  local plan = schedule_record.plan
  return plan[#plan - 2] or schedule_record.cursor
end

-- ---- Orders ----

-- Takes a schedule out of every order; when it asked for a plan stays known.
function lib.leave_orders(id, schedule_record)
  if schedule_record.place then
    sets.rem('sd', id)
    schedule_record.place = nil
  elseif schedule_record.awaits or schedule_record.wanted_at and #schedule_record.plan > 0 then
    sets.rem('sw', id)
  end
  if schedule_record.wanted_at then
    sets.rem('sp', id)
  end
  if schedule_record.paused_until then
    sets.rem('sq', id)
  end
end

-- Puts a schedule where it belongs after any change of it: into the order in which schedules fire, by the moment at which
-- it is next due or, if it was left due, by `again`; among those that wait for their own jobs; or nowhere. And among
-- those that want a plan.
function lib.order_schedule(id, schedule_record, again, now)
  lib.leave_orders(id, schedule_record)
  if schedule_record.shell then
    return
  end
  local till = lib.pause_of(schedule_record, now)
  if till then
    sets.add('sq', till, id)
  end
  if wants_plan(schedule_record, now) then
    schedule_record.wanted_at = schedule_record.wanted_at or now
    lib.timer_set('sp', schedule_record.wanted_at, id)
  else
    schedule_record.wanted_at = nil
  end
  local _, due = lib.next_known(id, schedule_record)
  if not due or till == lib.FOREVER then
    return
  end
  if schedule_record.awaits then
    sets.add('sw', due, id)
    return
  end
  local place = due > now and due or again or due
  schedule_record.place = place
  sets.add('sd', place, id)
  if place > now or not db.firing then
    lib.sooner(place)
  end
end

-- Takes a schedule out of the order in which schedules fire, until a plan puts it back.
function lib.wait_for_plan(id, schedule_record, now)
  if schedule_record.place then
    sets.rem('sd', id)
    schedule_record.place = nil
  end
  if not schedule_record.wanted_at then
    schedule_record.wanted_at = now
    lib.timer_set('sp', now, id)
  end
  local _, due = lib.next_known(id, schedule_record)
  if due then
    sets.add('sw', due, id)
  end
end

-- How many schedules there are, are paused, and have a moment that is due; and since when the one is due whose turn is
-- next, or that waits longest. Before this call has changed anything.
function lib.schedule_stats(now)
  local function count(key, low, high)
    return call('ZCOUNT', db.prefix .. key, low, high)
  end
  local id = sets.due('sd', now)
  local _, oldest = sets.first('sw')
  if id then
    local _, due = lib.next_known(id, db.get(RECORD.schedule, id))
    oldest = min(oldest or due, due)
  end
  return {
    count = call('ZCARD', db.prefix .. 'sl'), paused = count('sq', '(' .. text(now), '+inf'),
    due = count('sd', '-inf', text(now)) + call('ZCARD', db.prefix .. 'sw'), oldest_due_at = oldest,
  }
end

-- The clock was set back, and this is the time now: moments that were decided come again, and make the same ids;
-- otherwise a leap of a year would silence a daily schedule for a year. A moment that a `next_in` set stays.
function lib.set_schedule_back(id, now)
  local schedule_record = db.get(RECORD.schedule, id)
  if not schedule_record or schedule_record.shell then
    return
  end
  lib.leave_orders(id, schedule_record)
  schedule_record.wanted_at = nil
  if schedule_record.cursor > now and not lib.pause_of(schedule_record, now) then
    schedule_record.decided = min(schedule_record.decided, now)
    lib.begin_after(schedule_record, now)
  end
  lib.order_schedule(id, schedule_record, nil, now)
end

-- Names the schedules that want a plan, those that asked first. Each is named again a second later, behind all others,
-- if no plan came meanwhile. {id, version, timing, after, keeps} each.
function lib.ask_for_plans(now)
  local wanted = {}
  while #wanted < BOUND.FIRE_MAX do
    local id = sets.take_due('sp', now)
    if not id then
      break
    end
    local schedule_record = db.get(RECORD.schedule, id)
    schedule_record.wanted_at = now + BOUND.PLAN_AGAIN_US
    lib.timer_set('sp', schedule_record.wanted_at, id)
    wanted[#wanted + 1] = {
      id, schedule_record.version, schedule_record.timing, lib.last_known(schedule_record), lib.keeps(schedule_record),
    }
  end
  return wanted
end

-- The soonest moment at which moments of schedules are to be decided; or nil.
function lib.next_fire()
  return sets.lowest('sd')
end
