-- renewals: reads the renewals of a holder that was just renewed.
SELECT holders.seq, renewals.renewals FROM rewheel_holders AS holders JOIN rewheel_renewals AS renewals ON renewals.id = holders.id
 WHERE holders.id = ?;
