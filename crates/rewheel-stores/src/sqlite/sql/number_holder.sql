-- number_holder: reads the number of a holder, alive or dead.
SELECT seq FROM holders WHERE id = ?1;
