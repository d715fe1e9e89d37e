-- The audit of the ready order: lanes with their lines, bundles, groups, queues.
--
-- It only reads. A lane is known by its key, and its line is looked through while it is short.

local A = T.audit
local LONG = 1000

-- Who stands in a lane: 'arrival:slot' of each, if the line is short.
function A.standing(lane)
  local known = A.lines[lane]
  if known == nil then
    local line = db.get('l', lane).line
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
    local aside, dead = call('ZCARD', db.prefix .. key .. 'r'), call('HLEN', db.prefix .. key .. 'x')
    local first, last = call('LINDEX', db.prefix .. key, 0), call('LINDEX', db.prefix .. key, -1)
    local long = 0
    if first then
      local arrival, _, many, pos = T.line_item(first)
      A.check(line.skip < many, '%s: more have left its first run than it had', name)
      A.check(not M.get(key .. 'x', text(arrival + line.skip)), '%s: its list begins with a gone one', name)
      local latest, _, more, last_pos = T.line_item(last)
      A.check(latest + more - 1 <= line.last, '%s: its list ends after its last', name)
      A.check(last_pos + more == line.pos, '%s: %d were put into its list, it says %d', name, last_pos + more,
        line.pos)
      long = line.pos - pos - line.skip
    end
    A.check(line.aside == aside and line.dead == dead and n == long + aside - dead,
      '%s: %d stand in it with %d aside and %d gone; there are %d in the list, %d aside, %d gone', name,
      n, line.aside, line.dead, long, aside, dead)
    A.check(n > 0, '%s is empty and has a list', name)
  else
    A.check(#line.q == 2 * n, '%s: %d stand in it, it says %d', name, #line.q / 2, n)
    A.check(call('EXISTS', db.prefix .. key, db.prefix .. key .. 'r', db.prefix .. key .. 'x') == 0,
      '%s is short and has a list', name)
  end
  if n > LONG then
    return
  end
  local before, seqs, standing = 0, {}, {}
  for arrival, slot in L.each(line, key) do
    count = count + 1
    A.check(arrival > before, '%s is out of order', name)
    before = arrival
    seqs[count], standing[count] = slot, arrival
  end
  A.check(count == n, '%s: %d stand in it, it says %d', name, count, n)
  A.spend(count)
  if l.queue == CALLERS then
    for i, number in ipairs(seqs) do
      local caller = db.get('ca', number)
      if A.check(caller and caller.lane == lane and caller.arrival == standing[i],
        '%s: the caller %d does not stand there', name, number) then
        A.add('callers', 'all', 1)
        A.add('uses_held', 'all', #l.needs)
        A.add('waits', caller.worker or '', 1)
        A.check_wait(caller.taker, caller.till, name)
        A.check(T.caller_by_taker(caller.taker) == number, '%s: the caller %d is not found', name,
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
      local there = job and job.state == 'w' and job.arrival == standing[from + i - 1]
      A.check(there, '%s: the job %d does not wait there', name, seq)
      db.jobs[seq] = nil
    end
  end
end

-- That who is parked stands at its door under its head.
function A.check_place(entry, record, head, n, name)
  local place = record.place
  A.check(n > 0, '%s is empty and stands at a door', name)
  local d = db.get('d', place.door)
  if not A.check(d, '%s stands at a door that is not there', name) then
    return
  end
  if place.misfit then
    A.check(O.score(d.aside, T.door_aside(place.door), T.aside_name(entry)), '%s is put aside and in no list', name)
  else
    A.check(record.parked_key == head, '%s is parked under %d, its head is %s', name, record.parked_key,
      tostring(head))
    A.check(T.stands_at(place.door, entry, record.parked_key), '%s is parked and in no line', name)
  end
  if record.try_at then
    A.check_timer('imp', entry, record.try_at, name)
  end
end

-- That who is offered by a door is known there.
local function check_out(entry, record, name)
  local line = record.out and T.find_line(record.out, T.entry_queue(entry))
  A.check(not record.out or line and line.out == entry,
    '%s is offered by a door that does not know it', name)
end

-- A lane, and the key that leads to it.
function A.lane(lane, packed)
  local name = 'lane ' .. text(lane)
  local l = db.get('l', lane)
  if not A.check(l, '%s is known by its key and not there', name) then
    return
  end
  A.spend(2)
  A.check(T.lane_key(l) == packed, '%s is known by another key', name)
  check_line(lane, l, name)
  local head, n = T.head(lane), l.line.n
  local b = db.get('b', l.bundle)
  A.check(b, '%s is of a bundle that is not there', name)
  if l.place then
    A.check_place('l' .. text(lane), l, head, n, name)
    A.check(not l.ordered, '%s is parked and in the order', name)
    A.add('blocked', l.queue, n)
  else
    A.check(l.ordered == head, '%s is ordered by %s, its head is %s', name, tostring(l.ordered),
      tostring(head))
    A.check(not head or O.score(b.open, T.bundle_open(l.bundle), text(lane)) == head,
      '%s is not in its bundle', name)
  end
  check_out('l' .. text(lane), l, name)
  local mark = db.get('mk', lane)
  A.check((mark ~= nil) == (l.marked or false), '%s does not know whether it is marked', name)
  if l.marked then
    A.check(mark.head == head and Z.score('mks', text(lane)), '%s is marked for another head', name)
    A.bundle(l.bundle)
    A.add('marked', 'all', 1)
  end
  A.add('waiting', l.queue, n)
  A.add('lanes', 'all', 1)
  A.add('lane_shapes', 'all', l.shapes)
end

-- A bundle; one that is shared is known by its key.
function A.bundle(bundle)
  local name = 'bundle ' .. text(bundle)
  local b = db.get('b', bundle)
  if not A.check(b, '%s is known by its key and not there', name) then
    return
  end
  A.spend(2)
  A.check_set(b.open, T.bundle_open(bundle), 'the order', name)
  A.check_set(b.outs, 'bx:' .. text(bundle), 'the list of those out', name)
  local n, first = 0, nil
  for member, head in A.some(b.open, T.bundle_open(bundle)) do
    local l = db.get('l', tonumber(member))
    A.check(l and l.bundle == bundle and not l.place and l.ordered == head,
      '%s: lane %s is not open there', name, member)
    first, n = first or head, n + l.line.n
  end
  A.check(b.waiting == n or b.open.n > A.MANY, '%s: %d wait in it, it says %d', name, n, b.waiting)
  for member in A.some(b.outs, 'bx:' .. text(bundle)) do
    local l = db.get('l', tonumber(member))
    A.check(l and l.bundle == bundle and l.out, '%s: lane %s is not out', name, member)
  end
  if b.place then
    A.check_place('b' .. text(bundle), b, first, b.open.n, name)
    A.check(not b.ordered, '%s is parked and in the order', name)
    A.add('blocked', b.queue, b.waiting)
  else
    A.check(b.ordered == first, '%s is ordered by %s, its first is %s', name, tostring(b.ordered),
      tostring(first))
    local open = db.get('g', b.group).open
    A.check(not first or O.score(open, T.group_open(b.group), text(bundle)) == first,
      '%s is not in its group', name)
  end
  check_out('b' .. text(bundle), b, name)
  A.add('bundle_lanes', 'all', b.lanes)
end

function A.group(group)
  local name = 'group ' .. text(group)
  local g = db.get('g', group)
  if not A.check(g, '%s is known by its name and not there', name) then
    return
  end
  A.spend(2)
  A.check_set(g.open, T.group_open(group), 'the order', name)
  local first
  for member, head in A.some(g.open, T.group_open(group)) do
    local b = db.get('b', tonumber(member))
    A.check(b and b.group == group and not b.place and b.ordered == head,
      '%s: bundle %s is not open there', name, member)
    first = first or head
  end
  A.add('bundles', 'all', g.bundles)
  local turns = T.turns(g.queue, -g.priority)
  if not A.check(turns, '%s takes turns in no priority', name) then
    return
  end
  A.add('groups', text(g.queue) .. ':' .. text(-g.priority), 1)
  A.check(g.ordered == first, '%s is ordered by %s, its first is %s', name, tostring(g.ordered),
    tostring(first))
  if first then
    local at = O.score(turns.open, T.turns_open(g.queue, -g.priority), T.turn_member(first, group))
    A.check(at == g.own and g.ordered_own == g.own, '%s is not in its order', name)
    A.add('turns', 'all', 1)
  end
  local idle = O.score(turns.idle, T.turns_idle(g.queue, -g.priority), text(group))
  A.check((idle ~= nil) == (g.idle or false), '%s does not know whether it is idle', name)
  A.check(not g.idle or g.bundles == 0 and idle == g.own, '%s is idle and has bundles', name)
  A.check(g.bundles > 0 or g.idle, '%s has no bundle and is not idle', name)
end

function A.queue(number, known_as)
  local q = db.get('q', number)
  local name = 'queue \3' .. (known_as or '@') .. '\3'
  if not A.check(q, '%s is known by its name and not there', name) then
    return
  end
  A.spend(2)
  A.check(number == CALLERS or q.name == known_as and T.find_queue(known_as) == number,
    '%s is not found by its name', name)
  local waiting = call('ZCARD', db.prefix .. T.takers_of(number))
  A.check(waiting == (q.takers or 0), '%s: %d calls wait for it, it says %d', name, waiting, q.takers or 0)
  for rank, turns in pairs(q.priorities) do
    A.check_set(turns.open, T.turns_open(number, rank), 'the order', name)
    A.check_set(turns.idle, T.turns_idle(number, rank), 'the list of idle groups', name)
    A.add('turns_said', 'all', turns.open.n)
    A.add('said_turns_waiting', 'all', turns.waiting)
    A.check(turns.waiting > 0 or turns.v >= turns.top, '%s: nobody waits in priority %d, and V is %d of %d', name,
      -rank, turns.v, turns.top)
    local idle, own = O.first(turns.idle, T.turns_idle(number, rank))
    A.check(not idle or own > turns.v or Z.score('hk', 'g' .. text(number)),
      '%s: groups are remembered for nothing', name)
    if A.sums then
      local groups = A.sum_of('groups', text(number) .. ':' .. text(rank))
      A.check(not groups or groups == turns.groups, '%s: %d groups of priority %d, it says %d', name,
        groups or 0, -rank, turns.groups)
    end
  end
  if q.place then
    local line = T.find_line(q.place.door, number)
    local d = db.get('d', q.place.door)
    local known = line and line.whole
    if q.place.misfit then
      local entry = 'q' .. text(number)
      known = d and O.score(d.aside, T.door_aside(q.place.door), T.aside_name(entry))
    end
    A.check(known, '%s stands at a door that does not know it', name)
  end
  check_out('q' .. text(number), q, name)
  local till = q.paused_until
  A.check_timer('qp', text(number), till and till < T.FOREVER and till or nil, name)
  if q.limit then
    A.check(db.get('L', q.limit), '%s: its limit is not there', name)
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
      A.check(not are or are == n, '%s: %d %s are cached, %d are', name, n, sum, are or 0)
    end
    local there = A.sum_of('rows_waiting', number)
    A.check(number == CALLERS or not there or there == q.waiting,
      '%s: %d wait in its lines, %d jobs do', name, q.waiting, there or 0)
    local parked = A.sum_of('at_doors', number)
    A.check(not parked or parked == q.blocked, '%s: %d blocked are cached, %d stand at doors', name,
      q.blocked, parked or 0)
  end
end

-- A shape, which many jobs may have.
function A.shape(number, packed)
  local name = 'shape ' .. text(number)
  local s = db.get('s', number)
  if not A.check(s, '%s is known by its words and not there', name) then
    return
  end
  A.spend(1)
  A.check(T.shape_key(s) == packed, '%s is known by other words', name)
  A.check(s.live <= s.rows and s.rows > 0, '%s: %d live jobs of %d', name, s.live, s.rows)
  A.add('shape_live', 'all', s.live)
  A.add('shape_rows', 'all', s.rows)
  if A.sums then
    local rows, live = A.sum_of('rows_of', number), A.sum_of('live_of', number)
    A.check(not rows or rows == s.rows, '%s: %d jobs have it, it says %d', name, rows or 0, s.rows)
    A.check(not live or live == s.live, '%s: %d live jobs have it, it says %d', name, live or 0, s.live)
  end
  if s.lane then
    A.check(db.get('l', s.lane), '%s: its lane is not there', name)
    A.add('shapes_with_lane', 'all', 1)
  end
  A.check(not s.lane or s.live > 0, '%s has a lane and no live job', name)
  if s.live > 0 then
    local q = s.q and db.get('q', s.q)
    A.check(q and q.name == s.qn, '%s: its queue is not there', name)
    A.add('uses_held', 'all', #s.needs)
  end
end
