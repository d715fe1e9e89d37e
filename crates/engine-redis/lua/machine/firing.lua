-- fire and plan: the only calls that decide moments of schedules, and that take moments which were computed.
--
-- A `fire` makes one decision for each of at most 64 schedules. The decision, the job and the new cursor are one step.

-- CRC-32 (ISO 3309), by a table of its bytes: which part of the ids a job lies in (src/bucket.rs).
local CRC

local function crc_table()
  local all, bits = {}, bit
  for n = 0, 255 do
    local c = n
    for _ = 1, 8 do
      c = c % 2 == 1 and bits.bxor(0xEDB88320, bits.rshift(c, 1)) or bits.rshift(c, 1)
    end
    all[n] = c
  end
  return all
end

function lib.bucket(id)
  CRC = CRC or crc_table()
  local bits, c = bit, 0xFFFFFFFF
  for i = 1, #id do
    c = bits.bxor(CRC[bits.band(bits.bxor(c, byte(id, i)), 255)], bits.rshift(c, 8))
  end
  return text(bits.band(bits.bnot(c), 255))
end

-- Where the job of a schedule lies.
function lib.scheduled_job_home(id)
  return 'sj:' .. shard(id), id
end

-- What a schedule makes: {queue, pr, group, needs, retry, timeout, retain, expires_in, body, bytes}.
function lib.scheduled_job(id)
  local packed = maps.get(lib.scheduled_job_home(id))
  return packed and cmsgpack.unpack(packed)
end

-- The job of a schedule as a push brings one: {id, b, body, n, spec, at, ex, origin}. `b`: the part of the ids, if it is
-- known.
function lib.made_by_schedule(scheduled, id, at, expires_at, origin, b)
  local spec = {
    q = scheduled[SCHEDULED_AT.queue], pr = scheduled[SCHEDULED_AT.priority] or nil,
    g = scheduled[SCHEDULED_AT.group] or nil, needs = scheduled[SCHEDULED_AT.needs] or nil,
    retry = scheduled[SCHEDULED_AT.retry] or nil, timeout = scheduled[SCHEDULED_AT.timeout] or nil,
    retain = scheduled[SCHEDULED_AT.retain] or nil,
  }
  return {
    id = id, b = b or lib.bucket(id), body = scheduled[SCHEDULED_AT.body], n = scheduled[SCHEDULED_AT.bytes], spec = spec,
    q = spec.q, at = at, ex = expires_at, origin = origin,
  }
end

-- ---- Firing ----

-- Moments are missed, or skipped, the last of them this one.
local function missed_some(id, moment, n)
  lib.event(EVENT.schedule_missed, id, moment, n)
end

function lib.skipped_some(id, moment, why, n)
  lib.event(EVENT.schedule_skipped, id, moment, why, n)
end

-- A schedule that had moments before has none any more.
function lib.tell_schedule_end(id, schedule_record, had_ended)
  if not had_ended and lib.has_ended(id, schedule_record) then
    lib.event(EVENT.schedule_ended, id)
  end
end

-- The oldest moment that is left: it is skipped, missed, or fires.
local function decide_moment(id, schedule_record, moment, due, default_retry, now)
  local scheduled = lib.scheduled_job(id)
  if not scheduled then
    return
  end
  local queue = scheduled[SCHEDULED_AT.queue]
  local overlaps = schedule_record.overlap == OVERLAP.skip and schedule_record.unfinished > 0
  if overlaps or not lib.has_room(queue, 1) then
    schedule_record.skipped = schedule_record.skipped + 1
    lib.skipped_some(id, moment, overlaps and 'overlap' or 'queue_full', 1)
    local queue_record = db.get(RECORD.queue, lib.queue_for(queue, now))
    queue_record.skipped = (queue_record.skipped or 0) + 1
    return
  end
  local lasts = scheduled[SCHEDULED_AT.expires_in]
  if lasts and due + lasts <= now then
    schedule_record.missed = schedule_record.missed + 1
    missed_some(id, moment, 1)
    return
  end
  local job_id = lib.moment_id(id, moment)
  local part = lib.bucket(job_id)
  local seq = lib.seq_of(job_id, part)
  local there = seq and lib.job(seq)
  if not there or not lib.is_there(there, now) then
    if there then
      -- What is kept beyond its time goes with the job that takes its id.
      lib.forget_finished(there)
    end
    local origin = { id, moment, schedule_record.era }
    local new = lib.made_by_schedule(scheduled, job_id, due, lasts and due + lasts or nil, origin, part)
    lib.queue_for(queue, now)
    lib.store_job(new, default_retry, now)
  end
  schedule_record.fired = schedule_record.fired + 1
  schedule_record.last_at, schedule_record.last_job = moment, job_id
  lib.event(EVENT.schedule_fired, id, job_id, moment)
end

local function decide_one(id, default_retry, now)
  local schedule_record = db.get(RECORD.schedule, id)
  local n, first = lib.due_moments(id, schedule_record, now)
  if not n then
    lib.order_schedule(id, schedule_record, nil, now)
    return
  end
  -- What else is due is not known before a plan says so.
  if lib.is_cron(schedule_record) and not schedule_record.planned_all and n * 3 == #schedule_record.plan then
    lib.wait_for_plan(id, schedule_record, now)
    return
  end
  if schedule_record.overlap == OVERLAP.queue and schedule_record.unfinished > 0 then
    lib.leave_orders(id, schedule_record)
    schedule_record.awaits = true
    lib.order_schedule(id, schedule_record, nil, now)
    return
  end
  local missed = max(n - lib.keeps(schedule_record), 0)
  local _, newest_due = lib.due_moment(id, schedule_record, first, n)
  if schedule_record.catch_up == CATCH_UP.none and now - newest_due > BOUND.CATCH_UP_NONE_US
    and schedule_record.overlap ~= OVERLAP.queue then
    missed = n
  end
  local moment, due
  if missed < n then
    moment, due = lib.due_moment(id, schedule_record, first, missed + 1)
  end
  local last_missed = missed > 0 and lib.due_moment(id, schedule_record, first, missed) or moment
  lib.leave_orders(id, schedule_record)
  local passed = lib.decide(id, schedule_record, first, missed + (moment and 1 or 0))
  schedule_record.missed = schedule_record.missed + missed + passed
  if missed + passed > 0 then
    missed_some(id, last_missed, missed + passed)
  end
  if moment then
    decide_moment(id, schedule_record, moment, due, default_retry, now)
  end
  lib.order_schedule(id, schedule_record, now, now)
  lib.tell_schedule_end(id, schedule_record, false)
end

-- Decides moments that are due, one for each schedule, those that stand first.
function lib.fire(default_retry, now)
  local due = {}
  -- What it leaves due is told by its answer.
  db.firing = true
  if sets.due('sd', now) then
    for id, at in sets.each('sd') do
      if at > now or #due >= BOUND.FIRE_MAX then
        break
      end
      due[#due + 1] = id
    end
  end
  for _, id in ipairs(due) do
    decide_one(id, default_retry, now)
  end
end

-- Takes moments that were computed, {id, version, after, moments, last, data}, if they go on from what is known of the
-- schedule as it is now; otherwise they are dropped without a word.
function lib.plan(plan, now)
  local schedule_record = db.get(RECORD.schedule, plan.id)
  if not schedule_record or schedule_record.shell or not lib.is_cron(schedule_record)
    or schedule_record.version ~= plan.version or lib.last_known(schedule_record) ~= plan.after then
    return
  end
  local moments, last = lib.of_known_zones(schedule_record, plan.moments, plan.last, plan.data, now)
  if not moments then
    return
  end
  local place, had_ended = schedule_record.place, lib.has_ended(plan.id, schedule_record)
  lib.leave_orders(plan.id, schedule_record)
  schedule_record.wanted_at = nil
  lib.note_zones(schedule_record, plan.data)
  lib.extend_plan(schedule_record, moments, last)
  lib.order_schedule(plan.id, schedule_record, place, now)
  lib.tell_schedule_end(plan.id, schedule_record, had_ended)
end

-- ---- The jobs of a schedule ----

-- The schedule with this id, or a shell that counts its unfinished jobs.
function lib.schedule_or_shell(id)
  return db.get(RECORD.schedule, id) or db.put(RECORD.schedule, id, lib.new_shell())
end

-- What is left of a schedule of which nothing but unfinished jobs is known.
function lib.new_shell()
  return {
    shell = true, timing = { false, false, false, false, false, 0 }, overlap = OVERLAP.skip, catch_up = CATCH_UP.last,
    catch_up_max = 1, version = 0, era = 0, cursor = 0, decided = 0, plan = {}, planned_all = false, unfinished = 0,
    fired = 0, skipped = 0, missed = 0, created_at = 0, changed_at = 0, revision = 0,
  }
end

-- A shell in the place of a schedule: it counts the unfinished jobs, and knows the last of them.
function lib.emptied(schedule_record)
  local shell = lib.new_shell()
  shell.unfinished, shell.last_made, shell.last_made_b =
    schedule_record.unfinished, schedule_record.last_made, schedule_record.last_made_b
  return shell
end

-- A job of a schedule was made, or lives again.
function lib.schedule_job_lives(job)
  local schedule_record = lib.schedule_or_shell(job.origin[ORIGIN_AT.schedule])
  schedule_record.unfinished = schedule_record.unfinished + 1
  schedule_record.last_made, schedule_record.last_made_b = job.id, job.b
end

-- A job of a schedule ended, in this state; or, without one, was deleted.
function lib.schedule_job_ended(job, state, now)
  local id = job.origin[ORIGIN_AT.schedule]
  local schedule_record = db.get(RECORD.schedule, id)
  if not schedule_record then
    return
  end
  schedule_record.unfinished = max(schedule_record.unfinished - 1, 0)
  if state then
    -- Many may end in one call, in no order that means anything: the greatest id is shown.
    if schedule_record.ended_at ~= now or schedule_record.ended_job <= job.id then
      schedule_record.ended_job, schedule_record.ended_state, schedule_record.ended_at = job.id, state, now
    end
    if state == STATE.succeeded then
      schedule_record.succeeded_at = now
    end
  end
  if schedule_record.unfinished > 0 then
    return
  end
  if schedule_record.shell then
    db.drop(RECORD.schedule, id)
  elseif schedule_record.awaits then
    lib.stop_awaiting(id, schedule_record, now)
  end
end

-- A due moment waits no longer for the schedule's own jobs.
function lib.stop_awaiting(id, schedule_record, now)
  lib.leave_orders(id, schedule_record)
  schedule_record.awaits = nil
  lib.order_schedule(id, schedule_record, now, now)
end
