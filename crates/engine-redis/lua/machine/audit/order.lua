-- The audit of the ready order: lanes with their lines, bundles, groups, queues.
--
-- It only reads. A lane is known by its key, and its line is looked through while it is short.

local A = T.audit
local LONG = 1000

-- Who stands in a lane: 'arrival:slot' of each, if the line is short.
function A.standing(lane)
  local known = A.lines[lane]
  if known == nil then
    local line = db.get(RECORD.lane, lane).line
    known = false
    if line.n <= LONG then
      known = {}
      A.spend(line.n / 100)
      for arrival, slot in L.each(line, T.lane_line(lane)) do
        known[text(arrival) .. ':' .. text(slot)] = true
      end
    end
    A.lines[lane] = known
  end
  return known
end

local function check_line(lane, l, name)
  local line, key = l.line, T.lane_line(lane)
  local n, count = line.n, 0
  if line.big then
    local aside, dead = call('ZCARD', db.prefix .. key .. LINE.aside), call('HLEN', db.prefix .. key .. LINE.gone)
    local first, last = call('LINDEX', db.prefix .. key, 0), call('LINDEX', db.prefix .. key, -1)
    local long = 0
    if first then
      local arrival, _, many, pos = T.line_item(first)
      A.check(line.skip < many, 'run_overdrawn', name)
      A.check(not M.get(key .. LINE.gone, text(arrival + line.skip)), 'list_begins_gone', name)
      local latest, _, more, last_pos = T.line_item(last)
      A.check(latest + more - 1 <= line.last, 'list_ends_late', name)
      A.check(last_pos + more == line.pos, 'list_count_differs', name, last_pos + more,
        line.pos)
      long = line.pos - pos - line.skip
    end
    A.check(line.aside == aside and line.dead == dead and n == long + aside - dead,
      'line_parts_differ', name,
      n, line.aside, line.dead, long, aside, dead)
    A.check(n > 0, 'empty_with_list', name)
  else
    A.check(#line.q == 12 * n, 'line_length_differs', name, #line.q / 12, n)
    A.check(call('EXISTS', db.prefix .. key, db.prefix .. key .. LINE.aside, db.prefix .. key .. LINE.gone) == 0,
      'short_with_list', name)
  end
  if n > LONG then
    return
  end
  local before, seqs, standing = 0, {}, {}
  for arrival, slot in L.each(line, key) do
    count = count + 1
    A.check(arrival > before, 'line_unordered', name)
    before = arrival
    seqs[count], standing[count] = slot, arrival
  end
  A.check(count == n, 'line_length_differs', name, count, n)
  A.spend(count)
  if l.queue == CALLERS then
    for i, number in ipairs(seqs) do
      local caller = db.get(RECORD.caller, number)
      if A.check(caller and caller.lane == lane and caller.arrival == standing[i],
        'caller_not_standing', name, number) then
        A.add('callers', 'all', 1)
        A.add('uses_held', 'all', #l.needs)
        A.add('waits', caller.worker or '', 1)
        A.check_wait(caller.taker, caller.till, name)
        A.check(T.caller_by_taker(caller.taker) == number, 'caller_not_found', name,
          number)
        if caller.turn then
          A.check_timer('tu', text(number), caller.turn, name)
        end
      end
    end
    return
  end
  -- Rows come with payloads, and are let go.
  for from = 1, count, 64 do
    local piece = { unpack(seqs, from, min(from + 63, count)) }
    T.load_jobs(piece)
    for i, seq in ipairs(piece) do
      local job = T.job(seq)
      local there = job and job.state == STATE.ready and job.arrival == standing[from + i - 1]
      A.check(there, 'job_not_waiting', name, seq)
      db.jobs[seq] = nil
    end
  end
end

-- That who is parked stands at its door under its head.
function A.check_place(entry, record, head, n, name)
  local place = record.place
  A.check(n > 0, 'empty_at_door', name)
  local d = db.get(RECORD.door, place.door)
  if not A.check(d, 'at_missing_door', name) then
    return
  end
  if place.misfit then
    A.check(O.score(d.aside, T.door_aside(place.door), T.aside_name(entry)), 'aside_in_no_list', name)
  else
    A.check(record.parked_key == head, 'parked_under_other', name, record.parked_key or false,
      head or false)
    A.check(T.stands_at(place.door, entry, record.parked_key), 'parked_in_no_line', name)
  end
  if record.try_at then
    A.check_timer('imp', entry, record.try_at, name)
  end
end

-- That who is offered by a door is known there.
local function check_out(entry, record, name)
  local line = record.out and T.find_line(record.out, T.entry_queue(entry))
  A.check(not record.out or line and line.out == entry,
    'offered_by_unknowing_door', name)
end

-- A lane, and the key that leads to it.
function A.lane(lane, packed)
  local name = { 'lane', lane }
  local l = db.get(RECORD.lane, lane)
  if not A.check(l, 'known_by_key_only', name) then
    return
  end
  A.spend(2)
  A.check(l.words == packed and T.lane_words(l) == packed, 'other_key', name)
  check_line(lane, l, name)
  local head, n = T.head(lane), l.line.n
  local b = db.get(RECORD.bundle, l.bundle)
  A.check(b, 'bundle_missing', name)
  if l.place then
    A.check_place(ENTRY.lane .. text(lane), l, head, n, name)
    A.check(not l.ordered, 'parked_and_ordered', name)
    A.add('blocked', l.queue, n)
  else
    A.check(l.ordered == head, 'ordered_by_other', name, l.ordered or false, head or false)
    A.check(not head or O.score(b.open, T.bundle_open(l.bundle), text(lane)) == head,
      'not_in_bundle', name)
  end
  check_out(ENTRY.lane .. text(lane), l, name)
  local mark = db.get(RECORD.mark, lane)
  A.check((mark ~= nil) == (l.marked or false), 'unsure_marked', name)
  if l.marked then
    A.check(mark.head == head and Z.score('mks', text(lane)), 'marked_for_other_head', name)
    A.bundle(l.bundle)
    A.add('marked', 'all', 1)
  end
  A.add('waiting', l.queue, n)
  A.add('lanes', 'all', 1)
  A.add('lane_shapes', 'all', l.shapes)
end

-- A bundle; one that is shared is known by its key.
function A.bundle(bundle)
  local name = { 'bundle', bundle }
  local b = db.get(RECORD.bundle, bundle)
  if not A.check(b, 'known_by_key_only', name) then
    return
  end
  A.spend(2)
  A.check_set(b.open, T.bundle_open(bundle), { 'order' }, name)
  A.check_set(b.outs, 'bx:' .. text(bundle), { 'offered_lanes' }, name)
  local n, first = 0, nil
  for member, head in A.some(b.open, T.bundle_open(bundle)) do
    local l = db.get(RECORD.lane, tonumber(member))
    A.check(l and l.bundle == bundle and not l.place and l.ordered == head,
      'lane_not_open', name, member)
    first, n = first or head, n + l.line.n
  end
  A.check(b.waiting == n or b.open.n > A.MANY, 'bundle_sum_differs', name, n, b.waiting)
  for member in A.some(b.outs, 'bx:' .. text(bundle)) do
    local l = db.get(RECORD.lane, tonumber(member))
    A.check(l and l.bundle == bundle and l.out, 'lane_not_offered', name, member)
  end
  if b.place then
    A.check_place(ENTRY.bundle .. text(bundle), b, first, b.open.n, name)
    A.check(not b.ordered, 'parked_and_ordered', name)
    A.add('blocked', b.queue, b.waiting)
  else
    A.check(b.ordered == first, 'ordered_by_other', name, b.ordered or false, first or false)
    local open = db.get(RECORD.group, b.group).open
    A.check(not first or O.score(open, T.group_open(b.group), text(bundle)) == first,
      'not_in_group', name)
  end
  check_out(ENTRY.bundle .. text(bundle), b, name)
  A.add('bundle_lanes', 'all', b.lanes)
end

function A.group(group)
  local name = { 'group', group }
  local g = db.get(RECORD.group, group)
  if not A.check(g, 'known_by_name_only', name) then
    return
  end
  A.spend(2)
  A.check_set(g.open, T.group_open(group), { 'order' }, name)
  local first
  for member, head in A.some(g.open, T.group_open(group)) do
    local b = db.get(RECORD.bundle, tonumber(member))
    A.check(b and b.group == group and not b.place and b.ordered == head,
      'bundle_not_open', name, member)
    first = first or head
  end
  A.add('bundles', 'all', g.bundles)
  local turns = T.turns(g.queue, -g.priority)
  if not A.check(turns, 'no_turns', name) then
    return
  end
  A.add('groups', text(g.queue) .. ':' .. text(-g.priority), 1)
  A.check(g.ordered == first, 'ordered_by_other', name, g.ordered or false, first or false)
  if first then
    local at = O.score(turns.open, T.turns_open(g.queue, -g.priority), T.turn_member(first, group))
    A.check(at == g.own and g.ordered_own == g.own, 'not_in_order', name)
    A.add('turns', 'all', 1)
  end
  local idle = O.score(turns.idle, T.turns_idle(g.queue, -g.priority), text(group))
  A.check((idle ~= nil) == (g.idle or false), 'unsure_idle', name)
  A.check(not g.idle or g.bundles == 0 and idle == g.own, 'idle_with_bundles', name)
  A.check(g.bundles > 0 or g.idle, 'busy_without_bundle', name)
end

function A.queue(number, known_as)
  local q = db.get(RECORD.queue, number)
  local name = known_as and { 'queue', known_as } or { 'callers' }
  if not A.check(q, 'known_by_name_only', name) then
    return
  end
  A.spend(2)
  A.check(number == CALLERS or q.name == known_as and T.find_queue(known_as) == number,
    'not_found_by_name', name)
  local waiting = call('ZCARD', db.prefix .. T.takers_of(number))
  A.check(waiting == (q.takers or 0), 'queue_calls_differ', name, waiting, q.takers or 0)
  for rank, turns in pairs(q.priorities) do
    A.check_set(turns.open, T.turns_open(number, rank), { 'order' }, name)
    A.check_set(turns.idle, T.turns_idle(number, rank), { 'idle_groups' }, name)
    A.add('turns_said', 'all', turns.open.n)
    A.add('said_turns_waiting', 'all', turns.waiting)
    A.check(turns.waiting > 0 or turns.v >= turns.top, 'virtual_time_behind', name,
      -rank, turns.v, turns.top)
    local idle, own = O.first(turns.idle, T.turns_idle(number, rank))
    A.check(not idle or own > turns.v or Z.score('hk', TIDY.groups .. text(number)),
      'groups_kept_for_nothing', name)
    if A.sums then
      local groups = A.sum_of('groups', text(number) .. ':' .. text(rank))
      A.check(not groups or groups == turns.groups, 'groups_differ', name,
        groups or 0, -rank, turns.groups)
    end
  end
  if q.place then
    local line = T.find_line(q.place.door, number)
    local d = db.get(RECORD.door, q.place.door)
    local known = line and line.whole
    if q.place.misfit then
      local entry = ENTRY.queue .. text(number)
      known = d and O.score(d.aside, T.door_aside(q.place.door), T.aside_name(entry))
    end
    A.check(known, 'unknown_to_door', name)
  end
  check_out(ENTRY.queue .. text(number), q, name)
  local till = q.paused_until
  A.check_timer('qp', text(number), till and till < T.FOREVER and till or nil, name)
  if q.limit then
    A.check(db.get(RECORD.limit, q.limit), 'limit_missing', name)
    A.add('uses_held', 'all', 1)
  end
  local counts = {
    waiting = q.waiting, blocked = q.blocked, scheduled = q.scheduled, running = q.running,
    succeeded = q.succeeded, failed = q.failed, cancelled = q.cancelled,
  }
  for sum, n in pairs(counts) do
    A.add('said_' .. sum, 'all', n)
  end
  A.add('said_rows_waiting', 'all', number == CALLERS and 0 or q.waiting)
  if A.sums then
    for sum, n in pairs(counts) do
      local are = A.sum_of(sum, number)
      A.check(not are or are == n, 'count_differs', name, n, sum, are or 0)
    end
    local there = A.sum_of('rows_waiting', number)
    A.check(number == CALLERS or not there or there == q.waiting,
      'waiting_jobs_differ', name, q.waiting, there or 0)
    local parked = A.sum_of('at_doors', number)
    A.check(not parked or parked == q.blocked, 'blocked_differ', name,
      q.blocked, parked or 0)
  end
end

-- A shape, which many jobs may have.
function A.shape(number, packed)
  local name = { 'shape', number }
  local s = db.get(RECORD.shape, number)
  if not A.check(s, 'known_by_words_only', name) then
    return
  end
  A.spend(1)
  A.check(s.words == packed and T.shape_words(s) == packed, 'other_words', name)
  A.check(s.live <= s.rows and s.rows > 0, 'more_live_than_jobs', name, s.live, s.rows)
  A.add('shape_live', 'all', s.live)
  A.add('shape_rows', 'all', s.rows)
  if A.sums then
    local rows, live = A.sum_of('rows_of', number), A.sum_of('live_of', number)
    A.check(not rows or rows == s.rows, 'shape_jobs_differ', name, rows or 0, s.rows)
    A.check(not live or live == s.live, 'shape_live_differ', name, live or 0, s.live)
  end
  if s.lane then
    A.check(db.get(RECORD.lane, s.lane), 'lane_missing', name)
    A.add('shapes_with_lane', 'all', 1)
  end
  A.check(not s.lane or s.live > 0 or T.keeps_lane(s), 'lane_without_job', name)
  if s.live > 0 or s.lane then
    local q = s.q and db.get(RECORD.queue, s.q)
    A.check(q and q.name == s.qn, 'queue_missing', name)
    A.add('uses_held', 'all', #s.needs)
  end
end
