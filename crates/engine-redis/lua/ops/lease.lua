-- lease: asks for jobs of queues, or for needs alone.
--
-- args: {queues, max} or {needs}; kn = what the caller knows (lib.look_at_run); wait, ttl (us), worker, rq
-- (request id), place, taker, proc, read (how many parcels the process has read), adds (the call was granted some and
-- goes on), bytes (of those). Replies {leases, runs (of grants that went the short way, each with how many of `leases`
-- stand before it), next_at, reasons, waits, more, over, parcel}. `waits`: the call is registered; it is sent what it
-- is granted, or repeated when its process is signalled; `more`: its bounded work was not enough, it is repeated at
-- once, and as one that adds if it was granted some; `over`: the same request waits by another call now, and this one
-- is answered with nothing; `parcel`: the grant was sent under this number. Cost: about fifteen commands, and for each
-- grant that went the long way four; at most 256 go the long way.

-- `ttl: 0s` leaves no lease, so it goes only with needs that leave nothing to give back.
local function check_tokens(args)
  if args.ttl > 0 then
    return
  end
  local ok = args.needs and #args.needs > 0
  for _, need in ipairs(args.needs or {}) do
    local settings = need[NEED_AT.kind] == NEED.limit and lib.setting_of(need[NEED_AT.name])
    if not settings or not settings.rate or settings.concurrency then
      ok = false
    end
  end
  if not ok then
    lib.refuse('lease_ttl_needs_rates', nil, '/ttl')
  end
end

-- A repeat gets those of its leases that live, and never a second grant; and the number of the parcel that was sent to
-- this very call, which is no repeat of another's.
local function repeated(request, taker)
  local past = request and db.get(RECORD.request, request)
  if not past then
    return nil
  end
  local leases, sent = {}, taker and past.taker == taker
  for _, name in ipairs(lib.leases_of_request(past)) do
    local lease, job = lib.lease(lib.parse_lease(name))
    if lease then
      if not lease.again and not sent then
        lease.again = true
        lib.lease_changed(job)
      end
      leases[#leases + 1] = lease
    end
  end
  return leases, sent and past.number or nil
end

-- Whether what a request was granted so far was answered to a repeat of it, or may have been, since none of it is
-- there to tell, or it is remembered no more: then nothing is added to it, since nobody would know of it.
local function was_repeated(request)
  if not request then
    return false
  end
  local past = db.get(RECORD.request, request)
  for looks, name in ipairs(past and lib.leases_of_request(past) or {}) do
    local lease = lib.lease(lib.parse_lease(name))
    if lease then
      return lease.again
    elseif looks >= BOUND.STEPS_MAX then
      break
    end
  end
  return true
end

-- The reply: what is granted is shown once all that the call does is done.
local function shown(leases, parcel)
  local reply = { parcel = parcel }
  lib.later(function()
    lib.show_grants(leases, reply)
  end)
  return reply
end

-- The call waits for jobs of these queues from now on.
function lib.begin_wait(args, queues, now)
  lib.wait_for_jobs(args.taker, {
    queues = queues, most = args.max, worker = args.worker and args.worker.id, proc = args.proc, ttl = args.ttl,
    till = now + args.wait, request = args.rq,
  })
  lib.hear_process(args.proc, args.read, now)
  return { leases = {}, waits = true }
end

local function lease_jobs(args, now)
  check_tokens(args)
  local queues, seen = {}, {}
  for _, name in ipairs(args.queues) do
    local queue = lib.queue_for(name, now)
    if not seen[queue] then
      seen[queue] = true
      queues[#queues + 1] = queue
    end
  end
  lib.see_worker(args.worker, queues, now)
  if args.adds then
    if was_repeated(args.rq) then
      return shown({})
    end
  else
    local again, parcel = repeated(args.rq, args.taker)
    if again then
      return shown(again, parcel)
    end
    if lib.taken_over(args, 'jobs', now) then
      return { leases = {}, over = true }
    end
  end
  local free = args.wait > 0 and lib.not_signalled(queues) or queues
  for _, queue in ipairs(free) do
    lib.unsignal(queue)
  end
  db.want = min(args.max, 512)
  local asker = { worker = args.worker and args.worker.id, ttl = args.ttl, request = args.rq }
  local leases, tired, goes_on = lib.take_jobs(free, args.max, asker, args.bytes or 0, now)
  -- What is still open is for the next who waits.
  for _, queue in ipairs(free) do
    db.touched[queue] = true
  end
  if #leases > 0 then
    lib.remember_request(leases, asker, now)
    local reply = shown(leases)
    if goes_on and leases.n < args.max and leases.bytes < BOUND.PAGE_BYTES_FULL then
      reply.more, reply.bytes = true, leases.bytes
    end
    return reply
  end
  if tired then
    return { leases = {}, more = true }
  end
  if args.adds then
    return shown({})
  end
  if args.wait > 0 and args.taker then
    return lib.begin_wait(args, queues, now)
  end
  return { leases = {}, next_at = lib.next_change() }
end

local function lease_needs(args, now)
  lib.check_needs(args.needs, '/needs')
  lib.see_worker(args.worker, {}, now)
  local again = repeated(args.rq)
  if again then
    return shown(again)
  end
  check_tokens(args)
  if lib.taken_over(args, 'needs', now) then
    return { leases = {}, over = true }
  end
  local needs = lib.held(args.needs)
  if args.proc then
    sets.add('pr', now, args.proc)
  end
  local lease, number, tired = lib.call({
    taker = args.taker, proc = args.proc, worker = args.worker and args.worker.id, ttl = args.ttl,
    request = args.rq, place = args.place or args.rq, till = now + args.wait, needs = needs,
  }, now)
  if lease then
    local asker = { request = args.rq }
    lib.remember_request({ lease }, asker, now)
    local reply = shown({ lease })
    if args.ttl == 0 then
      -- Tokens only: granted and given back in one step, nothing to settle.
      lib.end_lease(lease, nil, { kind = 'undelivered' }, now)
      lib.later(function()
        reply.leases[1][9] = true
      end)
    end
    return reply
  end
  if tired then
    return { leases = {}, more = true }
  elseif args.wait > 0 then
    return { leases = {}, waits = true }
  end
  local reasons = lib.reasons_of_caller(number, now)
  lib.leave_line(number, now)
  return { leases = {}, next_at = lib.next_change(), reasons = reasons }
end

function lib.lease_call(args, now)
  if args.queues then
    return lease_jobs(args, now)
  end
  return lease_needs(args, now)
end

lib.op('lease', { 'write' }, function(args, now)
  lib.look_at_run(args.kn, now)
  return lib.lease_call(args, now)
end, { directly = lib.lease_directly })

-- A call waits no more: what it was granted before it heard of that, or the number by which it stands in line.
local function end_wait(taker, request)
  if lib.forget_taker(taker) then
    return nil, nil
  end
  local past = request and db.see(RECORD.request, request)
  if past and past.taker == taker then
    return past, nil
  end
  return nil, lib.caller_by_taker(taker)
end

-- drop_wait: {taker, rq}. The time of the wait is over. Replies {next_at, reasons}, and what the call was granted
-- before it heard of that, as `lease` does.
lib.op('drop_wait', { 'write', 'allow-oom' }, function(args, now)
  local reply = {}
  local past, number = end_wait(args.taker, args.rq)
  if past then
    reply = shown(repeated(args.rq, args.taker))
  elseif number then
    reply.reasons = lib.reasons_of_caller(number, now)
    lib.leave_line(number, now)
  end
  reply.next_at = lib.next_change()
  return reply
end)

-- leave: {calls = {{taker, rq or false}}, awaits = {{name, proc, number}}}. Their callers are gone: the calls wait no
-- more, neither for leases nor for the end of anything, and what they were granted is undone.
lib.op('leave', { 'write', 'allow-oom' }, function(args, now)
  local granted = {}
  for _, call in ipairs(args.calls) do
    local past, number = end_wait(call[1], call[2])
    for _, name in ipairs(past and lib.leases_of_request(past) or {}) do
      granted[#granted + 1] = { lib.parse_lease(name) }
    end
    if number then
      lib.leave_line(number, now)
    end
  end
  for _, registered in ipairs(args.awaits) do
    lib.leave_awaited(unpack(registered))
  end
  lib.undo(granted, now)
  return true
end)
