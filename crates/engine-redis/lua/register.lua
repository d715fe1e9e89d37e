-- Registers the operations, each under its name with the version in front.

for i = 1, #lib.ops do
  local op = lib.ops[i]
  redis.register_function({
    function_name = NAME .. '_' .. op.name,
    flags = op.flags,
    callback = function(keys, argv)
      return lib.run(op, keys, argv)
    end,
  })
end
