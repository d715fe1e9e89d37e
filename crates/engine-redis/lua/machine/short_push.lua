-- The short way of jobs that are pushed: stored ready, many of one shape in one call.
--
-- Those that may be a block become one; of others the parts of ids and of rows that lie together are gathered,
-- and each command takes many.

local home = lib.job_home

-- One shape has so many more jobs: its number, its lane.
local function more_of_shape(spec, words, many, now)
  -- The first of a shape goes the long way to its lane.
  local number = lib.shape_for(words, now)
  local shape = db.get(RECORD.shape, number)
  shape.live, shape.rows = shape.live + many - 1, shape.rows + many - 1
  local lane = shape.lane or lib.lane_of_job({ shape = number, lost = 0 })
  spec.unasked = lib.is_unasked(shape.q, now)
  return number, lane
end

-- So many stand in line now, one after the other: the arrival and the row of the first.
local function stand_in_line(lane, arrival, seq, many, now)
  local space, lane_record = db.space, db.get(RECORD.lane, lane)
  local had = lane_record.line.n
  lines.append(lane_record.line, lib.lane_line(lane), arrival, seq, many)
  space.arrival = arrival + many - 1
  lib.add_len(lane_record, many)
  lib.unit(lane_record.queue, many)
  db.get(RECORD.queue, lane_record.queue).used_at = now
  if had == 0 then
    lib.lane_changed(lane, now)
  elseif lib.has_takers(lane_record.queue) then
    -- Its head is as it was, but there is more for those who wait.
    db.touched[lane_record.queue] = true
  end
end

-- Stores jobs of one shape, in words, that have nothing unusual: `flat` is {id, b, bytes, tail of the row, …}. The number
-- of their shape, and that of their first row.
local function store_flat(spec, words, flat, now)
  local space = db.space
  local many = #flat / 4
  local number, lane = more_of_shape(spec, words, many, now)
  local first_arrival, first_seq = space.arrival + 1, space.seq + 1
  local head = struct.pack('>I4I7', number, now)
  -- Who waits may be granted them in this very call.
  local pushed = lib.has_takers(db.see(RECORD.lane, lane).queue) and db.pushed or {}
  local last_b, ids, n_ids, puts, n_puts, ends
  local named = {}
  for i = 1, many do
    local at, arrival, seq = i * 4 - 3, first_arrival + i - 1, first_seq + i - 1
    if not ends or seq > ends then
      local chunk, key = home(seq)
      ends = chunk * lib.CHUNK_ROWS + lib.CHUNK_ROWS - 1
      puts = lib.row_puts(key)
      n_puts = #puts
      local chunk_record = db.get(RECORD.chunk, chunk)
      if not chunk_record then
        chunk_record = db.put(RECORD.chunk, chunk, { n = 0 })
        sets.add('ch', chunk, text(chunk))
      end
      chunk_record.n = chunk_record.n + min(ends, first_seq + many - 1) - seq + 1
    end
    local b = flat[at + 1]
    if b ~= last_b then
      last_b, ids = b, lib.row_puts('i:' .. b)
      n_ids = #ids
    end
    ids[n_ids + 1], ids[n_ids + 2], named[i] = flat[at], text(seq), flat[at]
    n_ids = n_ids + 2
    puts[n_puts + 1] = lib.row_fields(seq - ends + lib.CHUNK_ROWS - 1)
    local row = head .. struct.pack('>I6I4', arrival, flat[at + 2]) .. flat[at + 3]
    puts[n_puts + 2], pushed[seq] = row, row
    n_puts = n_puts + 2
  end
  space.seq = first_seq + many - 1
  lib.pushed_event(spec.q, concat(named, '\n'), many)
  stand_in_line(lane, first_arrival, first_seq, many, now)
  return number, first_seq
end

-- Where the ids begin in the texts of so many jobs, counted from 0: behind their index and the last of them.
local function ids_in(texts, many)
  return many * 8 + struct.unpack('>I4', texts, many * 8 - 7)
end

-- Stores a block, and tells what store_flat tells: the ids of its jobs; how many of them in a row lie in which part of the ids, {b, how many, …};
-- its texts with their index, and the ids from `ids_at` on. (Lua keeps each string once: to put them behind the texts here
-- would cost as much as twenty jobs.)
local function store_block(spec, words, ids, parts, texts, ids_at, now)
  local many, arrival = #ids, db.space.arrival + 1
  local number, lane = more_of_shape(spec, words, many, now)
  local first, nth = lib.new_block(number, many, texts, ids, ids_at, now), 0
  lib.pushed_event(spec.q, sub(texts, ids_at + 1, -2), many)
  for i = 1, #parts, 2 do
    local puts = lib.row_puts('i:' .. parts[i])
    local n = #puts
    for _ = 1, parts[i + 1] do
      puts[n + 1], puts[n + 2] = ids[nth + 1], text(first + nth)
      n, nth = n + 2, nth + 1
    end
  end
  stand_in_line(lane, arrival, first, many, now)
  return number, first
end

-- Jobs of one shape as they came: {ids, parts}, and their texts between the index and the ids. Their shape, and their first
-- row.
local function store_texts(spec, words, came, texts, now)
  local ids, parts = came[1], came[2]
  local many = #ids
  local ids_at = ids_in(texts, many)
  if lib.may_be_block(words, many, ids_at) then
    return store_block(spec, words, ids, parts, texts, ids_at, now)
  end
  local flat, n, nth, starts, sum = {}, 0, 0, 0, 0
  for i = 1, #parts, 2 do
    for _ = 1, parts[i + 1] do
      local ends, to_here = struct.unpack('>I4I4', texts, nth * 8 + 1)
      flat[n + 1], flat[n + 2], flat[n + 3] = ids[nth + 1], parts[i], to_here - sum
      flat[n + 4] = sub(texts, many * 8 + starts + 1, many * 8 + ends)
      n, nth, starts, sum = n + 4, nth + 1, ends, to_here
    end
  end
  return store_flat(spec, words, flat, now)
end

-- A job that came alone with its text beside the arguments: its id, its part of the ids, its bytes, and its text; nil
-- if there are more of them.
function lib.pushed_alone(blocks, texts)
  if blocks and not blocks[2] and not blocks[1][1][2] then
    local ends, bytes = struct.unpack('>I4I4', texts)
    return blocks[1][1][1], blocks[1][2][1], bytes, sub(texts, 9, ends + 8)
  end
end

-- Stores jobs of one shape that came with texts beside the arguments, as {{ids, parts}, …}. The number of their shape,
-- and the first row of each.
function lib.store_blocks(spec, blocks, default_retry, now)
  local words, firsts, number = lib.shape_of(spec, default_retry), {}, nil
  for i, came in ipairs(blocks) do
    number, firsts[i] = store_texts(spec, words, came, db.beside[i + 1], now)
  end
  return number, firsts
end

-- The fields that a call will write into rows of one hash, each with its bytes.
local function puts_by_field(key)
  local puts, by_field = db.rows[key] or {}, {}
  for i = 1, #puts, 2 do
    by_field[puts[i]] = puts[i + 1]
  end
  return by_field
end

-- The state of jobs of a shape that stand in line.
local function state_in_line(number)
  local lane = db.see(RECORD.shape, number).lane
  return lane and lib.is_blocked(lane) and STATE.blocked or STATE.ready
end
lib.state_in_line = state_in_line

-- Shows a job that this very call stored the short way, once all is served. `puts`: the fields of
-- the hashes that were looked at so far.
function lib.show_stored_short(seq, number, puts)
  local job = db.jobs[seq]
  if job then
    return lib.show(job)
  end
  local _, key, row_field, life_field = lib.job_home(seq)
  local block, at, chunk = lib.block_of(seq)
  puts[key] = puts[key] or puts_by_field(key)
  local row, life = puts[key][row_field], puts[key][life_field]
  if block then
    row = lib.block_rows(chunk, block, { at })[1]
    life = life or not lib.has_own_life(block, at) and lib.block_lives(chunk, block, { at })[1]
  end
  local state = life and STATE.running or state_in_line(number)
  return lib.show_stored(seq, state, row, life or false, number)
end

-- Puts the lives of rows, which this call stored from `first` on, behind `lives`; false for those that wait.
local function add_lives(lives, first, many)
  local by_key, places, at_places, n = {}, {}, {}, #lives
  local block, _, of_block = lib.block_of(first)
  for i = 1, many do
    local seq = first + i - 1
    local chunk, key, _, life_field = lib.job_home(seq)
    local at, job = seq - chunk * lib.CHUNK_ROWS, db.jobs[seq]
    lives[n + i] = false
    if job then
      local _, life = lib.written(job)
      lives[n + i] = life
    elseif block and not lib.has_own_life(block, at) then
      places[#places + 1], at_places[#at_places + 1] = at, n + i
    else
      by_key[key] = by_key[key] or puts_by_field(key)
      lives[n + i] = by_key[key][life_field] or false
    end
  end
  if places[1] then
    for i, life in ipairs(lib.block_lives(of_block, block, places)) do
      lives[at_places[i]] = life
    end
  end
end

-- Shows jobs of one shape that this very call stored in line: {at, shape, state = of those that wait, firsts}, with the
-- first row of each {ids, parts}. Whoever pushed them has their texts.
function lib.show_stored_together(number, firsts, now)
  local state = state_in_line(number)
  return { at = now, shape = lib.shape_number(number), state = state, firsts = firsts }
end

-- The lives that jobs have by the end of the call that stored them as {{ids, parts}, …}, false for those that wait.
function lib.show_lives_given(blocks, firsts)
  local lives = {}
  for i, came in ipairs(blocks) do
    add_lives(lives, firsts[i], #came[1])
  end
  for i, life in ipairs(lives) do
    lives[i] = life and lib.blob(life)
  end
  return lives
end

-- Up to as many of {id, b, bytes, tail, …} as may be a block, from a place on: as they would have come. The
-- place behind them.
local function as_block(flat, from)
  local ids, parts, index, texts, n, starts, sum = {}, {}, {}, {}, 0, 0, 0
  local at = from
  while at < #flat and n < lib.CHUNK_ROWS
    and (n == 0 or starts + #flat[at + 3] + 8 * (n + 1) <= lib.BLOCK_BYTES) do
    n = n + 1
    starts, sum = starts + #flat[at + 3], sum + flat[at + 2]
    ids[n], texts[n], index[n] = flat[at], flat[at + 3], struct.pack('>I4I4', starts, sum)
    local m = #parts
    if parts[m - 1] == flat[at + 1] then
      parts[m] = parts[m] + 1
    else
      parts[m + 1], parts[m + 2] = flat[at + 1], 1
    end
    at = at + 4
  end
  return { ids, parts }, concat(index) .. concat(texts) .. concat(ids, '\n') .. '\n', at
end

-- Puts the row and the shape of each of these jobs behind the others.
local function add_stored(stored, number, first, many)
  local n = #stored
  for i = 0, many - 1 do
    stored[n + i * 2 + 1], stored[n + i * 2 + 2] = first + i, number
  end
end

-- Stores jobs[from..to], all planned to be stored and without anything unusual, or the only job with a unique key until its
-- end. `stored`, if it is there, gets the row and the shape of each.
function lib.store_plain(jobs, shapes, from, to, default_retry, now, stored)
  local at = from
  while at <= to do
    local shape, flat, n = jobs[at][NEW_JOB_AT.shape], {}, 0
    while at <= to and jobs[at][NEW_JOB_AT.shape] == shape do
      local new = jobs[at]
      local id, b = new[NEW_JOB_AT.id], new[NEW_JOB_AT.b]
      flat[n + 1], flat[n + 2], flat[n + 3] = id, b, new[NEW_JOB_AT.bytes]
      local more = new[NEW_JOB_AT.more]
      flat[n + 4] = lib.row_text(id, b, more and more.u, nil, nil, new[NEW_JOB_AT.body])
      n, at = n + 4, at + 1
    end
    local spec = shapes[shape]
    local words = lib.shape_of(spec, default_retry)
    if n < 4 * lib.FEW then
      local number, first = store_flat(spec, words, flat, now)
      -- One with a unique key came alone.
      local more = jobs[from][NEW_JOB_AT.more]
      if more then
        lib.take_key({ unique = more.u, seq = first, id = jobs[from][NEW_JOB_AT.id] }, now)
      end
      if stored then
        add_stored(stored, number, first, n / 4)
      end
    else
      local next_at = 1
      while next_at < n do
        local came, texts
        came, texts, next_at = as_block(flat, next_at)
        local number, first = store_texts(spec, words, came, texts, now)
        if stored then
          add_stored(stored, number, first, #came[1])
        end
      end
    end
  end
end
