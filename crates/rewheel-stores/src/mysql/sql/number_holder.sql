-- number_holder: reads the number of a holder, alive or dead.
SELECT seq FROM rewheel_holders WHERE id = ?;
