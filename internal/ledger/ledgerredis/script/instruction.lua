-- instruction.lua, before scripts that use an instruction: state (1 digit), id, and the whole
-- instruction as JSON, separated by spaces.

-- least returns the lowest state that an instruction allows: 0 for none.
local function least(instruction)
  return tonumber(string.match(instruction or '', '^([12]) %S+ ')) or 0
end
