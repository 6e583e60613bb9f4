-- use_format: notes that a job of a format is about to be stored: from now on no older holder can register.
UPDATE rewheel_format SET format = ? WHERE one = 1;
