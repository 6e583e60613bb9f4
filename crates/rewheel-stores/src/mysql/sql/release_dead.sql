-- release_dead: a dead letter is the head of its line, and holds up the others.
UPDATE rewheel_dead SET turn = ? WHERE id = ?;
