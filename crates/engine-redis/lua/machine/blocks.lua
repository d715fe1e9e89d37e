-- Blocks: plain jobs that were pushed together, kept together for as long as they are alike.
--
-- A block is the first rows of a hash of rows, up to all 256: jobs of one shape without needs, stored ready in
-- one call. Their texts lie one after the other in one string behind an index (of each row, in 4 bytes each,
-- where its text ends and the sum of the bytes up to it), and behind them their ids, each on a line: events name
-- them, and no payload is read for that. The record `k` says of each row by one byte what it is:
-- 0 waits as it was pushed; 255 has gone; 254 has a life of its own beside, as any row that is in no block; any
-- other number is that of a span, the rows that were granted in one call, or that succeeded in one. So a hundred
-- jobs are granted, and settled, by changing one record.
--
-- A span: {base, how many rows are in it, what is the same for all of their lives, first fence} while they run,
-- {base, how many, false, granted_at, finished_at, kept_until} once they have succeeded. The fence of a row is
-- base and its place. A span that runs expires under one name. Whoever changes a single row gives it a life of its own;
-- nothing else here knows what a life says.

local ROWS = lib.CHUNK_ROWS
local AS_PUSHED, OWN, GONE = 0, 254, 255
-- Fewer rows go one by one. (The library of tests makes blocks of two, since its programs are small.)
local FEW = TESTING and 2 or 8
-- Spans of a block; beyond them rows go one by one, or the record would grow too long to be written each time.
local SPANS_MAX = 48
-- Bytes of a block's texts: who lives long in it keeps them all.
local BYTES_MAX = 65536
lib.FEW, lib.BLOCK_BYTES = FEW, BYTES_MAX

local function texts_key(chunk)
  return format('jb:%d', chunk)
end
lib.texts_key = texts_key

-- The block that a hash of rows begins with; or nil. The record of the hash says whether there is one: in a slot that
-- leaves its node nothing can be looked for that may be nowhere.
function lib.block_in(chunk)
  local rows = db.see(RECORD.chunk, chunk)
  return rows and rows.block and db.see(RECORD.block, chunk) or nil
end

-- The block that a row is in, its place there and its hash of rows; or nil.
function lib.block_of(seq)
  local chunk = floor(seq / ROWS)
  local block = lib.block_in(chunk)
  local at = seq - chunk * ROWS
  if block and at < block.size then
    return block, at, chunk
  end
end

-- Whether so many jobs of a shape with such texts may be a block.
function lib.may_be_block(shape, many, bytes)
  return many >= FEW and many <= ROWS and bytes <= BYTES_MAX and #shape.needs == 0 and not shape.timeout
end

-- The bytes of each id and its end of line, if all are as long; otherwise 0.
local function bytes_of(ids, many)
  local bytes = #ids[1]
  for i = 2, many do
    if #ids[i] ~= bytes then
      return 0
    end
  end
  return bytes + 1
end

-- Makes a block of texts as it keeps them, with the ids behind them from `ids_at` on: jobs of a shape that arrive now. Its
-- first row.
function lib.new_block(shape, many, texts, ids, ids_at, now)
  local space = db.space
  local chunk = floor(space.seq / ROWS) + 1
  db.put(RECORD.chunk, chunk, { n = many, block = true })
  sets.add('ch', chunk, text(chunk))
  db.put(RECORD.block, chunk, {
    size = many, shape = shape, created = now, arrival = space.arrival + 1, states = rep('\0', many),
    spans = {}, ids_at = ids_at, id_bytes = bytes_of(ids, many),
  })
  db.texts[texts_key(chunk)] = texts
  space.seq = chunk * ROWS + many - 1
  return chunk * ROWS
end

-- A block of which no row is left.
function lib.drop_block(chunk)
  if lib.block_in(chunk) then
    db.drop(RECORD.block, chunk)
    db.texts[texts_key(chunk)] = false
  end
end

function db.write_texts(out)
  for key, texts in pairs(db.texts) do
    if texts then
      out(key).texts = texts
    else
      out(key).gone = true
    end
  end
end

-- ---- Reading ----

-- A part of a block's texts, counted from 0, its ends included; -1 is the last byte.
local function part(chunk, from, to)
  local key = texts_key(chunk)
  local new = db.texts[key]
  return new and sub(new, from + 1, to < 0 and to or to + 1) or call('GETRANGE', db.prefix .. key, from, to)
end

-- The index of rows from..to of a block, from the one before the first on, and their texts one after the other.
function lib.block_texts(chunk, block, from, to)
  local index = part(chunk, max(from - 1, 0) * 8, to * 8 + 7)
  local starts = from > 0 and struct.unpack('>I4', index) or 0
  local ends = struct.unpack('>I4', index, #index - 7)
  return index, part(chunk, block.size * 8 + starts, block.size * 8 + ends - 1)
end

-- The ids of rows from..to of a block, each on a line.
function lib.block_ids(chunk, block, from, to)
  local bytes, starts = block.id_bytes, block.ids_at
  if bytes > 0 then
    return part(chunk, starts + from * bytes, starts + (to + 1) * bytes - 2)
  end
  local all, at = part(chunk, starts, -1), 1
  for _ = 1, from do
    at = find(all, '\n', at, true) + 1
  end
  local ends = at
  for _ = from, to do
    ends = find(all, '\n', ends, true) + 1
  end
  return sub(all, at, ends - 2)
end

-- What reads the rows of such texts one by one: for a place, its row and its bytes.
local function reader(chunk, block, from, to)
  local index, texts = lib.block_texts(chunk, block, from, to)
  local skip = from > 0 and from - 1 or 0
  local start = from > 0 and struct.unpack('>I4', index) or 0
  return function(at)
    local starts, sum = 0, 0
    if at > 0 then
      starts, sum = struct.unpack('>I4I4', index, (at - 1 - skip) * 8 + 1)
    end
    local ends, to_here = struct.unpack('>I4I4', index, (at - skip) * 8 + 1)
    local bytes = to_here - sum
    return lib.row_head(block.shape, block.created, block.arrival + at, bytes)
      .. sub(texts, starts - start + 1, ends - start), bytes
  end
end

-- The lowest and the highest of places.
local function ends_of(places)
  return min(unpack(places)), max(unpack(places))
end

-- The rows of a block at these places, as they were pushed.
function lib.block_rows(chunk, block, places)
  local row_at, rows = reader(chunk, block, ends_of(places)), {}
  for i, at in ipairs(places) do
    rows[i] = row_at(at)
  end
  return rows
end

-- What tells the sum of the bytes of all rows up to one, from the one before `low` to `high`.
local function sums(chunk, low, high)
  local index = part(chunk, max(low - 1, 0) * 8, high * 8 + 7)
  local skip = low > 0 and low - 1 or 0
  return function(at)
    return at < 0 and 0 or (struct.unpack('>I4', index, (at - skip) * 8 + 5))
  end
end

-- The life of a row that has none of its own, as it would be written; false if it waits as it was pushed.
local function life_of(block, chunk, at, bytes, id)
  local state = byte(block.states, at + 1)
  if state == AS_PUSHED then
    return false
  end
  local span = block.spans[state]
  return lib.short_life(block.arrival + at, span[SPAN_AT.base] + at, chunk * ROWS + at, bytes, block.shape, span, id)
end

-- The lives of rows at these places that have none of their own.
function lib.block_lives(chunk, block, places)
  local lives = {}
  local sum_to = sums(chunk, ends_of(places))
  for i, at in ipairs(places) do
    lives[i] = life_of(block, chunk, at, sum_to(at) - sum_to(at - 1), lib.block_ids(chunk, block, at, at))
  end
  return lives
end

-- Reads jobs of a block into what the call knows.
function lib.load_block(chunk, block, seqs)
  local first = chunk * ROWS
  local _, key = lib.job_home(first)
  local places, fields, own = {}, {}, {}
  for _, seq in ipairs(seqs) do
    local at = seq - first
    local state = byte(block.states, at + 1)
    if state == GONE then
      db.jobs[seq] = false
    else
      places[#places + 1] = at
      if state == OWN then
        fields[#fields + 1], fields[#fields + 2] = lib.row_fields(at)
        own[at] = #fields
      end
    end
  end
  if #places == 0 then
    return
  end
  local found = #fields > 0 and call('HMGET', db.prefix .. key, unpack(fields))
  local row_at = reader(chunk, block, ends_of(places))
  for _, at in ipairs(places) do
    local row, bytes = row_at(at)
    local life
    if own[at] then
      -- What was pushed anew has a row of its own too.
      row, life = found[own[at] - 1] or row, found[own[at]]
    else
      life = life_of(block, chunk, at, bytes, lib.id_in_row(row))
    end
    db.jobs[first + at] = lib.decode_job(first + at, row, life)
  end
end

-- The rows of a block that are there.
function lib.rows_of_block(chunk, block)
  local rows = {}
  for at = 0, block.size - 1 do
    if byte(block.states, at + 1) ~= GONE then
      rows[#rows + 1] = chunk * ROWS + at
    end
  end
  return rows
end

-- ---- Spans ----

-- The name under which a running span expires: behind those of leases of the same moment.
local SPAN_NAME = 15

local function span_name(chunk, fence)
  return '\255' .. struct.pack('>I6I8', chunk, fence)
end

function lib.is_span(name)
  return #name == SPAN_NAME
end

-- The running span of which a row has this fence, whatever it is if none is said: itself, its block, the row's
-- place there, the hash of rows, its number; or nil.
function lib.running_span(fence, seq)
  local block, at, chunk = lib.block_of(seq)
  local number = block and byte(block.states, at + 1)
  local span = block and block.spans[number]
  if span and span[SPAN_AT.tail] and (not fence or span[SPAN_AT.base] + at == fence) then
    return span, block, at, chunk, number
  end
end

-- The name under which a lease expires: its own, or that of its span.
function lib.expires_as(fence, seq)
  local span, _, _, chunk = lib.running_span(fence, seq)
  return span and span_name(chunk, span[SPAN_AT.fence]) or lib.lease_id(fence, seq)
end

local function rows_in(chunk, block, number)
  local rows = {}
  for at = 0, block.size - 1 do
    if byte(block.states, at + 1) == number then
      rows[#rows + 1] = chunk * ROWS + at
    end
  end
  return rows
end

-- The names of the leases of a name in `e`: its own, or those of a span.
function lib.leases_named(name)
  if not lib.is_span(name) then
    return { name }
  end
  local chunk, fence = struct.unpack('>I6I8', name, 2)
  local block, names = lib.block_in(chunk), {}
  for number, span in ipairs(block and block.spans or {}) do
    if span and span[SPAN_AT.tail] and span[SPAN_AT.fence] == fence then
      for i, seq in ipairs(rows_in(chunk, block, number)) do
        names[i] = lib.lease_id(span[SPAN_AT.base] + seq - chunk * ROWS, seq)
      end
    end
  end
  return names
end

-- The number that a new span gets; or nil.
local function free_number(block)
  for number = 1, SPANS_MAX do
    if not block.spans[number] then
      return number
    end
  end
end

-- The name of a span that succeeded in the order of finished jobs: no other name there is as long.
local function kept_name(chunk, number)
  return struct.pack('>I6I1', chunk, number)
end

-- The rows of a span by its name in the order of finished jobs; nil if it is no such name.
function lib.kept_span(member)
  if #member ~= 7 then
    return nil
  end
  local chunk, number = struct.unpack('>I6I1', member)
  local block = lib.block_in(chunk)
  return block and rows_in(chunk, block, number) or {}
end

-- So many rows leave a span; whether it is empty now.
local function leave_span(block, chunk, number, n)
  local span = block.spans[number]
  span[SPAN_AT.rows] = span[SPAN_AT.rows] - n
  if span[SPAN_AT.rows] > 0 then
    return
  end
  if span[SPAN_AT.tail] then
    sets.rem(KEY.expiries, span_name(chunk, span[SPAN_AT.fence]))
  else
    sets.rem('fo', kept_name(chunk, number))
  end
  local spans = block.spans
  spans[number] = false
  while #spans > 0 and not spans[#spans] do
    spans[#spans] = nil
  end
end

-- A row has a life of its own from now on, or has gone.
local function leave(seq, state)
  local block, at, chunk = lib.block_of(seq)
  local was = block and byte(block.states, at + 1)
  if not block or was == state then
    return
  end
  block = db.get(RECORD.block, chunk)
  block.states = sub(block.states, 1, at) .. char(state) .. sub(block.states, at + 2)
  if was > 0 and was < OWN then
    leave_span(block, chunk, was, 1)
  end
end

function lib.own_life(seq)
  leave(seq, OWN)
end
function lib.row_gone(seq)
  leave(seq, GONE)
end
-- Whether a row waits as it was pushed.
function lib.is_as_pushed(block, at)
  return byte(block.states, at + 1) == AS_PUSHED
end
function lib.has_own_life(block, at)
  return byte(block.states, at + 1) >= OWN
end

-- A job of a block is written for itself: its lease expires for itself too.
function lib.write_own(job)
  local lease = job.lease
  if lease and lib.running_span(nil, job.seq) then
    sets.add(KEY.expiries, lease.expires_at, lib.lease_id(lease.fence, lease.seq))
  end
  leave(job.seq, OWN)
end

-- Jobs that this call ended leave their spans now, and not only when they are written: what the same call does next
-- looks at the order of expiries.
function lib.leave_spans()
  for seq, job in pairs(db.jobs) do
    if job and job.dirty and not job.new and not job.deleted then
      lib.write_own(job)
    end
  end
end

-- Each lease of a running span is one for itself: they are to be looked at one by one.
function lib.scatter(name, at)
  sets.rem(KEY.expiries, name)
  local seqs = {}
  for _, lease in ipairs(lib.leases_named(name)) do
    local _, seq = lib.parse_lease(lease)
    seqs[#seqs + 1] = seq
    sets.add(KEY.expiries, at, lease)
  end
  lib.load_jobs(seqs)
  for _, seq in ipairs(seqs) do
    lib.dirty(lib.job(seq))
  end
  return #seqs
end

-- How many rows of a block, up to `most`, wait from one on as they were pushed, and can be granted together.
function lib.span_room(block, at, most)
  local n = min(most, block.size - at)
  local other = find(block.states, '[^%z]', at + 1)
  if other then
    n = min(n, other - 1 - at)
  end
  return n >= FEW and free_number(block) and n or 0
end

-- Grants so many of them, as there is room for: `tail` is what is the same for all of their lives, and the first
-- gets this fence.
function lib.grant_span(chunk, at, n, tail, fence)
  local block = db.get(RECORD.block, chunk)
  local number = free_number(block)
  block.states = sub(block.states, 1, at) .. rep(char(number), n) .. sub(block.states, at + n + 1)
  block.spans[number] = { fence - at, n, tail.packed, fence }
  local expiries = sets.bulk(KEY.expiries).adds
  expiries[#expiries + 1] = tail.score
  expiries[#expiries + 1] = span_name(chunk, fence)
end

-- What of a running span succeeded in one call: {chunk, number, n, low, high = the first and the last of their
-- places, parts = {{place, how many, …}}}. Their bytes; nil if they are too few to stay together.
function lib.settle_span(its, granted_at, now, till)
  local seen, n = lib.block_in(its.chunk), its.n
  local all = n == seen.spans[its.number][SPAN_AT.rows]
  local done = all and its.number or n >= FEW and free_number(seen)
  if not done or n < FEW then
    return nil
  end
  local block = db.get(RECORD.block, its.chunk)
  local base, _, _, fence = unpack(block.spans[its.number])
  local together = its.high - its.low + 1 == n
  if all then
    sets.rem(KEY.expiries, span_name(its.chunk, fence))
  else
    if together then
      block.states = sub(block.states, 1, its.low) .. rep(char(done), n) .. sub(block.states, its.high + 2)
    else
      local states = { byte(block.states, 1, -1) }
      for _, of in ipairs(its.parts) do
        for at = of[SPAN_PART_AT.at], of[SPAN_PART_AT.at] + of[SPAN_PART_AT.many] - 1 do
          states[at + 1] = done
        end
      end
      block.states = char(unpack(states))
    end
    leave_span(block, its.chunk, its.number, n)
  end
  block.spans[done] = { base, n, false, granted_at, now, till }
  sets.add('fo', till, kept_name(its.chunk, done))
  lib.sooner(till)
  local sum_to, bytes = sums(its.chunk, its.low, its.high), 0
  for _, of in ipairs(together and { { its.low, n } } or its.parts) do
    local at = of[SPAN_PART_AT.at]
    bytes = bytes + sum_to(at + of[SPAN_PART_AT.many] - 1) - sum_to(at - 1)
  end
  return bytes
end
