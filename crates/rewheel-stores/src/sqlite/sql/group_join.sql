-- group_join: gives new job ?1 the last place in the line of group ?2, kind ?3, tenant ?4. Contract: SubmitStore::insert.
INSERT INTO group_members (job, group_key, kind, tenant) VALUES (?1, ?2, ?3, ?4);
