-- claim_gauges and take_reading: the only calls by which processes read gauges. A tick's reply says that one is due.
--
-- claim_gauges {reader, readers = all of its process} -> {claims = {{limit, number, asked_at, its JSON}, …}}; at most 64. They read: the
-- process says so with this call too. take_reading {name, number, asked_at, and one of sum, ids, why} -> true, also where the claim is
-- over: then it is dropped. Both work in a full store, as settles do: what they write stands in the place of what was
-- there.
-- Cost: a claim is a few reads and writes; a reading reads the leases that were granted within the last `lag`, or, of a
-- gauge that lists ids, the jobs of all that hold the limit.

lib.op('claim_gauges', { 'write', 'allow-oom' }, function(args, now)
  lib.hear_readers(args.readers, now)
  return { claims = lib.claim_gauges(args.reader, now) }
end)

lib.op('take_reading', { 'write', 'allow-oom' }, function(args, now)
  lib.take_reading(args, now)
  return true
end)
