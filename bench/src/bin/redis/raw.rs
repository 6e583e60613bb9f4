//! Measures a minimal queue (one hash, one sorted set, no guarantees) as the upper limit of the server.

use anyhow::Result;
use redis::Script;

use crate::queue::load::{BATCH, Figures, Load, Payload, micros, rate};
use crate::server::Server;

const INSERT: &str = r"
local fields, places = {}, {}
for at = 2, #ARGV do
    local id = ARGV[1] + at
    fields[#fields + 1], fields[#fields + 2] = id, ARGV[at]
    places[#places + 1], places[#places + 2] = id, id
end
for first = 1, #fields, 2000 do
    local last = math.min(first + 1999, #fields)
    redis.call('HSET', KEYS[1], unpack(fields, first, last))
    redis.call('ZADD', KEYS[2], unpack(places, first, last))
end";

/// Deletes a job when it is taken: a crash would lose it.
const TAKE: &str = r"
local ids = redis.call('ZRANGE', KEYS[2], 0, ARGV[1] - 1)
if #ids == 0 then
    return {}
end
local jobs = redis.call('HMGET', KEYS[1], unpack(ids))
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, #ids - 1)
redis.call('HDEL', KEYS[1], unpack(ids))
return jobs";

pub async fn round(server: &Server, load: &Load) -> Result<Figures> {
    let mut connection = server.open().await?;
    let (insert, take) = (Script::new(INSERT), Script::new(TAKE));
    let started = micros();
    for first in (0..load.jobs).step_by(BATCH) {
        let mut call = insert.prepare_invoke();
        call.key("{raw}body").key("{raw}due").arg(first);
        for nth in first..load.jobs.min(first + BATCH) {
            call.arg(Payload::json(load.payload_bytes, nth)?);
        }
        call.invoke_async::<()>(&mut connection).await?;
    }
    let submit = rate(load.jobs, started);
    let started = micros();
    loop {
        let mut call = take.prepare_invoke();
        call.key("{raw}body").key("{raw}due").arg(BATCH);
        let taken: Vec<Vec<u8>> = call.invoke_async(&mut connection).await?;
        if taken.is_empty() {
            break;
        }
    }
    let drain = rate(load.jobs, started);
    Ok(Figures { submit: Some(submit), drain: Some(drain), ..Figures::default() })
}
