-- Records that most calls write, as texts that begin with the numbers that change; and any record as its bytes. A
-- change of a text is a change of the layout.
--
-- A lane and a shape carry their `words`: the packed text under which they are found, which says all of them that
-- never changes. So that part is packed once in their life, and is copied ever after. Their fields are read from it.

-- What such a text begins with, and one that leaves out more. No array begins with either.
local TEXT, BRIEF = '\1', '\2'

-- A record as its text, by kind; nil if it is not as most of its kind are, and has to be an array.
local TO_TEXT, FROM_TEXT = {}, {}

-- The namespace and its queues: the numbers that nearly every call changes, and behind them, packed, what few do.
local HEAD, REST = {}, {}
-- What of them stands behind the numbers; and of a worker.
local SPACE_REST = form('deaf_at', 'behind', 'used', 'settings', set_field('pending'), set_field('families'),
  'patience', 'retain_bytes', set_field('signalled'), 'claim', 'steps', 'run', 'learns_until', 'forgot_after', 'gap',
  'family', 'marks_at')
local QUEUE_REST = form('name', { 'priorities', 'priorities' }, 'hidden', 'limit', 'place', 'out', 'paused_until',
  'set')
local WORKER_REST = form('host', 'pid', 'version')
local SPACE_NUMBERS, QUEUE_NUMBERS = '>I6I7I8I6I6I6I6I7I7I6I7I6I7I7', '>I6I6I6I6I6I6I6I7I7I7I3'

HEAD[RECORD.space] = function(r)
  local kept = r.kept
  return TEXT .. struct.pack(SPACE_NUMBERS, r.version, r.last, r.fence, r.arrival, r.seq, r.number,
    r.live, kept[KEPT_AT.failed], kept[KEPT_AT.others], r.ttl_max, r.ttl_since, r.ttl_before, r.next_due, r.pulse)
end

REST[RECORD.space] = function(r)
  return cmsgpack.pack({
    r.deaf_at, r.behind, r.used, r.settings, OUT.set(r.pending), OUT.set(r.families), r.patience, r.retain_bytes,
    OUT.set(r.signalled), r.claim or false, r.steps or false, r.run or false, r.learns_until or false,
    r.forgot_after or false, r.gap or false, r.family or false, r.marks_at or false,
  })
end

FROM_TEXT[RECORD.space] = function(text)
  local r, kept, at = {}, {}, nil
  r.version, r.last, r.fence, r.arrival, r.seq, r.number, r.live, kept[KEPT_AT.failed], kept[KEPT_AT.others],
    r.ttl_max, r.ttl_since, r.ttl_before, r.next_due, r.pulse, at = struct.unpack(SPACE_NUMBERS, text, 2)
  r.kept = kept
  return read_fields(SPACE_REST, cmsgpack.unpack(sub(text, at)), r)
end

-- (0 is no moment at which nobody asked: it is written one higher.)
HEAD[RECORD.queue] = function(r)
  return TEXT .. struct.pack(QUEUE_NUMBERS, r.scheduled, r.waiting, r.blocked, r.running, r.succeeded,
    r.failed, r.cancelled, r.since, r.asked_at and r.asked_at + 1 or 0, r.used_at, r.takers or 0)
end

REST[RECORD.queue] = function(r)
  return cmsgpack.pack({
    r.name or false, OUT.priorities(r.priorities), r.hidden or false, r.limit or false, r.place or false,
    r.out or false, r.paused_until or false, r.set or false,
  })
end

FROM_TEXT[RECORD.queue] = function(text)
  local r, at = {}, nil
  r.scheduled, r.waiting, r.blocked, r.running, r.succeeded, r.failed, r.cancelled, r.since, r.asked_at, r.used_at,
    r.takers, at = struct.unpack(QUEUE_NUMBERS, text, 2)
  r.asked_at, r.takers = r.asked_at > 0 and r.asked_at - 1 or nil, r.takers > 0 and r.takers or nil
  return read_fields(QUEUE_REST, cmsgpack.unpack(sub(text, at)), r)
end

TO_TEXT[RECORD.space] = function(r)
  return HEAD[RECORD.space](r) .. REST[RECORD.space](r)
end

TO_TEXT[RECORD.queue] = function(r)
  return HEAD[RECORD.queue](r) .. REST[RECORD.queue](r)
end

-- A worker: who it is stands last, behind the queues that it asked for, each with its last moment.
TO_TEXT[RECORD.worker] = function(r)
  local queues, n = '', 0
  for queue, at in pairs(r.queues) do
    queues, n = queues .. struct.pack('>I6I7', queue, at), n + 1
  end
  return TEXT .. struct.pack('>I7I4I2', r.seen_at, r.waiting, n) .. queues
    .. cmsgpack.pack({ r.host or false, r.pid or false, r.version or false })
end

FROM_TEXT[RECORD.worker] = function(text)
  local seen_at, waiting, n, at = struct.unpack('>I7I4I2', text, 2)
  local queues = {}
  for _ = 1, n do
    local queue, moment
    queue, moment, at = struct.unpack('>I6I7', text, at)
    queues[queue] = moment
  end
  local r = { seen_at = seen_at, waiting = waiting, queues = queues }
  return read_fields(WORKER_REST, cmsgpack.unpack(sub(text, at)), r)
end

TO_TEXT[RECORD.holder] = function(r)
  return TEXT .. struct.pack('>I6I6', r.leases, r.suspects)
end

FROM_TEXT[RECORD.holder] = function(text)
  local leases, suspects = struct.unpack('>I6I6', text, 2)
  return { leases = leases, suspects = suspects }
end

TO_TEXT[RECORD.chunk] = function(r)
  return TEXT .. struct.pack('>I2B', r.n, r.block and 1 or 0)
end

FROM_TEXT[RECORD.chunk] = function(text)
  local n, block = struct.unpack('>I2B', text, 2)
  return { n = n, block = block == 1 or nil }
end

-- A lane that is open, or empty, and has a short line. One that never stood at a door, and is ordered by its first, is
-- so brief that Redis keeps it in a compact hash.
TO_TEXT[RECORD.lane] = function(r)
  local line = r.line
  if line.big or r.place or r.out or r.try_at or r.marked then
    return nil
  end
  local first = line.n > 0 and struct.unpack('>I6', line.q) or nil
  if r.head == 0 and r.since == 0 and r.parked_key == 0 and r.ordered == first and r.shapes < 65536 then
    return BRIEF .. struct.pack('>I6I2I2', r.bundle, r.shapes, #line.q) .. line.q .. r.words
  end
  return TEXT
    .. struct.pack('>I6I6I6I7I4I6I2', r.bundle, r.parked_key, r.head, r.since, r.shapes, r.ordered or 0, #line.q)
    .. line.q .. r.words
end

FROM_TEXT[RECORD.lane] = function(text)
  if sub(text, 1, 1) == BRIEF then
    local bundle, shapes, n, at = struct.unpack('>I6I2I2', text, 2)
    return {
      words = sub(text, at + n), bundle = bundle, line = IN.line(sub(text, at, at + n - 1)), parked_key = 0, head = 0,
      since = 0, shapes = shapes, ordered = n > 0 and struct.unpack('>I6', text, at) or nil,
    }
  end
  local bundle, parked_key, head, since, shapes, ordered, n, at = struct.unpack('>I6I6I6I7I4I6I2', text, 2)
  return {
    words = sub(text, at + n), bundle = bundle, line = IN.line(sub(text, at, at + n - 1)), parked_key = parked_key,
    head = head, since = since, shapes = shapes, ordered = ordered > 0 and ordered or nil,
  }
end

TO_TEXT[RECORD.shape] = function(r)
  return TEXT .. struct.pack('>I4I4I6I6', r.live, r.rows, r.q or 0, r.lane or 0) .. r.words
end

FROM_TEXT[RECORD.shape] = function(text)
  local live, rows, q, lane, at = struct.unpack('>I4I4I6I6', text, 2)
  return { words = sub(text, at), live = live, rows = rows, q = q > 0 and q or nil, lane = lane > 0 and lane or nil }
end

-- A limit of which permits are in use, and nothing else is known: the names of those who hold it, whose fences are
-- their order.
TO_TEXT[RECORD.limit] = function(r)
  local holders = r.holders
  if holders.z or r.resting_sum > 0 or r.external > 0 or r.tat > 0 or r.touched_at > 0 or r.paused_until or r.mark
    or r.timer then
    return nil
  end
  local names = holders[2] or ''
  if holders.n > 1 then
    for i = 4, #holders, 2 do
      names = names .. holders[i]
    end
  end
  return TEXT .. struct.pack('>I4I6', r.uses, r.in_use) .. names
end

-- The bytes of a lease's name, which begins with its fence (machine/leases).
local HELD_BY = 14

FROM_TEXT[RECORD.limit] = function(text)
  local uses, in_use, at = struct.unpack('>I4I6', text, 2)
  local holders = { n = (#text - at + 1) / HELD_BY }
  for i = 1, holders.n do
    local from = at + (i - 1) * HELD_BY
    holders[i * 2 - 1], holders[i * 2] = struct.unpack('>I8', text, from), sub(text, from, from + HELD_BY - 1)
  end
  return {
    uses = uses, in_use = in_use, holders = holders, resting = { n = 0 }, resting_sum = 0, external = 0, tat = 0,
    touched_at = 0,
  }
end

-- The retry of most shapes is not written. It stays this one, whatever the default becomes: it is of the layout.
local USUAL_RETRY = { 20, 3, BACKOFF.exponential, 1000000, 3600000000, true }

-- The retry of a shape as its words say it.
local function short_retry(retry)
  for i = 1, 6 do
    if retry[i] ~= USUAL_RETRY[i] then
      return retry
    end
  end
  return false
end

-- What of a record its words say.
local SAID = {}
local LANE_WORDS = form('queue', 'priority', 'group', 'needs', 'suspect')
local SHAPE_WORDS = form('qn', 'pr', 'g', 'needs', 'retry', 'timeout', 'retain')

SAID[RECORD.lane] = function(r)
  read_fields(LANE_WORDS, cmsgpack.unpack(r.words), r)
end

SAID[RECORD.shape] = function(r)
  read_fields(SHAPE_WORDS, cmsgpack.unpack(r.words), r)
  r.retry = r.retry or USUAL_RETRY
end

-- The words of a lane and of a shape.
function T.lane_words(l)
  return cmsgpack.pack({ l.queue, l.priority, l.group or false, l.needs, l.suspect or false })
end

function T.shape_words(s)
  return cmsgpack.pack({
    s.qn, s.pr, s.g or false, s.needs, short_retry(s.retry), s.timeout or false, s.retain or false,
  })
end

-- Whether two values say the same; what is not there and `false` do. (Their bytes may differ: the order of a
-- map's fields is not kept.)
local function same(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then
    return (a or false) == (b or false)
  end
  for key, value in pairs(a) do
    if not same(value, b[key]) then
      return false
    end
  end
  for key, value in pairs(b) do
    if a[key] == nil and value ~= false then
      return false
    end
  end
  return true
end

local function flat_of(fields, record)
  local flat = {}
  for i = 1, #fields, 2 do
    local value, how = record[fields[i]], fields[i + 1]
    if how ~= VALUE then
      value = OUT[how](value)
    elseif value == nil then
      value = false
    end
    flat[(i + 1) / 2] = value
  end
  return flat
end

local function encode(kind, record)
  local to_text = TO_TEXT[kind]
  local packed = to_text and to_text(record)
  if packed then
    return packed
  end
  local hot, fields = HOT[kind], FORMS[kind]
  return cmsgpack.pack(hot and hot(record) or fields and flat_of(fields, record) or record)
end

-- A record as bytes. `brief`: its bytes before, of which nothing but the numbers changed that it begins with.
function db.encode(kind, record, brief)
  local head = brief and HEAD[kind] and HEAD[kind](record)
  local packed = head and head .. sub(brief, #head + 1) or encode(kind, record)
  if TESTING and (FORMS[kind] or TO_TEXT[kind]) then
    -- A field that no form names would be lost without a word.
    if not same(record, db.decode(kind, packed)) then
      error('form_says_less:' .. kind)
    end
    local hot = HOT[kind]
    if hot and cmsgpack.pack(hot(record)) ~= cmsgpack.pack(flat_of(FORMS[kind], record)) then
      error('forms_differ:' .. kind)
    end
  end
  return packed
end

-- Bytes as a record.
function db.decode(kind, bytes)
  local fields, record = FORMS[kind], nil
  if FROM_TEXT[kind] and byte(bytes) <= 2 then
    record = FROM_TEXT[kind](bytes)
  else
    local flat = cmsgpack.unpack(bytes)
    if not fields then
      return flat
    end
    record = read_fields(fields, flat, {})
  end
  if SAID[kind] then
    SAID[kind](record)
  end
  return record
end
