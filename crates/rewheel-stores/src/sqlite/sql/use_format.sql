-- use_format: notes that a job of format ?1 is about to be stored: from now on no older holder can register.
INSERT INTO formats_used (format) VALUES (?1) ON CONFLICT DO NOTHING;
