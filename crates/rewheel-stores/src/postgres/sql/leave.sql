-- leave: deregisters a holder. A transaction that leases jobs to it finishes first. Contract: LeaseStore::leave.
WITH holder AS MATERIALIZED (SELECT seq FROM rewheel.holders WHERE id = $1 AND died_ms IS NULL FOR UPDATE)
UPDATE rewheel.holders SET died_ms = rewheel.now_ms() + $2 FROM holder WHERE holders.seq = holder.seq;
