-- How far the server's clock can be trusted: a leap of it must not end a lease early.
--
-- There is no monotonic clock inside a call, so the processes that tick are the watches. Each says what it saw, its
-- sight: {since when, by the server's clock, it has watched that clock without seeing it leap; what the clock shows
-- at least, by the process's own monotonic clock}. `pulse` is the last moment that was vouched for: up to it
-- the clock has shown only time that really passed. A tick vouches if its process has watched since before the
-- pulse. What it is sure of is the new pulse, and by that, not by the clock, leases are reaped. So a slow call reaps
-- a little later, and a leap reaps nothing.
--
-- A process whose clock leapt, or that came later, cannot tell what happened between the pulse and its first look.
-- It reaps nothing and leaves the pulse where it is; others, who can, go on. If nobody could for 3 s, or if nobody
-- else is there, the engine was deaf: time from the pulse to the first look of the process does not count.

-- Whether another process ticked within DEAF_US; `own` is the last call of this one.
local function others_tick(own, now)
  local from = now - BOUND.DEAF_US
  local recent = call('ZCOUNT', db.prefix .. 'pr', '(' .. text(from), '+inf')
  return recent > (own > from and 1 or 0)
end

-- The moment up to which leases may be reaped by this tick; or nil, if it can vouch for nothing. Sets the pulse.
function lib.look_at_pulse(sight, proc, now)
  local space = db.space
  if space.live == 0 then
    space.pulse = now
    return now
  end
  local vouches = sight and sight[SIGHT_AT.since] <= space.pulse
  local own = proc and sets.score('pr', proc) or 0
  if now - space.pulse > BOUND.DEAF_US or not vouches and not others_tick(own, now) then
    -- Has this process watched from its first look until now? A gap of more than DEAF_US between two of its ticks would
    -- have moved the pulse past its first look, so only the time since its last call remains to be checked.
    -- (A first look from before the clock was set back is a moment that is still to come.)
    local watched = sight and not vouches and sight[SIGHT_AT.since] <= now
      and now - max(sight[SIGHT_AT.since], own) <= BOUND.DEAF_US
      and sight[SIGHT_AT.sure] + BOUND.LEAP_US >= now
    if now - space.pulse > BOUND.DEAF_US then
      lib.event(EVENT.engine_deaf, now - space.pulse, false)
    end
    space.deaf_at, space.pulse = max(space.deaf_at, watched and sight[SIGHT_AT.since] or now), now
    return now
  end
  if not vouches then
    return nil
  end
  -- A call that was on its way for a moment is no leap.
  local sure = sight[SIGHT_AT.sure] + BOUND.LEAP_US >= now and now or sight[SIGHT_AT.sure]
  space.pulse = max(space.pulse, sure)
  return space.pulse
end
