-- Claims: a lease that the store has forgotten is made again from what its id tells.
--
-- Only while the namespace learns, and only what it can have forgotten: a fence above all that it
-- remembered when it began to learn, or one in the gap between what it remembered when it was found again
-- and what was granted since. Any other was ended, and a lease that was ended, or reaped, is never made
-- again: its holder has stopped, and others may have been granted what it held. Where two claim the same
-- thing the higher fence has it: the lower one was ended before the higher was granted.
--
-- A claim is {ttl, timeout (0 for none), holder or false, digest of the job's id or false, limits = {{name,
-- weight, cost}}, resources = {{pool, id}}}; outside of the library its signature was found to be right.

-- More holders than so many of a limit of 1 held it when it was larger: they are left alone.
local RIVALS_MAX = 256

-- What the id of a lease tells beside its name, its holder and its job: what never changes in its life.
-- (A clock that was set back moves a grant and its deadline alike.)
function lib.held_by(lease)
  return {
    lease.first or lease.ttl, lease.deadline and lease.deadline - lease.granted_at or 0, lease.limits,
    lease.resources,
  }
end

-- The job that a forgotten lease ran, if it can go on under it; or nil.
local function claimed_job(fence, seq, digest)
  local job = lib.job(seq)
  -- The number may be another job's by now: numbers were forgotten too.
  if not job or not lib.is_live(job) or sub(redis.sha1hex(job.id), 1, #digest) ~= digest then
    return nil
  end
  for _, past in ipairs(job.settles) do
    if past[SETTLED_AT.fence] >= fence then
      return nil
    end
  end
  local lease = job.lease
  -- A cancel ends with the lease that it was asked of.
  if lease and (lease.fence >= fence or job.cancel) then
    return nil
  end
  return job
end

-- The leases that must end for this one to be; nil if it must not.
local function rivals(fence, job, limits, resources)
  local names, known = {}, {}
  -- Whether this one stands against another; then the other is noted.
  local function beats(name)
    if lib.parse_lease(name) >= fence then
      return false
    end
    if not known[name] then
      known[name] = true
      names[#names + 1] = name
    end
    return true
  end
  if job and job.lease then
    beats(lib.lease_id(job.lease.fence, job.seq))
  end
  for _, claimed in ipairs(limits) do
    local limit = claimed[PERMIT_AT.limit]
    local settings, limit_record = lib.setting_of(limit), db.get(RECORD.limit, limit)
    if limit_record and settings and settings.concurrency == 1 and limit_record.holders.n <= RIVALS_MAX then
      for name in inner.each(limit_record.holders, lib.limit_holders(limit)) do
        if not beats(name) then
          return nil
        end
      end
    end
  end
  for _, claimed in ipairs(resources) do
    local resource = lib.resource(claimed[HELD_AT.pool], claimed[HELD_AT.id])
    if not resource then
      -- Nobody can be granted it, but it may come back with the next sync.
      return nil
    end
    local left = {}
    for _, name in ipairs(resource.holders) do
      if not known[name] then
        left[#left + 1] = name
      end
    end
    while #left >= resource.slots do
      local lowest = 1
      for i = 2, #left do
        if lib.parse_lease(left[i]) < lib.parse_lease(left[lowest]) then
          lowest = i
        end
      end
      if not left[lowest] or not beats(left[lowest]) then
        return nil
      end
      remove(left, lowest)
    end
  end
  return names
end

-- Everything that it says is in use again, be it beyond a cap.
local function take_again(lease, name, now)
  for _, held in ipairs(lease.limits) do
    local limit = held[PERMIT_AT.limit]
    inner.add(lib.limit_for(limit).holders, lib.limit_holders(limit), lease.fence, name)
    -- What it booked of a rate was forgotten too. It was booked at its grant.
    lib.take_limit(limit, held[PERMIT_AT.weight], held[PERMIT_AT.cost], lease.granted_at)
  end
  for _, held in ipairs(lease.resources) do
    local resource = lib.resource(held[HELD_AT.pool], held[HELD_AT.id])
    lib.lose_kept(resource)
    lib.take_resource(resource, name, now)
  end
end

-- Whether this store may have forgotten the grant of this fence.
local function may_be_forgotten(fence)
  local space = db.space
  local gap = space.gap
  return fence > (space.forgot_after or 0) or gap ~= nil and fence > gap[GAP_AT.fence] and fence < gap[GAP_AT.till]
end

-- Makes a forgotten lease again, and its job, if it may be: the lease and the job; or nil. A lease that
-- lives, or whose end is remembered, is left as it is.
function lib.reclaim(fence, seq, claim, now)
  local space = db.space
  if not lib.learns(now) or not may_be_forgotten(fence) or lib.lease(fence, seq)
    or db.get(RECORD.stub, text(fence)) then
    return nil
  end
  local ttl, timeout, holder, digest = claim[CLAIM_AT.ttl], claim[CLAIM_AT.timeout], claim[CLAIM_AT.holder] or nil,
    claim[CLAIM_AT.digest]
  local limits, resources = claim[CLAIM_AT.limits], claim[CLAIM_AT.resources]
  local job
  if seq > 0 then
    job = digest and claimed_job(fence, seq, digest)
    if not job then
      return nil
    end
  end
  local others = rivals(fence, job, limits, resources)
  if not others then
    return nil
  end
  -- A fence follows the clock, so it tells when it was granted.
  local granted_at = min(fence, now)
  local deadline = timeout > 0 and granted_at + timeout or nil
  local lease = {
    fence = fence, seq = seq, holder = holder, granted_at = granted_at, ttl = ttl, deadline = deadline,
    limits = limits, resources = resources, extended = true, seen_at = max(now, space.deaf_at + 1),
  }
  local name = lib.lease_id(fence, seq)
  -- First it takes and then the others give back: what nobody holds for a moment may be forgotten.
  take_again(lease, name, now)
  for _, other in ipairs(others) do
    local lease_of_other, job_of_other = lib.lease(lib.parse_lease(other))
    lib.end_lease(lease_of_other, job_of_other, { kind = 'forced' }, now)
  end
  space.fence = max(space.fence, fence)
  lib.more_live(1, ttl, now)
  lib.hold(holder, 1, job ~= nil and job.lost > 0)
  if deadline then
    lib.timer_set('dl', deadline, name)
  end
  lib.set_expiry(lease, lib.expiry(ttl, deadline, now))
  if job then
    lib.stop_waiting(job, now)
    if job.kin then
      -- Its parents had ended, as somebody holds it; what the store knows of them is passed over when it is told.
      job.kin[KIN_AT.open] = 0
    end
    lib.run_job(job, lease, now)
  else
    db.put(RECORD.lease, text(fence), lease)
  end
  -- The store forgot the event of its grant with the grant.
  lib.granted_event(lease, job)
  return lease, job
end
