-- number_holder: the number of a holder, alive or dead.
SELECT seq FROM holders WHERE id = ?1;
