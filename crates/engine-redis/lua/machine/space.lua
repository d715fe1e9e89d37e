-- The namespace's own record, time, and what a call says to the processes that wait.

-- A namespace that knows nothing yet.
function T.new_space()
  return {
    version = 0, last = 0, pulse = 0, deaf_at = 0, behind = 0,
    fence = 0, arrival = 0, seq = 0, used = 0, number = 0,
    settings = 0, live = 0, pending = {}, families = {}, kept = { 0, 0 },
    ttl_max = 0, ttl_since = 0, ttl_before = 0,
    patience = B.PATIENCE_US_DEFAULT, retain_bytes = 1073741824, next_due = 0, signalled = {},
  }
end

-- What an operator says of the namespace: {patience (us) or false, retain_bytes or false}. What is not said
-- is left as it is.
function T.set_space(said)
  local space = db.space
  space.patience = said[1] or space.patience
  space.retain_bytes = said[2] or space.retain_bytes
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

-- A ttl that is remembered is remembered at least so long.
local TTL_KEPT_US = 60000000

-- A lease of this ttl was granted, or kept alive. The longest one lately is remembered in two parts: since
-- a moment, and for the time before it. Each such time is at least as long as the longest ttl of both, so a
-- ttl is forgotten only when no lease that was given it can live.
function T.note_ttl(ttl, now)
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

-- Whether this is the store that it was. `knows` is what the caller knows of the namespace, {this store
-- forgets nothing, name of its key or false, longest ttl lately}; or nil.
--
-- Another run of a server wrote last, or another server: it was restarted, or a replica took its place.
-- Time in which no store was there does not count: every lease lives at least one ttl of its own from
-- now. And its last writes may be forgotten, unless the operator says that this store forgets nothing:
-- then the namespace learns for as long as a lease that was forgotten may be held. While it learns
-- nothing is reaped, nothing that is exclusive is granted, and holders claim what they hold.
-- Where the caller knew another key, all was forgotten, be it that the same server goes on.
function T.look_at_run(knows, now)
  local space = db.space
  local this = this_run()
  local never, kid, longest = false, false, 0
  if knows then
    never, kid, longest = knows[1], knows[2], knows[3]
  end
  local lost = kid and kid ~= db.kid
  if space.run == this and not lost then
    return
  end
  local other = space.run and space.run ~= this
  space.run = this
  if other then
    space.deaf_at, space.pulse = now, now
  end
  if never or not (other or lost) then
    return
  end
  longest = max(longest, space.ttl_max, space.ttl_before or 0)
  if longest == 0 then
    return
  end
  -- What was ended is remembered as such up to this fence: nobody claims it. A store that forgot again
  -- before it had learnt may have forgotten claims as well.
  local known = lost and 0 or space.fence
  space.forgot_after = space.learns_until and min(space.forgot_after or 0, known) or known
  space.learns_until = max(space.learns_until or 0, now + longest)
  T.sooner(space.learns_until)
end

-- Until when the namespace learns, or nil.
function T.learns(now)
  local till = db.space.learns_until
  return till and till > now and till or nil
end

local LEASE_BYTES = 14

-- A lease is named by its fence and its job's row number, 0 without a job: bytes that sort as they do.
function T.lease_id(fence, seq)
  return struct.pack('>I8I6', fence, seq)
end

-- The names of many leases, one after the other in one text.
function T.lease_names(joined)
  local names = {}
  for at = 1, #joined, LEASE_BYTES do
    names[#names + 1] = sub(joined, at, at + LEASE_BYTES - 1)
  end
  return names
end

function T.parse_lease(id)
  local fence, seq = struct.unpack('>I8I6', id)
  return fence, seq
end
