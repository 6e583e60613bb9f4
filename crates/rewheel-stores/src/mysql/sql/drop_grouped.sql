-- drop_grouped: forgets the group of a job that ends without retention.
DELETE FROM rewheel_grouped WHERE group_key = ? AND job = ?;
