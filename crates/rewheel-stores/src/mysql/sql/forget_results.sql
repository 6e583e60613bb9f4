-- forget_results: deletes the rows of results that were deleted long ago, given as a list in JSON.
DELETE gone FROM JSON_TABLE(?, '$[*]' COLUMNS (id CHAR(32) PATH '$')) AS given
       STRAIGHT_JOIN rewheel_results AS gone FORCE INDEX (PRIMARY) ON gone.job = UNHEX(given.id)
