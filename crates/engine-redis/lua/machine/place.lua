-- The place in line: how many would be granted before a job or a caller if nothing new came. It only reads.
--
-- Within one queue that order is by priority, then by the virtual times of the groups, then by arrival. The k-th
-- job that waits of a group starts at the group's time plus k units, and the least (start, arrival) goes next; so how
-- many jobs of another group go first is arithmetic, and takes no walk through its jobs. A head that reserves
-- goes before all of them.
--
-- Queues of one line have a turn each, and whose turn it is depends on whose workers ask. What is told is the
-- order if all ask alike: the first of each queue, callers before queues and these by name, then the second of each,
-- and so on.
--
-- At most `ITEMS_MAX` lanes are counted. Where more stand in a line, the number is the least that it can be.
-- Cost: some reads for each lane that is counted, and one or two for each other queue of the line.

-- A line is a list in order of arrival, and each item says how many were put in before it: so a place in it is
-- searched by halves, twenty looks into a list of a million.
local function rank_in_list(line, key, arrival)
  local low, high = 0, call('LLEN', db.prefix .. key)
  if high == 0 then
    return 0
  end
  local _, _, _, gone = lib.line_item(call('LINDEX', db.prefix .. key, 0))
  gone = gone + line.skip
  local before = gone
  while low < high do
    local mid = floor((low + high) / 2)
    local first, _, many, pos = lib.line_item(call('LINDEX', db.prefix .. key, mid))
    if first < arrival then
      low, before = mid + 1, pos + min(many, arrival - first)
    else
      high = mid
    end
  end
  return max(before - gone, 0)
end

-- How many of a lane's jobs stand before an arrival. Tombstones are taken off as long as they are few.
local function rank(lane, arrival)
  local line, key = db.get(RECORD.lane, lane).line, lib.lane_line(lane)
  if not line.big then
    return lines.rank(line, key, arrival, line.n)
  end
  local n = rank_in_list(line, key, arrival)
  if line.aside > 0 then
    n = n + call('ZCOUNT', db.prefix .. key .. LINE.aside, '-inf', '(' .. text(arrival))
  end
  if line.dead > 0 and line.dead <= BOUND.ITEMS_MAX then
    for _, dead in ipairs(call('HKEYS', db.prefix .. key .. LINE.gone)) do
      if tonumber(dead) < arrival then
        n = n - 1
      end
    end
  end
  return n
end

-- ---- Runs: the jobs of one group and priority that stand in one line ----
--
-- {rank, group, start = virtual start of the first, unit = from one start to the next, lanes, reserving = arrivals
-- of the heads that reserve, which are counted apart}. A line of a queue is {runs, by = runs by their names,
-- reserving = {{arrival, lane}, …}}.

local function run_len(run)
  local n = -#run.reserving
  for _, lane in ipairs(run.lanes) do
    n = n + db.get(RECORD.lane, lane).line.n
  end
  return n
end

local function run_rank(run, arrival)
  local n = 0
  for _, lane in ipairs(run.lanes) do
    n = n + rank(lane, arrival)
  end
  for _, head in ipairs(run.reserving) do
    if head < arrival then
      n = n - 1
    end
  end
  return n
end

-- How many of a run go before a job of another group.
local function run_before(run, start, arrival)
  local ahead = start - run.start
  if ahead < 0 then
    return 0
  end
  local sooner, len = floor(ahead / run.unit), run_len(run)
  if sooner * run.unit < ahead then
    return min(sooner + 1, len)
  elseif sooner >= len then
    return len
  end
  -- One starts at the very same time: of these, who arrived first.
  return run_rank(run, arrival) > sooner and sooner + 1 or sooner
end

local function new_line()
  return { runs = {}, by = {}, reserving = {} }
end

local function run_name(at, group)
  return text(at) .. ':' .. text(group)
end

local function add_lane(line, lane, start, left)
  if left.n == 0 then
    return nil
  end
  left.n = left.n - 1
  local lane_record, group = db.get(RECORD.lane, lane), lib.group_of(lane)
  local at = -lane_record.priority
  local name = run_name(at, group)
  local run = line.by[name]
  if not run then
    local group_record, turns = db.get(RECORD.group, group), lib.turns(lane_record.queue, at)
    run = {
      rank = at, group = group, start = start or max(group_record.own, turns and turns.v or 0),
      unit = lib.turn_unit(lane_record.queue, group_record), lanes = {}, reserving = {},
    }
    line.by[name], line.runs[#line.runs + 1] = run, run
  end
  run.lanes[#run.lanes + 1] = lane
  return run
end

local function add_entry(line, entry, start, left)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.lane then
    return add_lane(line, number, start, left)
  elseif kind == ENTRY.bundle then
    for lane in inner.each(db.get(RECORD.bundle, number).open, lib.bundle_open(number)) do
      if not add_lane(line, tonumber(lane), start, left) then
        return
      end
    end
  end
end

-- The ready order of a queue down to a priority; the group of the lane `own` is counted first.
local function ready_line(queue, down_to, own, left)
  local line, ranks = new_line(), {}
  local own_group = own and lib.group_of(own)
  local function add(group)
    for bundle in inner.each(db.get(RECORD.group, group).open, lib.group_open(group)) do
      add_entry(line, ENTRY.bundle .. bundle, nil, left)
    end
  end
  if own_group then
    add(own_group)
  end
  for at in pairs(db.see(RECORD.queue, queue).priorities) do
    if at <= down_to then
      ranks[#ranks + 1] = at
    end
  end
  sort(ranks)
  for _, at in ipairs(ranks) do
    for turn in inner.each(lib.turns(queue, at).open, lib.turns_open(queue, at)) do
      local group = tonumber(sub(turn, 18))
      if left.n == 0 then
        return line
      elseif group ~= own_group then
        add(group)
      end
    end
  end
  return line
end

-- What stands at a door of one queue, and what the door has let out to be tried next.
local function door_line(door, queue, left)
  local there = lib.find_line(door, queue)
  if not there then
    return new_line()
  elseif there.whole then
    return ready_line(queue, 1000, nil, left)
  end
  local line = new_line()
  for order in inner.each(there.order, lib.line_order(door, queue)) do
    local id = lib.at_door_id(door, queue, tonumber(sub(order, 37)))
    local at_door = db.get(RECORD.door_group, id)
    for entry in inner.each(at_door.entries, lib.at_door_entries(id)) do
      if left.n == 0 then
        return line
      end
      add_entry(line, entry, at_door.tag, left)
    end
  end
  for entry, arrival in inner.each(there.marked, lib.line_marks(door, queue)) do
    local run = add_entry(line, entry, nil, left)
    if run then
      run.reserving[#run.reserving + 1] = arrival
      line.reserving[#line.reserving + 1] = { arrival, tonumber(sub(entry, 2)) }
    end
  end
  if there.out then
    add_entry(line, there.out, nil, left)
  end
  return line
end

-- How many of its own queue go before one that arrived then in a lane.
local function ahead_in(line, lane, arrival)
  local n = 0
  for _, head in ipairs(line.reserving) do
    if head[1] == arrival and head[2] == lane then
      return n
    end
    n = n + 1
  end
  local at, group = -db.get(RECORD.lane, lane).priority, lib.group_of(lane)
  local own, known = line.by[run_name(at, group)], false
  for _, other in ipairs(own and own.lanes or {}) do
    known = known or other == lane
  end
  if not known then
    own = add_lane(line, lane, nil, { n = 1 })
  end
  local before = run_rank(own, arrival)
  local start = own.start + before * own.unit
  for _, run in ipairs(line.runs) do
    if run.rank < at then
      n = n + run_len(run)
    elseif run == own then
      n = n + before
    elseif run.rank == at then
      n = n + run_before(run, start, arrival)
    end
  end
  return n
end

-- How many jobs of its queue go before a ready one.
function lib.ahead_in_queue(lane, arrival)
  local lane_record = db.get(RECORD.lane, lane)
  return ahead_in(ready_line(lane_record.queue, -lane_record.priority, lane, { n = BOUND.ITEMS_MAX }), lane, arrival)
end

local function entry_len(entry)
  local kind, number = sub(entry, 1, 1), tonumber(sub(entry, 2))
  if kind == ENTRY.lane then
    return db.get(RECORD.lane, number).line.n
  end
  return kind == ENTRY.bundle and db.get(RECORD.bundle, number).waiting or 0
end

-- Jobs of each queue that are put aside at a door: they are no part of its line.
local function misfits_at(door)
  local door_record, misfits, looked = db.get(RECORD.door, door), {}, 0
  if door_record.aside.n > 0 then
    for name in inner.each(door_record.aside, lib.door_aside(door)) do
      looked = looked + 1
      if looked > BOUND.ITEMS_MAX then
        break
      end
      local entry = lib.entry_aside(name)
      local queue = lib.entry_queue(entry)
      misfits[queue] = (misfits[queue] or 0) + entry_len(entry)
    end
  end
  return misfits
end

-- How many of a queue stand at a door, with those whom it has let out.
local function standing_at(door, queue, misfits)
  local line, queue_record = lib.find_line(door, queue), db.get(RECORD.queue, queue)
  local n = max(line.waiting - (misfits[queue] or 0), 0)
  if line.whole then
    n = n + queue_record.waiting - queue_record.blocked
  end
  return line.out and n + entry_len(line.out) or n
end

-- Callers before queues, and these by name.
local function sooner(a, b)
  a, b = db.get(RECORD.queue, a).name, db.get(RECORD.queue, b).name
  if not a or not b then
    return not a and b ~= nil
  end
  return lib.less(a, b)
end

local function queues_at(door)
  local queues = {}
  for _, queue in inner.each(db.get(RECORD.door, door).lines, lib.door_lines(door)) do
    if #queues >= BOUND.ITEMS_MAX then
      break
    end
    queues[#queues + 1] = queue
  end
  return queues
end

-- How many go before one that stands at a door, of all queues.
function lib.ahead_at_door(door, lane, arrival)
  local own = db.get(RECORD.lane, lane).queue
  local before = ahead_in(door_line(door, own, { n = BOUND.ITEMS_MAX }), lane, arrival)
  local ahead, misfits = before, misfits_at(door)
  for _, queue in ipairs(queues_at(door)) do
    if queue ~= own then
      local n = standing_at(door, queue, misfits)
      ahead = ahead + min(n, before)
      if n > before and sooner(queue, own) then
        ahead = ahead + 1
      end
    end
  end
  return ahead
end

-- Up to so many of a lane's jobs, as {arrival, slot}, less the heads that reserve.
local function first_of_lane(lane, most, reserving, found)
  local n = 0
  for arrival, slot in lines.each(db.get(RECORD.lane, lane).line, lib.lane_line(lane)) do
    local reserves = false
    for _, head in ipairs(reserving) do
      reserves = reserves or head == arrival
    end
    if not reserves then
      found[#found + 1] = { arrival, slot }
      n = n + 1
    end
    if n >= most then
      return
    end
  end
end

local function by_first(one, other)
  return one[1] < other[1]
end

-- Lanes by their heads, at most so many.
local function lanes_in_order(lanes, most)
  local heads, sorted = {}, {}
  for i, lane in ipairs(lanes) do
    heads[i] = { lib.head(lane) or lib.FOREVER, lane }
  end
  sort(heads, by_first)
  for i = 1, min(#heads, most) do
    sorted[i] = heads[i][2]
  end
  return sorted, heads[1] and heads[1][1] or lib.FOREVER
end

-- The first of one queue's line, in order.
local function first_of(line)
  local first, runs = {}, {}
  for _, head in ipairs(line.reserving) do
    local arrival, slot = lib.head(head[2])
    first[#first + 1] = { -1000, 0, arrival, slot }
  end
  for _, run in ipairs(line.runs) do
    if run_len(run) > 0 then
      local lanes, head = lanes_in_order(run.lanes, BOUND.LINE_SHOWN + #run.reserving)
      runs[#runs + 1] = { run.rank, run.start, head, run, lanes }
    end
  end
  local function before(one, other)
    for i = 1, 3 do
      if one[i] ~= other[i] then
        return one[i] < other[i]
      end
    end
    return false
  end
  sort(runs, before)
  for i = 1, min(#runs, BOUND.LINE_SHOWN) do
    local run, jobs = runs[i][4], {}
    for _, lane in ipairs(runs[i][5]) do
      first_of_lane(lane, BOUND.LINE_SHOWN, run.reserving, jobs)
    end
    sort(jobs, by_first)
    for k = 1, min(#jobs, BOUND.LINE_SHOWN) do
      first[#first + 1] = { run.rank, run.start + (k - 1) * run.unit, jobs[k][1], jobs[k][2] }
    end
  end
  sort(first, before)
  return first
end

-- The first in line at a door: {queue, job or caller}.
function lib.first_at(door)
  local left, lines, queues, first = { n = BOUND.ITEMS_MAX }, {}, queues_at(door), {}
  sort(queues, sooner)
  for i = 1, min(#queues, BOUND.LINE_SHOWN) do
    lines[i] = first_of(door_line(door, queues[i], left))
  end
  for k = 1, BOUND.LINE_SHOWN do
    for i, line in ipairs(lines) do
      if line[k] then
        first[#first + 1] = { queues[i], line[k][4] }
        if #first >= BOUND.LINE_SHOWN then
          return first
        end
      end
    end
  end
  return first
end
