-- delete_unreadable: deletes the entry of unreadable job ?1, which an operator handles.
DELETE FROM unreadable WHERE job = ?1;
