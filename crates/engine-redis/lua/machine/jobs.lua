-- Jobs: their rows, their shapes, their unique keys.
--
-- Rows lie in hashes of 256, by row number: what is pushed together lies together. A job has the
-- fields N (its row: a head, then what Lua never reads), and, once it differs from a job that was just
-- pushed and is ready, Nx (its life). Its result, progress, errors and parents lie in hashes beside.

local CHUNK_ROWS = 256
-- The bytes of a row before its id, and what ends a line.
local HEAD, LINE_END = 21, 10
local NONE = {}

-- The names of the fields of a hash of rows, made once: nearly every step asks for some.
local ROW, LIFE = {}, {}
local known_chunk, known_key

-- Where a row lies: its chunk, the key, the field of its row and that of its life.
local function home(seq)
  local chunk = floor(seq / CHUNK_ROWS)
  if chunk ~= known_chunk then
    known_chunk, known_key = chunk, format('j:%d', chunk)
  end
  local row, life = lib.row_fields(seq - chunk * CHUNK_ROWS)
  return chunk, known_key, row, life
end
lib.job_home, lib.CHUNK_ROWS = home, CHUNK_ROWS

-- The fields of the row with this place in its hash, and of its life.
function lib.row_fields(n)
  local row = ROW[n]
  if not row then
    row = text(n)
    ROW[n], LIFE[n] = row, row .. PART.life
  end
  return row, LIFE[n]
end

local IDS = {}
local function ids(b)
  local key = IDS[b]
  if not key then
    key = 'i:' .. b
    IDS[b] = key
  end
  return key
end

-- A moment, or a number of something, of which 0 says that there is none.
local function some(number)
  return number > 0 and number or nil
end

local function lease_in_life(seq, fields)
  local lease = fields[LIFE_AT.lease]
  return lease and {
    fence = fields[LIFE_AT.fence], seq = seq, expires_at = fields[LIFE_AT.lease_expires_at],
    holder = lease[LEASE_AT.holder] or nil, granted_at = lease[LEASE_AT.granted_at],
    ttl = lease[LEASE_AT.ttl], deadline = lease[LEASE_AT.deadline] or nil,
    limits = lease[LEASE_AT.limits], resources = lease[LEASE_AT.resources],
    request = lease[LEASE_AT.request] or nil, extended = lease[LEASE_AT.extended],
    again = lease[LEASE_AT.again], seen_at = lease[LEASE_AT.seen_at],
    first = lease[LEASE_AT.first] or nil, begins = lease[LEASE_AT.begins],
  } or nil
end

-- What a life says of a job, as `encode_life` writes it.
local function read_life(job, fields)
  job.state, job.arrival = fields[LIFE_AT.state], fields[LIFE_AT.arrival]
  job.run_at, job.expires_at = fields[LIFE_AT.run_at], some(fields[LIFE_AT.expires_at])
  job.bytes, job.lease = fields[LIFE_AT.bytes], lease_in_life(job.seq, fields)
  job.started_at, job.wait = some(fields[LIFE_AT.started_at]), fields[LIFE_AT.wait]
  job.ended, job.lost = fields[LIFE_AT.ended], fields[LIFE_AT.lost]
  job.released, job.cancel = fields[LIFE_AT.released], fields[LIFE_AT.cancel]
  job.keeps, job.settles = fields[LIFE_AT.keeps], fields[LIFE_AT.settles]
  job.error, job.finished_at = fields[LIFE_AT.error] or nil, some(fields[LIFE_AT.finished_at])
  job.kept_until, job.lane = fields[LIFE_AT.kept_until], some(fields[LIFE_AT.lane])
  job.undelivered, job.kin = fields[LIFE_AT.undelivered], fields[LIFE_AT.kin] or nil
  job.ended_unsettled = fields[LIFE_AT.ended_unsettled] or nil
end

-- The part of a row between its id and its body, behind the line that ends at `after_b`: its unique key, the schedule that made
-- it and its flow, each if there is one; and where the body begins.
local function before_body(row, after_b)
  local after_n = find(row, '\n', after_b + 1, true)
  if after_n == after_b + 1 then
    return NONE, after_n + 1
  end
  local n = tonumber(sub(row, after_b + 1, after_n - 1))
  return cmsgpack.unpack(sub(row, after_n + 1, after_n + n)), after_n + n + 1
end

-- The life of a job that was just pushed and is ready is not written: its row says it all.
function lib.decode_job(seq, row, life)
  local shape, created_at, arrival, bytes = struct.unpack('>I4I7I6I4', row)
  local after_id = find(row, '\n', HEAD + 1, true)
  local after_b = find(row, '\n', after_id + 1, true)
  local before, body_at = before_body(row, after_b)
  local job = {
    seq = seq, id = sub(row, HEAD + 1, after_id - 1), b = sub(row, after_id + 1, after_b - 1),
    shape = shape, created_at = created_at, arrival = arrival,
    run_at = created_at, bytes = bytes, unique = before[BEFORE_BODY_AT.key] or nil,
    origin = before[BEFORE_BODY_AT.origin] or nil, flow = before[BEFORE_BODY_AT.flow] or nil,
    state = STATE.ready, wait = 0, ended = 0, lost = 0, released = 0, undelivered = 0, settles = {}, row = row, body_at = body_at, life = life or nil,
  }
  if life and not lib.read_short_life(job, life) then
    read_life(job, cmsgpack.unpack(life))
  end
  return job
end

-- The state of a finished job and until when it is kept, by its life; a state that is not finished, or none.
function lib.end_in_life(life)
  if not life then
    return nil
  end
  local job = {}
  if not lib.read_short_life(job, life) then
    local fields = cmsgpack.unpack(life)
    return fields[LIFE_AT.state], fields[LIFE_AT.kept_until]
  end
  return job.state, job.kept_until
end

local function encode_life(job)
  local lease = job.lease
  return cmsgpack.pack({
    job.state, job.arrival, job.run_at, job.expires_at or 0, job.bytes, job.shape, lease and lease.fence or 0,
    lease and lease.expires_at or 0, lease and lib.lease_array(lease) or false, job.started_at or 0, job.wait,
    job.ended,
    job.lost, job.released, job.cancel or false, job.keeps or false, job.settles, job.error or false,
    job.finished_at or 0, job.kept_until or 0, job.lane or 0, job.unique ~= nil,
    job.undelivered, job.kin or false, job.ended_unsettled or false,
  })
end

-- What of a lease is beside its fence and its expiry.
function lib.lease_array(lease)
  return {
    lease.holder or false, lease.granted_at, lease.ttl, lease.deadline or false, lease.limits, lease.resources,
    lease.request or false, lease.extended or false, lease.again or false, lease.seen_at, lease.first or false,
    lease.begins or false,
  }
end

-- The numbers that a row begins with.
function lib.row_head(shape, created_at, arrival, bytes)
  return struct.pack('>I4I7I6I4', shape, created_at, arrival, bytes)
end

-- The life of a new job that is for later.
function lib.scheduled_life(shape, run_at, bytes, unique)
  return encode_life({
    state = STATE.scheduled, arrival = 0, run_at = run_at, bytes = bytes, shape = shape, wait = 0, ended = 0, lost = 0,
    released = 0, settles = {}, undelivered = 0, unique = unique,
  })
end

-- The text of a row behind its numbers: the id, its bucket and the length of what comes next, each on a line; packed, if it
-- has any of them, its unique key, which schedule made it and its flow; its body.
function lib.row_text(id, b, unique, origin, flow, body)
  local lines_before = id .. '\n' .. b .. '\n'
  if not (unique or origin or flow) then
    return lines_before .. '\n' .. body
  end
  local packed = cmsgpack.pack({ unique or false, origin or false, flow or false })
  return lines_before .. text(#packed) .. '\n' .. packed .. body
end

-- The row of a job as it is written: 21 bytes of numbers, and its text.
local function encode_row(job)
  return lib.row_head(job.shape, job.created_at, job.arrival, job.bytes)
    .. lib.row_text(job.id, job.b, job.unique, job.origin, job.flow, lib.body(job))
end

-- A job's row and life as they are now, the life false while there is none.
function lib.written(job)
  local row = job.dirty_head and encode_row(job) or job.row
  if job.dirty and not (job.new and job.state == STATE.ready and job.plain) then
    -- Once all is done, what is shown is what is written.
    local life = job.packed or encode_life(job)
    if db.all_done then
      job.packed = life
    end
    return row, life
  end
  return row, job.life or false
end

-- The id of a job, by its row.
function lib.id_in_row(row)
  return sub(row, HEAD + 1, find(row, '\n', HEAD + 1, true) - 1)
end

-- Where the line of a row ends that has the part of its id, which is `id_bytes` long.
local function after_part(row, id_bytes)
  return find(row, '\n', HEAD + id_bytes + 2, true)
end

-- Whether the row of a job that has no life has a unique key: nothing else stands before the body of such a job.
function lib.has_key(row, id_bytes)
  return byte(row, after_part(row, id_bytes) + 1) ~= LINE_END
end

-- The unique key of such a row, and when its job was pushed.
function lib.key_in_row(row, id_bytes)
  local _, created_at = struct.unpack('>I4I7', row)
  return before_body(row, after_part(row, id_bytes))[BEFORE_BODY_AT.key][UNIQUE_AT.key], created_at
end

-- The body of a job: what Rust made of kind, payload and labels.
function lib.body(job)
  return job.body or sub(job.row, job.body_at)
end

-- Reads rows that will be asked for, a call for each hash.
function lib.load_jobs(seqs)
  local chunks, order = {}, {}
  for _, seq in ipairs(seqs) do
    local there = db.jobs[seq] == nil and db.found[seq]
    if there then
      db.jobs[seq] = lib.decode_job(seq, there[1], there[2])
    elseif db.jobs[seq] == nil and db.pushed[seq] then
      db.jobs[seq] = lib.decode_job(seq, db.pushed[seq])
    elseif db.jobs[seq] == nil then
      local chunk, key, n, x = home(seq)
      local want = chunks[chunk]
      if not want then
        want = { chunk = chunk, key = key, seqs = {}, fields = {}, block = {} }
        chunks[chunk] = want
        order[#order + 1] = want
      end
      if lib.block_of(seq) then
        want.block[#want.block + 1] = seq
      else
        want.seqs[#want.seqs + 1] = seq
        want.fields[#want.fields + 1] = n
        want.fields[#want.fields + 1] = x
      end
    end
  end
  for _, want in ipairs(order) do
    if want.block[1] then
      lib.load_block(want.chunk, lib.block_in(want.chunk), want.block)
    end
    local found = want.seqs[1] and call('HMGET', db.prefix .. want.key, unpack(want.fields))
    for i, seq in ipairs(want.seqs) do
      local row = found[i * 2 - 1]
      db.jobs[seq] = row and lib.decode_job(seq, row, found[i * 2]) or false
    end
  end
end

-- The row of a job, live or finished; or nil.
function lib.job(seq)
  local job = db.jobs[seq]
  if job == nil then
    lib.load_jobs({ seq })
    job = db.jobs[seq]
  end
  if job and not job.deleted then
    return job
  end
end

function lib.is_live(job)
  local state = job.state
  return state == STATE.ready or state == STATE.running or state == STATE.scheduled or state == STATE.dependent
end

-- Whether a job that was found is there for callers: it lives, or has ended and is still kept.
function lib.is_there(job, now)
  return lib.is_live(job) or job.kept_until > now
end

-- A live job; or nil.
function lib.live(seq)
  local job = lib.job(seq)
  if job and lib.is_live(job) then
    return job
  end
end

-- The row number of an id, live or finished; or nil.
function lib.seq_of(id, b)
  local seq = maps.get(ids(b), id)
  return seq and tonumber(seq)
end

-- The list of a part, made if it is not there.
local function of_part(by_part, part)
  local list = by_part[part]
  if not list then
    list = {}
    by_part[part] = list
  end
  return list
end

-- Whether one of these jobs is there already. `blocks` are {ids, parts}, as a push brings them.
function lib.is_one_known(blocks)
  local by_part = {}
  for _, came in ipairs(blocks) do
    local all, parts, nth = came[1], came[2], 0
    for i = 1, #parts, 2 do
      local list, many = of_part(by_part, parts[i]), parts[i + 1]
      local n = #list
      for at = 1, many do
        list[n + at] = all[nth + at]
      end
      nth = nth + many
    end
  end
  for part, list in pairs(by_part) do
    for _, seq in ipairs(call('HMGET', db.prefix .. ids(part), unpack(list))) do
      if seq then
        return true
      end
    end
  end
  return false
end

-- Which of these ids are there already: id -> number. `jobs` are {id, b, …}.
function lib.known_ids(jobs)
  local by_part = {}
  for _, job in ipairs(jobs) do
    local list = of_part(by_part, job[NEW_JOB_AT.b])
    list[#list + 1] = job[NEW_JOB_AT.id]
  end
  local known = {}
  for part, list in pairs(by_part) do
    local key = ids(part)
    maps.fill(key, list)
    for _, id in ipairs(list) do
      known[id] = maps.get(key, id)
    end
  end
  return known
end

-- What a path names: {id, b} or {key}. The job; or nil.
function lib.named(ref)
  if ref.key then
    local holder = lib.key_holder(ref.key)
    return holder and lib.job(holder.seq)
  end
  local seq = lib.seq_of(ref.id, ref.b)
  return seq and lib.job(seq)
end

function lib.dirty(job)
  job.dirty = true
end

-- The word for where a live job stands.
function lib.state_of(job)
  if job.state == STATE.ready and lib.is_blocked(lib.lane_of_job(job)) then
    return STATE.blocked
  end
  return job.state
end

-- The number of a new row, with its id in the index.
function lib.new_row(id, b)
  local space = db.space
  local seq = space.seq + 1
  space.seq = seq
  maps.set(ids(b), id, text(seq))
  local chunk = floor(seq / CHUNK_ROWS)
  local chunk_record = db.get(RECORD.chunk, chunk)
  if not chunk_record then
    chunk_record = db.put(RECORD.chunk, chunk, { n = 0 })
    sets.add('ch', chunk, text(chunk))
  end
  chunk_record.n = chunk_record.n + 1
  return seq
end

-- A new job's row; it stands nowhere yet.
function lib.new_job(job)
  job.seq = lib.new_row(job.id, job.b)
  job.new, job.dirty_head = true, true
  job.wait, job.ended, job.lost, job.released, job.undelivered, job.settles = 0, 0, 0, 0, 0, {}
  job.arrival = 0
  db.jobs[job.seq] = job
  return job
end

-- A job's row goes for good.
function lib.delete_job(job)
  job.deleted = true
  maps.drop(ids(job.b), job.id)
  local chunk = home(job.seq)
  if not job.new then
    -- Before its block may go with it: the row leaves its span, and the order that names the span.
    lib.row_gone(job.seq)
  end
  local chunk_record = db.get(RECORD.chunk, chunk)
  chunk_record.n = chunk_record.n - 1
  if chunk_record.n == 0 then
    lib.drop_block(chunk)
    db.drop(RECORD.chunk, chunk)
    sets.rem('ch', text(chunk))
  end
  local shape = db.get(RECORD.shape, job.shape)
  shape.rows = shape.rows - 1
  lib.drop_shape_if_idle(job.shape)
  lib.forget_kin(job)
end

-- Something that is kept beside a job's row: its result, its progress, its errors.
function lib.job_part(job, part)
  local _, key, n = home(job.seq)
  return maps.get(key .. part, n)
end
function lib.set_job_part(job, part, value)
  local _, key, n = home(job.seq)
  job.parts = true
  maps.set(key .. part, n, value)
end

function lib.add_error(job, attempt, now, why, outcome)
  local packed = lib.job_part(job, PART.errors)
  local errors = packed and cmsgpack.unpack(packed) or {}
  errors[#errors + 1] = { attempt, now, why, outcome }
  while #errors > BOUND.ERRORS_KEPT do
    remove(errors, 1)
  end
  lib.set_job_part(job, PART.errors, cmsgpack.pack(errors))
end

function db.write_jobs(out)
  for seq, job in pairs(db.jobs) do
    if job and (job.dirty or job.dirty_head or job.deleted) then
      local _, key, n = home(seq)
      if job.deleted then
        for _, part in ipairs({ PART.result, PART.progress, PART.errors }) do
          lib.set_job_part(job, part, nil)
        end
        if not job.new then
          db.erase(out, key, n)
          db.erase(out, key, n .. PART.life)
        end
      else
        local row, life = lib.written(job)
        if job.dirty_head then
          db.write(out, key, n, row)
        end
        if life and life ~= job.life then
          db.write(out, key, n .. PART.life, life)
        end
        if not job.new and lib.block_of(seq) then
          lib.write_own(job)
        end
      end
    end
  end
end

-- ---- Shapes ----

local function class(need)
  if need[NEED_AT.kind] == NEED.limit then
    return find(need[NEED_AT.name], ':', 1, true) and 2 or 0
  end
  return need[NEED_AT.id] and 3 or 1
end

-- Needs in the one fixed order: plain limits, pools, templated limits, ids; by name within each.
function lib.held(needs)
  if #needs < 2 then
    return needs
  end
  local held = {}
  for i, need in ipairs(needs) do
    held[i] = need
  end
  sort(held, function(one, other)
    local x, y = class(one), class(other)
    return x < y or (x == y and one[2] < other[2])
  end)
  return held
end

-- Each limit and pool has one user more.
function lib.use_needs(needs)
  for _, need in ipairs(needs) do
    local name = need[NEED_AT.name]
    local used = need[NEED_AT.kind] == NEED.limit and lib.limit_for(name) or lib.pool_for(name)
    used.uses = used.uses + 1
  end
end

function lib.drop_needs(needs)
  for _, need in ipairs(needs) do
    if need[NEED_AT.kind] == NEED.limit then
      local limit_record = db.get(RECORD.limit, need[NEED_AT.name])
      limit_record.uses = limit_record.uses - 1
      lib.drop_limit_if_idle(need[NEED_AT.name])
    else
      local pool_record = db.get(RECORD.pool, need[NEED_AT.name])
      pool_record.uses = pool_record.uses - 1
      lib.drop_pool_if_idle(need[NEED_AT.name])
    end
  end
end

local function shapes_by_key(packed, needs)
  return 'sk:' .. shard_of_needs(needs, packed)
end

-- The shape of a new job: by its own words, otherwise its queue's, otherwise the defaults. `settings`: those of its
-- queue, where they are known.
function lib.shape_of(job, default_retry, settings)
  if not settings then
    local queue = lib.find_queue(job.q)
    settings = queue and lib.queue_settings(queue) or {}
  end
  return {
    qn = job.q, pr = job.pr or 0, group = job.g, needs = job.needs or settings.needs or {},
    retry = job.retry or settings.retry or default_retry,
    timeout = job.timeout or settings.timeout, retain = job.retain or settings.retain,
  }
end

-- The number of the shape that says such words; or nil.
function lib.find_shape(words, needs)
  return tonumber(maps.get(shapes_by_key(words, needs), words))
end

-- The number of a shape, made if it is not there; one live job more has it.
function lib.shape_for(shape_record, now)
  local packed = lib.shape_words(shape_record)
  local number = lib.find_shape(packed, shape_record.needs)
  if not number then
    number = db.number()
    maps.put(shapes_by_key(packed, shape_record.needs), packed, text(number))
    db.put(RECORD.shape, number, {
      words = packed, qn = shape_record.qn, pr = shape_record.pr, group = shape_record.group, needs = shape_record.needs,
      retry = shape_record.retry, timeout = shape_record.timeout,
      retain = shape_record.retain, live = 0, rows = 0,
    })
  end
  local shape = db.get(RECORD.shape, number)
  lib.use_shape(shape, now)
  shape.rows = shape.rows + 1
  return number
end

-- One live job more has a shape.
function lib.use_shape(shape, now)
  if shape.live == 0 then
    shape.q = lib.queue_for(shape.qn, now)
    lib.use_needs(shape.needs)
  end
  shape.live = shape.live + 1
end

-- Whether a shape keeps its lane while no job of it lives: one without needs costs nobody anything, and a queue whose
-- jobs come one at a time would make it anew for each.
function lib.keeps_lane(shape)
  return not shape.group and not shape.needs[1] and shape.rows > 0
end

local function drop_lane_of(shape)
  local lane = shape.lane
  shape.lane = nil
  if lane then
    local lane_record = db.get(RECORD.lane, lane)
    lane_record.shapes = lane_record.shapes - 1
    lib.drop_lane_if_idle(lane)
  end
end

-- A shape has fewer live jobs, by this many; rows of finished ones may have it still.
function lib.release_shape(number, many)
  local shape = db.get(RECORD.shape, number)
  shape.live = shape.live - many
  if shape.live > 0 or lib.keeps_lane(shape) then
    return
  end
  drop_lane_of(shape)
  lib.drop_needs(lib.held(shape.needs))
end

function lib.drop_shape_if_idle(number)
  local shape = db.get(RECORD.shape, number)
  if shape.rows == 0 then
    if shape.lane then
      drop_lane_of(shape)
      lib.freed_queue(shape.q)
    end
    maps.drop(shapes_by_key(shape.words, shape.needs), shape.words)
    db.drop(RECORD.shape, number)
  end
end

-- The lane that a job stands in when it is ready.
function lib.lane_of_job(job)
  local shape = db.get(RECORD.shape, job.shape)
  local suspect = job.lost > 0
  if not suspect and shape.lane then
    return shape.lane
  end
  if suspect and job.lane and db.get(RECORD.lane, job.lane) then
    return job.lane
  end
  local lane = lib.lane_for({
    queue = shape.q, priority = shape.pr, group = shape.group, needs = lib.held(shape.needs),
    suspect = suspect,
  })
  if suspect then
    job.lane = lane
  else
    local lane_record = db.get(RECORD.lane, lane)
    lane_record.shapes = lane_record.shapes + 1
    shape.lane = lane
  end
  return lane
end
