-- holder_id: reads the id of a holder.
SELECT id FROM rewheel_holders WHERE seq = ?;
