-- group_leave: removes a job, which has ended, from its line.
DELETE FROM rewheel_members WHERE job = ?;
