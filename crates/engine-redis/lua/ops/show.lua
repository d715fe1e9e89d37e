-- How a reply shows jobs, leases and shapes. It only reads.
--
-- What Lua never reads (payloads, results, data) goes out as a blob of its own: the reply has its
-- number.

-- Puts a blob into the reply; its number.
function lib.blob(bytes)
  local blobs = db.blobs
  if not blobs then
    blobs = {}
    db.blobs = blobs
  end
  blobs[#blobs + 1] = bytes
  return #blobs
end

-- A shape, shown once in a reply, by its words: its number there.
local function shape_number(number)
  local shown = db.shown
  if not shown then
    shown = { of = {}, all = {} }
    db.shown = shown
  end
  local at = shown.of[number]
  if not at then
    at = #shown.all + 1
    shown.all[at] = lib.blob(db.see(RECORD.shape, number).words)
    shown.of[number] = at
  end
  return at
end
lib.shape_number = shape_number

-- A job: {seq, state, row, life, shape, result, progress, errors, parents}; all but the first two and the shape
-- are blobs. One that is only stored has none of the last four.
function lib.show_stored(seq, state, row, life, shape)
  return { seq, state, lib.blob(row), life and lib.blob(life), shape_number(shape), false, false, false, false }
end

-- A job with its row and its life alone.
function lib.show_bare(job)
  local row, life = lib.written(job)
  local state = lib.is_live(job) and lib.state_of(job) or job.state
  return lib.show_stored(job.seq, state, row, life, job.shape)
end

-- The same of any job.
function lib.show(job)
  local row, life = lib.written(job)
  local state = lib.is_live(job) and lib.state_of(job) or job.state
  local shown = lib.show_stored(job.seq, state, row, life, job.shape)
  if job.life or job.parts then
    -- Who lives has no result.
    local parts = {
      [SHOWN_AT.result] = not lib.is_live(job) and PART.result or nil, [SHOWN_AT.progress] = PART.progress,
      [SHOWN_AT.errors] = PART.errors,
    }
    for at, part in pairs(parts) do
      local value = lib.job_part(job, part)
      shown[at] = value and lib.blob(value) or false
    end
  end
  local parents = lib.first_parents(job)
  shown[SHOWN_AT.parents] = parents and lib.blob(parents) or false
  return shown
end

-- What a grant's holder is told: {fence, seq, granted_at, expires_at, deadline, job, limits, resources,
-- token, what it holds}.
function lib.show_grant(lease)
  local limits, resources = {}, {}
  for i, held in ipairs(lease.limits) do
    limits[i] = held[PERMIT_AT.limit]
  end
  for i, held in ipairs(lease.resources) do
    local pool, id = held[HELD_AT.pool], held[HELD_AT.id]
    local resource = lib.resource(pool, id)
    local data = maps.get(lib.data_home(pool, id))
    resources[i] = { pool, id, resource and resource.tags or {}, data and lib.blob(data) or false }
  end
  return {
    lease.fence, lease.seq, lease.granted_at, lease.expires_at, lease.deadline or false,
    lease.seq > 0 and lib.show(lib.job(lease.seq)), limits, resources, false,
    lib.held_by(lease),
  }
end

-- Puts grants into a reply to a lease call.
function lib.show_grants(leases, reply)
  local all, runs = {}, {}
  for _, lease in ipairs(leases) do
    if lease.short then
      -- Where it stands among the others, and the run.
      runs[#runs + 1] = { #all, lib.show_short(lease) }
    else
      all[#all + 1] = lib.show_grant(lease)
    end
  end
  reply.leases, reply.runs, reply.holder = all, runs, leases[1] and leases[1].holder
  return reply
end

function lib.job_not_found(ref)
  if ref.key then
    lib.refuse('job_key_not_held', { key = ref.key })
  end
  lib.refuse('job_not_found', { job = ref.id })
end

local WORDS = STATE_WORDS

-- Refuses what the state of a job does not permit.
function lib.wrong_state(case, job)
  local state = lib.is_live(job) and lib.state_of(job) or job.state
  lib.refuse(case, { job = job.id, state = WORDS[state] })
end

-- The job that a call names, or a refusal.
function lib.must_name(ref)
  return lib.named(ref) or lib.job_not_found(ref)
end
