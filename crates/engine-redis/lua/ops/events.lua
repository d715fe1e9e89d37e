-- events: what happened in a namespace, read from an event on. It only reads.
--
-- read_events {life, number = the last event that the reader has seen, most = events, bytes} -> {life, first, last,
-- entries = {{number of its last event, blob}, …}}: the entries from the next event on, or from the oldest that is
-- kept, if the reader has missed some (`StreamStands::resume` says so of the same numbers). Or {absent}, or {look}: another
-- run of the server wrote last, so that the store may have forgotten something; a call that may write has to look first.
-- Refusals: events_not_kept. Cost: a command, and what the entries have.

lib.op('read_events', { 'no-writes' }, function(args)
  local space = db.space
  if not db.raw then
    return { absent = true }
  elseif not lib.is_same_run() then
    return { look = true }
  elseif space.events_bytes == 0 then
    lib.refuse('events_not_kept')
  end
  local reply, number = lib.stands(), args.number
  if args.life ~= space.events_life or number > space.events_last or number + 1 < space.events_first then
    number = space.events_first - 1
  end
  reply.entries = {}
  if args.most > 0 and number < space.events_last then
    local found = lib.entries_from(number + 1, args.most, args.bytes)
    for i = 1, #found, 2 do
      reply.entries[#reply.entries + 1] = { found[i], lib.blob(found[i + 1]) }
    end
  end
  return reply
end)
