-- drop_child: forgets which job submitted a job that ends without retention.
DELETE FROM rewheel_children WHERE parent = ? AND job = ?;
