-- Registers the operations, each under its name with the version in front.

for i = 1, #T.ops do
  local op = T.ops[i]
  redis.register_function({
    function_name = NAME .. '_' .. op.name,
    flags = op.flags,
    callback = function(keys, argv)
      return T.run(op, keys, argv)
    end,
  })
end
