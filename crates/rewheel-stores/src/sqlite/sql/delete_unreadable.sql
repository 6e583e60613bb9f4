-- delete_unreadable: a person deals with job ?1.
DELETE FROM unreadable WHERE job = ?1;
