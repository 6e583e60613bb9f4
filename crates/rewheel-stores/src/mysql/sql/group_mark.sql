-- group_mark: writes whether a job of a line is a dead letter.
UPDATE rewheel_members SET dead = ? WHERE job = ?;
