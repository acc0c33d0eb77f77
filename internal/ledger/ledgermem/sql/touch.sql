-- A write that changes nothing, to test whether a write is possible.
UPDATE meta SET floor = floor
