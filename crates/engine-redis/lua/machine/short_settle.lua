-- The short way of jobs that are settled: as succeeded, many in one call.

local home = lib.job_home
local LIFE = lib.SHORT_LIFE
local RUNNING, RUNNING_WITH_KEY, SUCCEEDED = LIFE.running, LIFE.running_with_key, LIFE.succeeded
local NAME_AT, BYTES_AT, TAIL_AT, COMMON_AT = LIFE.name_at, LIFE.bytes_at, LIFE.tail_at, LIFE.common_at

-- What jobs have in common that were granted alike, whatever their shapes: when, and who holds them.
local function rest_of(common, rests)
  local rest = rests[common]
  if not rest then
    rest = lib.read_common(common)
    rest.n = 0
    rests[common] = rest
  end
  return rest
end

-- Until when a job of a shape that succeeds now is kept.
function lib.kept_until(shape, now)
  return now + (shape.retain or BOUND.RETAIN_SUCCEEDED_US)
end

-- What jobs of a shape have in common, as it stands in their lives.
local function class_of(words, classes, now)
  local class = classes[words]
  if not class then
    local number = struct.unpack('>I4', words)
    local shape = db.get(RECORD.shape, number)
    class = { n = 0, number = number, shape = shape, till = lib.kept_until(shape, now) }
    classes[words] = class
  end
  return class
end

-- What follows the shape in the lives of those that were granted alike and are kept alike.
local function done_of(rest, till, now)
  if rest.till ~= till then
    rest.till, rest.done = till, struct.pack('>I7I7I7', rest.granted_at, now, till)
  end
  return rest.done
end

-- The life of a job that ran under `life` and succeeded: `done` is when it was granted, ended and goes. And its bytes.
function lib.succeeded_life(life, result, done)
  local bytes = struct.unpack('>I4', life, BYTES_AT)
  if not result then
    return SUCCEEDED .. sub(life, 2, COMMON_AT - 1) .. done, bytes
  end
  bytes = bytes + #result
  return SUCCEEDED .. sub(life, 2, BYTES_AT - 1) .. struct.pack('>I4', bytes) .. sub(life, TAIL_AT, COMMON_AT - 1)
    .. done,
    bytes
end

-- A job that succeeds holds its unique key no more.
function lib.give_key_back(seq, id, shape, now)
  local _, key, row_field = home(seq)
  local unique, created_at = lib.key_in_row(call('HGET', db.prefix .. key, row_field), #id)
  lib.drop_key(unique, seq, { shape.qn, STATE.succeeded, created_at, now }, now)
end

-- This many running jobs of a shape have succeeded.
function lib.count_succeeded(shape, number, many, now)
  local queue_record = db.get(RECORD.queue, shape.q)
  queue_record.used_at = max(queue_record.used_at, now)
  queue_record.running, queue_record.succeeded = queue_record.running - many, queue_record.succeeded + many
  db.space.live = db.space.live - many
  lib.release_shape(number, many)
end

-- Puts leases to the others of their span that are settled: so many, with one fence and one row number after the
-- other, of which the first stands at this place of the call. Whether all of them are in one.
local function add_to_span(spans, fence, seq, many, place)
  local span, block, at, chunk, number = lib.running_span(fence, seq)
  if not span
    or many > 1 and sub(block.states, at + 1, at + many) ~= rep(char(number), many) then
    return false
  end
  local its = spans[span]
  if not its then
    its = { chunk = chunk, number = number, tail = span[SPAN_AT.tail], n = 0, low = at, high = at, parts = {} }
    spans[span] = its
  end
  its.n, its.low, its.high = its.n + many, min(its.low, at), max(its.high, at + many - 1)
  its.parts[#its.parts + 1] = { at, many, place, fence, seq }
  return true
end

-- All places of so many.
function lib.places(many)
  local all = {}
  for place = 1, many do
    all[place] = place
  end
  return all
end

-- Whether a lease is named twice.
local function has_twice(runs)
  local named = {}
  for i = 1, #runs, 3 do
    local seq = runs[i + 1]
    for at = seq, seq > 0 and seq + runs[i + 2] - 1 or 0 do
      if named[at] then
        return true
      end
      named[at] = true
    end
  end
  return false
end

-- ---- What is told of them ----

-- What was settled the short way, by place: of rows in a block {hash of rows, part, rest, class} under the place of the
-- first, of others the rest, the class, the id and the name of each.
local function new_told()
  return { spans = {}, rests = {}, classes = {}, ids = {}, names = {} }
end

-- Rows from a place on that are told in one event: alike, and each with a limit of its own, or none. The place behind them.
local function tell_rows(told, at, to)
  local rest, shape = told.rests[at], told.classes[at].shape
  local ids, names, limits, weights = {}, {}, rest.as_needed and {}, rest.as_needed and {}
  local n, qn = 0, shape.qn
  while at <= to and told.rests[at] == rest and told.classes[at].shape.qn == qn do
    n = n + 1
    ids[n], names[n] = told.ids[at], told.names[at]
    if limits then
      local need = told.classes[at].shape.needs[1]
      limits[n], weights[n] = need[NEED_AT.name], text(need[NEED_AT.weight])
    end
    at = at + 1
  end
  lib.succeeded_event(rest, shape, concat(ids, '\n'), concat(names), n, limits and concat(limits, '\n'),
    weights and concat(weights, ','))
  return at
end

-- Tells what was settled the short way at these places.
function lib.tell_settled(told, from, to)
  local at = from
  while at <= to do
    local span = told.spans[at]
    if span then
      local chunk, part, rest, class = unpack(span)
      local first, many = part[SPAN_PART_AT.at], part[SPAN_PART_AT.many]
      lib.succeeded_event(rest, class.shape, lib.block_ids(chunk, lib.block_in(chunk), first, first + many - 1),
        { part[SPAN_PART_AT.fence], part[SPAN_PART_AT.seq] }, many)
      at = at + many
    elseif told.rests[at] then
      at = tell_rows(told, at, to)
    else
      at = at + 1
    end
  end
end

-- The same with each part of a block on its own, where they are told in another order.
function lib.tell_apart(told)
  local spans = {}
  for place, span in pairs(told.spans) do
    local chunk, part, rest, class = unpack(span)
    for i = 0, part[SPAN_PART_AT.many] - 1 do
      spans[place + i] = {
        chunk,
        { part[SPAN_PART_AT.at] + i, 1, place + i, part[SPAN_PART_AT.fence] + i, part[SPAN_PART_AT.seq] + i },
        rest, class,
      }
    end
  end
  told.spans = spans
end

-- Settles as succeeded what may go the short way: `runs` is {fence, row number, how many with one fence and one
-- row number after the other, …}, `results` the results of some by their place. The places of those that are left
-- for the long way, how many there were, and what is to be told of the others (lib.tell_settled). `ordered`: the runs
-- are, by their fences, and none has a part of another. No call that has follow-ups comes here: one of them may ask for
-- a unique key before the job that holds it ends.
function lib.settle_short(runs, results, ordered, now)
  local left, names, seqs = {}, {}, {}
  -- A lease that is named twice sees what was done before it in this call: rows that are written the
  -- short way are not read again, so all go the long way.
  if not ordered and has_twice(runs) then
    local many = 0
    for i = 3, #runs, 3 do
      many = many + runs[i]
    end
    return lib.places(many), many
  end
  local rows, fence_of, seq_of, spans, place = {}, {}, {}, {}, 1
  -- A job for whose end a call or another job waits goes the long way.
  local awaited = lib.awaited_of(runs)
  local function has_awaited(seq, many)
    for at = seq, seq + many - 1 do
      if awaited[at] then
        return true
      end
    end
    return false
  end
  local function one_by_one(fence, seq, many, first)
    for i = 0, many - 1 do
      rows[#rows + 1] = first + i
      fence_of[first + i], seq_of[first + i] = fence + i, seq + i
    end
  end
  -- Most are in no block: the hash of which that is known.
  local unblocked
  for i = 1, #runs, 3 do
    local fence, seq, many = runs[i], runs[i + 1], runs[i + 2]
    local chunk = floor(seq / lib.CHUNK_ROWS)
    if seq == 0 then
      left[#left + 1] = place
    elseif many == 1 and (chunk == unblocked or not lib.block_in(chunk)) then
      unblocked = chunk
      rows[#rows + 1], fence_of[place], seq_of[place] = place, fence, seq
    elseif results and results[place] or awaited and has_awaited(seq, many)
      or not add_to_span(spans, fence, seq, many, place) then
      one_by_one(fence, seq, many, place)
    end
    place = place + many
  end
  local space, rests, classes = db.space, {}, {}
  local kept, told = 0, lib.keeps_events() and new_told() or nil
  for _, its in pairs(spans) do
    local rest = rest_of(sub(its.tail, 5), rests)
    local class = class_of(sub(its.tail, 1, 4), classes, now)
    local bytes = lib.settle_span(its, rest.granted_at, now, class.till)
    if bytes then
      kept, rest.n, class.n = kept + bytes, rest.n + its.n, class.n + its.n
      for _, part in ipairs(told and its.parts or {}) do
        told.spans[part[SPAN_PART_AT.place]] = { its.chunk, part, rest, class }
      end
    else
      for _, part in ipairs(its.parts) do
        one_by_one(part[SPAN_PART_AT.fence], part[SPAN_PART_AT.seq], part[SPAN_PART_AT.many], part[SPAN_PART_AT.place])
      end
    end
  end
  -- What lies together is read together.
  sort(rows)
  for at, i in ipairs(rows) do
    names[at], seqs[at] = struct.pack('>I8I6', fence_of[i], seq_of[i]), seq_of[i]
  end
  local lives = lib.read_lives(seqs)
  local gone, n_gone, rows_till = {}, 0, {}
  local puts, ends, block
  for at, i in ipairs(rows) do
    local life, name, seq = lives[at], names[at], seqs[at]
    local kind = life and sub(life, NAME_AT, BYTES_AT - 1) == name and sub(life, 1, 1)
    if (kind == RUNNING or kind == RUNNING_WITH_KEY) and not (awaited and awaited[seq]) then
      local common, id = lib.common_and_id(life)
      local rest = rest_of(common, rests)
      local words = sub(life, TAIL_AT, COMMON_AT - 1)
      local class = class_of(words, classes, now)
      local till = class.till
      if not ends or seq > ends or seq <= ends - lib.CHUNK_ROWS then
        local chunk, key = home(seq)
        ends = chunk * lib.CHUNK_ROWS + lib.CHUNK_ROWS - 1
        puts, block = lib.row_puts(key), lib.block_in(chunk)
      end
      local _, x = lib.row_fields(seq - ends + lib.CHUNK_ROWS - 1)
      local n_puts = #puts
      puts[n_puts + 1] = x
      local result, bytes = results and results[i], nil
      if result then
        local _, key, field = home(seq)
        maps.set(key .. PART.result, field, result)
      end
      puts[n_puts + 2], bytes = lib.succeeded_life(life, result, done_of(rest, till, now))
      kept = kept + bytes
      n_gone = n_gone + 1
      gone[n_gone] = name
      if block then
        lib.own_life(seq)
      end
      if rest.deadline then
        lib.timer_clear('dl', name)
      end
      if kind == RUNNING_WITH_KEY then
        lib.give_key_back(seq, id, class.shape, now)
      end
      if rest.as_needed then
        for _, need in ipairs(class.shape.needs) do
          lib.return_permits(need[NEED_AT.name], need[NEED_AT.weight], name, true, false, now)
        end
      elseif rest.limits then
        lib.return_limits(rest.limits, name, true, false, now)
      end
      rest.n, class.n = rest.n + 1, class.n + 1
      if told then
        told.rests[i], told.classes[i], told.ids[i], told.names[i] = rest, class, id, name
      end
      local ended = rows_till[till]
      if not ended then
        ended = {}
        rows_till[till] = ended
      end
      ended[#ended + 1] = sub(name, 9)
    else
      left[#left + 1] = i
    end
  end
  -- Only now: what leaves a span may have touched the order of expiries.
  local rems = sets.bulk(KEY.expiries).rems
  for i = 1, n_gone do
    rems[#rems + 1] = gone[i]
  end
  sort(left)
  space.kept[KEPT_AT.others] = space.kept[KEPT_AT.others] + kept
  for _, rest in pairs(rests) do
    if rest.n > 0 then
      lib.hear_worker(rest.holder, now)
      lib.unhold(rest.holder, rest.n, false)
    end
  end
  for till, ended in pairs(rows_till) do
    sets.add('fo', till, concat(ended))
    lib.sooner(till)
  end
  for _, class in pairs(classes) do
    if class.n > 0 then
      lib.count_succeeded(class.shape, class.number, class.n, now)
    end
  end
  return left, place - 1, told
end
