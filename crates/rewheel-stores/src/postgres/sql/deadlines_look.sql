-- deadlines_look: checks whether the deadline of any live job has passed. Usually none has. $1 is the clock offset.
SELECT EXISTS (SELECT FROM rewheel.jobs WHERE deadline_ms IS NOT NULL AND deadline_ms <= (SELECT rewheel.now_ms() + $1)
               AND shelf <> 'unreadable');
