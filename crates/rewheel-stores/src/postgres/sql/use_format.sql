-- use_format: notes that jobs of format $1 are about to be stored, and returns the name of a living holder whose release does not know it.
SELECT rewheel.use_format($1);
