-- id.lua stands before scripts that read ids of outbox entries which somebody
-- may have written.

-- isID reports whether a text is an id as the ledger writes them, SEQ-TAG. The
-- server refuses a command for an id that is none.
local function isID(text)
  local seq, tag = string.match(text, '^([1-9]%d*)%-(%d+)$')
  return seq ~= nil and #seq <= 15 and not string.find(tag, '^0.')
    and (#tag < 20 or #tag == 20 and tag <= '18446744073709551615')
end
