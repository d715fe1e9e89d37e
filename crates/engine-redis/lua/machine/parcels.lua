-- Parcels: what a step grants to a call that waits, sent to its process.
--
-- Whoever makes a job ready grants it in that very step to the call that has waited longest, if the job needs nothing
-- or only limits of concurrency: a process that died a moment ago keeps a job and some permits for one ttl, as one
-- that dies with an answer on its way does. Tokens of rates and resources would be spent for nobody, and a suspect
-- would find nobody to blame: those are signalled (machine/serve), and granted to who asks again.
--
-- The grant is remembered under the call's request id, and the message is only a copy of it. What is lost, late or
-- too long is no loss: parcels are numbered for each process, a process hears by its ticks how many were sent, and asks
-- again under the same id. A process that has ended without a word hears nothing, which the server knows mostly.

-- A longer one is fetched. (Resources have data that no message may carry; they are never granted so.)
local BYTES_MAX = 65536
-- So many that were sent and not yet read may carry what they bring: the server keeps them in memory.
local UNREAD_MAX = 64
-- The processes that may be sent parcels, each with how many it was sent and how many of them it has read.
local PROCESSES = KEY.processes
-- How many parcels a process has read is written only when it is this many more.
local READ_STEP = UNREAD_MAX / 4

-- How many a process was sent and has read, as they are kept; nothing for one that may be sent none.
function lib.parcels_in(kept)
  if kept then
    return struct.unpack('>I6I6', kept)
  end
end

local function numbers_of(proc)
  return lib.parcels_in(maps.get(PROCESSES, proc))
end

local function note(proc, sent, read)
  maps.put(PROCESSES, proc, struct.pack('>I6I6', sent, read))
end

-- A process says how many parcels it has read; how many it was sent.
function lib.hear_process(proc, read, now)
  local sent, known = numbers_of(proc)
  if not sent then
    -- It is forgotten with those that have not ticked for long.
    sets.add('pr', now, proc)
    sent = 0
    note(proc, 0, 0)
  elseif read - known >= READ_STEP and read <= sent then
    note(proc, sent, read)
  end
  return sent
end

function lib.forget_process(proc)
  maps.drop(PROCESSES, proc)
end

-- Whether somebody listens for a process. A hint that saves a ttl: one that stands still is heard of too.
function lib.is_heard(proc)
  if not maps.get(PROCESSES, proc) then
    return false
  end
  return db.is_heard(lib.channel_of(proc))
end

local function listens(proc)
  local known = db.listens[proc]
  if known == nil then
    known = lib.is_heard(proc)
    db.listens[proc] = known
  end
  return known
end

-- Whether a limit only counts what runs: nothing of it is spent by a run that nobody began.
function lib.only_counts(limit)
  local setting = lib.setting_of(limit)
  return not setting or not setting.rate and max(setting.gap or 0, setting.quarantine or 0) == 0
end

-- Whether the head of an open lane may be granted to a call that is not here.
function lib.goes_unasked(lane, queue_record)
  local lane_record = db.see(RECORD.lane, lane)
  if lane_record.suspect or lane_record.marked or queue_record.limit and not lib.only_counts(queue_record.limit) then
    return false
  end
  for _, need in ipairs(lane_record.needs) do
    if need[NEED_AT.kind] ~= NEED.limit or not lib.only_counts(need[NEED_AT.name]) then
      return false
    end
  end
  return true
end

-- The parts of an answer, each behind its length.
local function framed(parts)
  local all = {}
  for _, part in ipairs(parts) do
    all[#all + 1] = struct.pack('>I4', #part)
    all[#all + 1] = part
  end
  return concat(all)
end

-- Sends the copy of a grant once all is served: what a repeat of the call would be answered.
local function send(taker, id, leases, number, is_carried, now)
  lib.later(function()
    local parts = is_carried and lib.aside(function()
      return lib.show_grants(leases, {})
    end, now)
    local content = parts and framed(parts) or ''
    if #content > BYTES_MAX then
      content = ''
    end
    lib.tell(taker.proc, '+' .. text(number) .. ' ' .. id .. '\n' .. content)
  end)
end

-- Sends a call that waits no more what it was granted.
function lib.send_parcel(id, taker, leases, asker, now)
  lib.forget_taker(id)
  local sent, read = numbers_of(taker.proc)
  note(taker.proc, sent + 1, read)
  lib.remember_request(leases, asker, now, id, sent + 1)
  send(taker, id, leases, sent + 1, sent - read < UNREAD_MAX, now)
end

-- Grants what may go in a queue to the call that has waited for it longest, at most its share of what waits. How many;
-- nil if nobody can be granted anything so, and who waits is to be signalled.
function lib.grant_to_waiting(queue, now)
  local id = sets.first(lib.takers_of(queue))
  local taker = id and db.get(RECORD.waiting_call, id)
  if not taker or not listens(taker.proc) then
    return nil
  end
  local queue_record, open = db.see(RECORD.queue, queue), {}
  for _, of in ipairs(taker.queues) do
    -- In the others nothing has changed, so nothing may go.
    if db.opened[of] then
      open[#open + 1] = of
    end
  end
  local share = floor((queue_record.waiting + queue_record.takers - 1) / queue_record.takers)
  local asker = { worker = taker.worker, ttl = taker.ttl, request = taker.request, away = true }
  local leases = lib.take_jobs(open, max(min(taker.most, share), 1), asker, 0, now)
  if leases.n == 0 then
    return nil
  end
  lib.send_parcel(id, taker, leases, asker, now)
  return leases.n
end
