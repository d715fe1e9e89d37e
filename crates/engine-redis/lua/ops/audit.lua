-- audit: everything that is cached is computed anew from what is held, and compared. It only reads.
--
-- args: {after}. Replies {checked, faults, next}: `next` is sent back as `after`, and is not there at
-- the end. No refusals. Cost: a page looks at some dozens of things, a few milliseconds; of one set it never looks
-- at more than a thousand.
--
-- One page checks some things of one kind, each against all that it points to and all that should point
-- to it: a lease against its limits, its resources, its timers; a lane against its line, its bundle and
-- its door; a door against its entries, and the invariant for each of its lines. What needs all of a
-- kind (the counts of a queue, the sums of a namespace) is added up over the pages, and compared only
-- if nothing was written between them: the cursor carries the sums and a digest of the namespace's
-- record, which every call that writes changes by its moment. So a fault is never one of two halves
-- that were read at different times; what a busy namespace hides, a quiet moment shows.

local audit = lib.audit
-- What a page may cost before it ends; each is a few commands.
local PAGE = 50

-- Walks the fields of the parts of a kind: {part, cursor} in `at`. Whether it is done.
local function each_field(kind, at, act)
  at.part, at.cursor = at.part or 0, at.cursor or '0'
  while at.part < PARTS do
    local found = call('HSCAN', db.prefix .. kind .. ':' .. text(at.part), at.cursor, 'COUNT', 10)
    for i = 1, #found[2], 2 do
      audit.try({ 'record', found[2][i], kind }, act, found[2][i], found[2][i + 1])
    end
    audit.spend(0.2)
    at.cursor = found[1]
    if at.cursor == '0' then
      at.part = at.part + 1
    end
    if audit.cost >= PAGE then
      return at.part == PARTS
    end
  end
  return true
end

-- Walks the members of an ordered set by their bytes.
local function each_name(key, at, act)
  while true do
    local from = at.name and '(' .. at.name or '-'
    local found = call('ZRANGEBYLEX', db.prefix .. key, from, '+', 'LIMIT', 0, 100)
    for _, name in ipairs(found) do
      audit.try({ 'named', name, key }, act, name)
      at.name = name
      if audit.cost >= PAGE then
        return false
      end
    end
    if #found < 100 then
      return true
    end
  end
end

-- How many fields the parts of a kind have.
local function count_fields(kind)
  local n = 0
  for part = 0, PARTS - 1 do
    n = n + call('HLEN', db.prefix .. kind .. ':' .. text(part))
  end
  return n
end

local function count(key)
  return call('ZCARD', db.prefix .. key)
end

local function check_head()
  local space = db.space
  audit.check_set(space.pending, lib.PENDING, { 'pending_doors' }, { 'namespace' })
  for what in audit.some(space.pending, lib.PENDING) do
    audit.check(byte(what) == ENTRY_BYTE.bundle or db.get(RECORD.door, what), 'pending_door_missing')
  end
  return true
end

-- Walks the order of finished jobs of a class.
local function each_kept(set, class)
  return function(at)
    while true do
      local from = at.rank or 0
      local found = call('ZRANGE', db.prefix .. set, from, from + 9, 'WITHSCORES')
      for i = 1, #found, 2 do
        audit.try({ 'finished_jobs' }, audit.kept, set, class, found[i], tonumber(found[i + 1]))
        at.rank = from + (i + 1) / 2
        if audit.cost >= PAGE then
          return false
        end
      end
      if #found < 20 then
        return true
      end
    end
  end
end

-- Walks the stream of events: numbers follow each other, and all entries are counted.
local function each_entry(at)
  at.number = at.number or db.space.events_first
  while true do
    local some = call('XRANGE', db.prefix .. lib.EVENT_STREAM, text(at.number), '+', 'COUNT', 20)
    for _, one in ipairs(some) do
      local last, many, bytes = lib.look_at_entry(one)
      audit.check(last - many + 1 == at.number, 'event_missing', at.number)
      audit.add('event_bytes', 'all', bytes)
      at.number = last + 1
    end
    audit.spend(1)
    if #some < 20 then
      audit.add('events', 'all', at.number - 1)
      return true
    elseif audit.cost >= PAGE then
      return false
    end
  end
end

-- The parts of the audit, in order; sums that a part compares were added up by those above it.
local PARTS = {
  check_head,
  each_entry,
  audit.processes,
  function(at)
    while true do
      local from = at.rank or 0
      local found = call('ZRANGE', db.prefix .. KEY.expiries, from, from + 24, 'WITHSCORES')
      for i = 1, #found, 2 do
        audit.try({ 'some_lease' }, audit.expiry, found[i], tonumber(found[i + 1]))
      end
      at.rank = from + #found / 2
      if #found < 50 then
        return true
      elseif audit.cost >= PAGE then
        return false
      end
    end
  end,
  function(at)
    while true do
      if not at.row then
        local from = at.chunk and '(' .. at.chunk or '-inf'
        at.chunk = call('ZRANGEBYSCORE', db.prefix .. 'ch', from, '+inf', 'LIMIT', 0, 1)[1]
        if not at.chunk then
          return true
        end
      end
      at.row = audit.chunk(tonumber(at.chunk), at.row)
      if audit.cost >= PAGE then
        return false
      end
    end
  end,
  function(at)
    return each_field(RECORD.leaving, at, function(seq, packed)
      audit.leaving(seq, db.decode(RECORD.leaving, packed))
    end)
  end,
  function(at)
    while true do
      local from = at.row and '(' .. at.row or '-inf'
      local row = call('ZRANGEBYSCORE', db.prefix .. lib.PARENTS, from, '+inf', 'LIMIT', 0, 1)[1]
      if not row then
        return true
      end
      audit.try({ 'job_row', tonumber(row) }, audit.parent, row)
      at.row = row
      if audit.cost >= PAGE then
        return false
      end
    end
  end,
  function(at)
    return each_name(lib.FLOW_NAMES, at, audit.flow)
  end,
  audit.edge_sums,
  each_kept('ff', 1),
  each_kept('fo', 2),
  function(at)
    return each_field('lk', at, function(packed, lane)
      audit.lane(tonumber(lane), packed)
    end)
  end,
  function(at)
    return each_field('bk', at, function(key, bundle)
      local bundle_record = db.get(RECORD.bundle, tonumber(bundle))
      audit.check(bundle_record
        and lib.bundle_key(bundle_record.group, bundle_record.plain, bundle_record.suspect) == key,
        'other_key', { 'bundle', bundle })
      audit.bundle(tonumber(bundle))
      audit.add('bundle_keys', 'all', 1)
    end)
  end,
  function(at)
    return each_field('gn', at, function(name, group)
      local group_record = db.get(RECORD.group, tonumber(group))
      audit.check(group_record and lib.group_key(group_record.queue, -group_record.priority, group_record.name) == name,
        'other_name', { 'group', group })
      audit.group(tonumber(group))
    end)
  end,
  function(at)
    return each_field('sk', at, function(packed, shape)
      audit.shape(tonumber(shape), packed)
    end)
  end,
  function(at, now)
    return each_field(RECORD.door, at, function(door)
      audit.door(door, now)
    end)
  end,
  function(at)
    if not at.name then
      if db.get(RECORD.queue, CALLERS) then
        audit.try({ 'callers' }, audit.queue, CALLERS)
      end
    end
    return each_name('ql', at, function(name)
      audit.queue(lib.find_queue(name) or -1, name)
      audit.add('queues', 'all', 1)
    end)
  end,
  function(at)
    return each_name('Ln', at, audit.limit)
  end,
  function(at, now)
    while true do
      local name = at.name
      if not at.id then
        local from = name and '(' .. name or '-'
        name = call('ZRANGEBYLEX', db.prefix .. 'pn', from, '+', 'LIMIT', 0, 1)[1]
        if not name then
          return true
        end
      end
      at.name = name
      at.id = audit.pool(name, at.id or '', now)
      if audit.cost >= PAGE then
        return false
      end
    end
  end,
  function(at)
    return each_field(RECORD.tag, at, audit.tag)
  end,
  function(at)
    return each_field(RECORD.unique_key, at, audit.key)
  end,
  function(at)
    return each_field(RECORD.request, at, audit.request)
  end,
  function(at)
    return each_field(RECORD.replacing, at, audit.replacing)
  end,
  function(at)
    return each_field(RECORD.stub, at, audit.stub)
  end,
  function(at)
    return each_field(RECORD.place, at, audit.place)
  end,
  function(at)
    return each_field(RECORD.waiting_call, at, audit.taker)
  end,
  function(at)
    return each_field(RECORD.awaited, at, audit.awaited)
  end,
  function(at)
    return each_field(RECORD.worker, at, audit.worker)
  end,
  function(at)
    return each_field(RECORD.holder, at, audit.holder)
  end,
  function(at, now)
    return each_field(RECORD.schedule, at, function(id)
      audit.schedule(id, now)
    end)
  end,
}

-- The sums of a namespace, when all its things were added up and nothing changed meanwhile.
PARTS[#PARTS + 1] = function()
  if not audit.sums then
    return true
  end
  local sum, kept = audit.total, db.space.kept
  local ids = 0
  for b = 0, 255 do
    ids = ids + call('HLEN', db.prefix .. 'i:' .. text(b))
  end
  for _, counted in ipairs({
    'waiting', 'blocked', 'scheduled', 'dependent', 'running', 'succeeded', 'failed', 'cancelled', 'rows_waiting',
  }) do
    local said = sum('said_' .. counted)
    audit.check_same(said, sum(counted), { 'in_all_queues', counted })
  end
  for _, same in ipairs({
    { 'blocked_by_doors', sum('blocked'), sum('at_doors') },
    { 'waiting_for_pools', sum('said_pool_waiting'), sum('pool_waiting') },
    { 'ids_of_jobs', ids, sum('rows') },
    { 'jobs_by_shapes', sum('shape_rows'), sum('rows') },
    { 'live_jobs_by_shapes', sum('shape_live'), sum('live_of') },
    { 'scheduled_timers', count('due'), sum('scheduled') },
    { 'failed_in_order', sum('ordered1'), sum('finished1') },
    { 'finished_in_order', sum('ordered2'), sum('finished2') },
    { 'failed_bytes', kept[KEPT_AT.failed], sum('kept1') },
    { 'finished_bytes', kept[KEPT_AT.others], sum('kept2') },
    { 'live_leases', db.space.live, sum('leases') },
    { 'event_bytes', db.space.events_kept, sum('event_bytes') },
    { 'last_event', db.space.events_last, sum('events') },
    { 'leases_without_job', count_fields(RECORD.lease), sum('tokens') },
    { 'leases_by_holders', sum('holders'), sum('leases') },
    { 'permits', sum('in_use'), sum('held') },
    { 'held_resources', sum('resources_held'), sum('resources') },
    { 'resources_by_tags', sum('tags_said'), sum('tags') },
    { 'free_by_tags', sum('tags_free_said'), sum('tags_free') },
    { 'deadlines', count('dl'), sum('deadlines') },
    { 'door_timers', count('dt'), sum('timed_doors') },
    { 'limit_timers', count('lt'), sum('timed_limits') },
    { 'resource_timers', count('rt'), sum('timed_resources') },
    { 'lines_at_doors', count_fields(RECORD.door_line), sum('lines') },
    { 'groups_at_doors', count_fields(RECORD.door_group), sum('groups_at_doors') },
    { 'lanes_by_bundles', sum('bundle_lanes'), sum('lanes') + sum('marked') },
    { 'marks', count('mks'), sum('marked') },
    { 'shapes_by_lanes', sum('lane_shapes'), sum('shapes_with_lane') },
    { 'bundles_by_groups', sum('bundles'), sum('bundle_keys') },
    { 'turns', sum('turns_said'), sum('turns') },
    { 'queues_by_name', count_fields('qn'), sum('queues') },
    { 'limits_by_name', count_fields(RECORD.limit), count('Ln') },
    { 'gauges_by_limits', count_fields(RECORD.gauge), sum('gauges') },
    { 'gauges_that_are_read', count('gz'), sum('gauges_due') },
    { 'pools_by_name', count_fields(RECORD.pool), count('pn') },
    { 'workers', count('wn'), sum('workers') },
    { 'worker_timers', count('we'), sum('workers') },
    { 'result_waiters', lib.awaiting_calls(), sum('awaiting_calls') },
    { 'awaited_jobs', count('awj'), sum('awaited_jobs') },
    { 'awaited_timers', count('awt'), sum('awaited_jobs') + sum('awaited_flows') },
    { 'parents', count(lib.PARENTS), sum('parents') },
    { 'held_failed', count(lib.HELD_FAILED), sum('held_failed') },
    { 'followers', sum('followers'), sum('named') },
    { 'told_ends', count('tell'), sum('told_ends') },
    { 'leaving_jobs', count('leave'), sum('leaving') },
    { 'untold_ends', db.space.untold and 1 or 0, min(1, count('tell') + count('leave')) },
    { 'flows_by_name', count_fields(RECORD.flow), sum('flows') },
    { 'waiting_calls', count('wt'), sum('takers') + sum('callers') },
    { 'users_of_needs', sum('uses'), sum('uses_held') },
    { 'keys_that_end', count('uke'), sum('keys_that_end') },
    { 'requests', count('rqe'), count_fields(RECORD.request) },
    { 'replacing_pushes', count('rpe'), count_fields(RECORD.replacing) },
    { 'stubs', count('ste'), count_fields(RECORD.stub) },
    { 'places', count('ple'), count_fields(RECORD.place) },
    { 'unfinished_by_schedules', sum('said_unfinished'), sum('unfinished') },
    { 'schedules_by_id', count('sl'), sum('schedules') },
    { 'jobs_that_schedules_make', count_fields('sj'), sum('schedules') },
    { 'schedules_that_fire', count('sd'), sum('firing') },
    { 'schedules_that_want_plans', count('sp'), sum('planning') },
    { 'schedules_that_wait', count('sw'), sum('awaiting_jobs') },
  }) do
    audit.check_same(same[2], same[3], { same[1] })
  end
  audit.owners()
  return true
end

lib.op('audit', { 'no-writes' }, function(args, now)
  local stamp = redis.sha1hex(db.raw or '')
  local at = args.after and cjson.decode(args.after)
    or { part = 1, stamp = stamp, sums = {}, here = {} }
  local same = at.stamp == stamp
  audit.begin(same and at.sums or nil)
  while at.part <= #PARTS do
    if not PARTS[at.part](at.here, now) then
      break
    end
    at.part, at.here = at.part + 1, {}
    if audit.cost >= PAGE then
      break
    end
  end
  local reply = { checked = audit.checked, faults = audit.faults }
  if at.part <= #PARTS then
    -- What was once written between two pages is not added up any more.
    at.stamp, at.sums = same and stamp or '', audit.sums
    reply.next = cjson.encode(at)
  end
  return reply
end)
