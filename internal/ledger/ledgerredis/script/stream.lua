-- stream.lua stands before scripts that read ids of outbox entries which
-- somebody may have written.

-- MOST_SEQ is the highest SEQ: a mark has room for 6 bytes of it.
local MOST_SEQ = 2 ^ 48 - 1

-- isID reports whether a text is an id as the ledger writes them, SEQ-TAG. The
-- server refuses a command for an id that is none.
local function isID(text)
  local seq, tag = string.match(text, '^([1-9]%d*)%-(%d+)$')
  return seq ~= nil and #seq <= 15 and not string.find(tag, '^0.')
    and (#tag < 20 or #tag == 20 and tag <= '18446744073709551615')
end

-- youngest is the SEQ of the last entry that a stream ever had, or nothing.
local function youngest(out)
  local stream = redis.pcall('XINFO', 'STREAM', out)
  for i = 1, #stream, 2 do
    if stream[i] == 'last-generated-id' then
      return tonumber(string.match(stream[i + 1], '^%d+'))
    end
  end
end

-- full reports whether a stream takes no entry any more: somebody has added one
-- with an id so high that none is left above it.
local function full(out)
  return (youngest(out) or 0) >= MOST_SEQ
end
