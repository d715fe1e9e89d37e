-- The forms in which records are kept: arrays, field by field in a fixed order; and texts, for those that most calls
-- write.
--
-- A record with its names in it costs three times as much to read and to write, and the records of a
-- queue are read and written by every call. A kind without a form is kept with its names. A change of a
-- form is a change of the layout.
--
-- A lane and a shape carry their `words`: the packed text under which they are found, which says all of them that
-- never changes. So that part is packed once in their life, and is copied ever after. Their fields are read from it.

-- Kinds of fields: v a value (nil is kept as false), o an ordered set, l a line.
local FORMS = {
  g = { 'queue', 'v', 'priority', 'v', 'name', 'v', 'own', 'v', 'open', 'o', 'bundles', 'v', 'idle', 'v',
    'ordered', 'v', 'ordered_own', 'v' },
  b = { 'queue', 'v', 'group', 'v', 'plain', 'v', 'suspect', 'v', 'open', 'o', 'waiting', 'v',
    'parked_key', 'v', 'head', 'v', 'since', 'v', 'outs', 'o', 'lanes', 'v', 'place', 'v', 'ordered', 'v',
    'out', 'v', 'try_at', 'v' },
  l = { 'words', 'v', 'bundle', 'v', 'line', 'l', 'parked_key', 'v', 'head', 'v', 'since', 'v', 'shapes', 'v',
    'place', 'v', 'ordered', 'v', 'out', 'v', 'try_at', 'v', 'marked', 'v' },
  L = { 'uses', 'v', 'in_use', 'v', 'holders', 'o', 'resting', 'o', 'resting_sum', 'v', 'external', 'v',
    'external_until', 'v', 'tat', 'v', 'paused_until', 'v', 'mark', 'v', 'timer', 'v',
    'touched_at', 'v' },
  d = { 'lines', 'o', 'pass', 'v', 'aside', 'o', 'round', 'v', 'waiting', 'v', 'cursor', 'v',
    'pending', 'v', 'timer', 'v' },
  dl = { 'marked', 'o', 'order', 'o', 'waiting', 'v', 'whole', 'v', 'out', 'v' },
  dg = { 'tag', 'v', 'entries', 'o', 'ordered', 'v' },
  k = { 'size', 'v', 'shape', 'v', 'created', 'v', 'arrival', 'v', 'states', 'v', 'spans', 'v' },
  rq = { 'leases', 'v', 'runs', 'v', 'taker', 'v', 'number', 'v' },
  tk = { 'queues', 'v', 'most', 'v', 'worker', 'v', 'proc', 'v', 'ttl', 'v', 'till', 'v', 'request', 'v', 'over', 'v' },
}

local IN, OUT = {}, {}

function OUT.v(value)
  if value == nil then
    return false
  end
  return value
end

function IN.v(value)
  if value == false then
    return nil
  end
  return value
end

-- A set is its flat array; a large one, which lies in a key of its own, is its length alone.
function OUT.o(set)
  if set.z then
    return { set.n }
  end
  local flat = {}
  for i = 1, #set do
    flat[i] = set[i]
  end
  return flat
end

function IN.o(flat)
  local n = #flat
  if n == 1 then
    return { z = true, n = flat[1] }
  end
  flat.n = n / 2
  return flat
end

-- A short line is its text; a long one has seven numbers.
function OUT.l(line)
  if line.big then
    return { line.n, line.last, line.aside, line.dead, line.skip, line.pos, 0 }
  end
  return line.q
end

-- What stands in a short line takes so many bytes: its arrival and its slot.
local STANDING = 12

function IN.l(line)
  if type(line) == 'string' then
    return { n = #line / STANDING, q = line }
  end
  return {
    n = line[1], big = true, last = line[2], aside = line[3], dead = line[4], skip = line[5], pos = line[6],
  }
end

function OUT.p(priorities)
  local flat = {}
  for rank, turns in pairs(priorities) do
    local n = #flat
    flat[n + 1], flat[n + 2], flat[n + 3] = rank, turns.v, OUT.o(turns.open)
    flat[n + 4], flat[n + 5], flat[n + 6], flat[n + 7] = OUT.o(turns.idle), turns.groups, turns.top, turns.waiting
  end
  return flat
end

function IN.p(flat)
  local priorities = {}
  for i = 1, #flat, 7 do
    priorities[flat[i]] = {
      v = flat[i + 1], open = IN.o(flat[i + 2]), idle = IN.o(flat[i + 3]), groups = flat[i + 4],
      top = flat[i + 5], waiting = flat[i + 6],
    }
  end
  return priorities
end

-- The retry of most shapes is not written. It stays this one, whatever the default becomes: it is of the layout.
local USUAL_RETRY = { 20, 3, 'e', 1000000, 3600000000, true }

-- The retry of a shape as its words say it.
local function short_retry(retry)
  for i = 1, 6 do
    if retry[i] ~= USUAL_RETRY[i] then
      return retry
    end
  end
  return false
end

-- The same by hand for the records that nearly every call writes: a third of the time. Tests compare both.
local HOT = {}

function HOT.g(r)
  return {
    r.queue, r.priority, r.name or false, r.own, OUT.o(r.open), r.bundles, r.idle or false,
    r.ordered or false, r.ordered_own or false,
  }
end

function HOT.b(r)
  return {
    r.queue, r.group, r.plain, r.suspect or false, OUT.o(r.open), r.waiting, r.parked_key, r.head,
    r.since, OUT.o(r.outs), r.lanes, r.place or false, r.ordered or false, r.out or false,
    r.try_at or false,
  }
end

function HOT.l(r)
  return {
    r.words, r.bundle, OUT.l(r.line), r.parked_key, r.head, r.since, r.shapes, r.place or false, r.ordered or false,
    r.out or false, r.try_at or false, r.marked or false,
  }
end

function HOT.k(r)
  return { r.size, r.shape, r.created, r.arrival, r.states, r.spans }
end

function HOT.rq(r)
  return { r.leases, r.runs or false, r.taker or false, r.number or false }
end

function HOT.tk(r)
  return {
    r.queues, r.most or false, r.worker or false, r.proc, r.ttl or false, r.till, r.request or false, r.over or false,
  }
end

function HOT.L(r)
  return {
    r.uses, r.in_use, OUT.o(r.holders), OUT.o(r.resting), r.resting_sum, r.external,
    r.external_until or false, r.tat, r.paused_until or false, r.mark or false, r.timer or false,
    r.touched_at,
  }
end

-- ---- Records as texts ----

-- What such a text begins with, and one that leaves out more. No array begins with either.
local TEXT, BRIEF = '\1', '\2'

-- A record as its text, by kind; nil if it is not as most of its kind are, and has to be an array.
local TO_TEXT, FROM_TEXT = {}, {}

-- The namespace and its queues: the numbers that nearly every call changes, and behind them, packed, what few do.
local HEAD, REST = {}, {}
local SPACE_NUMBERS, QUEUE_NUMBERS = '>I6I7I8I6I6I6I6I7I7I6I7I6I7I7', '>I6I6I6I6I6I6I6I7I7I7I3'

function HEAD.m(r)
  local kept = r.kept
  return TEXT .. struct.pack(SPACE_NUMBERS, r.version, r.last, r.fence, r.arrival, r.seq, r.number,
    r.live, kept[KEPT_AT.failed], kept[KEPT_AT.others], r.ttl_max, r.ttl_since, r.ttl_before, r.next_due, r.pulse)
end

function REST.m(r)
  return cmsgpack.pack({
    r.deaf_at, r.behind, r.used, r.settings, OUT.o(r.pending), OUT.o(r.families), r.patience, r.retain_bytes,
    OUT.o(r.signalled), r.claim or false, r.steps or false, r.run or false, r.learns_until or false,
    r.forgot_after or false, r.gap or false, r.family or false, r.marks_at or false,
  })
end

function FROM_TEXT.m(text)
  local r, kept, at = {}, {}, nil
  r.version, r.last, r.fence, r.arrival, r.seq, r.number, r.live, kept[KEPT_AT.failed], kept[KEPT_AT.others],
    r.ttl_max, r.ttl_since, r.ttl_before, r.next_due, r.pulse, at = struct.unpack(SPACE_NUMBERS, text, 2)
  local rest = cmsgpack.unpack(sub(text, at))
  r.kept, r.deaf_at, r.behind, r.used, r.settings = kept, rest[1], rest[2], rest[3], rest[4]
  r.pending, r.families, r.patience, r.retain_bytes = IN.o(rest[5]), IN.o(rest[6]), rest[7], rest[8]
  r.signalled, r.claim, r.steps = IN.o(rest[9]), IN.v(rest[10]), IN.v(rest[11])
  r.run, r.learns_until, r.forgot_after = IN.v(rest[12]), IN.v(rest[13]), IN.v(rest[14])
  r.gap, r.family, r.marks_at = IN.v(rest[15]), IN.v(rest[16]), IN.v(rest[17])
  return r
end

-- (0 is no moment at which nobody asked: it is written one higher.)
function HEAD.q(r)
  return TEXT .. struct.pack(QUEUE_NUMBERS, r.scheduled, r.waiting, r.blocked, r.running, r.succeeded,
    r.failed, r.cancelled, r.since, r.asked_at and r.asked_at + 1 or 0, r.used_at, r.takers or 0)
end

function REST.q(r)
  return cmsgpack.pack({
    r.name or false, OUT.p(r.priorities), r.hidden or false, r.limit or false, r.place or false, r.out or false,
    r.paused_until or false, r.set or false,
  })
end

function FROM_TEXT.q(text)
  local r, at = {}, nil
  r.scheduled, r.waiting, r.blocked, r.running, r.succeeded, r.failed, r.cancelled, r.since, r.asked_at, r.used_at,
    r.takers, at = struct.unpack(QUEUE_NUMBERS, text, 2)
  r.asked_at, r.takers = r.asked_at > 0 and r.asked_at - 1 or nil, r.takers > 0 and r.takers or nil
  local rest = cmsgpack.unpack(sub(text, at))
  r.name, r.priorities, r.hidden, r.limit = IN.v(rest[1]), IN.p(rest[2]), IN.v(rest[3]), IN.v(rest[4])
  r.place, r.out, r.paused_until, r.set = IN.v(rest[5]), IN.v(rest[6]), IN.v(rest[7]), IN.v(rest[8])
  return r
end

function TO_TEXT.m(r)
  return HEAD.m(r) .. REST.m(r)
end

function TO_TEXT.q(r)
  return HEAD.q(r) .. REST.q(r)
end

-- A worker: who it is stands last, behind the queues that it asked for, each with its last moment.
function TO_TEXT.w(r)
  local queues, n = '', 0
  for queue, at in pairs(r.queues) do
    queues, n = queues .. struct.pack('>I6I7', queue, at), n + 1
  end
  return TEXT .. struct.pack('>I7I4I2', r.seen_at, r.waiting, n) .. queues
    .. cmsgpack.pack({ r.host or false, r.pid or false, r.version or false })
end

function FROM_TEXT.w(text)
  local seen_at, waiting, n, at = struct.unpack('>I7I4I2', text, 2)
  local queues = {}
  for _ = 1, n do
    local queue, moment
    queue, moment, at = struct.unpack('>I6I7', text, at)
    queues[queue] = moment
  end
  local who = cmsgpack.unpack(sub(text, at))
  return {
    seen_at = seen_at, waiting = waiting, queues = queues, host = IN.v(who[1]), pid = IN.v(who[2]),
    version = IN.v(who[3]),
  }
end

function TO_TEXT.ho(r)
  return TEXT .. struct.pack('>I6I6', r.leases, r.suspects)
end

function FROM_TEXT.ho(text)
  local leases, suspects = struct.unpack('>I6I6', text, 2)
  return { leases = leases, suspects = suspects }
end

function TO_TEXT.c(r)
  return TEXT .. struct.pack('>I2B', r.n, r.block and 1 or 0)
end

function FROM_TEXT.c(text)
  local n, block = struct.unpack('>I2B', text, 2)
  return { n = n, block = block == 1 or nil }
end

-- A lane that is open, or empty, and has a short line. One that never stood at a door, and is ordered by its first, is
-- so brief that Redis keeps it in a compact hash.
function TO_TEXT.l(r)
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

function FROM_TEXT.l(text)
  if sub(text, 1, 1) == BRIEF then
    local bundle, shapes, n, at = struct.unpack('>I6I2I2', text, 2)
    return {
      words = sub(text, at + n), bundle = bundle, line = IN.l(sub(text, at, at + n - 1)), parked_key = 0, head = 0,
      since = 0, shapes = shapes, ordered = n > 0 and struct.unpack('>I6', text, at) or nil,
    }
  end
  local bundle, parked_key, head, since, shapes, ordered, n, at = struct.unpack('>I6I6I6I7I4I6I2', text, 2)
  return {
    words = sub(text, at + n), bundle = bundle, line = IN.l(sub(text, at, at + n - 1)), parked_key = parked_key,
    head = head, since = since, shapes = shapes, ordered = ordered > 0 and ordered or nil,
  }
end

function TO_TEXT.s(r)
  return TEXT .. struct.pack('>I4I4I6I6', r.live, r.rows, r.q or 0, r.lane or 0) .. r.words
end

function FROM_TEXT.s(text)
  local live, rows, q, lane, at = struct.unpack('>I4I4I6I6', text, 2)
  return { words = sub(text, at), live = live, rows = rows, q = q > 0 and q or nil, lane = lane > 0 and lane or nil }
end

-- A limit of which permits are in use, and nothing else is known: the names of those who hold it, whose fences are
-- their order.
function TO_TEXT.L(r)
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

function FROM_TEXT.L(text)
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

-- What of a record its words say.
local SAID = {}

function SAID.l(r)
  local said = cmsgpack.unpack(r.words)
  r.queue, r.priority, r.group, r.needs, r.suspect =
    said[1], said[2], IN.v(said[3]), said[4], IN.v(said[5])
end

function SAID.s(r)
  local said = cmsgpack.unpack(r.words)
  r.qn, r.pr, r.g, r.needs, r.retry, r.timeout, r.retain =
    said[1], said[2], IN.v(said[3]), said[4], said[5] or USUAL_RETRY, IN.v(said[6]), IN.v(said[7])
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

local function flat_of(form, record)
  local flat = {}
  for i = 1, #form, 2 do
    local value, how = record[form[i]], form[i + 1]
    if how ~= 'v' then
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
  local hot, form = HOT[kind], FORMS[kind]
  return cmsgpack.pack(hot and hot(record) or form and flat_of(form, record) or record)
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
  local form, record = FORMS[kind], nil
  if FROM_TEXT[kind] and byte(bytes) <= 2 then
    record = FROM_TEXT[kind](bytes)
  else
    local flat = cmsgpack.unpack(bytes)
    if not form then
      return flat
    end
    record = {}
    for i = 1, #form, 2 do
      local value, how = flat[(i + 1) / 2], form[i + 1]
      if how ~= 'v' then
        record[form[i]] = IN[how](value)
      elseif value ~= false then
        record[form[i]] = value
      end
    end
  end
  if SAID[kind] then
    SAID[kind](record)
  end
  return record
end
