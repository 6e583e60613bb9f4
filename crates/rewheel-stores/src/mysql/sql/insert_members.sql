-- insert_members: gives new jobs the last places in their lines. Contract: SubmitStore::insert.
INSERT INTO rewheel_members (job, group_key, kind, tenant) VALUES {rows}(?, ?, ?, ?)
