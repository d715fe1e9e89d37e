-- The audit of the ready order: lanes with their lines, bundles, groups, queues.
--
-- It only reads. A lane is known by its key, and its line is looked through while it is short.

local audit = lib.audit
local LONG = 1000

-- Who stands in a lane: 'arrival:slot' of each, if the line is short.
function audit.standing(lane)
  local known = audit.lines[lane]
  if known == nil then
    local line = db.get(RECORD.lane, lane).line
    known = false
    if line.n <= LONG then
      known = {}
      audit.spend(line.n / 100)
      for arrival, slot in lines.each(line, lib.lane_line(lane)) do
        known[text(arrival) .. ':' .. text(slot)] = true
      end
    end
    audit.lines[lane] = known
  end
  return known
end

local function check_line(lane, lane_record, name)
  local line, key = lane_record.line, lib.lane_line(lane)
  local n, count = line.n, 0
  if line.big then
    local aside, dead = call('ZCARD', db.prefix .. key .. LINE.aside), call('HLEN', db.prefix .. key .. LINE.gone)
    local first, last = call('LINDEX', db.prefix .. key, 0), call('LINDEX', db.prefix .. key, -1)
    local long = 0
    if first then
      local arrival, _, many, pos = lib.line_item(first)
      audit.check(line.skip < many, 'run_overdrawn', name)
      audit.check(not maps.get(key .. LINE.gone, text(arrival + line.skip)), 'list_begins_gone', name)
      local latest, _, more, last_pos = lib.line_item(last)
      audit.check(latest + more - 1 <= line.last, 'list_ends_late', name)
      audit.check(last_pos + more == line.pos, 'list_count_differs', name, last_pos + more,
        line.pos)
      long = line.pos - pos - line.skip
    end
    audit.check(line.aside == aside and line.dead == dead and n == long + aside - dead,
      'line_parts_differ', name,
      n, line.aside, line.dead, long, aside, dead)
    audit.check(n > 0, 'empty_with_list', name)
  else
    audit.check(#line.q == 12 * n, 'line_length_differs', name, #line.q / 12, n)
    audit.check(call('EXISTS', db.prefix .. key, db.prefix .. key .. LINE.aside, db.prefix .. key .. LINE.gone) == 0,
      'short_with_list', name)
  end
  if n > LONG then
    return
  end
  local before, seqs, standing = 0, {}, {}
  for arrival, slot in lines.each(line, key) do
    count = count + 1
    audit.check(arrival > before, 'line_unordered', name)
    before = arrival
    seqs[count], standing[count] = slot, arrival
  end
  audit.check(count == n, 'line_length_differs', name, count, n)
  audit.spend(count)
  if lane_record.queue == CALLERS then
    for i, number in ipairs(seqs) do
      local caller = db.get(RECORD.caller, number)
      if audit.check(caller and caller.lane == lane and caller.arrival == standing[i],
        'caller_not_standing', name, number) then
        audit.add('callers', 'all', 1)
        audit.add('uses_held', 'all', #lane_record.needs)
        audit.add('waits', caller.worker or '', 1)
        audit.check_wait(caller.taker, caller.till, name)
        audit.check(lib.caller_by_taker(caller.taker) == number, 'caller_not_found', name,
          number)
        if caller.turn then
          audit.check_timer('tu', text(number), caller.turn, name)
        end
      end
    end
    return
  end
  -- Rows come with payloads, and are let go.
  for from = 1, count, 64 do
    local piece = { unpack(seqs, from, min(from + 63, count)) }
    lib.load_jobs(piece)
    for i, seq in ipairs(piece) do
      local job = lib.job(seq)
      local there = job and job.state == STATE.ready and job.arrival == standing[from + i - 1]
      audit.check(there, 'job_not_waiting', name, seq)
      db.jobs[seq] = nil
    end
  end
end

-- That who is parked stands at its door under its head.
function audit.check_place(entry, record, head, n, name)
  local place = record.place
  audit.check(n > 0, 'empty_at_door', name)
  local door_record = db.get(RECORD.door, place.door)
  if not audit.check(door_record, 'at_missing_door', name) then
    return
  end
  if place.misfit then
    audit.check(inner.score(door_record.aside, lib.door_aside(place.door), lib.aside_name(entry)), 'aside_in_no_list',
      name)
  else
    audit.check(record.parked_key == head, 'parked_under_other', name, record.parked_key or false,
      head or false)
    audit.check(lib.stands_at(place.door, entry, record.parked_key), 'parked_in_no_line', name)
  end
  if record.try_at then
    audit.check_timer('imp', entry, record.try_at, name)
  end
end

-- That who is offered by a door is known there.
local function check_out(entry, record, name)
  local line = record.out and lib.find_line(record.out, lib.entry_queue(entry))
  audit.check(not record.out or line and line.out == entry,
    'offered_by_unknowing_door', name)
end

-- A lane, and the key that leads to it.
function audit.lane(lane, packed)
  local name = { 'lane', lane }
  local lane_record = db.get(RECORD.lane, lane)
  if not audit.check(lane_record, 'known_by_key_only', name) then
    return
  end
  audit.spend(2)
  audit.check(lane_record.words == packed and lib.lane_words(lane_record) == packed, 'other_key', name)
  check_line(lane, lane_record, name)
  local head, n = lib.head(lane), lane_record.line.n
  local bundle_record = db.get(RECORD.bundle, lane_record.bundle)
  audit.check(bundle_record, 'bundle_missing', name)
  if lane_record.place then
    audit.check_place(ENTRY.lane .. text(lane), lane_record, head, n, name)
    audit.check(not lane_record.ordered, 'parked_and_ordered', name)
    audit.add('blocked', lane_record.queue, n)
  else
    audit.check(lane_record.ordered == head, 'ordered_by_other', name, lane_record.ordered or false, head or false)
    audit.check(not head or inner.score(bundle_record.open, lib.bundle_open(lane_record.bundle), text(lane)) == head,
      'not_in_bundle', name)
  end
  check_out(ENTRY.lane .. text(lane), lane_record, name)
  local mark = db.get(RECORD.mark, lane)
  audit.check((mark ~= nil) == (lane_record.marked or false), 'unsure_marked', name)
  if lane_record.marked then
    audit.check(mark.head == head and sets.score('mks', text(lane)), 'marked_for_other_head', name)
    audit.bundle(lane_record.bundle)
    audit.add('marked', 'all', 1)
  end
  audit.add('waiting', lane_record.queue, n)
  audit.add('lanes', 'all', 1)
  audit.add('lane_shapes', 'all', lane_record.shapes)
end

-- A bundle; one that is shared is known by its key.
function audit.bundle(bundle)
  local name = { 'bundle', bundle }
  local bundle_record = db.get(RECORD.bundle, bundle)
  if not audit.check(bundle_record, 'known_by_key_only', name) then
    return
  end
  audit.spend(2)
  audit.check_set(bundle_record.open, lib.bundle_open(bundle), { 'order' }, name)
  audit.check_set(bundle_record.outs, 'bx:' .. text(bundle), { 'offered_lanes' }, name)
  local n, first = 0, nil
  for member, head in audit.some(bundle_record.open, lib.bundle_open(bundle)) do
    local lane_record = db.get(RECORD.lane, tonumber(member))
    audit.check(lane_record and lane_record.bundle == bundle and not lane_record.place and lane_record.ordered == head,
      'lane_not_open', name, member)
    first, n = first or head, n + lane_record.line.n
  end
  audit.check(bundle_record.waiting == n or bundle_record.open.n > audit.MANY, 'bundle_sum_differs', name, n,
    bundle_record.waiting)
  for member in audit.some(bundle_record.outs, 'bx:' .. text(bundle)) do
    local lane_record = db.get(RECORD.lane, tonumber(member))
    audit.check(lane_record and lane_record.bundle == bundle and lane_record.out, 'lane_not_offered', name, member)
  end
  if bundle_record.place then
    audit.check_place(ENTRY.bundle .. text(bundle), bundle_record, first, bundle_record.open.n, name)
    audit.check(not bundle_record.ordered, 'parked_and_ordered', name)
    audit.add('blocked', bundle_record.queue, bundle_record.waiting)
  else
    audit.check(bundle_record.ordered == first, 'ordered_by_other', name, bundle_record.ordered or false, first
      or false)
    local open = db.get(RECORD.group, bundle_record.group).open
    audit.check(not first or inner.score(open, lib.group_open(bundle_record.group), text(bundle)) == first,
      'not_in_group', name)
  end
  check_out(ENTRY.bundle .. text(bundle), bundle_record, name)
  audit.add('bundle_lanes', 'all', bundle_record.lanes)
end

function audit.group(group)
  local name = { 'group', group }
  local group_record = db.get(RECORD.group, group)
  if not audit.check(group_record, 'known_by_name_only', name) then
    return
  end
  audit.spend(2)
  audit.check_set(group_record.open, lib.group_open(group), { 'order' }, name)
  local first
  for member, head in audit.some(group_record.open, lib.group_open(group)) do
    local bundle_record = db.get(RECORD.bundle, tonumber(member))
    audit.check(bundle_record and bundle_record.group == group and not bundle_record.place
      and bundle_record.ordered == head,
      'bundle_not_open', name, member)
    first = first or head
  end
  audit.add('bundles', 'all', group_record.bundles)
  local turns = lib.turns(group_record.queue, -group_record.priority)
  if not audit.check(turns, 'no_turns', name) then
    return
  end
  audit.add('groups', text(group_record.queue) .. ':' .. text(-group_record.priority), 1)
  audit.check(group_record.ordered == first, 'ordered_by_other', name, group_record.ordered or false, first or false)
  if first then
    local at = inner.score(turns.open, lib.turns_open(group_record.queue, -group_record.priority),
      lib.turn_member(first, group))
    audit.check(at == group_record.own and group_record.ordered_own == group_record.own, 'not_in_order', name)
    audit.add('turns', 'all', 1)
  end
  local idle = inner.score(turns.idle, lib.turns_idle(group_record.queue, -group_record.priority), text(group))
  audit.check((idle ~= nil) == (group_record.idle or false), 'unsure_idle', name)
  audit.check(not group_record.idle or group_record.bundles == 0 and idle == group_record.own, 'idle_with_bundles',
    name)
  audit.check(group_record.bundles > 0 or group_record.idle, 'busy_without_bundle', name)
end

function audit.queue(number, known_as)
  local queue_record = db.get(RECORD.queue, number)
  local name = known_as and { 'queue', known_as } or { 'callers' }
  if not audit.check(queue_record, 'known_by_name_only', name) then
    return
  end
  audit.spend(2)
  audit.check(number == CALLERS or queue_record.name == known_as and lib.find_queue(known_as) == number,
    'not_found_by_name', name)
  local waiting = call('ZCARD', db.prefix .. lib.takers_of(number))
  audit.check(waiting == (queue_record.takers or 0), 'queue_calls_differ', name, waiting, queue_record.takers or 0)
  for rank, turns in pairs(queue_record.priorities) do
    audit.check_set(turns.open, lib.turns_open(number, rank), { 'order' }, name)
    audit.check_set(turns.idle, lib.turns_idle(number, rank), { 'idle_groups' }, name)
    audit.add('turns_said', 'all', turns.open.n)
    audit.add('said_turns_waiting', 'all', turns.waiting)
    audit.check(turns.waiting > 0 or turns.v >= turns.top, 'virtual_time_behind', name,
      -rank, turns.v, turns.top)
    local idle, own = inner.first(turns.idle, lib.turns_idle(number, rank))
    audit.check(not idle or own > turns.v or sets.score('hk', TIDY.groups .. text(number)),
      'groups_kept_for_nothing', name)
    if audit.sums then
      local groups = audit.sum_of('groups', text(number) .. ':' .. text(rank))
      audit.check(not groups or groups == turns.groups, 'groups_differ', name,
        groups or 0, -rank, turns.groups)
    end
  end
  if queue_record.place then
    local line = lib.find_line(queue_record.place.door, number)
    local door_record = db.get(RECORD.door, queue_record.place.door)
    local known = line and line.whole
    if queue_record.place.misfit then
      local entry = ENTRY.queue .. text(number)
      known = door_record and inner.score(door_record.aside, lib.door_aside(queue_record.place.door),
        lib.aside_name(entry))
    end
    audit.check(known, 'unknown_to_door', name)
  end
  check_out(ENTRY.queue .. text(number), queue_record, name)
  local till = queue_record.paused_until
  audit.check_timer('qp', text(number), till and till < lib.FOREVER and till or nil, name)
  if queue_record.limit then
    audit.check(db.get(RECORD.limit, queue_record.limit), 'limit_missing', name)
    audit.add('uses_held', 'all', 1)
  end
  local counts = {
    waiting = queue_record.waiting, blocked = queue_record.blocked, scheduled = queue_record.scheduled,
    dependent = queue_record.dependent, running = queue_record.running,
    succeeded = queue_record.succeeded, failed = queue_record.failed, cancelled = queue_record.cancelled,
  }
  for sum, n in pairs(counts) do
    audit.add('said_' .. sum, 'all', n)
  end
  audit.add('said_rows_waiting', 'all', number == CALLERS and 0 or queue_record.waiting)
  if audit.sums then
    for sum, n in pairs(counts) do
      local are = audit.sum_of(sum, number)
      audit.check(not are or are == n, 'count_differs', name, n, sum, are or 0)
    end
    local there = audit.sum_of('rows_waiting', number)
    audit.check(number == CALLERS or not there or there == queue_record.waiting,
      'waiting_jobs_differ', name, queue_record.waiting, there or 0)
    local parked = audit.sum_of('at_doors', number)
    audit.check(not parked or parked == queue_record.blocked, 'blocked_differ', name,
      queue_record.blocked, parked or 0)
  end
end

-- A shape, which many jobs may have.
function audit.shape(number, packed)
  local name = { 'shape', number }
  local shape = db.get(RECORD.shape, number)
  if not audit.check(shape, 'known_by_words_only', name) then
    return
  end
  audit.spend(1)
  audit.check(shape.words == packed and lib.shape_words(shape) == packed, 'other_words', name)
  audit.check(shape.live <= shape.rows and shape.rows > 0, 'more_live_than_jobs', name, shape.live, shape.rows)
  audit.add('shape_live', 'all', shape.live)
  audit.add('shape_rows', 'all', shape.rows)
  if audit.sums then
    local rows, live = audit.sum_of('rows_of', number), audit.sum_of('live_of', number)
    audit.check(not rows or rows == shape.rows, 'shape_jobs_differ', name, rows or 0, shape.rows)
    audit.check(not live or live == shape.live, 'shape_live_differ', name, live or 0, shape.live)
  end
  if shape.lane then
    audit.check(db.get(RECORD.lane, shape.lane), 'lane_missing', name)
    audit.add('shapes_with_lane', 'all', 1)
  end
  audit.check(not shape.lane or shape.live > 0 or lib.keeps_lane(shape), 'lane_without_job', name)
  if shape.live > 0 or shape.lane then
    local queue_record = shape.q and db.get(RECORD.queue, shape.q)
    audit.check(queue_record and queue_record.name == shape.qn, 'queue_missing', name)
    audit.add('uses_held', 'all', #shape.needs)
  end
end
