-- The ready order of a queue: priority, then fair share, then arrival.
--
-- A queue has priorities, a priority has groups, a group has bundles, a bundle has lanes, a lane has
-- jobs. Each level keeps its children in order by the key of their first; a change of a lane is
-- carried up as far as keys change. Nothing here decides whether a lane may go.
--
-- A place is nil (open: in the ready order), or {door, misfit}: parked at that door, or in its list
-- of what can never fit as the settings are.

local function group_key(queue, rank, name)
  return number_text(queue) .. ':' .. text(rank) .. ':' .. (name and NAMED.group .. name or '')
end

function T.turns(queue, rank)
  return db.get(RECORD.queue, queue).priorities[rank]
end

-- The priorities of a queue, highest first.
local function ranks(queue)
  local all = {}
  for rank in pairs(db.see(RECORD.queue, queue).priorities) do
    all[#all + 1] = rank
  end
  sort(all)
  return all
end

-- Where the sets of an owner lie when they are large.
local function turns_open(queue, rank)
  return 'to:' .. number_text(queue) .. ':' .. number_text(rank)
end
local function turns_idle(queue, rank)
  return 'ti:' .. number_text(queue) .. ':' .. number_text(rank)
end
local function group_open(group)
  return 'go:' .. number_text(group)
end
local function bundle_open(bundle)
  return 'bo:' .. number_text(bundle)
end
local function bundle_outs(bundle)
  return 'bx:' .. number_text(bundle)
end
local function lane_line(lane)
  return 'n:' .. number_text(lane)
end
T.turns_idle, T.group_key = turns_idle, group_key
T.bundle_open, T.group_open, T.turns_open, T.lane_line = bundle_open, group_open, turns_open, lane_line

-- Plain needs (limits without a key, pools) park a whole bundle; others a lane.
function T.is_plain(need)
  if need[NEED_AT.kind] == NEED.limit then
    return not find(need[NEED_AT.name], ':', 1, true)
  end
  return not need[NEED_AT.id]
end

local function bundle_key(group, plain, suspect)
  return text(group) .. (suspect and BUNDLE.suspect or BUNDLE.usual) .. cmsgpack.pack(plain)
end
T.bundle_key = bundle_key

local function lanes_by_key(packed, needs)
  return 'lk:' .. shard_of_needs(needs, packed)
end
local function bundles_by_key(packed)
  return 'bk:' .. shard(packed)
end

local function new_bundle(queue, group, plain, suspect)
  local bundle = db.number()
  db.put(RECORD.bundle, bundle, {
    queue = queue, group = group, plain = plain, suspect = suspect, open = O.new(), waiting = 0,
    parked_key = 0, head = 0, since = 0, outs = O.new(), lanes = 0,
  })
  return bundle
end

-- The lane of this key, made if it is not there.
-- key: {queue, priority, group, needs, suspect}
function T.lane_for(key)
  local packed = T.lane_words(key)
  local known = M.get(lanes_by_key(packed, key.needs), packed, db.is_new(key.queue))
  if known then
    return tonumber(known)
  end
  local group = T.group_for(key)
  local plain = {}
  for _, need in ipairs(key.needs) do
    if T.is_plain(need) then
      plain[#plain + 1] = need
    end
  end
  local sort_key = bundle_key(group, plain, key.suspect)
  local bundle = tonumber(M.get(bundles_by_key(sort_key), sort_key, db.is_new(group)))
  if not bundle then
    bundle = new_bundle(key.queue, group, plain, key.suspect)
    M.put(bundles_by_key(sort_key), sort_key, text(bundle))
    local g = db.get(RECORD.group, group)
    g.bundles = g.bundles + 1
  end
  local b = db.get(RECORD.bundle, bundle)
  b.lanes = b.lanes + 1
  local lane = db.number()
  db.put(RECORD.lane, lane, {
    words = packed, queue = key.queue, priority = key.priority, group = key.group, needs = key.needs,
    suspect = key.suspect, bundle = bundle, line = L.new(), parked_key = 0, head = 0, since = 0,
    shapes = 0,
  })
  M.put(lanes_by_key(packed, key.needs), packed, text(lane))
  return lane
end

-- A priority of a queue: V; the groups with an open lane, and those without any, by time; how many groups there
-- are; the highest finish that was ever booked; the jobs in its lanes, wherever these stand.
function T.new_turns()
  return { v = 0, open = O.new(), idle = O.new(), groups = 0, top = 0, waiting = 0 }
end

function T.group_for(key)
  local queue, rank = key.queue, -key.priority
  local q = db.get(RECORD.queue, queue)
  local turns = q.priorities[rank]
  if not turns then
    turns = T.new_turns()
    q.priorities[rank] = turns
  end
  local name = group_key(queue, rank, key.group)
  local known = M.get('gn:' .. shard(name), name, db.is_new(queue))
  if known then
    local group = tonumber(known)
    if db.see(RECORD.group, group).idle then
      O.rem(turns.idle, turns_idle(queue, rank), text(group))
      db.get(RECORD.group, group).idle = nil
    end
    return group
  end
  local group = db.number()
  db.put(RECORD.group, group, {
    queue = queue, priority = key.priority, name = key.group, own = turns.v, open = O.new(),
    bundles = 0,
  })
  turns.groups = turns.groups + 1
  M.put('gn:' .. shard(name), name, text(group))
  return group
end

-- Drops a lane that is empty and that no shape points to, and what it leaves empty above it.
function T.drop_lane_if_idle(lane)
  local l = db.get(RECORD.lane, lane)
  if l.shapes > 0 or l.line.n > 0 or l.out or l.place then
    return
  end
  M.drop(lanes_by_key(l.words, l.needs), l.words)
  db.drop(RECORD.lane, lane)
  local b = db.get(RECORD.bundle, l.bundle)
  b.lanes = b.lanes - 1
  T.drop_bundle_if_idle(l.bundle)
end

function T.drop_bundle_if_idle(bundle)
  local b = db.get(RECORD.bundle, bundle)
  if b.lanes > 0 then
    return
  end
  db.drop(RECORD.bundle, bundle)
  local g = db.get(RECORD.group, b.group)
  local sort_key = bundle_key(b.group, b.plain, b.suspect)
  if tonumber(M.get(bundles_by_key(sort_key), sort_key)) == bundle then
    M.drop(bundles_by_key(sort_key), sort_key)
    g.bundles = g.bundles - 1
  end
  if g.bundles == 0 then
    local rank = -g.priority
    local turns = T.turns(g.queue, rank)
    if turns and not g.idle then
      O.add(turns.idle, turns_idle(g.queue, rank), g.own, text(b.group))
      g.idle = true
    end
    T.forget_idle_groups(g.queue, rank)
  end
end

-- A lane that reserves has a bundle of its own, since what is kept for it is kept from the others of
-- its bundle; one that does no more goes back.
function T.own_bundle(lane)
  local shared = db.get(RECORD.lane, lane).bundle
  local s = db.get(RECORD.bundle, shared)
  local own = new_bundle(s.queue, s.group, s.plain, s.suspect)
  -- The shared one may be empty now, and must be there to go back to.
  s.lanes = s.lanes + 1
  T.move_lane(lane, own)
end

function T.shared_bundle(lane, now)
  local own = db.get(RECORD.bundle, db.see(RECORD.lane, lane).bundle)
  local sort_key = bundle_key(own.group, own.plain, own.suspect)
  local shared = tonumber(M.get(bundles_by_key(sort_key), sort_key))
  if shared then
    T.move_lane(lane, shared)
    local s = db.get(RECORD.bundle, shared)
    s.lanes = s.lanes - 1
    T.bundle_changed(shared, now)
  end
end

function T.move_lane(lane, to)
  local l = db.get(RECORD.lane, lane)
  local from, queue, len = l.bundle, l.queue, l.line.n
  local open = not l.place
  if open then
    local b = db.get(RECORD.bundle, from)
    if l.ordered then
      O.rem(b.open, bundle_open(from), text(lane))
      l.ordered = nil
      T.order_bundle(from)
    end
    if l.out then
      O.rem(b.outs, bundle_outs(from), text(lane))
    end
    b.waiting = b.waiting - len
    T.add_blocked(queue, b.place, -len)
  end
  l.bundle = to
  local b = db.get(RECORD.bundle, to)
  b.lanes = b.lanes + 1
  local f = db.get(RECORD.bundle, from)
  f.lanes = f.lanes - 1
  if open then
    b.waiting = b.waiting + len
    T.add_blocked(queue, b.place, len)
    T.order_lane(lane)
    if l.out then
      O.add(b.outs, bundle_outs(to), lane, text(lane))
      if b.place then
        T.clear_out(ENTRY.lane .. text(lane))
      end
    end
  end
  T.drop_bundle_if_idle(from)
end

-- An idle group is forgotten once its time is not above the priority's.
function T.forget_idle_groups(queue, rank)
  local q = db.get(RECORD.queue, queue)
  local turns = q.priorities[rank]
  if not turns then
    return
  end
  for _ = 1, B.STEPS_MAX do
    local member, own = O.first(turns.idle, turns_idle(queue, rank))
    if not member or own > turns.v then
      break
    end
    local group = tonumber(member)
    O.rem(turns.idle, turns_idle(queue, rank), member)
    local name = group_key(queue, rank, db.see(RECORD.group, group).name)
    M.drop('gn:' .. shard(name), name)
    db.drop(RECORD.group, group)
    turns.groups = turns.groups - 1
  end
  if turns.groups == 0 then
    q.priorities[rank] = nil
    return
  end
  local member, own = O.first(turns.idle, turns_idle(queue, rank))
  if member and own <= turns.v then
    T.tidy_soon(TIDY.groups, queue)
  end
end

-- Nobody waits in a priority: V rises to the highest finish, which makes the times of all its idle groups
-- void. Otherwise a group that came once, with one job, would be remembered for as long as only such groups
-- come: each of them starts at V, so none moves V on.
function T.void_turns(queue, rank)
  local turns = T.turns(queue, rank)
  if turns then
    turns.v = max(turns.v, turns.top)
    T.forget_idle_groups(queue, rank)
  end
end

-- Goes on forgetting idle groups of a queue, as far as one tick may.
function T.forget_void_groups(queue)
  local left = floor(B.TICK_MAX / B.STEPS_MAX)
  for _, rank in ipairs(ranks(queue)) do
    local turns = T.turns(queue, rank)
    local was
    while turns and left > 0 and was ~= turns.idle.n do
      was, left = turns.idle.n, left - 1
      T.forget_idle_groups(queue, rank)
      turns = T.turns(queue, rank)
    end
  end
  if left == 0 then
    T.tidy_soon(TIDY.groups, queue)
  end
end

-- ---- A lane's jobs ----

-- Puts a job or a caller into a lane.
function T.enter_lane(lane, arrival, slot, now)
  local l = db.get(RECORD.lane, lane)
  L.insert(l.line, lane_line(lane), arrival, slot)
  T.add_len(l, 1)
  T.lane_changed(lane, now)
end

-- Takes a job or a caller out of its lane.
function T.leave_lane(lane, arrival, slot, now)
  local l = db.get(RECORD.lane, lane)
  if L.remove(l.line, lane_line(lane), arrival, slot) then
    T.add_len(l, -1)
    T.lane_changed(lane, now)
    T.drop_lane_if_idle(lane)
  end
end

-- Adds to every sum that the lane's length is part of.
function T.add_len(l, delta)
  local q = db.get(RECORD.queue, l.queue)
  q.waiting = q.waiting + delta
  local turns = q.priorities[-l.priority]
  turns.waiting = turns.waiting + delta
  if l.place then
    T.add_blocked(l.queue, l.place, delta)
  else
    local b = db.get(RECORD.bundle, l.bundle)
    b.waiting = b.waiting + delta
    T.add_blocked(l.queue, b.place, delta)
  end
  if turns.waiting == 0 then
    T.void_turns(l.queue, -l.priority)
  end
end

function T.add_blocked(queue, place, delta)
  if place then
    local q = db.get(RECORD.queue, queue)
    q.blocked = q.blocked + delta
    local door = db.get(RECORD.door, place.door)
    door.waiting = door.waiting + delta
    T.pool_waits(place.door, delta)
    local line = T.door_line(place.door, queue)
    line.waiting = line.waiting + delta
  end
end

-- Moves a lane between open, parked and misfit; the sums go with it.
function T.place_lane(lane, place)
  local l = db.get(RECORD.lane, lane)
  local old, len = l.place, l.line.n
  l.place = place
  local b = db.get(RECORD.bundle, l.bundle)
  if not old and place then
    b.waiting = b.waiting - len
    T.add_blocked(l.queue, b.place, -len)
    T.add_blocked(l.queue, place, len)
  elseif old and not place then
    b.waiting = b.waiting + len
    T.add_blocked(l.queue, old, -len)
    T.add_blocked(l.queue, b.place, len)
  elseif old and place then
    T.add_blocked(l.queue, old, -len)
    T.add_blocked(l.queue, place, len)
  end
  T.order_lane(lane)
end

-- Moves a bundle between open, parked and misfit; the sums go with it.
function T.place_bundle(bundle, place)
  local b = db.get(RECORD.bundle, bundle)
  local old, len = b.place, b.waiting
  b.place = place
  T.add_blocked(b.queue, old, -len)
  T.add_blocked(b.queue, place, len)
  T.order_bundle(bundle)
end

-- ---- Order ----

-- Carries a lane's head up into the order, if the lane is open.
function T.order_lane(lane)
  local l = db.get(RECORD.lane, lane)
  local key
  if not l.place then
    key = L.first(l.line, lane_line(lane))
  end
  if l.ordered == key then
    return
  end
  O.place(db.get(RECORD.bundle, l.bundle).open, bundle_open(l.bundle), l.ordered, key, number_text(lane))
  l.ordered = key
  T.order_bundle(l.bundle)
end

function T.order_bundle(bundle)
  local b = db.get(RECORD.bundle, bundle)
  local key
  if not b.place then
    local _, first = O.first(b.open, bundle_open(bundle))
    key = first
  end
  if b.ordered == key then
    return
  end
  O.place(db.get(RECORD.group, b.group).open, group_open(b.group), b.ordered, key, number_text(bundle))
  b.ordered = key
  T.order_group(b.group)
end

-- A group's member in its priority's order: by time, then by the arrival of its head.
local function turn_member(arrival, group)
  return T.pad(arrival) .. ':' .. number_text(group)
end
T.turn_member = turn_member

function T.order_group(group)
  local g = db.get(RECORD.group, group)
  local queue, rank = g.queue, -g.priority
  local turns = T.turns(queue, rank)
  if not turns then
    return
  end
  local _, arrival = O.first(g.open, group_open(group))
  if not g.ordered and arrival then
    -- It was idle or parked: it starts again at V, so that waiting earns no credit.
    g.own = max(g.own, turns.v)
  end
  if g.ordered == arrival and g.ordered_own == (arrival and g.own) then
    return
  end
  if g.ordered then
    O.rem(turns.open, turns_open(queue, rank), turn_member(g.ordered, group))
  end
  g.ordered, g.ordered_own = arrival, arrival and g.own
  if arrival then
    O.add(turns.open, turns_open(queue, rank), g.own, turn_member(arrival, group))
    db.touched[queue] = true
  end
end

-- How far a group's time goes by one grant.
function T.turn_unit(queue, g)
  local settings = g.name and T.queue_settings(queue)
  local shares = settings and settings.shares and settings.shares[g.name] or 1
  return floor(B.SHARE_UNIT / max(shares, 1))
end

-- Books a grant of a group: start-time fair queuing.
function T.book_turn(lane)
  T.book_turns(lane, 1)
end

-- Books so many grants in a row of a group; more than one only if no other group has an open lane.
function T.book_turns(lane, n)
  local group = db.get(RECORD.bundle, db.see(RECORD.lane, lane).bundle).group
  local g = db.get(RECORD.group, group)
  local queue, rank = g.queue, -g.priority
  local turns = T.turns(queue, rank)
  if not turns then
    return
  end
  local unit = T.turn_unit(queue, g)
  turns.v = max(g.own, turns.v) + (n - 1) * unit
  g.own = turns.v + unit
  turns.top = max(turns.top, g.own)
  -- Its key has changed, not its head.
  if g.ordered then
    local member = turn_member(g.ordered, group)
    O.rem(turns.open, turns_open(queue, rank), member)
    O.add(turns.open, turns_open(queue, rank), g.own, member)
    g.ordered_own = g.own
  end
  if turns.idle.n > 0 then
    T.forget_idle_groups(queue, rank)
  end
end

-- After so many heads of an open lane were granted in a row: books their turns, and carries the next
-- head up.
function T.heads_taken(lane, n, now)
  local l = db.get(RECORD.lane, lane)
  if l.out or l.marked or not T.stands_alone(l.bundle) then
    T.book_turns(lane, n)
    T.lane_changed(lane, now)
    T.drop_lane_if_idle(lane)
    return
  end
  local head = L.first(l.line, lane_line(lane))
  O.place(db.get(RECORD.bundle, l.bundle).open, bundle_open(l.bundle), l.ordered, head, number_text(lane))
  l.ordered = head
  T.alone_taken(l.bundle, n)
  if not head then
    T.drop_lane_if_idle(lane)
  end
end

-- Whether a bundle with an open lane is the only open one of the only group of its priority: then its place on the
-- levels above does not change when heads of its lanes are granted.
function T.stands_alone(bundle)
  local b = db.see(RECORD.bundle, bundle)
  local g = db.see(RECORD.group, b.group)
  local turns = db.see(RECORD.queue, b.queue).priorities[-g.priority]
  return turns.open.n == 1 and turns.idle.n == 0 and g.open.n == 1 and not (turns.open.z or g.open.z or b.out)
end

-- Books the turns of so many heads of the lanes of such a bundle, which are in their order again.
function T.alone_taken(bundle, n)
  local b = db.get(RECORD.bundle, bundle)
  local group, queue = b.group, b.queue
  local g = db.get(RECORD.group, group)
  local turns = db.get(RECORD.queue, queue).priorities[-g.priority]
  local open, at, first = b.open, bundle_open(bundle), nil
  if open.n == 1 and not open.z then
    first = open[1]
  else
    local _, key = O.first(open, at)
    first = key
  end
  -- Where nobody is left to wait, all times are void.
  if turns.waiting > 0 then
    turns.v = max(g.own, turns.v) + (n - 1) * T.turn_unit(queue, g)
    g.own = turns.v + T.turn_unit(queue, g)
    turns.top = max(turns.top, g.own)
  end
  b.ordered, g.ordered, g.ordered_own = first, first, first and g.own
  if first then
    g.open[1] = first
    turns.open[1], turns.open[2] = g.own, turn_member(first, group)
    db.touched[queue] = true
  else
    g.open, turns.open = O.new(), O.new()
  end
end

-- The lane that goes next, less the suspects of who may have none; or nil.
function T.next_lane(queue, suspects)
  local looked = 0
  for _, rank in ipairs(ranks(queue)) do
    local turns = T.turns(queue, rank)
    local first = suspects and O.first(turns.open, turns_open(queue, rank))
    if first then
      local group = tonumber(sub(first, 18))
      local bundle = tonumber((O.first(db.see(RECORD.group, group).open, group_open(group))))
      return tonumber((O.first(db.see(RECORD.bundle, bundle).open, bundle_open(bundle))))
    end
    for turn in O.each(turns.open, turns_open(queue, rank)) do
      local group = tonumber(sub(turn, 18))
      for bundle in O.each(db.get(RECORD.group, group).open, group_open(group)) do
        local b = db.get(RECORD.bundle, tonumber(bundle))
        for lane in O.each(b.open, bundle_open(tonumber(bundle))) do
          if suspects or not b.suspect then
            return tonumber(lane)
          end
          looked = looked + 1
          if looked >= B.STEPS_MAX then
            return nil
          end
        end
      end
    end
  end
end

-- The head of a lane: its arrival and its slot; or nil.
function T.head(lane)
  return L.first(db.get(RECORD.lane, lane).line, lane_line(lane))
end

function T.group_of(lane)
  return db.get(RECORD.bundle, db.see(RECORD.lane, lane).bundle).group
end

-- Whether a waiting job is blocked.
function T.is_blocked(lane)
  local l = db.get(RECORD.lane, lane)
  return (l.place or db.see(RECORD.bundle, l.bundle).place or db.see(RECORD.queue, l.queue).place) ~= nil
end
