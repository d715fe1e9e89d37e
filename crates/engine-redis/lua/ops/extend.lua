-- extend: keeps leases alive, tells those that are lost and those whose job should stop.
--
-- args: {leases = {{fence, seq, progress, claim}}, ttl, kn}. Replies {ok = {{index, expires_at}}, lost,
-- cancel}. A claim (machine/reclaim) is made by who was told that its lease is lost while the namespace learns.
-- Cost: a read for each 256 rows, two writes for each lease. Works when the store is full.

lib.op('extend', { 'write', 'allow-oom' }, function(args, now)
  lib.look_at_run(args.kn, now)
  local reply, longest = { ok = {}, lost = {}, cancel = {} }, 0
  local seqs = {}
  for _, item in ipairs(args.leases) do
    if item[EXTEND_AT.seq] > 0 then
      seqs[#seqs + 1] = item[EXTEND_AT.seq]
    end
  end
  lib.load_jobs(seqs)
  local deaf_at = db.space.deaf_at
  for index, item in ipairs(args.leases) do
    local lease, job = lib.lease(item[EXTEND_AT.fence], item[EXTEND_AT.seq])
    if not lease and item[EXTEND_AT.claim] then
      lease, job = lib.reclaim(item[EXTEND_AT.fence], item[EXTEND_AT.seq], item[EXTEND_AT.claim], now)
    end
    if not lease then
      reply.lost[#reply.lost + 1] = index
    else
      if args.ttl and args.ttl ~= lease.ttl then
        -- Its id tells the ttl that it was granted with.
        lease.first = lease.first or lease.ttl
        lease.ttl = args.ttl
      end
      longest = max(longest, lease.ttl)
      local expires_at = max(lib.expiry(lease.ttl, lease.deadline, now), lease.expires_at)
      if expires_at ~= lease.expires_at then
        lib.set_expiry(lease, expires_at)
      end
      lease.extended = true
      -- A sign of life is after the deafness that was over in the same moment.
      lease.seen_at = max(now, deaf_at + 1)
      lib.hear_worker(lease.holder, now)
      lib.lease_changed(job)
      if job then
        if item[EXTEND_AT.progress] then
          lib.set_job_part(job, PART.progress, item[EXTEND_AT.progress])
        end
        if job.cancel then
          reply.cancel[#reply.cancel + 1] = index
        end
      end
      reply.ok[#reply.ok + 1] = { index, expires_at }
    end
  end
  if longest > 0 then
    lib.note_ttl(longest, now)
  end
  return reply
end)
