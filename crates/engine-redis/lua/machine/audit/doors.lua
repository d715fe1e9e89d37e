-- The audit of doors: who stands there, who is out, who is put aside; and the invariant on which all
-- waiting rests.
--
-- It only reads. The invariant: the first of a queue at a door cannot be served, or that queue has an
-- entry out for this door, or the door is pending.

local A = T.audit

-- Whether an entry stands at a door under a head.
function T.stands_at(door, entry, head)
  local queue = T.entry_queue(entry)
  local line = T.find_line(door, queue)
  if not line then
    return false
  elseif T.entry_record(entry).marked then
    return O.score(line.marked, T.line_marks(door, queue), entry) == head
  end
  local id = T.at_door_id(door, queue, T.entry_group(entry))
  local at_door = db.get(RECORD.door_group, id)
  return at_door ~= nil and O.score(at_door.entries, T.at_door_entries(id), entry) == head
end

-- How many wait in an entry.
local function waiting_in(entry)
  local record = T.entry_record(entry)
  if byte(entry) == ENTRY_BYTE.lane then
    return record.line.n
  end
  return byte(entry) == ENTRY_BYTE.bundle and record.waiting or 0
end

-- That an entry of a line is parked there under this head; how many wait in it.
local function check_entry(door, queue, entry, head, marked, name)
  local record = T.entry_record(entry)
  local place = record and record.place
  if A.check(place and place.door == door and not place.misfit and record.parked_key == head,
    'not_parked_there', name, entry, head) then
    A.check(record.queue == queue and (record.marked or false) == marked,
      'in_other_line', name, entry)
    return waiting_in(entry)
  end
  return 0
end

-- The entries of a line: how many wait in them, and whether all were looked at.
local function check_line(door, queue, line, name)
  local n, looked, order = 0, 0, T.line_order(door, queue)
  A.check_set(line.marked, T.line_marks(door, queue), { 'marks' }, name)
  A.check_set(line.order, order, { 'order' }, name)
  A.add('groups_at_doors', 'all', line.order.n)
  for entry, head in A.some(line.marked, T.line_marks(door, queue)) do
    looked = looked + 1
    n = n + check_entry(door, queue, entry, head, true, name)
  end
  for at in A.some(line.order, order) do
    local group = tonumber(sub(at, 37))
    local id = T.at_door_id(door, queue, group)
    local at_door = db.get(RECORD.door_group, id)
    if A.check(at_door and at_door.entries.n > 0, 'group_in_order_only', name,
      group) then
      local g = db.get(RECORD.group, group)
      local _, first = O.first(at_door.entries, T.at_door_entries(id))
      A.check(at_door.ordered == at
        and at == T.door_order(-g.priority, at_door.tag, first) .. ':' .. text(group),
        'group_unordered', name, group)
      A.check_set(at_door.entries, T.at_door_entries(id), { 'group_entries' }, name)
      for entry, head in A.some(at_door.entries, T.at_door_entries(id)) do
        looked = looked + 1
        n = n + check_entry(door, queue, entry, head, false, name)
        A.check(T.entry_group(entry) == group, 'of_other_group', name, entry)
      end
    end
    if looked >= A.MANY then
      return n, false
    end
  end
  return n, line.order.n <= A.MANY and line.marked.n <= A.MANY
end

-- The invariant, for one line.
local function check_first(door, d, queue, line, name, now)
  local firsts = { line.whole and ENTRY.queue .. text(queue) or nil }
  firsts[#firsts + 1] = T.line_marked(door, queue, line)
  firsts[#firsts + 1] = (T.line_first(door, queue, line))
  for _, entry in ipairs(firsts) do
    local fit = T.entry_fits(door, entry, now)
    local kind, limit = T.door_need(door)
    local timer = kind == DOOR.limit and db.get(RECORD.limit, limit).timer
    -- Time opens a door by its timer, at the next tick.
    local by_timer = d.timer and d.timer <= now or timer and timer <= now
    A.check(fit ~= 'yes' or by_timer,
      'could_be_served', name,
      entry, d.timer or false, now, d.pass)
  end
end

function A.door(door, now)
  local d = db.get(RECORD.door, door)
  local kind, of, tag, id = T.door_need(door)
  local name = kind == DOOR.limit and { 'door_of_limit', of } or tag and { 'door_of_tag', tag, of }
    or id and { 'door_of_resource', id, of } or { 'door_of_pool', of }
  A.spend(2)
  local pending = O.score(db.space.pending, T.PENDING, door) ~= nil
  A.check(pending == (d.pending or false), 'unsure_pending', name)
  A.check_timer('dt', door, d.timer, name)
  if kind == DOOR.limit then
    A.check(db.get(RECORD.limit, of), 'limit_missing', name)
  else
    local p = db.get(RECORD.pool, of)
    A.check(p and O.score(p.doors, T.pool_doors_key(of), door), 'unknown_to_pool', name)
  end
  A.check_set(d.lines, T.door_lines(door), { 'lines' }, name)
  A.check_set(d.aside, T.door_aside(door), { 'entries_aside' }, name)
  A.check(d.lines.n + d.aside.n > 0 or d.pending, 'door_empty', name)
  local aside = {}
  for member, round in A.some(d.aside, T.door_aside(door)) do
    local entry = T.entry_aside(member)
    local record = T.entry_record(entry)
    local place = record and record.place
    A.check(round <= d.round, 'aside_early', name, entry)
    if A.check(place and place.door == door and place.misfit, 'not_aside', name,
      entry) then
      local queue = T.entry_queue(entry)
      aside[queue] = (aside[queue] or 0) + waiting_in(entry)
    end
  end
  local again = T.next_again(d, door) ~= nil
  A.check(not again or d.pending, 'again_not_pending', name)
  local whole_aside = d.aside.n <= A.MANY
  local busy = d.pending and (d.pass > 0 or again) or kind == DOOR.limit and T.is_in_family(of)
  local sum = 0
  for member, queue in A.some(d.lines, T.door_lines(door)) do
    local line = T.find_line(door, queue)
    if A.check(line and member == text(queue), 'line_missing', name,
      member) then
      A.spend(1)
      local n, whole = check_line(door, queue, line, name)
      n = n + (aside[queue] or 0)
      A.check(not (whole and whole_aside) or n == line.waiting,
        'line_sum_differs', name, n, queue, line.waiting)
      sum = sum + line.waiting
      A.add('at_doors', queue, line.waiting)
      if line.whole then
        local place = db.get(RECORD.queue, queue).place
        A.check(place and place.door == door, 'not_held_up', name, queue)
      end
      if line.out then
        local record = T.entry_record(line.out)
        A.check(record and record.out == door, 'awaits_no_offer', name, line.out)
      elseif not busy and #A.faults == 0 then
        check_first(door, d, queue, line, name, now)
      end
    end
  end
  if d.lines.n > A.MANY then
    A.miss('at_doors')
    A.miss('groups_at_doors')
  end
  A.add('lines', 'all', d.lines.n)
  if kind == DOOR.pool then
    A.add('pool_waiting', of, d.waiting)
  end
  A.add('timed_doors', 'all', d.timer and 1 or 0)
  A.check(d.waiting == sum or d.lines.n > A.MANY, 'door_sum_differs', name, sum, d.waiting)
end
