-- whole.lua stands before scripts that read a number which somebody may have
-- written over.

-- whole is a number as the ledger writes figures, or nothing: decimal, without
-- sign or leading zero, and below 2^53. tonumber alone would take ' 7', '0x7'
-- and 'inf', which read.go does not; what one side calls an epoch and the other
-- calls damage is never mended.
local function whole(text)
  if type(text) ~= 'string' or #text > 16 or not string.find(text, '^%d+$') or string.find(text, '^0.') then
    return nil
  end
  local value = tonumber(text)
  return value < 2 ^ 53 and value or nil
end
