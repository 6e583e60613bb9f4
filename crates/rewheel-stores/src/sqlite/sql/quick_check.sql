-- quick_check: what is wrong with the file, the first of it; `ok` if nothing is. Reads all of it.
PRAGMA quick_check(1);
