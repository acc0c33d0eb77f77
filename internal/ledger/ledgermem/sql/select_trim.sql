-- The last row of the next rows up to the floor.
SELECT max(seq) FROM (
  SELECT seq FROM journal WHERE seq > ? AND seq <= (SELECT floor FROM meta) ORDER BY seq LIMIT ?)
