-- The direct way of one plain job: granted to a call that asks, settled as succeeded. (Its push: machine/direct_push.)
--
-- It does what the short way does (machine/short_way), for one job, and leaves the same state, but looks at everything
-- first and then writes at once (store/direct). The model test runs both, and a test compares what they leave. A job is
-- plain here if the namespace has nothing that is due to be opened and knows its callers; if it needs nothing, and its
-- shape and its lane are there. A new job is granted only where nothing else waits in its queue, so that neither turns nor
-- order change by it; a job that waits already, if its lane is in the only open bundle of the only open group.

local LIFE = lib.SHORT_LIFE

-- Whether any call may go the direct way in this namespace: nothing is due to be opened or to be looked at again, and
-- nothing is to be learnt.
function lib.is_calm()
  local space = db.space
  return not lib.is_pending() and space.signalled.n == 0 and not space.learns_until
end

-- Whether nothing keeps the jobs of a queue from those who ask.
local function has_no_bar(queue_record)
  return not (queue_record.hidden or queue_record.paused_until or queue_record.place or queue_record.out)
    and not (queue_record.limit and lib.setting_of(queue_record.limit))
end

-- The same, and nothing waits in it.
function lib.is_free_queue(queue_record)
  return queue_record.waiting == 0 and has_no_bar(queue_record)
end

-- Grants a row to the caller, into `leases`: its life.
function lib.grant_directly(name, row, number, queue, asker, leases, now)
  local tail = lib.tail_of(sub(row, 1, 4), number, asker, nil, now)
  lib.timer_set(KEY.expiries, tail.expires_at, name)
  if tail.deadline then
    lib.timer_set('dl', tail.deadline, name)
  end
  local run, id = lib.new_run(leases, number, tail, asker, nil, now), lib.id_in_row(row)
  run.n, run.names[1], run.rows[1], run.ids[1] = 1, name, row, id
  leases.n = 1
  lib.run_granted(run, queue, asker)
  return lib.running_life(row, name, tail.packed, id)
end

-- ---- Settle ----

-- The one lease that a settle ends as succeeded, if its job went the short way: {name, seq, life, rest = the part of
-- its life that others of its grant have too, shape, number = of the shape, has_key = whether it holds a unique key,
-- result}.
local function one_settled(args)
  local runs = args.runs
  if not runs or #runs ~= 3 or args.claims then
    return nil
  end
  local fence, seq, many = runs[1], runs[2], runs[3]
  if many > 1 or seq == 0 then
    return nil
  end
  local chunk, key, _, life_field = lib.job_home(seq)
  if lib.block_in(chunk) or lib.is_awaited_directly(seq) or lib.is_parent_directly(seq) then
    return nil
  end
  local name, life = lib.lease_id(fence, seq), call('HGET', db.prefix .. key, life_field)
  local kind = life and sub(life, 1, 1)
  local has_key = kind == LIFE.running_with_key
  if not (has_key or kind == LIFE.running) or sub(life, LIFE.name_at, LIFE.bytes_at - 1) ~= name then
    return nil
  end
  local common, id = lib.common_and_id(life)
  local rest, number = lib.read_common(common), struct.unpack('>I4', life, LIFE.tail_at)
  local shape = db.get(RECORD.shape, number)
  if rest.as_needed or rest.limits or shape.live == 1 and not lib.keeps_lane(shape) then
    return nil
  end
  return {
    name = name, id = id, seq = seq, life = life, rest = rest, shape = shape, number = number,
    has_key = has_key, result = args.results and args.results[1],
  }
end

local function settle_one(one, now)
  local rest, result = one.rest, one.result
  local till = lib.kept_until(one.shape, now)
  local _, key, row_field, life_field = lib.job_home(one.seq)
  local life, bytes = lib.succeeded_life(one.life, result, struct.pack('>I7I7I7', rest.granted_at, now, till))
  lib.succeeded_event(rest, one.shape, one.id, one.name, 1)
  call('HSET', db.prefix .. key, life_field, life)
  if result then
    maps.set(key .. PART.result, row_field, result)
  end
  if one.has_key then
    lib.give_key_back(one.seq, one.id, one.shape, now)
  end
  lib.timer_clear(KEY.expiries, one.name)
  if rest.deadline then
    lib.timer_clear('dl', one.name)
  end
  lib.timer_set('fo', till, sub(one.name, 9))
  local kept = db.space.kept
  kept[KEPT_AT.others] = kept[KEPT_AT.others] + bytes
  lib.hear_worker(rest.holder, now)
  lib.unhold(rest.holder, 1, false)
  lib.count_succeeded(one.shape, one.number, 1, now)
end

function lib.settle_directly(args)
  local one = lib.is_as_known(args.kn) and one_settled(args)
  if one then
    settle_one(one, db.write_direct())
    return { all = 1 }
  end
end

-- ---- Lease ----

-- Whether a call asks for jobs of queues, and neither it nor its request was heard of.
local function is_new(args)
  local request = args.rq
  return args.queues and not args.adds and args.ttl > 0
    and not (args.taker and db.get(RECORD.waiting_call, args.taker))
    and not (request and (db.get(RECORD.request, request) or lib.first_wait(request)))
end

-- The queues that a call is to wait for, in which nothing waits.
local function free_queues(args)
  if args.wait == 0 or not args.taker then
    return nil
  end
  local queues = {}
  for i, name in ipairs(args.queues) do
    local queue = lib.find_queue(name)
    if not queue or not lib.is_free_queue(db.get(RECORD.queue, queue)) then
      return nil
    end
    for before = 1, i - 1 do
      if queues[before] == queue then
        return nil
      end
    end
    queues[i] = queue
  end
  return queues
end

-- The job that a call for one is granted, if it is the head of a line and as it was pushed: {queue, lane, seq, row}.
local function next_plain(args)
  local queue = not args.queues[2] and lib.find_queue(args.queues[1])
  local queue_record = queue and db.get(RECORD.queue, queue)
  if not queue_record or queue_record.waiting == 0 or args.max > 1 and queue_record.waiting > 1 or queue_record.takers
    or not has_no_bar(queue_record) then
    return nil
  end
  local lane = lib.next_lane(queue, true)
  local lane_record = lane and db.get(RECORD.lane, lane)
  if not lane_record or lane_record.needs[1] or lane_record.suspect or lane_record.marked or lane_record.out
    or lane_record.shapes == 0 or not lib.stands_alone(lane_record.bundle)
    or db.see(RECORD.bundle, lane_record.bundle).open.z then
    return nil
  end
  local _, seq = lines.two(lane_record.line, lib.lane_line(lane))
  if not seq then
    return nil
  end
  local chunk, key, row_field, life_field = lib.job_home(seq)
  if lib.block_in(chunk) then
    return nil
  end
  local found = call('HMGET', db.prefix .. key, row_field, life_field)
  return found[1] and not found[2] and { queue = queue, lane = lane, seq = seq, row = found[1] } or nil
end

local function hear_caller(args, queues, now)
  for _, queue in ipairs(queues) do
    local queue_record = db.get(RECORD.queue, queue)
    queue_record.used_at = max(queue_record.used_at, now)
  end
  lib.see_worker(args.worker, queues, now)
end

local function wait(queues, args, now)
  hear_caller(args, queues, now)
  return lib.begin_wait(args, queues, now)
end

local function take(head, args, now)
  hear_caller(args, { head.queue }, now)
  local asker, leases = { worker = args.worker and args.worker.id, ttl = args.ttl, request = args.rq }, {}
  local name, row = lib.lease_id(lib.next_fence(now), head.seq), head.row
  local queue_name = db.see(RECORD.queue, head.queue).name
  local life = lib.grant_directly(name, row, struct.unpack('>I4', row), queue_name, asker, leases, now)
  local _, key, _, life_field = lib.job_home(head.seq)
  call('HSET', db.prefix .. key, life_field, life)
  db.write_whole()
  lib.took_heads(head.lane, 1, asker, now)
  lib.remember_request(leases, asker, now)
  return lib.show_grants(leases, {})
end

-- What becomes of a call: it is granted the job that is next, or it waits; and of what. Nil for what is not plain.
local function fate(args)
  if not is_new(args) then
    return nil
  end
  local head = next_plain(args)
  if head then
    return take, head
  end
  return wait, free_queues(args)
end

function lib.lease_directly(args)
  if lib.is_as_known(args.kn) then
    local act, of = fate(args)
    return of and act(of, args, db.write_direct())
  end
end

function lib.settle_and_lease_directly(args)
  local one = lib.is_as_known(args.kn) and one_settled(args.settle)
  if one then
    local act, of = fate(args.lease)
    if of then
      local now = db.write_direct()
      settle_one(one, now)
      return { settled = { all = 1 }, leased = act(of, args.lease, now) }
    end
  end
end
