-- renewed: reads the number of a holder that this transaction renewed, and its renewals.
SELECT seq, renewals FROM rewheel_holders WHERE id = ?
