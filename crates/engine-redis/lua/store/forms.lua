-- The forms in which records are kept as arrays, field by field in a fixed order.
--
-- A record with its names in it costs three times as much to read and to write, and the records of a
-- queue are read and written by every call. A kind without a form, and without a text (store/texts), is kept with its
-- names. A change of a form is a change of the layout.

-- How a field is kept: a value as it is (nil as false), an ordered set, a line.
local VALUE, SET, SHORT_LINE = 'value', 'set', 'line'

local function set_field(name)
  return { name, SET }
end

local function line_field(name)
  return { name, SHORT_LINE }
end

-- The fields of a record in their order: {name, how it is kept, …}. (A text has nothing at a number.)
local function form(...)
  local said, fields = { ... }, {}
  for i = 1, #said do
    fields[i * 2 - 1], fields[i * 2] = said[i][1] or said[i], said[i][2] or VALUE
  end
  return fields
end

local FORMS = {
  [RECORD.group] = form('queue', 'priority', 'name', 'own', set_field('open'), 'bundles', 'idle', 'ordered',
    'ordered_own'),
  [RECORD.bundle] = form('queue', 'group', 'plain', 'suspect', set_field('open'), 'waiting', 'parked_key', 'head',
    'since', set_field('outs'), 'lanes', 'place', 'ordered', 'out', 'try_at'),
  [RECORD.lane] = form('words', 'bundle', line_field('line'), 'parked_key', 'head', 'since', 'shapes', 'place',
    'ordered', 'out', 'try_at', 'marked', 'told', 'told_need'),
  [RECORD.limit] = form('uses', 'in_use', set_field('holders'), set_field('resting'), 'resting_sum', 'external',
    'external_until', 'tat', 'paused_until', 'mark', 'timer', 'touched_at', 'gauged'),
  [RECORD.gauge] = form('said', 'source', 'every', 'lag', 'stale', 'on_stale', 'fresh', 'number', 'asked_at', 'due',
    'claimed_at', 'reader', 'read_at', 'sum', 'failing_since', 'failed_at', 'error', 'bad', set_field('rests'),
    set_field('doubts')),
  [RECORD.door] = form(set_field('lines'), 'pass', set_field('aside'), 'round', 'waiting', 'cursor', 'pending',
    'timer'),
  [RECORD.door_line] = form(set_field('marked'), set_field('order'), 'waiting', 'whole', 'out'),
  [RECORD.door_group] = form('tag', set_field('entries'), 'ordered'),
  [RECORD.block] = form('size', 'shape', 'created', 'arrival', 'states', 'spans', 'ids_at', 'id_bytes'),
  [RECORD.request] = form('leases', 'runs', 'taker', 'number'),
  [RECORD.replacing] = form('seq', 'id', 'till', 'known'),
  [RECORD.schedule] = form('shell', 'owner', 'timing', 'overlap', 'catch_up', 'catch_up_max', 'version', 'era', 'cursor',
    'decided', 'plan', 'planned_all', 'moved', 'paused_until', 'unfinished', 'last_made', 'last_made_b', 'last_at',
    'last_job', 'ended_job', 'ended_state', 'ended_at', 'succeeded_at', 'fired', 'skipped', 'missed', 'created_at',
    'changed_at', 'place', 'wanted_at', 'awaits', 'revision', 'zones'),
  [RECORD.awaited] = form('processes', 'calls'),
  [RECORD.parent] = form('followers', 'cancelled', 'ended', 'till', 'place', set_field('open'), set_field('told')),
  [RECORD.leaving] = form('turn', 'parents', 'done', 'gone'),
  [RECORD.flow] = form('succeeded', 'failed', 'cancelled', 'created_at', 'finished_at', 'cancelling', 'place',
    set_field('members'), set_field('unfinished'), set_field('open')),
  [RECORD.waiting_call] = form('queues', 'most', 'worker', 'proc', 'ttl', 'till', 'request', 'over'),
}

local IN, OUT = {}, {}

function OUT.value(value)
  if value == nil then
    return false
  end
  return value
end

function IN.value(value)
  if value == false then
    return nil
  end
  return value
end

-- A set is its flat array; a large one, which lies in a key of its own, is its length alone.
function OUT.set(set)
  if set.z then
    return { set.n }
  end
  local flat = {}
  for i = 1, #set do
    flat[i] = set[i]
  end
  return flat
end

function IN.set(flat)
  local n = #flat
  if n == 1 then
    return { z = true, n = flat[1] }
  end
  flat.n = n / 2
  return flat
end

-- A short line is its text; a long one has seven numbers.
function OUT.line(line)
  if line.big then
    return { line.n, line.last, line.aside, line.dead, line.skip, line.pos, 0 }
  end
  return line.q
end

-- What stands in a short line takes so many bytes: its arrival and its slot.
local STANDING = 12

function IN.line(line)
  if type(line) == 'string' then
    return { n = #line / STANDING, q = line }
  end
  local n, last, aside, dead, skip, pos = unpack(line)
  return { n = n, big = true, last = last, aside = aside, dead = dead, skip = skip, pos = pos }
end

function OUT.priorities(priorities)
  local flat = {}
  for rank, turns in pairs(priorities) do
    local n = #flat
    flat[n + 1], flat[n + 2], flat[n + 3] = rank, turns.v, OUT.set(turns.open)
    flat[n + 4], flat[n + 5], flat[n + 6], flat[n + 7] = OUT.set(turns.idle), turns.groups, turns.top, turns.waiting
  end
  return flat
end

function IN.priorities(flat)
  local priorities = {}
  for i = 1, #flat, 7 do
    priorities[flat[i]] = {
      v = flat[i + 1], open = IN.set(flat[i + 2]), idle = IN.set(flat[i + 3]), groups = flat[i + 4],
      top = flat[i + 5], waiting = flat[i + 6],
    }
  end
  return priorities
end

-- Reads the fields of a form into a record.
local function read_fields(fields, flat, record)
  for i = 1, #fields, 2 do
    local value, how = flat[(i + 1) / 2], fields[i + 1]
    if how ~= VALUE then
      record[fields[i]] = IN[how](value)
    elseif value ~= false then
      record[fields[i]] = value
    end
  end
  return record
end

-- The same by hand for the records that nearly every call writes: a third of the time. Tests compare both.
local HOT = {}

HOT[RECORD.group] = function(record)
  return {
    record.queue, record.priority, record.name or false, record.own, OUT.set(record.open), record.bundles,
    record.idle or false, record.ordered or false, record.ordered_own or false,
  }
end

HOT[RECORD.bundle] = function(record)
  return {
    record.queue, record.group, record.plain, record.suspect or false, OUT.set(record.open), record.waiting,
    record.parked_key, record.head, record.since, OUT.set(record.outs), record.lanes, record.place or false,
    record.ordered or false, record.out or false, record.try_at or false,
  }
end

HOT[RECORD.lane] = function(record)
  return {
    record.words, record.bundle, OUT.line(record.line), record.parked_key, record.head, record.since, record.shapes,
    record.place or false, record.ordered or false, record.out or false, record.try_at or false,
    record.marked or false, record.told or false, record.told_need or false,
  }
end

HOT[RECORD.block] = function(record)
  return {
    record.size, record.shape, record.created, record.arrival, record.states, record.spans, record.ids_at,
    record.id_bytes,
  }
end

HOT[RECORD.request] = function(record)
  return { record.leases, record.runs or false, record.taker or false, record.number or false }
end

HOT[RECORD.waiting_call] = function(record)
  return {
    record.queues, record.most or false, record.worker or false, record.proc, record.ttl or false, record.till,
    record.request or false, record.over or false,
  }
end

HOT[RECORD.limit] = function(record)
  return {
    record.uses, record.in_use, OUT.set(record.holders), OUT.set(record.resting), record.resting_sum, record.external,
    record.external_until or false, record.tat, record.paused_until or false, record.mark or false,
    record.timer or false, record.touched_at, record.gauged or false,
  }
end
