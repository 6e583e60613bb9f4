-- takeovers_max: reads how many processes a job of kind ?1 may crash.
SELECT takeovers_max FROM kinds WHERE name = ?1;
