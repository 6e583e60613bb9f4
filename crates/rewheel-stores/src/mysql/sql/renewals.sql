-- renewals: reads the renewals of a holder that was just renewed.
SELECT seq, renewals FROM rewheel_holders WHERE id = ?;
