-- The forms in which records are kept: arrays, field by field in a fixed order.
--
-- A record with its names in it costs three times as much to read and to write, and the records of a
-- queue are read and written by every call. A kind without a form is kept with its names. A change of a
-- form is a change of the layout.

-- Kinds of fields: v a value (nil is kept as false), o an ordered set, l a line, p priorities, r a retry.
local FORMS = {
  m = { 'version', 'v', 'last', 'v', 'pulse', 'v', 'deaf_at', 'v', 'behind', 'v', 'fence', 'v',
    'arrival', 'v', 'seq', 'v',
    'used', 'v', 'number', 'v', 'settings', 'v', 'live', 'v', 'pending', 'o', 'families', 'o', 'kept', 'v',
    'patience', 'v', 'retain_bytes', 'v', 'next_due', 'v', 'signalled', 'o', 'claim', 'v',
    'steps', 'v', 'run', 'v', 'learns_until', 'v', 'ttl_max', 'v',
    'ttl_since', 'v', 'ttl_before', 'v', 'forgot_after', 'v', 'gap', 'v', 'family', 'v', 'marks_at', 'v' },
  q = { 'name', 'v', 'priorities', 'p', 'scheduled', 'v', 'waiting', 'v', 'blocked', 'v', 'running', 'v',
    'succeeded', 'v', 'failed', 'v', 'cancelled', 'v', 'hidden', 'v', 'since', 'v', 'asked_at', 'v',
    'limit', 'v', 'place', 'v', 'out', 'v', 'paused_until', 'v', 'set', 'v', 'takers', 'v',
    'used_at', 'v' },
  g = { 'queue', 'v', 'priority', 'v', 'name', 'v', 'own', 'v', 'open', 'o', 'bundles', 'v', 'idle', 'v',
    'ordered', 'v', 'ordered_own', 'v' },
  b = { 'queue', 'v', 'group', 'v', 'plain', 'v', 'suspect', 'v', 'open', 'o', 'waiting', 'v',
    'parked_key', 'v', 'head', 'v', 'since', 'v', 'outs', 'o', 'lanes', 'v', 'place', 'v', 'ordered', 'v',
    'out', 'v', 'try_at', 'v' },
  l = { 'queue', 'v', 'priority', 'v', 'group', 'v', 'needs', 'v', 'suspect', 'v', 'bundle', 'v',
    'line', 'l', 'parked_key', 'v', 'head', 'v', 'since', 'v', 'shapes', 'v', 'place', 'v', 'ordered', 'v',
    'out', 'v', 'try_at', 'v', 'marked', 'v' },
  s = { 'qn', 'v', 'pr', 'v', 'g', 'v', 'needs', 'v', 'retry', 'r', 'timeout', 'v', 'retain', 'v',
    'live', 'v', 'rows', 'v', 'q', 'v', 'lane', 'v' },
  L = { 'uses', 'v', 'in_use', 'v', 'holders', 'o', 'resting', 'o', 'resting_sum', 'v', 'external', 'v',
    'external_until', 'v', 'tat', 'v', 'paused_until', 'v', 'mark', 'v', 'timer', 'v',
    'touched_at', 'v' },
  d = { 'lines', 'o', 'pass', 'v', 'aside', 'o', 'round', 'v', 'waiting', 'v', 'cursor', 'v',
    'pending', 'v', 'timer', 'v' },
  dl = { 'marked', 'o', 'order', 'o', 'waiting', 'v', 'whole', 'v', 'out', 'v' },
  dg = { 'tag', 'v', 'entries', 'o', 'ordered', 'v' },
  ho = { 'leases', 'v', 'suspects', 'v' },
  w = { 'host', 'v', 'pid', 'v', 'version', 'v', 'seen_at', 'v', 'queues', 'v', 'waiting', 'v' },
  c = { 'n', 'v' },
  k = { 'size', 'v', 'shape', 'v', 'created', 'v', 'arrival', 'v', 'states', 'v', 'spans', 'v' },
  rq = { 'leases', 'v', 'runs', 'v', 'taker', 'v', 'number', 'v' },
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

-- A short line is its flat array, of an even length; a long one has seven numbers.
function OUT.l(line)
  if line.big then
    return { line.n, line.last, line.aside, line.dead, line.skip, line.pos, 0 }
  end
  return line.q
end

function IN.l(flat)
  if #flat == 7 then
    return {
      n = flat[1], big = true, last = flat[2], aside = flat[3], dead = flat[4], skip = flat[5],
      pos = flat[6],
    }
  end
  return { n = #flat / 2, q = flat }
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

function OUT.r(retry)
  for i = 1, 6 do
    if retry[i] ~= USUAL_RETRY[i] then
      return retry
    end
  end
  return false
end

function IN.r(retry)
  return retry or USUAL_RETRY
end
local short_retry = OUT.r

-- The same by hand for the records that nearly every call writes: a third of the time. Tests compare both.
local HOT = {}

function HOT.m(r)
  return {
    r.version, r.last, r.pulse, r.deaf_at, r.behind, r.fence, r.arrival, r.seq, r.used, r.number,
    r.settings, r.live, OUT.o(r.pending), OUT.o(r.families), r.kept, r.patience, r.retain_bytes, r.next_due,
    OUT.o(r.signalled), r.claim or false, r.steps or false, r.run or false, r.learns_until or false, r.ttl_max,
    r.ttl_since or false, r.ttl_before or false, r.forgot_after or false, r.gap or false,
    r.family or false, r.marks_at or false,
  }
end

function HOT.q(r)
  return {
    r.name or false, OUT.p(r.priorities), r.scheduled, r.waiting, r.blocked, r.running, r.succeeded,
    r.failed, r.cancelled, r.hidden or false, r.since, r.asked_at or false, r.limit or false,
    r.place or false, r.out or false, r.paused_until or false, r.set or false, r.takers or false,
    r.used_at,
  }
end

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
    r.queue, r.priority, r.group or false, r.needs, r.suspect or false, r.bundle, OUT.l(r.line),
    r.parked_key, r.head, r.since, r.shapes, r.place or false, r.ordered or false, r.out or false,
    r.try_at or false, r.marked or false,
  }
end

function HOT.s(r)
  return {
    r.qn, r.pr, r.g or false, r.needs, short_retry(r.retry), r.timeout or false, r.retain or false, r.live, r.rows,
    r.q or false, r.lane or false,
  }
end

function HOT.w(r)
  return {
    r.host or false, r.pid or false, r.version or false, r.seen_at, r.queues, r.waiting,
  }
end

function HOT.ho(r)
  return { r.leases, r.suspects }
end

function HOT.c(r)
  return { r.n }
end

function HOT.k(r)
  return { r.size, r.shape, r.created, r.arrival, r.states, r.spans }
end

function HOT.rq(r)
  return { r.leases, r.runs or false, r.taker or false, r.number or false }
end

function HOT.L(r)
  return {
    r.uses, r.in_use, OUT.o(r.holders), OUT.o(r.resting), r.resting_sum, r.external,
    r.external_until or false, r.tat, r.paused_until or false, r.mark or false, r.timer or false,
    r.touched_at,
  }
end

-- A field that no form names would be lost without a word.
local function check_form(kind, form, record)
  for name in pairs(record) do
    local known = false
    for i = 1, #form, 2 do
      known = known or form[i] == name
    end
    if not known then
      error('form_without_field:' .. kind .. ':' .. tostring(name))
    end
  end
end

-- A record as bytes.
function db.encode(kind, record)
  local form = FORMS[kind]
  if not form then
    return cmsgpack.pack(record)
  end
  local hot = HOT[kind]
  if hot and not TESTING then
    return cmsgpack.pack(hot(record))
  end
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
  local packed = cmsgpack.pack(flat)
  if TESTING then
    check_form(kind, form, record)
    if hot and cmsgpack.pack(hot(record)) ~= packed then
      error('forms_differ:' .. kind)
    end
  end
  return packed
end

-- Bytes as a record.
function db.decode(kind, bytes)
  local form = FORMS[kind]
  local flat = cmsgpack.unpack(bytes)
  if not form then
    return flat
  end
  local record = {}
  for i = 1, #form, 2 do
    local value, how = flat[(i + 1) / 2], form[i + 1]
    if how ~= 'v' then
      record[form[i]] = IN[how](value)
    elseif value ~= false then
      record[form[i]] = value
    end
  end
  return record
end
