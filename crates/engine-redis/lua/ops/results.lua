-- get_result, wait_result and look_awaited: how a job ended, a registration with one that has not, and which registrations
-- have ended.
--
-- get_result: a reference {id, b} or {key}, and `seq` once the caller knows which row is meant. Replies {seq, id, b, state,
-- attempt, error, finished_at, result, progress}, the last two as blobs. Refusals: job_not_found, also where another
-- job has the id by now. Cost: a few commands, and as many bytes as the job has.
--
-- wait_result: the same, and proc, wait (us). Registers a call of the process with the job until then, and replies also
-- {number}, of the registration; none if the job is finished, or if the process has to look by itself. Refusals: also
-- awaited_by_too_many. Not when the store is full: who waits then reads once a second.
--
-- look_awaited: names of what is waited for, at most 256. Replies {gone}: the places of those that nobody is registered
-- with. Cost: one command.

local function meant(args)
  local job = lib.must_name(args)
  if args.seq and job.seq ~= args.seq then
    lib.job_not_found(args)
  end
  return job
end

local function part_of(job, part)
  local value = (job.life or job.parts) and lib.job_part(job, part)
  return value and lib.blob(value) or nil
end

local function show_result(job)
  local ended = not lib.is_live(job)
  return {
    seq = job.seq, id = job.id, b = tonumber(job.b), state = ended and job.state or lib.state_of(job),
    attempt = job.ended + (job.state == STATE.running and 1 or 0),
    error = ended and job.error or nil, finished_at = ended and job.finished_at or nil,
    result = ended and part_of(job, PART.result) or nil, progress = part_of(job, PART.progress),
  }
end

lib.op('get_result', { 'no-writes' }, function(args)
  return show_result(meant(args))
end)

lib.op('wait_result', { 'write' }, function(args, now)
  local job = meant(args)
  local reply = show_result(job)
  if lib.is_live(job) then
    reply.number = lib.await(lib.awaited_job(job.seq), args.proc, now + args.wait)
  end
  return reply
end)

lib.op('look_awaited', { 'no-writes' }, function(args)
  return { gone = lib.not_awaited(args.names) }
end)
