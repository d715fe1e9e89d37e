-- limits: caps that are set, paused and observed at run time. A change takes effect at once, also for
-- those who wait already.
--
-- put_limit {name, concurrency, rate = {count, per, burst}, gap, quarantine} -> {view, created}
-- patch_limit {name, any of these | false} -> {view, created}     delete_limit {name} -> true
-- get_limit, resume_limit {name}, pause_limit {name, for | until}, observe_limit {name, external, hold}
-- -> view. list_limits {max, after} -> {items, next}: what is set, and what is in use.
-- Refusals: limit_not_found, invalid_field, in_use (`lock:*` cannot be deleted).
-- Cost: a few reads and writes, and a read for each holder and for each in line that is shown; a
-- changed template goes through its family in steps of what is pending.
-- Settings are records 'ls', their names in order in 'lsn'.

local function not_found(name)
  T.refuse('limit_not_set', { limit = name })
end

-- A limit that has a setting of its own, a template's, or is in use.
local function is_known(name)
  if T.setting_of(name) then
    return true
  end
  local l = db.get(RECORD.limit, name)
  return l and (l.in_use > 0 or l.external > 0)
end

-- What a pause, a resume and an observation name: a limit that is known and no template.
local function must_be_concrete(name)
  if T.is_template(name) or not is_known(name) then
    not_found(name)
  end
end

local function same_rate(a, b)
  return a == b or a and b and a[1] == b[1] and a[2] == b[2] and a[3] == b[3]
end
T.same_rate = same_rate

-- Settings that bound nothing are refused, and a rest without a concurrency, which has no permits that could rest.
local function check(s)
  if not (s.concurrency or s.rate or s.gap or s.quarantine) then
    T.refuse('limit_without_bound', nil, '')
  end
  if s.gap and not s.concurrency then
    T.refuse('limit_gap_alone', nil, '/concurrency')
  end
  if s.quarantine and not s.concurrency then
    T.refuse('limit_quarantine_alone', nil, '/concurrency')
  end
end

local function put(name, given, now)
  local s = {
    concurrency = given.concurrency or nil, rate = given.rate or nil, gap = given.gap or nil,
    quarantine = (given.quarantine or 0) > 0 and given.quarantine or nil,
  }
  check(s)
  local old = db.get(RECORD.limit_setting, name)
  if not (old and old.concurrency == s.concurrency and old.gap == s.gap
    and old.quarantine == s.quarantine
    and same_rate(old.rate, s.rate)) then
    db.put(RECORD.limit_setting, name, s)
    if not old then
      Z.add('lsn', 0, name)
    end
    T.setting_changed(name, now)
  end
  return { view = T.limit_view(name, true, now), created = not old and name ~= 'lock:*' }
end

T.op('put_limit', { 'write' }, function(args, now)
  return put(args.name, args, now)
end)

-- A limit of its own replaces its template whole, so a patch of one that has none starts from nothing,
-- as a put does.
T.op('patch_limit', { 'write' }, function(args, now)
  local name = args.name
  local old, given = db.get(RECORD.limit_setting, name), {}
  if not old then
    old = name == 'lock:*' and T.setting_of(name) or {}
  end
  for _, field in ipairs({ 'concurrency', 'rate', 'gap', 'quarantine' }) do
    if args[field] == nil then
      given[field] = old[field]
    else
      given[field] = args[field]
    end
  end
  return put(name, given, now)
end)

T.op('delete_limit', { 'write', 'allow-oom' }, function(args, now)
  local name = args.name
  if name == 'lock:*' then
    T.refuse('limit_lock_template_stays')
  end
  local l = db.get(RECORD.limit, name)
  if l then
    l.touched_at = now
  end
  if db.get(RECORD.limit_setting, name) then
    db.drop(RECORD.limit_setting, name)
    Z.rem('lsn', name)
    T.setting_changed(name, now)
    return true
  elseif not l or l.external == 0 then
    not_found(name)
  end
  -- An observation is all that is left of it.
  l.external, l.external_until = 0, nil
  T.arm_limit(name)
  T.door_due(DOOR.limit .. name)
  T.drop_limit_if_idle(name)
  return true
end)

T.op('get_limit', { 'no-writes' }, function(args, now)
  if not is_known(args.name) then
    not_found(args.name)
  end
  return T.limit_view(args.name, true, now)
end)

T.op('list_limits', { 'no-writes' }, function(args, now)
  return T.page(args, T.names({ 'lsn', 'Ln' }, args.after, 'lock:*'), function(name)
    if name == 'lock:*' or db.get(RECORD.limit_setting, name) then
      return true
    end
    local l = db.get(RECORD.limit, name)
    if not l then
      return nil
    end
    local door = db.get(RECORD.door, DOOR.limit .. name)
    return l.in_use > 0 or l.resting_sum > 0 or l.external > 0 or l.paused_until
      or door and door.waiting > 0
  end, function(name)
    return T.limit_view(name, false, now)
  end)
end)

-- Nobody is granted it before; the later moment holds.
function T.pause_limit_until(name, till, now)
  local l = T.limit_for(name)
  till = max(l.paused_until or 0, till)
  l.paused_until = till > now and till or nil
  l.touched_at = now
  T.arm_limit(name)
  T.recheck_marks_of(name, now)
  T.drop_limit_if_idle(name)
end

T.op('pause_limit', { 'write', 'allow-oom' }, function(args, now)
  must_be_concrete(args.name)
  T.pause_limit_until(args.name, args['for'] and now + args['for'] or args['until'], now)
  return T.limit_view(args.name, true, now)
end)

T.op('resume_limit', { 'write', 'allow-oom' }, function(args, now)
  must_be_concrete(args.name)
  local l = db.get(RECORD.limit, args.name)
  if l then
    l.paused_until = nil
    T.arm_limit(args.name)
    T.door_due(DOOR.limit .. args.name)
    T.drop_limit_if_idle(args.name)
  end
  return T.limit_view(args.name, true, now)
end)

T.op('observe_limit', { 'write', 'allow-oom' }, function(args, now)
  must_be_concrete(args.name)
  local l = T.limit_for(args.name)
  l.external, l.touched_at = args.external, now
  l.external_until = args.hold and args.external > 0 and now + args.hold or nil
  T.arm_limit(args.name)
  T.door_due(DOOR.limit .. args.name)
  T.drop_limit_if_idle(args.name)
  return T.limit_view(args.name, true, now)
end)
