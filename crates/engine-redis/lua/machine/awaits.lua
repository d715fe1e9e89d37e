-- Calls that wait for the end of something: registered with it by their process, which is notified by the step that ends
-- it.
--
-- What is waited for has a name: AWAITED.job and the number of a job's row, or AWAITED.flow and the name of a flow. Under
-- that name stands, for each process, how many of its calls wait, when the last of them is over, and a number of the
-- registration; under AWAITED.total how many calls wait in the namespace. So an end that ten thousand calls of a server wait for costs one message.
--
-- A notification is a hint: the process looks once a second which of its registrations are gone, in any case. But who is
-- registered changes what a step does: a job that is waited for when it ends is kept for a while, whatever its `retain`
-- says.

-- A process that could not end the wait of its calls has given them up after so long.
local LEFT_US = 10000000
-- More processes are not registered with one thing: they look by themselves.
local PROCESSES_MAX = 256
-- When registrations end, by the name of what is waited for; and the rows that are waited for.
local ENDS, JOBS = 'awt', 'awj'
-- What a message begins with that names what has ended.
local MARK = '!'

-- The name of the end of a job.
function lib.awaited_job(seq)
  return AWAITED.job .. text(seq)
end

local function count(by)
  local total = db.get(RECORD.awaited, AWAITED.total) or db.put(RECORD.awaited, AWAITED.total, { calls = 0 })
  total.calls = total.calls + by
  if total.calls <= 0 then
    db.drop(RECORD.awaited, AWAITED.total)
  end
end

-- How many calls wait.
function lib.awaiting_calls()
  local total = db.see(RECORD.awaited, AWAITED.total)
  return total and total.calls or 0
end

-- The registration of a process among those with one thing, and its place.
local function find_process(processes, proc)
  for at, registered in ipairs(processes) do
    if registered[AWAITS_AT.proc] == proc then
      return registered, at
    end
  end
end

local function set_end(name, processes)
  local till = 0
  for _, registered in ipairs(processes) do
    till = max(till, registered[AWAITS_AT.till])
  end
  lib.timer_set(ENDS, till + LEFT_US, name)
end

local function drop(name)
  db.drop(RECORD.awaited, name)
  lib.timer_clear(ENDS, name)
  if byte(name) == AWAITED_BYTE.job then
    sets.rem(JOBS, sub(name, 2))
  else
    lib.touch_flow(sub(name, 2))
  end
end

-- One call more of a process waits for the end of what has this name: the number of its registration; nil if the process
-- has to look by itself.
function lib.await(name, proc, till)
  if lib.awaiting_calls() >= BOUND.AWAITS_MAX then
    lib.refuse('awaited_by_too_many', { most = BOUND.AWAITS_MAX })
  end
  local awaited = db.get(RECORD.awaited, name) or db.put(RECORD.awaited, name, { processes = {} })
  local processes = awaited.processes
  local registered = find_process(processes, proc)
  if not registered then
    if #processes >= PROCESSES_MAX then
      return nil
    end
    registered = { proc, 0, till, db.number() }
    processes[#processes + 1] = registered
  end
  registered[AWAITS_AT.calls] = registered[AWAITS_AT.calls] + 1
  registered[AWAITS_AT.till] = max(registered[AWAITS_AT.till], till)
  count(1)
  set_end(name, processes)
  if byte(name) == AWAITED_BYTE.job then
    sets.add(JOBS, tonumber(sub(name, 2)), sub(name, 2))
  end
  return registered[AWAITS_AT.number]
end

-- A call of a process waits no more. A registration of another number has ended since, and is another's.
function lib.leave_awaited(name, proc, number)
  local awaited = db.get(RECORD.awaited, name)
  local registered, at = find_process(awaited and awaited.processes or {}, proc)
  if not registered or registered[AWAITS_AT.number] ~= number then
    return
  end
  count(-1)
  registered[AWAITS_AT.calls] = registered[AWAITS_AT.calls] - 1
  if registered[AWAITS_AT.calls] == 0 then
    remove(awaited.processes, at)
  end
  if #awaited.processes == 0 then
    drop(name)
  end
end

-- Whether somebody waits for the end of a job.
function lib.is_awaited(seq)
  return sets.lowest(ENDS) and sets.score(JOBS, text(seq)) ~= nil
end

-- The same of anything, by the name of its end.
function lib.is_awaited_by_name(name)
  return sets.lowest(ENDS) and db.get(RECORD.awaited, name) ~= nil
end

-- Whether somebody waits for the end of a job, in a direct call.
function lib.is_awaited_directly(seq)
  return not sets.is_known_empty(ENDS) and call('ZSCORE', db.prefix .. JOBS, text(seq)) and true or false
end

-- Puts those of the rows into `found` that a set has, whose members they are.
local function put_those_of(set, seqs, members, found)
  for i, score in ipairs(members[1] and call('ZMSCORE', db.prefix .. set, unpack(members)) or {}) do
    if score then
      found[seqs[i]] = true
    end
  end
end

-- Of the jobs of leases, {fence, row number, how many with one after the other, …}, those for whose end a call or another
-- job waits: row number -> true. Nil if it is none.
function lib.awaited_of(runs)
  local by_calls, by_jobs = sets.lowest(ENDS), sets.lowest(lib.PARENTS)
  if not (by_calls or by_jobs) then
    return nil
  end
  local seqs, members, found = {}, {}, {}
  for i = 1, #runs, 3 do
    local seq = runs[i + 1]
    for at = seq, seq > 0 and seq + runs[i + 2] - 1 or -1 do
      seqs[#seqs + 1], members[#members + 1] = at, text(at)
    end
  end
  if by_calls then
    put_those_of(JOBS, seqs, members, found)
  end
  if by_jobs then
    put_those_of(lib.PARENTS, seqs, members, found)
  end
  return next(found) and found or nil
end

-- The places, among these names, of those that nobody is registered with, or that have ended.
function lib.not_awaited(names)
  local places = {}
  for at, score in ipairs(names[1] and call('ZMSCORE', db.prefix .. ENDS, unpack(names)) or {}) do
    local name = names[at]
    if not score or byte(name) == AWAITED_BYTE.flow and lib.look_at_flow(sub(name, 2)) ~= 'open' then
      places[#places + 1] = at
    end
  end
  return places
end

-- It has ended, or is gone: the processes whose calls wait for it are to look. Of a job the registrations go with that. A
-- flow whose last member goes at once would be gone before they look: those with a flow stay until the calls leave.
function lib.notify_awaiting(name)
  local awaited = db.get(RECORD.awaited, name)
  if not awaited then
    return
  end
  local calls = 0
  for _, registered in ipairs(awaited.processes) do
    lib.tell(registered[AWAITS_AT.proc], MARK .. name)
    calls = calls + registered[AWAITS_AT.calls]
  end
  if byte(name) == AWAITED_BYTE.job then
    count(-calls)
    drop(name)
  end
end

-- Processes that have ended without a word are forgotten.
function lib.tick_awaited(name, now)
  local awaited, left, calls = db.get(RECORD.awaited, name), {}, 0
  if not awaited then
    return
  end
  for _, registered in ipairs(awaited.processes) do
    if registered[AWAITS_AT.till] + LEFT_US > now then
      left[#left + 1] = registered
    else
      calls = calls + registered[AWAITS_AT.calls]
    end
  end
  if calls > 0 then
    count(-calls)
  end
  awaited.processes = left
  if left[1] then
    set_end(name, left)
  else
    drop(name)
  end
end

-- A clock that was set back lengthens no wait.
function lib.cut_awaited(name, clock)
  local awaited = db.get(RECORD.awaited, name)
  for _, registered in ipairs(awaited and awaited.processes or {}) do
    registered[AWAITS_AT.till] = min(registered[AWAITS_AT.till], clock + BOUND.WAIT_US_MAX)
  end
  if awaited then
    set_end(name, awaited.processes)
  end
end
