-- takeovers_max: how many processes a job of kind ?1 may take with it.
SELECT takeovers_max FROM kinds WHERE name = ?1;
