-- damage.lua stands before scripts that have to go on where an outsider has put
-- something else in the place of a key.

-- wrongType reports whether a reply refuses a command for what the key holds.
local function wrongType(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, '^WRONGTYPE') ~= nil
end

-- failed reports whether it is another error, which is the script's own.
local function failed(reply)
  return type(reply) == 'table' and reply.err and not wrongType(reply)
end
