-- deadlines_look: whether the deadline of a live job has passed. Most of the time none has. $1 moves the clock.
SELECT EXISTS (SELECT FROM rewheel.jobs WHERE deadline_ms IS NOT NULL AND deadline_ms <= (SELECT rewheel.now_ms() + $1)
               AND shelf <> 'unreadable');
