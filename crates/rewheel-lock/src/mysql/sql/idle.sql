-- idle: reads locks that are free since a time, at most some.
SELECT name, version, token FROM rewheel_locks WHERE until_ms < ? LIMIT ?
