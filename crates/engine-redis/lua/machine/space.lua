-- The namespace's own record, time, and what a call says to the processes that wait.

-- A namespace that knows nothing yet.
function T.new_space()
  return {
    version = 0, last = 0, pulse = 0, deaf_at = 0, behind = 0,
    fence = 0, arrival = 0, seq = 0, used = 0, number = 0,
    settings = 0, live = 0, pending = {}, families = {}, kept = { 0, 0 }, ttl_max = 0,
    patience = B.PATIENCE_US_DEFAULT, retain_bytes = 1073741824, next_due = 0, signalled = {},
  }
end

-- The engine's clock, in microseconds. A test's library reads a key instead.
function T.clock()
  if TESTING then
    return tonumber(call('GET', db.prefix .. 'now') or '0')
  end
  local t = call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- The moment of a call: the engine's clock, but never before what was seen.
function T.advance()
  local space = db.space
  space.last = max(space.last, db.clock)
  return space.last
end

-- Something will happen at this moment: who ticks must know it if it is the soonest.
function T.sooner(at)
  if not db.sooner or at < db.sooner then
    db.sooner = at
  end
end

-- Who ticks is told of a moment that is sooner than what it knows: who set it may be gone by then.
function T.tell_sooner(at)
  local space = db.space
  if at and space.claim and (space.next_due == 0 or at < space.next_due) then
    space.next_due = at
    db.said[#db.said + 1] = { db.prefix .. 't:', text(at) }
  end
end

-- Timers are ordered sets by moment. Setting one makes the next due moment known.
function T.timer_set(key, at, what)
  Z.add(key, at, what)
  T.sooner(at)
end

function T.timer_clear(key, what)
  Z.rem(key, what)
end

function T.next_arrival()
  local space = db.space
  space.arrival = space.arrival + 1
  return space.arrival
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

-- Another run of a server wrote last, or another server: it was restarted, or a replica took its place.
-- Time in which no store was there does not count: every lease lives at least one ttl of its own from
-- now. And its last writes may be forgotten, unless the operator says that this store forgets nothing:
-- then the namespace learns for as long as a lease that was forgotten may be held. While it learns
-- nothing is reaped, and nothing that is exclusive is granted.
function T.look_at_run(forgets_never, now)
  local space = db.space
  local this = this_run()
  if space.run == this then
    return
  end
  local other = space.run
  space.run = this
  if other then
    space.deaf_at, space.pulse = now, now
    if not forgets_never and space.ttl_max > 0 then
      space.learns_until = now + space.ttl_max
      T.sooner(space.learns_until)
    end
  end
end

-- Until when the namespace learns, or nil.
function T.learns(now)
  local till = db.space.learns_until
  return till and till > now and till or nil
end

-- A lease is named by its fence and its job's row number, 0 without a job: bytes that sort as they do.
function T.lease_id(fence, seq)
  return struct.pack('>I8I6', fence, seq)
end

function T.parse_lease(id)
  local fence, seq = struct.unpack('>I8I6', id)
  return fence, seq
end
