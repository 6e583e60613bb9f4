//! Compares the table in `docs/auth.md` with the route table.

use super::groups;
use crate::rest::access::Access;
use std::fmt::Write;
use std::path::Path;

const START: &str = "<!-- Generated: REWHEEL_WRITE=1 cargo test -p rewheel-server the_routes_in_the_documentation -->\n";
const END: &str = "<!-- End of the generated part. -->\n";

fn table() -> String {
    let mut table =
        "\n| route | role | token bound to a tenant |\n| --- | --- | --- |\n".to_owned();
    for route in groups().iter().flat_map(|group| &group.routes) {
        let role = route.access.role().map_or("none", |role| role.as_str());
        let bound = match route.access {
            Access::Open => "not needed",
            Access::Tenant(_) => "its jobs",
            Access::TenantJob(_) => "one job: `?job=ID`",
            Access::AllTenants(_) => "rejected",
        };
        writeln!(table, "| `{} {}` | {role} | {bound} |", route.method, route.path).unwrap();
    }
    table.push('\n');
    table
}

/// `REWHEEL_WRITE=1` writes the table into `docs/auth.md`.
#[test]
fn the_routes_in_the_documentation_are_those_of_the_route_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/auth.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(START).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    let expected = table();
    if std::env::var_os("REWHEEL_WRITE").is_some() {
        std::fs::write(&path, [before, START, &expected, END, after].concat()).unwrap();
        return;
    }
    assert!(written == expected, "docs/auth.md is old: run this test with REWHEEL_WRITE=1");
}
