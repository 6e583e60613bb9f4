-- quick_check: returns the first defect of the file, or `ok`. Reads the whole file.
PRAGMA quick_check(1);
