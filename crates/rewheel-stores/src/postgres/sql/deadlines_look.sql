-- deadlines_look: checks whether the deadline of any live job has passed. Usually none has. $1 is the clock offset. Nothing
-- was found before $2.
SELECT now, EXISTS (SELECT FROM rewheel.jobs WHERE deadline_ms IS NOT NULL AND deadline_ms BETWEEN $2 AND now AND shelf <> 'unreadable')
  FROM (SELECT rewheel.now_ms() + $1 AS now OFFSET 0) AS clock;
