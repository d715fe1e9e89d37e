-- The namespace's own record, time, and what a call says to the processes that wait.

-- A namespace that knows nothing yet.
function lib.new_space()
  return {
    version = 0, last = 0, pulse = 0, deaf_at = 0, behind = 0,
    fence = 0, arrival = 0, seq = 0, used = 0, number = 0,
    settings = 0, live = 0, pending = inner.new(), families = inner.new(), kept = { 0, 0 },
    ttl_max = 0, ttl_since = 0, ttl_before = 0,
    patience = BOUND.PATIENCE_US_DEFAULT, retain_bytes = 1073741824, next_due = 0,
    signalled = inner.new(), events_last = 0, events_first = 1, events_kept = 0, segment_bytes = 0,
    segment_entries = 0, events_bytes = BOUND.EVENTS_BYTES_DEFAULT,
  }
end

-- What the operator of the calling process says of the namespace, packed, or '': {patience (us) or false,
-- retain_bytes or false, whether this process says it for the first time, events_bytes or false}. It comes with every call, and holds
-- for the very call that it comes with. It counts once for each process, since the last process that was
-- started has the say; and in a namespace that is made by this call, also where the store lost an earlier one
-- of that name. What is not said is left as it is. Answers whether it counted.
function lib.hear_settings(packed)
  if packed == '' then
    return nil
  end
  local space, said = db.space, cmsgpack.unpack(packed)
  if db.raw and not said[SPACE_SAID_AT.first] then
    return nil
  end
  space.patience = said[SPACE_SAID_AT.patience] or space.patience
  space.retain_bytes = said[SPACE_SAID_AT.retain_bytes] or space.retain_bytes
  local events_bytes = said[SPACE_SAID_AT.events_bytes]
  if events_bytes then
    lib.keep_events(events_bytes, space.last)
  end
  return true
end

-- The engine's clock, in microseconds. A test's library reads a key instead.
function lib.clock()
  if TESTING then
    return tonumber(call('GET', db.prefix .. 'now') or '0')
  end
  local time = call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- The moment of a call: the engine's clock, but never before what was seen.
function lib.advance()
  local space = db.space
  space.last = max(space.last, db.clock)
  return space.last
end

-- Something will happen at this moment: who ticks must know it if it is the soonest.
function lib.sooner(at)
  if not db.sooner or at < db.sooner then
    db.sooner = at
  end
end

-- Who ticks is told of a moment that is sooner than what it knows: who set it may be gone by then.
function lib.tell_sooner(at)
  local space = db.space
  if at and space.claim and (space.next_due == 0 or at < space.next_due) then
    space.next_due = at
    db.said[#db.said + 1] = { db.prefix .. 't:', text(at) }
  end
end

-- Timers are ordered sets by moment. Setting one makes the next due moment known.
function lib.timer_set(key, at, what)
  sets.add(key, at, what)
  lib.sooner(at)
end

function lib.timer_clear(key, what)
  sets.rem(key, what)
end

function lib.next_arrival()
  local space = db.space
  space.arrival = space.arrival + 1
  return space.arrival
end

-- The fence of a grant: fences rise, and follow the clock.
function lib.next_fence(now)
  local space = db.space
  space.fence = max(space.fence + 1, now)
  return space.fence
end

-- Which run of a server this is. The library lives as long as its server runs, so it is asked for once.
local run

local function this_run()
  if not run then
    local info = call('INFO', 'server')
    local _, at = find(info, 'run_id:', 1, true)
    run = sub(info, at + 1, at + 40)
  end
  return run
end

-- A ttl that is remembered is remembered at least so long.
local TTL_KEPT_US = 60000000

-- A lease of this ttl was granted, or kept alive. The longest one lately is remembered in two parts: since
-- a moment, and for the time before it. Each such time is at least as long as the longest ttl of both, so a
-- ttl is forgotten only when no lease that was given it can live.
function lib.note_ttl(ttl, now)
  local space = db.space
  local since = space.ttl_since or 0
  local length = max(space.ttl_max, space.ttl_before or 0, TTL_KEPT_US)
  if now >= since + length then
    space.ttl_before = now < since + 2 * length and space.ttl_max or 0
    space.ttl_max, space.ttl_since = 0, now
  elseif now < since then
    space.ttl_since = now
  end
  if ttl > space.ttl_max then
    space.ttl_max = ttl
  end
end

-- ---- Whether this is the store that it was ----
--
-- The field `born` of the namespace's hash tells which store this is: when it was born, and where; and which
-- run of a server wrote it last, once that is another. A stamp is 'MOMENTxRUN' or 'MOMENTxRUN:RUN', with eight
-- letters of a run's id, so that no two births are equal whatever the clocks show. x is '-', or '+' for what an
-- earlier release had written before: nobody knows when that was born.
--
-- It is a field of its own and no part of the record: an earlier release writes the record anew without what
-- it does not know, and would make every process believe that all was lost.

local function set_stamp(stamp)
  db.born = stamp
  maps.set(KEY.meta, 'born', stamp)
end

local function run_name()
  return sub(this_run(), 1, 8)
end

-- The moment of a birth, and all that a stamp tells of it.
local function moment_of(stamp)
  return tonumber(sub(stamp, 1, (find(stamp, '[^0-9]') or 0) - 1)) or 0
end

local function birth_of(stamp)
  return sub(stamp, 1, (find(stamp, ':', 1, true) or 0) - 1)
end

-- Fences above what is remembered now, and below what is granted from now on, may be of leases that were
-- forgotten. (Fences follow the clock.)
local function begin_gap(now)
  db.space.gap = { db.space.fence, now }
end

-- The namespace is written for the first time; or for the first time by a release that stamps it.
function lib.be_born(now)
  set_stamp(text(now) .. (db.raw and '+' or '-') .. run_name())
  if not db.raw then
    db.space.run = this_run()
    begin_gap(now)
    lib.begin_life(now)
  end
end

-- The last moment at which something may have been granted that the caller knows and this store does not. The
-- caller heard of the store that it knew `age` before: that was then. And if that was an earlier one than this,
-- what others were granted there may be of any moment before this one was born.
local function last_known(stamp, age, now)
  local last = now - (age or 0)
  local birth = moment_of(db.born)
  if stamp and moment_of(stamp) < birth then
    last = max(last, birth)
  end
  return min(last, now)
end

-- Looks whether this is the store that it was. `knows` is what the caller knows of the namespace, {this store
-- forgets nothing, name of its key or false, longest ttl lately, its stamp or false, how long ago that was
-- heard of last (us)}, of an earlier release only the first three; or nil, for nothing.
--
-- Another run of a server wrote last, or another server: it was restarted, or a replica took its place.
-- Time in which no store was there does not count: every lease lives at least one ttl of its own from
-- now. And its last writes may be forgotten, unless the operator says that this store forgets nothing:
-- then the namespace learns for as long as a lease that was forgotten may be held. While it learns
-- nothing is reaped, nothing that is exclusive is granted, and holders claim what they hold.
--
-- Where the caller knew another birth, or another key, everything was forgotten, be it that the same server
-- goes on. Others may have come since, and have known less: each tells once, by the stamp that it knew, with
-- the longest ttl that it saw itself, and the longest of all is learnt. Its answer tells the stamp that is
-- there, beside the one that was told, and from then on it knows this one. Who comes when all that it knew is
-- over makes nothing learn. Who knows that all was lost and of no ttl knew of others, who may have had one.
function lib.look_at_run(knows, now)
  local space = db.space
  local this = this_run()
  local other = space.run and space.run ~= this
  if other then
    space.deaf_at, space.pulse = now, now
    if not space.learns_until then
      begin_gap(now)
    end
    set_stamp(birth_of(db.born) .. ':' .. run_name())
  end
  space.run = this
  knows = knows or { false, false, 0 }
  local never, kid, longest, told, age = knows[KNOWS_AT.never], knows[KNOWS_AT.kid], knows[KNOWS_AT.longest],
    knows[KNOWS_AT.stamp], knows[KNOWS_AT.age]
  local lost, missed = kid and kid ~= db.kid, false
  if told ~= nil and told ~= db.born then
    missed = told
    lost = lost or told and birth_of(told) ~= birth_of(db.born)
    lib.later(function(header)
      header.b = { told, db.born }
    end)
  end
  if never or not (other or lost or missed) then
    return
  end
  if other then
    -- Its last events may be forgotten as well, be anything to learn or not.
    lib.begin_life(now)
  end
  longest = max(longest, space.ttl_max, space.ttl_before or 0)
  if lost and longest == 0 then
    longest = BOUND.TTL_US_DEFAULT
  end
  local till = (other and now or last_known(told, age, now)) + longest
  if till <= now then
    return
  end
  -- What was ended is remembered as such up to this fence: nobody claims it. A store that forgot again
  -- before it had learnt may have forgotten claims as well.
  local known = space.fence
  if other or not space.learns_until then
    -- What a gauge showed before says nothing of what was forgotten.
    space.recovered_at = now
  end
  space.forgot_after = space.learns_until and min(space.forgot_after or 0, known) or known
  if not space.learns_until then
    if not other then
      lib.begin_life(now)
    end
    lib.event(EVENT.engine_learning, false, till)
  end
  space.learns_until = max(space.learns_until or 0, till)
  lib.sooner(space.learns_until)
end

-- Whether looking would find nothing new: the caller knows this store, and the server is the one that wrote last.
function lib.is_as_known(knows)
  local space = db.space
  return space.run == this_run() and knows
    and (not knows[KNOWS_AT.kid] or knows[KNOWS_AT.kid] == db.kid)
      and (knows[KNOWS_AT.stamp] == nil or knows[KNOWS_AT.stamp] == db.born)
end

-- Whether the run of the server that answers is the one that wrote last: otherwise the store may have forgotten
-- something, and nobody has looked yet.
function lib.is_same_run()
  return db.space.run == this_run()
end

-- Until when the namespace learns, or nil.
function lib.learns(now)
  local till = db.space.learns_until
  return till and till > now and till or nil
end

local LEASE_BYTES = 14

-- A lease is named by its fence and its job's row number, 0 without a job: bytes that sort as they do.
function lib.lease_id(fence, seq)
  return struct.pack('>I8I6', fence, seq)
end

-- The names of many leases, one after the other in one text.
function lib.lease_names(joined)
  local names = {}
  for at = 1, #joined, LEASE_BYTES do
    names[#names + 1] = sub(joined, at, at + LEASE_BYTES - 1)
  end
  return names
end

function lib.parse_lease(id)
  local fence, seq = struct.unpack('>I8I6', id)
  return fence, seq
end
