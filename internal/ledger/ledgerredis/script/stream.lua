-- stream.lua stands before scripts that have to know how far a stream has come.

-- MOST_SEQ is the highest SEQ: a mark has room for 6 bytes of it. A stream whose
-- youngest has come there is full: it takes no entry any more.
local MOST_SEQ = 2 ^ 48 - 1

-- youngest is the SEQ of the last entry that a stream ever had, or nothing.
local function youngest(out)
  local stream = redis.pcall('XINFO', 'STREAM', out)
  for i = 1, #stream, 2 do
    if stream[i] == 'last-generated-id' then
      return tonumber(string.match(stream[i + 1], '^%d+'))
    end
  end
end
