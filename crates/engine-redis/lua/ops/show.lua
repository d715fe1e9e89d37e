-- How a reply shows jobs, leases and shapes. It only reads.
--
-- What Lua never reads (payloads, results, data) goes out as a blob of its own: the reply has its
-- number.

-- Puts a blob into the reply; its number.
function T.blob(bytes)
  local blobs = db.blobs
  if not blobs then
    blobs = {}
    db.blobs = blobs
  end
  blobs[#blobs + 1] = bytes
  return #blobs
end

local function shape_view(number)
  local s = db.get('s', number)
  return {
    qn = s.qn, pr = s.pr, g = s.g, needs = s.needs, retry = s.retry, timeout = s.timeout,
    retain = s.retain,
  }
end

-- A job as its row has it. `slim`: without result, progress and errors (a job that is handed out).
function T.show(job, slim)
  local shown = {
    seq = job.seq, id = job.id, state = T.is_live(job) and T.state_of(job) or job.state,
    shape = shape_view(job.shape), body = T.blob(T.body(job)), created_at = job.created_at,
    run_at = job.run_at, started_at = job.started_at, finished_at = job.finished_at,
    expires_at = job.expires_at, ended = job.ended, lost = job.lost, cancel = job.cancel or false,
    unique = job.unique, arrival = job.arrival, error = job.error,
  }
  if job.lease then
    shown.lease, shown.holder = { job.lease.fence, job.seq }, job.lease.holder
  end
  if not slim then
    for part, name in pairs({ r = 'result', p = 'progress', e = 'errors' }) do
      local value = T.job_part(job, part)
      if value then
        shown[name] = T.blob(value)
      end
    end
  end
  return shown
end

-- What a grant's holder is told.
function T.show_grant(lease)
  local grant = {
    fence = lease.fence, seq = lease.seq, holder = lease.holder, granted_at = lease.granted_at,
    expires_at = lease.expires_at, deadline = lease.deadline, limits = {}, resources = {},
  }
  for i, held in ipairs(lease.limits) do
    grant.limits[i] = held[1]
  end
  for i, held in ipairs(lease.resources) do
    local r = T.resource(held[1], held[2])
    local data = M.get(T.data_home(held[1], held[2]))
    grant.resources[i] = {
      pool = held[1], id = held[2], tags = r and r.tags or {}, data = data and T.blob(data) or nil,
    }
  end
  if lease.seq > 0 then
    grant.job = T.show(T.job(lease.seq), true)
  end
  return grant
end

function T.job_not_found(ref)
  if ref.key then
    T.refuse({
      code = 'job_not_found', detail = 'no job holds the unique key "' .. ref.key .. '" now',
      hint = 'push a job with that key, or name the job by its id',
    })
  end
  T.refuse({
    code = 'job_not_found', detail = 'there is no job "' .. ref.id .. '"',
    hint = 'it was never pushed, or its "retain" is over; list the jobs to see those that are there',
  })
end

local WORD = {
  s = 'scheduled', w = 'ready', b = 'blocked', r = 'running', S = 'succeeded', F = 'failed',
  C = 'cancelled',
}

function T.wrong_state(job, hint)
  local state = T.is_live(job) and T.state_of(job) or job.state
  T.refuse({ code = 'wrong_state', detail = 'job "' .. job.id .. '" is ' .. WORD[state], hint = hint })
end

-- The job that a call names, or a refusal.
function T.must_name(ref)
  return T.named(ref) or T.job_not_found(ref)
end
