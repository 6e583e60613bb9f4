-- release_dead: dead letter ?1 is the head of its line, in turn ?2, and holds up the others.
UPDATE dead SET turn = ?2 WHERE id = ?1;
