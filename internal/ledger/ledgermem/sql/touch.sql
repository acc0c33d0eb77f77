-- A write that changes nothing, to learn whether one is possible.
UPDATE meta SET floor = floor
