-- The audit of schedules: their unfinished jobs against those that were counted, and where they stand in the orders.
--
-- It only reads. The jobs were added up by those that have rows, in machine/audit/things.

local audit = lib.audit

-- That it stands where something moves it on, and nowhere if no moment of it may fire.
local function check_place(id, schedule_record, name, now)
  local stands = schedule_record.place or schedule_record.wanted_at or schedule_record.awaits
  local fires = not schedule_record.shell and not lib.has_ended(id, schedule_record)
    and lib.pause_of(schedule_record, now) ~= lib.FOREVER
  audit.check(not fires or stands, 'schedule_stranded', name)
  audit.check(fires or not stands, 'schedule_ordered_idle', name)
  audit.check(not schedule_record.awaits or schedule_record.overlap == OVERLAP.queue and schedule_record.unfinished > 0,
    'awaits_no_job', name)
  local place, due = schedule_record.place, nil
  if not schedule_record.shell then
    local _, at = lib.next_known(id, schedule_record)
    due = at
  end
  -- One that was left due stands behind those that came meanwhile.
  audit.check(not place or due == place or due and max(due, place) <= now, 'fires_at_other', name, place or false,
    due or false)
  audit.check_timer('sd', id, place, name)
  audit.check_timer('sp', id, schedule_record.wanted_at, name)
  audit.check_timer('sw', id, schedule_record.awaits and due or nil, name)
  audit.add('firing', 'all', place and 1 or 0)
  audit.add('planning', 'all', schedule_record.wanted_at and 1 or 0)
  audit.add('awaiting_jobs', 'all', schedule_record.awaits and 1 or 0)
end

local function check_plan(schedule_record, name)
  local plan, before = schedule_record.plan, schedule_record.cursor
  local ascends = #plan % 3 == 0
  for at = 1, #plan, 3 do
    ascends = ascends and plan[at] > before
    before = plan[at]
  end
  audit.check(ascends, 'plan_unordered', name)
end

function audit.schedule(id, now)
  local name = { 'schedule', id }
  local schedule_record = db.get(RECORD.schedule, id)
  audit.spend(2)
  local shell, owner = schedule_record.shell, schedule_record.owner
  audit.check(not shell or schedule_record.unfinished > 0, 'kept_for_no_job', name)
  audit.check(shell or sets.score('sl', id), 'in_no_list', name)
  audit.check(shell or maps.get(lib.scheduled_job_home(id)), 'makes_no_job', name)
  audit.check(not owner or sets.score('so:' .. owner, id), 'unknown_to_owner', name, owner or '')
  check_place(id, schedule_record, name, now)
  check_plan(schedule_record, name)
  if audit.sums then
    local jobs = audit.sum_of('unfinished', id)
    audit.check(not jobs or jobs == schedule_record.unfinished, 'unfinished_differ', name, schedule_record.unfinished,
      jobs or 0)
  end
  audit.add('said_unfinished', 'all', schedule_record.unfinished)
  audit.add('schedules', 'all', shell and 0 or 1)
  if owner then
    audit.add('owned', owner, 1)
  end
end

-- That an owner has no more schedules than were found; after all of them were.
function audit.owners()
  for owner in pairs((audit.sums['owned/'] or { of = {} }).of) do
    local owned, there = audit.sum_of('owned', owner), call('ZCARD', db.prefix .. 'so:' .. owner)
    audit.spend(0.1)
    audit.check(not owned or owned == there, 'owned_differ', { 'owner', owner }, there, owned or 0)
  end
end
