//! Routes that show schedules, store them, and pause or fire them.

use super::{Route, delete, get, post, put};
use crate::openapi::Operation;
use crate::openapi::shape::kind;
use crate::problem::Code;
use crate::rest::access::{ADMIN, OPERATE_ALL, READ_ALL};
use crate::rest::schedules;
use rewheel_engine::ScheduleChange;

const ETAG: &str = "Version of the schedule, for the header If-Match of a later request.";
const IF_MATCH: &str =
    "ETag of the schedule. The server changes the schedule only if it still has this ETag.";

pub(super) fn routes() -> Vec<Route> {
    vec![
        get(
            "/v1/schedules",
            READ_ALL,
            schedules::list,
            Operation::new("listSchedules", "List schedules, newest first.")
                .paged()
                .gives(200, "A page of schedules.", "SchedulePage")
                .reads(),
        ),
        get(
            "/v1/schedules/{name}",
            READ_ALL,
            schedules::show,
            named(Operation::new("getSchedule", "Show a schedule.")).reads(),
        ),
        put(
            "/v1/schedules/{name}",
            ADMIN,
            schedules::put,
            named(Operation::new(
                "putSchedule",
                "Create a schedule, or replace its definition. The counters do not change. The next instant changes only if `cron`, `zone` or `every` change.",
            ))
            .takes("NewSchedule")
            .writes()
            .may(&[
                Code::ManagedByConfig,
                Code::WrongState,
                Code::UnknownKind,
                Code::InvalidField,
                Code::TooLarge,
                Code::Throttled,
                Code::KeyReused,
            ]),
        ),
        delete(
            "/v1/schedules/{name}",
            ADMIN,
            schedules::delete,
            named(Operation::new("deleteSchedule", "Delete a schedule. Jobs that it submitted stay."))
                .if_match(IF_MATCH)
                .may_take("Nothing")
                .writes()
                .may(&[Code::ManagedByConfig, Code::VersionChanged, Code::WrongState]),
        ),
        change(
            "/v1/schedules/{name}/pause",
            ScheduleChange::Pause,
            Operation::new(
                "pauseSchedule",
                "Pause a schedule. Instants that pass during the pause submit no job, and no counter counts them.",
            ),
        ),
        change(
            "/v1/schedules/{name}/resume",
            ScheduleChange::Resume,
            Operation::new("resumeSchedule", "Resume a paused schedule, from its next instant on."),
        ),
        fire(),
    ]
}

fn fire() -> Route {
    post(
        "/v1/schedules/{name}/fire",
        OPERATE_ALL,
        schedules::fire,
        Operation::new(
            "fireSchedule",
            "Submit the job of a schedule now, without waiting for its next instant.",
        )
        .at("name", "Name of the schedule.", kind())
        .may_take("Nothing")
        .gives(201, "The submitted job.", "ScheduleFired")
        .with("Location", "Path of the job.")
        .writes()
        .may(&[
            Code::WrongState,
            Code::UnknownKind,
            Code::InvalidField,
            Code::TooLarge,
            Code::Throttled,
            Code::KeyReused,
        ]),
    )
}

/// An operation about the schedule that the path names.
fn named(operation: Operation) -> Operation {
    operation
        .at("name", "Name of the schedule.", kind())
        .gives(200, "The schedule.", "Schedule")
        .with("ETag", ETAG)
}

fn change(path: &'static str, change: ScheduleChange, operation: Operation) -> Route {
    let handler = move |app, name, caller, uri, headers, body| {
        schedules::change(app, name, caller, (uri, headers, body), change)
    };
    let operation = named(operation)
        .if_match(IF_MATCH)
        .may_take("Nothing")
        .writes()
        .may(&[Code::VersionChanged, Code::WrongState]);
    post(path, OPERATE_ALL, handler, operation)
}
