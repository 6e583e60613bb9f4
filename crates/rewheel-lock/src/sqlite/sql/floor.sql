-- floor: reads the largest token of all rows that were deleted.
SELECT token FROM rewheel_lock_floor;
