-- The audit of doors: who stands there, who is out, who is put aside; and the invariant on which all
-- waiting rests.
--
-- It only reads. The invariant: the first of a queue at a door cannot be served, or that queue has an
-- entry out for this door, or the door is pending.

local audit = lib.audit

-- Whether an entry stands at a door under a head.
function lib.stands_at(door, entry, head)
  local queue = lib.entry_queue(entry)
  local line = lib.find_line(door, queue)
  if not line then
    return false
  elseif lib.entry_record(entry).marked then
    return inner.score(line.marked, lib.line_marks(door, queue), entry) == head
  end
  local id = lib.at_door_id(door, queue, lib.entry_group(entry))
  local at_door = db.get(RECORD.door_group, id)
  return at_door ~= nil and inner.score(at_door.entries, lib.at_door_entries(id), entry) == head
end

-- How many wait in an entry.
local function waiting_in(entry)
  local record = lib.entry_record(entry)
  if byte(entry) == ENTRY_BYTE.lane then
    return record.line.n
  end
  return byte(entry) == ENTRY_BYTE.bundle and record.waiting or 0
end

-- That an entry of a line is parked there under this head; how many wait in it.
local function check_entry(door, queue, entry, head, marked, name)
  local record = lib.entry_record(entry)
  local place = record and record.place
  if audit.check(place and place.door == door and not place.misfit and record.parked_key == head,
    'not_parked_there', name, entry, head) then
    audit.check(record.queue == queue and (record.marked or false) == marked,
      'in_other_line', name, entry)
    return waiting_in(entry)
  end
  return 0
end

-- The entries of a line: how many wait in them, and whether all were looked at.
local function check_line(door, queue, line, name)
  local n, looked, order = 0, 0, lib.line_order(door, queue)
  audit.check_set(line.marked, lib.line_marks(door, queue), { 'marks' }, name)
  audit.check_set(line.order, order, { 'order' }, name)
  audit.add('groups_at_doors', 'all', line.order.n)
  for entry, head in audit.some(line.marked, lib.line_marks(door, queue)) do
    looked = looked + 1
    n = n + check_entry(door, queue, entry, head, true, name)
  end
  for at in audit.some(line.order, order) do
    local group = tonumber(sub(at, 37))
    local id = lib.at_door_id(door, queue, group)
    local at_door = db.get(RECORD.door_group, id)
    if audit.check(at_door and at_door.entries.n > 0, 'group_in_order_only', name,
      group) then
      local group_record = db.get(RECORD.group, group)
      local _, first = inner.first(at_door.entries, lib.at_door_entries(id))
      audit.check(at_door.ordered == at
        and at == lib.door_order(-group_record.priority, at_door.tag, first) .. ':' .. text(group),
        'group_unordered', name, group)
      audit.check_set(at_door.entries, lib.at_door_entries(id), { 'group_entries' }, name)
      for entry, head in audit.some(at_door.entries, lib.at_door_entries(id)) do
        looked = looked + 1
        n = n + check_entry(door, queue, entry, head, false, name)
        audit.check(lib.entry_group(entry) == group, 'of_other_group', name, entry)
      end
    end
    if looked >= audit.MANY then
      return n, false
    end
  end
  return n, line.order.n <= audit.MANY and line.marked.n <= audit.MANY
end

-- The invariant, for one line.
local function check_first(door, door_record, queue, line, name, now)
  local firsts = { line.whole and ENTRY.queue .. text(queue) or nil }
  firsts[#firsts + 1] = lib.line_marked(door, queue, line)
  firsts[#firsts + 1] = (lib.line_first(door, queue, line))
  for _, entry in ipairs(firsts) do
    local fit = lib.entry_fits(door, entry, now)
    local kind, limit = lib.door_need(door)
    local timer = kind == DOOR.limit and db.get(RECORD.limit, limit).timer
    -- Time opens a door by its timer, at the next tick.
    local by_timer = door_record.timer and door_record.timer <= now or timer and timer <= now
    audit.check(fit ~= 'yes' or by_timer,
      'could_be_served', name,
      entry, door_record.timer or false, now, door_record.pass)
  end
end

function audit.door(door, now)
  local door_record = db.get(RECORD.door, door)
  local kind, of, tag, id = lib.door_need(door)
  local name = kind == DOOR.limit and { 'door_of_limit', of } or tag and { 'door_of_tag', tag, of }
    or id and { 'door_of_resource', id, of } or { 'door_of_pool', of }
  audit.spend(2)
  local pending = inner.score(db.space.pending, lib.PENDING, door) ~= nil
  audit.check(pending == (door_record.pending or false), 'unsure_pending', name)
  audit.check_timer('dt', door, door_record.timer, name)
  if kind == DOOR.limit then
    audit.check(db.get(RECORD.limit, of), 'limit_missing', name)
  else
    local pool_record = db.get(RECORD.pool, of)
    audit.check(pool_record and inner.score(pool_record.doors, lib.pool_doors_key(of), door), 'unknown_to_pool', name)
  end
  audit.check_set(door_record.lines, lib.door_lines(door), { 'lines' }, name)
  audit.check_set(door_record.aside, lib.door_aside(door), { 'entries_aside' }, name)
  audit.check(door_record.lines.n + door_record.aside.n > 0 or door_record.pending, 'door_empty', name)
  local aside = {}
  for member, round in audit.some(door_record.aside, lib.door_aside(door)) do
    local entry = lib.entry_aside(member)
    local record = lib.entry_record(entry)
    local place = record and record.place
    audit.check(round <= door_record.round, 'aside_early', name, entry)
    if audit.check(place and place.door == door and place.misfit, 'not_aside', name,
      entry) then
      local queue = lib.entry_queue(entry)
      aside[queue] = (aside[queue] or 0) + waiting_in(entry)
    end
  end
  local again = lib.next_again(door_record, door) ~= nil
  audit.check(not again or door_record.pending, 'again_not_pending', name)
  local whole_aside = door_record.aside.n <= audit.MANY
  local busy = door_record.pending and (door_record.pass > 0 or again) or kind == DOOR.limit and lib.is_in_family(of)
  local sum = 0
  for member, queue in audit.some(door_record.lines, lib.door_lines(door)) do
    local line = lib.find_line(door, queue)
    if audit.check(line and member == text(queue), 'line_missing', name,
      member) then
      audit.spend(1)
      local n, whole = check_line(door, queue, line, name)
      n = n + (aside[queue] or 0)
      audit.check(not (whole and whole_aside) or n == line.waiting,
        'line_sum_differs', name, n, queue, line.waiting)
      sum = sum + line.waiting
      audit.add('at_doors', queue, line.waiting)
      if line.whole then
        local place = db.get(RECORD.queue, queue).place
        audit.check(place and place.door == door, 'not_held_up', name, queue)
      end
      if line.out then
        local record = lib.entry_record(line.out)
        audit.check(record and record.out == door, 'awaits_no_offer', name, line.out)
      elseif not busy and #audit.faults == 0 then
        check_first(door, door_record, queue, line, name, now)
      end
    end
  end
  if door_record.lines.n > audit.MANY then
    audit.miss('at_doors')
    audit.miss('groups_at_doors')
  end
  audit.add('lines', 'all', door_record.lines.n)
  if kind == DOOR.pool then
    audit.add('pool_waiting', of, door_record.waiting)
  end
  audit.add('timed_doors', 'all', door_record.timer and 1 or 0)
  audit.check(door_record.waiting == sum or door_record.lines.n > audit.MANY, 'door_sum_differs', name, sum,
    door_record.waiting)
end
