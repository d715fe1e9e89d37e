-- Events: what a call did, in one entry of the stream of its namespace, written in the very step of what it did.
--
-- A call gathers items while it works. An item is a packed list: the letters of a type and its fields in the order of
-- `tenure_core::events`, false for null, where the lease of an event is {fence, row, holder or false, {ttl, timeout,
-- limits, resources}} and stands for its fence and its holder too; or one item for many jobs that were pushed, granted or
-- succeeded together, whose ids follow it. The reader makes single events of them, and the ids of leases (src/decode/events.rs). Nothing that
-- came from outside is ever in an item but names, and the end of an error.
--
-- Events are numbered without holes. The entry of a call has the number of its last event as its id in the stream 'ev',
-- so that the entry of any number is found by its id. Which entries go when there are too many bytes is known without
-- reading them: the stream is counted in segments, each the number of its last event, its bytes and its entries, in the
-- list 'evs'; whole segments go, oldest first. What was written behind the last segment is counted in the namespace's
-- record.

local STREAM, SEGMENTS, FIELD = 'ev', 'evs', EVENT_FIELD.entry
-- What an entry begins with: when it was, and how many events it has.
local HEAD_FORM, HEAD_BYTES = '>I7I4', 11
-- More parts of an entry become one.
local PARTS_MAX = 64
-- What an entry takes beside its text.
local ENTRY_BYTES = 32
-- A segment ends before it has more entries, or more than this part of all bytes that are kept. A call drops at least one
-- whole segment, so it may not hold more than a call may drop.
local SEGMENT_ENTRIES, SEGMENTS_OF_ALL = BOUND.EVENTS_TRIM_MAX / 2, 32
local SEGMENT_FORM = '>I7I7I3'
-- So many segments are looked at together.
local LOOK = 16

-- ---- What happens ----

-- Whether what happens in this call is kept at all.
local function is_kept()
  return not db.copying and db.space.events_bytes > 0
end
lib.keeps_events = is_kept

-- `ids`: what follows the item, whose list says how long it is. (It is never packed: a string of Lua that is made once
-- more for each of a thousand jobs is what a call costs most.)
local function add(item, many, ids)
  local events = db.events
  local n = #events
  events[n + 1], events[n + 2] = cmsgpack.pack(item), ids
  db.happened = db.happened + many
end

-- Something happened: its type and its fields.
function lib.event(...)
  if is_kept() then
    add({ ... }, 1)
  end
end

-- The end of an error, as events have it; or false.
local function end_of(why)
  if type(why) == 'string' then
    return sub(why, -BOUND.EVENT_ERROR_BYTES)
  end
  return why or false
end

-- The names of a job that its events begin with.
local function names_of(job)
  return job.id, db.see(RECORD.shape, job.shape).qn, job.flow or false,
    job.origin and job.origin[ORIGIN_AT.schedule] or false
end

-- Something happened to a job.
function lib.job_event(kind, job, ...)
  if is_kept() then
    local id, queue, flow, schedule = names_of(job)
    add({ kind, id, queue, flow, schedule, ... }, 1)
  end
end

-- A lease as events have it.
local function shown(lease)
  return { lease.fence, lease.seq, lease.holder or false, lib.held_by(lease) }
end

-- A lease was granted; its job, unless it has none.
function lib.granted_event(lease, job)
  if not is_kept() then
    return
  elseif job then
    lib.job_event(EVENT.job_granted, job, shown(lease), job.ended + 1)
  else
    lib.event(EVENT.lease_granted, shown(lease))
  end
end

-- A lease without a job has ended.
function lib.lease_event(lease, outcome)
  if is_kept() then
    lib.event(EVENT.lease_ended, shown(lease), outcome)
  end
end

-- A job that runs was asked to stop.
function lib.cancel_event(job)
  if is_kept() then
    lib.job_event(EVENT.job_cancel_requested, job, shown(job.lease))
  end
end

local FINISHED = {
  [STATE.succeeded] = EVENT.job_succeeded, [STATE.failed] = EVENT.job_failed, [STATE.cancelled] = EVENT.job_cancelled,
}
local GOES_ON = {
  [OUTCOME.failed] = EVENT.job_retrying, [OUTCOME.snoozed] = EVENT.job_snoozed, [OUTCOME.lost] = EVENT.job_lost,
  [OUTCOME.released] = EVENT.job_released,
}

-- A run of a job has ended under this lease: its state now, and when it may run again.
function lib.run_event(job, lease, attempt, outcome, state, run_at, why)
  if not is_kept() then
    return
  end
  local finished = FINISHED[state]
  if finished then
    lib.job_event(finished, job, attempt, end_of(why), shown(lease))
  else
    lib.job_event(GOES_ON[outcome], job, attempt, shown(lease), run_at, end_of(why))
  end
end

-- A job is cancelled that does not run.
function lib.cancelled_event(job, why)
  lib.job_event(EVENT.job_cancelled, job, false, end_of(why), false)
end

-- ---- Many at once ----

-- Jobs were pushed into a queue: their ids, each on a line.
function lib.pushed_event(queue, ids, many, flow, schedule)
  if is_kept() then
    add({ EVENT.job_pushed, queue, #ids, flow or false, schedule or false }, many, ids)
  end
end

-- Jobs that went the short way were granted, or succeeded: their ids, each on a line, the names of their leases, or the
-- fence and the row of the first of those that follow each other; what is the same for all of their leases; and, where
-- each holds one limit of its own, the names of these, each on a line, and their weights.
function lib.together_event(kind, queue, ids, leases, many, holder, held, limits, weights)
  add({ kind, queue, #ids, leases, many, holder or false, held, limits or false, weights or false }, many, ids)
end

-- Jobs that went the short way have succeeded: `rest` is what their lives have in common.
function lib.succeeded_event(rest, shape, ids, leases, many, limits, weights)
  if is_kept() then
    local held = lib.held_together(rest.ttl, rest.granted_at, rest.deadline, rest.limits)
    lib.together_event(RUN_EVENT.succeeded, shape.qn, ids, leases, many, rest.holder, held, limits, weights)
  end
end

-- What such leases hold, as `held_by` tells it.
function lib.held_together(ttl, granted_at, deadline, limits)
  return { ttl, deadline and deadline - granted_at or 0, limits or {}, {} }
end

-- ---- Lives of a stream ----

-- Whoever read events before is to know that some may be missing.
function lib.begin_life(now)
  local space = db.space
  space.events_life = max(now, (space.events_life or 0) + 1)
end

-- All that was kept goes.
local function forget_all(space)
  db.forgets_events = true
  space.events_first, space.events_kept, space.segment_bytes, space.segment_entries = space.events_last + 1, 0, 0, 0
end

-- So many bytes of events are kept from now on. What happens while none are is not numbered, so that a new life begins
-- with the first that is.
function lib.keep_events(bytes, now)
  local space = db.space
  local had = space.events_bytes
  space.events_bytes = bytes
  if bytes == 0 and had > 0 then
    forget_all(space)
  elseif bytes > 0 and had == 0 then
    lib.begin_life(now)
  end
end

-- ---- Writing ----

-- What is behind the last segment becomes one, if an entry of so many bytes is too much for it.
local function close_segment(space, bytes)
  local n = space.segment_entries
  if n == 0 or n < SEGMENT_ENTRIES and space.segment_bytes + bytes <= space.events_bytes / SEGMENTS_OF_ALL then
    return nil
  end
  local segment = struct.pack(SEGMENT_FORM, space.events_last, space.segment_bytes, n)
  space.segment_bytes, space.segment_entries = 0, 0
  return segment
end

-- Makes room for an entry of so many bytes: drops the oldest segments, and `closed` with them if need be. How many of
-- the list go, and the segment that is to be put behind it. A list that is not there is not asked for, since a slot may be
-- on its way.
local function make_room(space, bytes, closed, has_segments)
  local gone, left = 0, BOUND.EVENTS_TRIM_MAX
  local function drop(segment)
    local last, its_bytes, entries = struct.unpack(SEGMENT_FORM, segment)
    if entries > left or space.events_kept + bytes <= space.events_bytes then
      return false
    end
    left = left - entries
    space.events_kept, space.events_first = space.events_kept - its_bytes, last + 1
    return true
  end
  while has_segments and space.events_kept + bytes > space.events_bytes do
    local some = call('LRANGE', db.prefix .. SEGMENTS, gone, gone + LOOK - 1)
    for _, segment in ipairs(some) do
      if not drop(segment) then
        return gone, closed
      end
      gone = gone + 1
    end
    has_segments = #some == LOOK
  end
  if closed and drop(closed) then
    closed = nil
  end
  return gone, closed
end

-- The arguments of an entry, behind its id, and the bytes that it takes. Few items stand beside each other as they are.
local function entry_of(space)
  local events = db.events
  if #events > PARTS_MAX then
    events = { concat(events) }
  end
  local entry, bytes = { false, FIELD, struct.pack(HEAD_FORM, space.last, db.happened) }, HEAD_BYTES + ENTRY_BYTES
  for i = 1, #events do
    local part = events[i]
    entry[i * 2 + 2], entry[i * 2 + 3], bytes = FIELD, part, bytes + #part
  end
  return entry, bytes
end

-- Puts what happened in this call into what it writes.
function lib.write_events(out)
  local space, many = db.space, db.happened
  if db.forgets_events then
    out(STREAM).gone, out(SEGMENTS).gone = true, true
  end
  if many == 0 then
    return
  end
  local entry, bytes = entry_of(space)
  local has_segments = space.events_kept > space.segment_bytes
  local closed, gone, first = close_segment(space, bytes), 0, space.events_first
  if space.events_kept + bytes > space.events_bytes then
    gone, closed = make_room(space, bytes, closed, has_segments)
  end
  space.events_last = space.events_last + many
  space.events_kept, space.segment_bytes, space.segment_entries = space.events_kept + bytes,
    space.segment_bytes + bytes, space.segment_entries + 1
  local writes = out(STREAM)
  entry[1] = text(space.events_last)
  writes.entry = entry
  writes.trim = space.events_first > first and text(space.events_first) or nil
  if gone > 0 then
    out(SEGMENTS).pop = gone
  end
  if closed then
    out(SEGMENTS).push = { closed }
  end
end

-- ---- Reading ----

-- Where the stream stands.
function lib.stands()
  local space = db.space
  return { life = space.events_life or 0, first = space.events_first, last = space.events_last }
end

-- The same with the bytes that it takes.
function lib.event_stats()
  local stats = lib.stands()
  stats.bytes = db.space.events_kept
  return stats
end

-- The number of the last event of an entry, and its text.
local function read_entry(one)
  local id, fields = unpack(one)
  local parts = {}
  for i = 2, #fields, 2 do
    parts[i / 2] = fields[i]
  end
  return tonumber(sub(id, 1, find(id, '-', 1, true) - 1)), concat(parts)
end

-- The entries from this event on: {number of its last event, text, …}, until they have so many events or bytes.
function lib.entries_from(number, most, most_bytes)
  local found, events, bytes = {}, 0, 0
  while events < most and bytes < most_bytes do
    local some = call('XRANGE', db.prefix .. STREAM, text(number), '+', 'COUNT', LOOK)
    for _, one in ipairs(some) do
      local last, entry = read_entry(one)
      found[#found + 1], found[#found + 2] = last, entry
      events, bytes, number = events + last - number + 1, bytes + #entry, last + 1
    end
    if #some < LOOK then
      break
    end
  end
  return found
end

lib.EVENT_STREAM, lib.EVENT_SEGMENTS = STREAM, SEGMENTS

-- What an entry of the stream has: the number of its last event, how many events, and the bytes that it takes.
function lib.look_at_entry(one)
  local last, entry = read_entry(one)
  local _, many = struct.unpack(HEAD_FORM, entry)
  return last, many, #entry + ENTRY_BYTES
end
