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
  'family', 'marks_at', 'untold', 'events_bytes', 'events_life', 'recovered_at', 'zones')
local QUEUE_REST = form('name', { 'priorities', 'priorities' }, 'hidden', 'limit', 'place', 'out', 'paused_until',
  'set', 'skipped')
local WORKER_REST = form('host', 'pid', 'version')
local SPACE_NUMBERS, QUEUE_NUMBERS = '>I6I7I8I6I6I6I6I7I7I6I7I6I7I7I7I7I7I7I3', '>I6I6I6I6I6I6I6I6I7I7I7I3'

HEAD[RECORD.space] = function(record)
  local kept = record.kept
  return TEXT .. struct.pack(SPACE_NUMBERS, record.version, record.last, record.fence, record.arrival, record.seq,
    record.number, record.live, kept[KEPT_AT.failed], kept[KEPT_AT.others], record.ttl_max, record.ttl_since,
    record.ttl_before, record.next_due, record.pulse, record.events_last, record.events_first, record.events_kept,
    record.segment_bytes, record.segment_entries)
end

REST[RECORD.space] = function(record)
  return cmsgpack.pack({
    record.deaf_at, record.behind, record.used, record.settings, OUT.set(record.pending), OUT.set(record.families),
    record.patience, record.retain_bytes, OUT.set(record.signalled), record.claim or false, record.steps or false,
    record.run or false, record.learns_until or false, record.forgot_after or false, record.gap or false,
    record.family or false, record.marks_at or false, record.untold or false, record.events_bytes,
    record.events_life or false, record.recovered_at or false, record.zones or false,
  })
end

FROM_TEXT[RECORD.space] = function(text)
  local record, kept, at = {}, {}, nil
  record.version, record.last, record.fence, record.arrival, record.seq, record.number, record.live,
    kept[KEPT_AT.failed], kept[KEPT_AT.others], record.ttl_max, record.ttl_since, record.ttl_before, record.next_due,
    record.pulse, record.events_last, record.events_first, record.events_kept, record.segment_bytes,
    record.segment_entries, at = struct.unpack(SPACE_NUMBERS, text, 2)
  record.kept = kept
  return read_fields(SPACE_REST, cmsgpack.unpack(sub(text, at)), record)
end

-- (0 is no moment at which nobody asked: it is written one higher.)
HEAD[RECORD.queue] = function(record)
  return TEXT .. struct.pack(QUEUE_NUMBERS, record.dependent, record.scheduled, record.waiting, record.blocked,
    record.running, record.succeeded, record.failed, record.cancelled, record.since,
    record.asked_at and record.asked_at + 1 or 0, record.used_at, record.takers or 0)
end

REST[RECORD.queue] = function(record)
  return cmsgpack.pack({
    record.name or false, OUT.priorities(record.priorities), record.hidden or false, record.limit or false,
    record.place or false, record.out or false, record.paused_until or false, record.set or false,
    record.skipped or false,
  })
end

FROM_TEXT[RECORD.queue] = function(text)
  local record, asked_at, takers, at = {}, nil, nil, nil
  record.dependent, record.scheduled, record.waiting, record.blocked, record.running, record.succeeded, record.failed,
    record.cancelled, record.since, asked_at, record.used_at, takers, at = struct.unpack(QUEUE_NUMBERS, text, 2)
  record.asked_at, record.takers = asked_at > 0 and asked_at - 1 or nil, takers > 0 and takers or nil
  return read_fields(QUEUE_REST, cmsgpack.unpack(sub(text, at)), record)
end

TO_TEXT[RECORD.space] = function(record)
  return HEAD[RECORD.space](record) .. REST[RECORD.space](record)
end

TO_TEXT[RECORD.queue] = function(record)
  return HEAD[RECORD.queue](record) .. REST[RECORD.queue](record)
end

-- A worker: who it is stands last, behind the queues that it asked for, each with its last moment.
TO_TEXT[RECORD.worker] = function(record)
  local queues, n = '', 0
  for queue, at in pairs(record.queues) do
    queues, n = queues .. struct.pack('>I6I7', queue, at), n + 1
  end
  return TEXT .. struct.pack('>I7I4I2', record.seen_at, record.waiting, n) .. queues
    .. cmsgpack.pack({ record.host or false, record.pid or false, record.version or false })
end

FROM_TEXT[RECORD.worker] = function(text)
  local seen_at, waiting, n, at = struct.unpack('>I7I4I2', text, 2)
  local queues = {}
  for _ = 1, n do
    local queue, moment
    queue, moment, at = struct.unpack('>I6I7', text, at)
    queues[queue] = moment
  end
  local record = { seen_at = seen_at, waiting = waiting, queues = queues }
  return read_fields(WORKER_REST, cmsgpack.unpack(sub(text, at)), record)
end

TO_TEXT[RECORD.holder] = function(record)
  return TEXT .. struct.pack('>I6I6', record.leases, record.suspects)
end

FROM_TEXT[RECORD.holder] = function(text)
  local leases, suspects = struct.unpack('>I6I6', text, 2)
  return { leases = leases, suspects = suspects }
end

TO_TEXT[RECORD.chunk] = function(record)
  return TEXT .. struct.pack('>I2B', record.n, record.block and 1 or 0)
end

FROM_TEXT[RECORD.chunk] = function(text)
  local n, block = struct.unpack('>I2B', text, 2)
  return { n = n, block = block == 1 or nil }
end

-- A lane that is open, or empty, and has a short line. One that never stood at a door, and is ordered by its first, is
-- so brief that Redis keeps it in a compact hash.
TO_TEXT[RECORD.lane] = function(record)
  local line = record.line
  if line.big or record.place or record.out or record.try_at or record.marked then
    return nil
  end
  local first = line.n > 0 and struct.unpack('>I6', line.q) or nil
  if record.head == 0 and record.since == 0 and record.parked_key == 0 and record.ordered == first
    and record.shapes < 65536 and not record.told then
    return BRIEF .. struct.pack('>I6I2I2', record.bundle, record.shapes, #line.q) .. line.q .. record.words
  end
  return TEXT
    .. struct.pack('>I6I6I6I7I4I6I6BI2', record.bundle, record.parked_key, record.head, record.since, record.shapes,
      record.ordered or 0, record.told or 0, record.told_need or 0, #line.q)
    .. line.q .. record.words
end

FROM_TEXT[RECORD.lane] = function(text)
  if sub(text, 1, 1) == BRIEF then
    local bundle, shapes, n, at = struct.unpack('>I6I2I2', text, 2)
    return {
      words = sub(text, at + n), bundle = bundle, line = IN.line(sub(text, at, at + n - 1)), parked_key = 0, head = 0,
      since = 0, shapes = shapes, ordered = n > 0 and struct.unpack('>I6', text, at) or nil,
    }
  end
  local bundle, parked_key, head, since, shapes, ordered, told, need, n, at =
    struct.unpack('>I6I6I6I7I4I6I6BI2', text, 2)
  return {
    words = sub(text, at + n), bundle = bundle, line = IN.line(sub(text, at, at + n - 1)), parked_key = parked_key,
    head = head, since = since, shapes = shapes, ordered = ordered > 0 and ordered or nil,
    told = told > 0 and told or nil, told_need = need > 0 and need or nil,
  }
end

TO_TEXT[RECORD.shape] = function(record)
  return TEXT .. struct.pack('>I4I4I6I6', record.live, record.rows, record.q or 0, record.lane or 0) .. record.words
end

FROM_TEXT[RECORD.shape] = function(text)
  local live, rows, q, lane, at = struct.unpack('>I4I4I6I6', text, 2)
  return { words = sub(text, at), live = live, rows = rows, q = q > 0 and q or nil, lane = lane > 0 and lane or nil }
end

-- A limit of which permits are in use, and nothing else is known: the names of those who hold it, whose fences are
-- their order.
TO_TEXT[RECORD.limit] = function(record)
  local holders = record.holders
  if holders.z or record.resting_sum > 0 or record.external > 0 or record.tat > 0 or record.touched_at > 0
    or record.paused_until or record.mark or record.timer or record.gauged then
    return nil
  end
  local names = holders[2] or ''
  if holders.n > 1 then
    for i = 4, #holders, 2 do
      names = names .. holders[i]
    end
  end
  return TEXT .. struct.pack('>I4I6', record.uses, record.in_use) .. names
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
local SHAPE_WORDS = form('qn', 'pr', 'group', 'needs', 'retry', 'timeout', 'retain')

SAID[RECORD.lane] = function(record)
  read_fields(LANE_WORDS, cmsgpack.unpack(record.words), record)
end

SAID[RECORD.shape] = function(record)
  read_fields(SHAPE_WORDS, cmsgpack.unpack(record.words), record)
  record.retry = record.retry or USUAL_RETRY
end

-- The words of a lane and of a shape.
function lib.lane_words(lane_record)
  return cmsgpack.pack({ lane_record.queue, lane_record.priority, lane_record.group or false, lane_record.needs,
    lane_record.suspect or false })
end

function lib.shape_words(shape)
  return cmsgpack.pack({
    shape.qn, shape.pr, shape.group or false, shape.needs, short_retry(shape.retry), shape.timeout or false,
    shape.retain or false,
  })
end

-- Whether two values say the same; what is not there and `false` do. (Their bytes may differ: the order of a
-- map's fields is not kept.)
local function same(one, other)
  if type(one) ~= 'table' or type(other) ~= 'table' then
    return (one or false) == (other or false)
  end
  for key, value in pairs(one) do
    if not same(value, other[key]) then
      return false
    end
  end
  for key, value in pairs(other) do
    if one[key] == nil and value ~= false then
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
