-- What every part of the audit needs: findings, sums that go from page to page, sets looked into.
--
-- It only reads. A finding is a list: its name, and what it is about. What is named in it is a list as well, such as
-- {'lane', 7}. The sentences are made of them in `src/decode/findings.rs`. Sums are added up over pages and compared at
-- the end, if nothing was written meanwhile.

local audit = {}
lib.audit = audit

-- Faults told by one page; the first is what matters.
audit.FAULTS = 100
-- Of what a set has a page looks at so many; a larger one is not summed up.
audit.MANY = 1000
-- So many of a kind are summed up one by one, beyond that all together: every page carries these sums.
audit.FEW = 250

-- Starts a page: `sums` are those of the pages before, or nil if something was written meanwhile.
function audit.begin(sums)
  audit.checked, audit.faults, audit.cost, audit.sums = 0, {}, 0, sums
  audit.lines = {}
end

-- One thing was checked; if it does not hold, that is a finding.
function audit.check(holds, finding, ...)
  audit.checked = audit.checked + 1
  if not holds and #audit.faults < audit.FAULTS then
    audit.faults[#audit.faults + 1] = { finding, ... }
  end
  return holds
end

-- Something looked at costs something; a page ends when it has cost enough.
function audit.spend(n)
  audit.cost = audit.cost + n
end

-- Does a check that may stumble over what is not there: that is a finding too.
function audit.try(what, act, ...)
  local ok, no = pcall(act, ...)
  if type(no) == 'table' and no.err then
    -- Not what is there is wrong, but the store did not say it.
    error(no, 0)
  end
  if not ok then
    audit.check(false, 'dangling', what, type(no) == 'string' and no or '?')
  end
end

-- Adds to the sum of a thing, and to that of all.
function audit.add(sum, of, n)
  local sums = audit.sums
  if not sums or n == 0 then
    return
  end
  if sums[sum] == 'missed' then
    return
  end
  sums[sum] = (sums[sum] or 0) + n
  of = tostring(of)
  local each = sums[sum .. '/'] or { n = 0, of = {} }
  sums[sum .. '/'] = each
  if not each.of[of] then
    if each.n >= audit.FEW then
      each.over = true
      return
    end
    each.n = each.n + 1
  end
  each.of[of] = (each.of[of] or 0) + n
end

-- Something of this sum is not in it: it is compared with nothing.
function audit.miss(sum)
  if audit.sums then
    audit.sums[sum] = 'missed'
  end
end

-- What all are together; 'missed' if not all are in it.
function audit.total(sum)
  return audit.sums[sum] or 0
end

-- That two sums are the same, unless something is missing in one.
function audit.check_same(said, are, name)
  audit.check(said == are or said == 'missed' or are == 'missed', 'sum_differs', name, said, are)
end

-- The sum of one thing, or nil if there were too many to keep them apart.
function audit.sum_of(sum, of)
  local each = audit.sums[sum .. '/']
  if audit.sums[sum] == 'missed' then
    return nil
  elseif not each then
    return 0
  end
  return each.of[tostring(of)] or not each.over and 0 or nil
end

-- Walks a set in a record, as far as a page goes: for member, score in audit.some(set, key) do.
function audit.some(set, key)
  local each, n = inner.each(set, key), 0
  return function()
    n = n + 1
    if n <= audit.MANY then
      audit.spend(0.1)
      return each()
    end
  end
end

-- That a set has as many as it says, in order.
function audit.check_set(set, key, what, name)
  local n = set.z and call('ZCARD', db.prefix .. key) or #set / 2
  audit.check(n == set.n, 'set_size_differs', what, name, set.n, n)
  if set.z then
    return
  end
  audit.check(call('EXISTS', db.prefix .. key) == 0, 'set_small_with_key', what, name)
  for i = 3, #set, 2 do
    local a, b = set[i - 2], set[i]
    audit.check(a < b or a == b and lib.less(set[i - 1], set[i + 1]), 'set_unordered', what, name)
  end
end

-- That a timer is set for a moment, or not at all.
function audit.check_timer(key, what, at, name)
  local set = sets.score(key, what)
  audit.check(set == at, 'timer_differs', key, name, set or false, at or false)
end

-- That a waiting call is looked at when its wait is over, or later while its process lives.
function audit.check_wait(taker, till, name)
  local at = sets.score('wt', taker)
  audit.check(at and at >= till, 'wait_differs', name, at or false, till)
end
