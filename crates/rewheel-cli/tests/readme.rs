//! Runs the commands of the README's tour against a demo server.

#![expect(clippy::print_stdout, reason = "a test that cannot run says so")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const README: &str = include_str!("../../../README.md");

/// A part of the response to each command of the tour.
const ANSWERS: [&str; 5] = [
    r#""duplicate":false"#,
    r#""duplicate":true"#,
    r#""items":[{"#,
    r#""kind":"charge-card""#,
    r#""field":"/priority","message":"must be 0..9""#,
];

#[test]
fn the_tour_of_the_readme_works() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("not tested: the README's tour (curl is not installed)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_rewheel"))
        .args(["serve", "--demo", "--listen", "127.0.0.1:0"])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let address =
        lines.find_map(|line| Some(line.split_once("listening on http://")?.1.to_owned()));
    let address = address.expect("it says where it listens");
    // Keep reading: otherwise the server would block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));

    let tour = README.lines().filter_map(|line| line.strip_prefix("$ curl"));
    let answers: Vec<String> = tour
        .map(|rest| {
            let command = format!("curl{}", rest.replace("127.0.0.1:7420", &address));
            let output = Command::new("sh").args(["-c", &command]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
        .collect();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(answers.len(), ANSWERS.len(), "the tour has other commands than this test knows");
    for (answer, part) in answers.iter().zip(ANSWERS) {
        assert!(answer.contains(part), "{part} is not in {answer}");
    }
}
