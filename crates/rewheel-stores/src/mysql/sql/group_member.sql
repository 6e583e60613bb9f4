-- group_member: reads whether a job of a line is a dead letter.
SELECT dead FROM rewheel_members WHERE job = ?;
