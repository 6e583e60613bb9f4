-- drop_wanted: what a user requested for a leased job is done or withdrawn.
DELETE FROM rewheel_wanted WHERE holder = ? AND job = ?;
