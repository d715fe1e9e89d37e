-- tick: what time does, and who does it at the due moment.
--
-- args: {proc, waiters, readers = by which names it reads gauges, read = how many parcels the process has read, kn = what the caller knows (lib.look_at_run),
-- sight = what the caller can say of the server's clock (machine/sight.lua), zones = by which zone data it plans}. Replies {more, claim, behind, sent =
-- how many parcels it was sent}, or {claim, absent} for a namespace that is not there.
--
-- One process has the claim and ticks when something is due; the others tick a little later, if the
-- claim did not move. A process is alive as long as it ticks. Works when the store is full.

local CLAIM_US = 1000000

lib.op('tick', { 'write', 'allow-oom' }, function(args)
  -- Processes tick whatever namespace they were asked about. One that is not there is not made by that, unless the
  -- caller knows that it was: then it was lost, and the loss is remembered.
  local knows = args.kn or {}
  if not db.raw and not knows[KNOWS_AT.kid] and not knows[KNOWS_AT.stamp] then
    db.nothing = true
    return { claim = false, absent = true }
  end
  lib.look_at_run(args.kn, max(db.space.last, db.clock))
  local now, late = lib.tick(args.sight, args.proc)
  lib.hear_zones(args.zones, now)
  local space = db.space
  if args.proc then
    sets.add('pr', now, args.proc)
    lib.hear_readers(args.readers, now)
    lib.forget_silent(now)
    local claim = space.claim
    if not claim or claim[TICKER_AT.proc] == args.proc or claim[TICKER_AT.till] <= now then
      space.claim = { args.proc, now + CLAIM_US }
    end
  end
  local wanted, fires, gauge = lib.ask_for_plans(now), lib.next_fire(), lib.next_gauge()
  local waits_for_reader = gauge and gauge <= now and not args.readers
  local reply = { claim = space.claim and space.claim[TICKER_AT.proc] == args.proc or false }
  if args.waiters > 0 then
    reply.sent = lib.hear_process(args.proc, args.read, now)
  end
  if space.behind > 0 then
    reply.behind = space.behind
  end
  -- Schedules that want a plan; whether some have moments to be decided; and whether there are any.
  reply.wanted = wanted[1] and wanted or nil
  reply.fires = fires and fires <= now or nil
  reply.schedules = fires and true or wanted[1] and true or nil
  -- Whether a gauge is to be claimed by who reads, and whether some are to be.
  reply.reads = gauge and gauge <= now and args.readers and true or nil
  reply.gauges = gauge and true or nil
  lib.later(function(header)
    local due = lib.next_due(0)
    -- The caller that is not sure of the clock comes again when it can do something; others may be sure.
    header.d = late == 0 and due or lib.next_due(late)
    -- What was due is done: who waited to see it done looks at the next moment.
    -- Who reads gauges is left with the moment at which one was due, and looks then, if this process does not read.
    if reply.claim and due ~= space.next_due and not waits_for_reader then
      db.said[#db.said + 1] = { db.prefix .. 't:', '=' .. (due and text(due) or '') }
    end
    space.next_due = due or 0
    reply.more = header.d ~= nil and header.d <= now
  end)
  return reply
end, { ticks = true })

-- Processes that have not ticked for long are forgotten.
function lib.forget_silent(now)
  for _ = 1, 8 do
    local proc, seen = sets.first('pr')
    if not proc or seen + BOUND.WORKER_US > now then
      return
    end
    sets.rem('pr', proc)
    lib.forget_process(proc)
  end
end
