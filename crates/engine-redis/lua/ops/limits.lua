-- limits: caps that are set, paused and observed at run time. A change takes effect at once, also for
-- those who wait already.
--
-- put_limit {name, concurrency, rate = {count, per, burst}, gap, quarantine, gauge = {said = its JSON, source, every,
-- lag, stale, on_stale, fresh}} -> {view, created}
-- patch_limit {name, any of these | false} -> {view, created}     delete_limit {name} -> true
-- get_limit, resume_limit {name}, pause_limit {name, for | until}, observe_limit {name, external, hold}
-- -> view. list_limits {max, after} -> {items, next}: what is set, and what is in use.
-- Refusals: limit_not_found, invalid_field, in_use (`lock:*` cannot be deleted).
-- Cost: a few reads and writes, and a read for each holder and for each in line that is shown; a
-- changed template goes through its family in steps of what is pending.
-- Settings are records 'ls', their names in order in 'lsn'.

local function not_found(name)
  lib.refuse('limit_not_set', { limit = name })
end

-- A limit that has a setting of its own, a template's, or is in use.
local function is_known(name)
  if lib.setting_of(name) then
    return true
  end
  local limit_record = db.get(RECORD.limit, name)
  return limit_record and (limit_record.in_use > 0 or limit_record.external > 0)
end

-- What a pause, a resume and an observation name: a limit that is known and no template.
local function must_be_concrete(name)
  if lib.is_template(name) or not is_known(name) then
    not_found(name)
  end
end

local function same_rate(one, other)
  return one == other or one and other and one[1] == other[1] and one[2] == other[2] and one[3] == other[3]
end
lib.same_rate = same_rate

-- Settings that bound nothing are refused, and a rest or a gauge without a concurrency, which has no permits that could
-- rest or be taken outside.
local function check(name, settings, gauge)
  if gauge and lib.is_template(name) then
    lib.refuse('limit_gauge_of_template', nil, '/gauge')
  end
  if gauge and not settings.concurrency then
    lib.refuse('limit_gauge_alone', nil, '/gauge')
  end
  if not (settings.concurrency or settings.rate or settings.gap or settings.quarantine) then
    lib.refuse('limit_without_bound', nil, '')
  end
  if settings.gap and not settings.concurrency then
    lib.refuse('limit_gap_alone', nil, '/concurrency')
  end
  if settings.quarantine and not settings.concurrency then
    lib.refuse('limit_quarantine_alone', nil, '/concurrency')
  end
end

local function put(name, given, now)
  local settings = {
    concurrency = given.concurrency or nil, rate = given.rate or nil, gap = given.gap or nil,
    quarantine = (given.quarantine or 0) > 0 and given.quarantine or nil,
  }
  local gauge = given.gauge or nil
  check(name, settings, gauge)
  local old = db.get(RECORD.limit_setting, name)
  local is_same = old and old.concurrency == settings.concurrency and old.gap == settings.gap
    and old.quarantine == settings.quarantine and same_rate(old.rate, settings.rate)
  if not is_same then
    db.put(RECORD.limit_setting, name, settings)
    if not old then
      sets.add('lsn', 0, name)
    end
  end
  local regauged = lib.set_gauge(name, gauge, now)
  if regauged or not is_same then
    lib.event(EVENT.limit_changed, name)
    lib.setting_changed(name, now)
  end
  if regauged then
    lib.drop_limit_if_idle(name)
  end
  return { view = lib.limit_view(name, true, now), created = not old and name ~= 'lock:*' }
end

lib.op('put_limit', { 'write' }, function(args, now)
  return put(args.name, args, now)
end)

-- A limit of its own replaces its template whole, so a patch of one that has none starts from nothing,
-- as a put does.
lib.op('patch_limit', { 'write' }, function(args, now)
  local name = args.name
  local old, given = db.get(RECORD.limit_setting, name), {}
  if not old then
    old = name == 'lock:*' and lib.setting_of(name) or {}
  end
  for _, field in ipairs({ 'concurrency', 'rate', 'gap', 'quarantine' }) do
    if args[field] == nil then
      given[field] = old[field]
    else
      given[field] = args[field]
    end
  end
  if args.gauge == nil then
    given.gauge = lib.gauge_of(name)
  else
    given.gauge = args.gauge
  end
  return put(name, given, now)
end)

lib.op('delete_limit', { 'write', 'allow-oom' }, function(args, now)
  local name = args.name
  if name == 'lock:*' then
    lib.refuse('limit_lock_template_stays')
  end
  local limit_record = db.get(RECORD.limit, name)
  if limit_record then
    limit_record.touched_at = now
  end
  if db.get(RECORD.limit_setting, name) then
    db.drop(RECORD.limit_setting, name)
    sets.rem('lsn', name)
    lib.event(EVENT.limit_deleted, name)
    lib.set_gauge(name, nil, now)
    lib.setting_changed(name, now)
    lib.drop_limit_if_idle(name)
    return true
  elseif not limit_record or limit_record.external == 0 then
    not_found(name)
  end
  -- An observation is all that is left of it.
  lib.event(EVENT.limit_deleted, name)
  limit_record.external, limit_record.external_until = 0, nil
  lib.arm_limit(name)
  lib.door_due(DOOR.limit .. name)
  lib.drop_limit_if_idle(name)
  return true
end)

lib.op('get_limit', { 'no-writes' }, function(args, now)
  if not is_known(args.name) then
    not_found(args.name)
  end
  return lib.limit_view(args.name, true, now)
end)

lib.op('list_limits', { 'no-writes' }, function(args, now)
  return lib.page(args, lib.names({ 'lsn', 'Ln' }, args.after, 'lock:*'), function(name)
    if name == 'lock:*' or db.get(RECORD.limit_setting, name) then
      return true
    end
    local limit_record = db.get(RECORD.limit, name)
    if not limit_record then
      return nil
    end
    local door = db.get(RECORD.door, DOOR.limit .. name)
    return limit_record.in_use > 0 or limit_record.resting_sum > 0 or limit_record.external > 0
      or limit_record.paused_until
      or door and door.waiting > 0
  end, function(name)
    return lib.limit_view(name, false, now)
  end)
end)

-- Nobody is granted it before; the later moment holds.
function lib.pause_limit_until(name, till, now)
  local limit_record = lib.limit_for(name)
  till = max(limit_record.paused_until or 0, till)
  limit_record.paused_until = till > now and till or nil
  limit_record.touched_at = now
  if limit_record.paused_until then
    lib.event(EVENT.limit_paused, name, till)
  end
  lib.arm_limit(name)
  lib.recheck_marks_of(name, now)
  lib.drop_limit_if_idle(name)
end

lib.op('pause_limit', { 'write', 'allow-oom' }, function(args, now)
  must_be_concrete(args.name)
  lib.pause_limit_until(args.name, args['for'] and now + args['for'] or args['until'], now)
  return lib.limit_view(args.name, true, now)
end)

lib.op('resume_limit', { 'write', 'allow-oom' }, function(args, now)
  must_be_concrete(args.name)
  local limit_record = db.get(RECORD.limit, args.name)
  if limit_record then
    if limit_record.paused_until and limit_record.paused_until > now then
      lib.event(EVENT.limit_resumed, args.name)
    end
    limit_record.paused_until = nil
    lib.arm_limit(args.name)
    lib.door_due(DOOR.limit .. args.name)
    lib.drop_limit_if_idle(args.name)
  end
  return lib.limit_view(args.name, true, now)
end)

lib.op('observe_limit', { 'write', 'allow-oom' }, function(args, now)
  must_be_concrete(args.name)
  if lib.gauge_of(args.name) then
    lib.refuse('limit_gauged', { limit = args.name })
  end
  local limit_record = lib.limit_for(args.name)
  limit_record.external, limit_record.touched_at = args.external, now
  limit_record.external_until = args.hold and args.external > 0 and now + args.hold or nil
  lib.event(EVENT.limit_observed, args.name, limit_record.external_until or false, args.external)
  lib.arm_limit(args.name)
  lib.door_due(DOOR.limit .. args.name)
  lib.drop_limit_if_idle(args.name)
  return lib.limit_view(args.name, true, now)
end)
