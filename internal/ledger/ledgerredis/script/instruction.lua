-- instruction.lua stands before scripts that heed an instruction: state (1 digit),
-- id, and the whole of it as JSON, with a space between.

-- least is the state below which an instruction does not let the sale go: 0 for none.
local function least(instruction)
  return tonumber(string.match(instruction or '', '^([12]) %S+ ')) or 0
end
