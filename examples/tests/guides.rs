//! Runs the commands of the guides for Rust, with the programs that the guides show.

#[path = "../../crates/rewheel-cli/tests/it/support/page.rs"]
#[expect(dead_code, reason = "another test looks at the commands of a page")]
mod page;

use self::page::{Page, root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Stands for `cargo build`, which would take a minute: copies the program that was compiled from the same text. Everything else is
/// done by cargo itself.
const CARGO: &str = r#"#!/bin/sh
[ "$1" = build ] || exec CARGO_ITSELF "$@"
for source in SOURCES/*.rs; do
    if cmp -s src/main.rs "$source"; then
        mkdir -p target/debug
        cp "PROGRAMS/$(basename "$source" .rs)" target/debug/shop
        exit
    fi
done
echo "src/main.rs is none of the programs in examples/src/bin"
exit 1
"#;

fn runs(page: &str) {
    let programs = Path::new(env!("CARGO_BIN_EXE_start_library")).parent().unwrap();
    let sources = root().join("examples/src/bin");
    let folder = tempfile::tempdir().unwrap();
    let cargo = folder.path().join("cargo");
    let text = CARGO
        .replace("CARGO_ITSELF", env!("CARGO"))
        .replace("SOURCES", sources.to_str().unwrap())
        .replace("PROGRAMS", programs.to_str().unwrap());
    fs::write(&cargo, text).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let page = Page::read(page);
    check_dependencies(&page);
    page.run("", &[folder.path()]);
}

/// The page's dependencies are those that the programs are compiled with.
fn check_dependencies(page: &Page) {
    let here = fs::read_to_string(root().join("examples/Cargo.toml")).unwrap();
    for block in page.blocks().iter().filter(|block| block.file == Some("Cargo.toml")) {
        let dependencies = block.lines.iter().skip_while(|line| **line != "[dependencies]");
        for line in dependencies.map(|line| line.replace("../rewheel/", "../")) {
            assert!(here.lines().any(|known| known == line), "not in examples/Cargo.toml: {line}");
        }
    }
}

#[test]
fn the_guide_to_the_library_survives_a_kill() {
    runs("docs/guide/start-library.md");
}

#[test]
fn the_guide_to_a_rust_service_survives_a_kill() {
    runs("docs/guide/start-rust-service.md");
}
