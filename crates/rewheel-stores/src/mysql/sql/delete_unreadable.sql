-- delete_unreadable: deletes the entry of an unreadable job, which an operator handles.
DELETE FROM rewheel_unreadable WHERE job = ?;
