//! Runs the commands of a page of the documentation, and compares what they print with what the page shows.
//!
//! A block of the language `console` is run. In it, a line that begins with `$ ` is a command, with `\` at its end it goes on in the
//! next line, and the lines below are its output: `…` stands for any text, and an output that is not shown is not compared. A
//! block below a line that ends in "as `NAME`:" is saved as that file. A block below `<!-- not run: REASON -->` is left out. All
//! commands of a page run in one shell, in an empty folder, in the order of the page. Only the ports 7420 and 8080 are replaced, by
//! free ones.

use std::fmt::Write as _;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Much longer than any page takes, also on a machine that is slow and busy.
const PATIENCE: Duration = Duration::from_secs(500);

/// Begins the output of each command.
const MARK: char = '\u{1}';

/// A page, by its path from the root of the repository.
#[derive(Debug)]
pub(crate) struct Page {
    name: String,
    text: String,
}

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    language: &'a str,
    /// The name of the file that the line above it tells to save it as.
    pub(crate) file: Option<&'a str>,
    /// Why no test can run it, as the comment above it says.
    pub(crate) not_run: Option<&'a str>,
    pub(crate) lines: Vec<&'a str>,
}

/// A command, with what the page shows of its output.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    shown: String,
}

pub(crate) fn root() -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.map(Path::to_owned).find(|folder| folder.join("GLOSSARY.md").is_file()).unwrap()
}

impl Block<'_> {
    pub(crate) fn has_commands(&self) -> bool {
        self.language == "console"
    }
}

impl Page {
    pub(crate) fn read(name: &str) -> Page {
        let text = std::fs::read_to_string(root().join(name));
        Page { name: name.to_owned(), text: text.unwrap_or_else(|error| panic!("{name}: {error}")) }
    }

    /// Returns the commands on the page that start a program.
    pub(crate) fn commands(&self, program: &str) -> Vec<String> {
        let blocks = self.blocks();
        let shown = blocks.iter().filter(|block| ["console", "sh"].contains(&block.language));
        let lines = shown.flat_map(|block| &block.lines);
        lines.flat_map(|line| commands(line, program)).collect()
    }

    pub(crate) fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        let (mut above, mut open, mut indent) = ("", false, 0);
        for line in self.text.lines() {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                open = !open;
                indent = line.len() - line.trim_start().len();
                let above = std::mem::take(&mut above);
                if open {
                    let (file, not_run) = (saved_as(above), not_run(above));
                    blocks.push(Block { language, file, not_run, lines: Vec::new() });
                }
            } else if open {
                // A block in a list is indented like the list.
                let (blank, text) = line.split_at(indent.min(line.len()));
                assert!(blank.trim().is_empty(), "{}: `{line}` is not indented", self.name);
                blocks.last_mut().unwrap().lines.push(text);
            } else if !line.is_empty() {
                above = line;
            }
        }
        assert!(!open, "{}: a block does not end", self.name);
        blocks
    }

    /// Runs the page after `setup`, which are commands as well. `programs` come first on the PATH.
    pub(crate) fn run(&self, setup: &str, programs: &[&Path]) {
        let folder = tempfile::tempdir().unwrap();
        let ports = [free_port(), free_port()].map(|port| port.to_string());
        let real = |text: &str| text.replace("7420", &ports[0]).replace("8080", &ports[1]);
        let (script, steps) = self.script(setup);
        let (path, output) = (folder.path().join(".script"), folder.path().join(".output"));
        std::fs::write(&path, real(&script)).unwrap();
        let work = folder.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let paths = std::env::var_os("PATH").unwrap();
        let programs = programs.iter().map(|path| path.to_path_buf());
        let paths = std::env::join_paths(programs.chain(std::env::split_paths(&paths))).unwrap();
        let out = File::create(&output).unwrap();
        let shell = Command::new("sh")
            .arg(&path)
            .current_dir(&work)
            .env("PATH", paths)
            .env("REWHEEL_SERVER", real("http://127.0.0.1:7420"))
            .env("REWHEEL__SERVER__LISTEN", real("127.0.0.1:7420"))
            .env_remove("RUST_LOG")
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .process_group(0)
            .spawn()
            .unwrap();
        let ended = wait_and_kill_the_rest(shell);
        let printed = std::fs::read_to_string(&output).unwrap();
        let printed: Vec<&str> = printed.split(MARK).skip(1).collect();
        for (step, printed) in steps.iter().zip(&printed) {
            let shown = real(&step.shown);
            let same = shown.is_empty() || matches(&shown, printed.trim());
            assert!(same, "{}: `{}` printed\n{printed}", self.name, step.command);
        }
        let last = printed.len().checked_sub(1).map_or("the setup", |i| &steps[i].command);
        let said = printed.last().copied().unwrap_or_default();
        assert!(ended.is_some(), "{}: `{last}` takes too long:\n{said}", self.name);
        assert!(ended.unwrap().success(), "{}: `{last}` failed:\n{said}", self.name);
        assert_eq!(printed.len(), steps.len(), "{}: stopped after `{last}`", self.name);
    }

    fn script(&self, setup: &str) -> (String, Vec<Step>) {
        let mut script = format!("set -e\n{setup}\n");
        let mut all = Vec::new();
        for block in self.blocks().iter().filter(|block| block.not_run.is_none()) {
            if let Some(file) = block.file {
                let text = block.lines.join("\n");
                writeln!(script, "cat > {file} <<'END OF FILE'\n{text}\nEND OF FILE").unwrap();
            }
            if block.has_commands() {
                for step in steps(&block.lines) {
                    writeln!(script, "printf '\\001'\n{}", step.command).unwrap();
                    all.push(step);
                }
            }
        }
        (script, all)
    }
}

/// Returns the commands of a line that start a program, each up to a comment, a pipe or a redirection.
fn commands(line: &str, program: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for (start, _) in line.match_indices(&format!("{program} ")) {
        let before = line[..start].trim_end();
        if before.is_empty()
            || ["$", "(", "|", ";", "&", "until", "do"].iter().any(|end| before.ends_with(end))
        {
            let rest = &line[start..];
            let ends = [" #", " |", " >", " 2>", " &", ";", ")"];
            let end = ends.iter().filter_map(|end| rest.find(end)).min();
            commands.push(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
    commands
}

fn saved_as(line: &str) -> Option<&str> {
    line.strip_suffix("`:")?.rsplit_once("as `").map(|(_, name)| name)
}

fn not_run(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!-- not run: ")?.strip_suffix(" -->")
}

fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { command: command.to_owned(), shown: String::new() });
            }
            (None, Some(step)) if step.shown.is_empty() && step.command.ends_with('\\') => {
                write!(step.command, "\n{line}").unwrap();
            }
            (None, Some(step)) => writeln!(step.shown, "{}", line.trim_end()).unwrap(),
            (None, None) => panic!("a console block begins with `$ `, not with `{line}`"),
        }
    }
    for step in &mut steps {
        step.shown = step.shown.trim().to_owned();
    }
    steps
}

/// Compares line by line without the blanks at their ends; `…` stands for any text, line ends included.
fn matches(shown: &str, printed: &str) -> bool {
    let lines: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let printed = lines.join("\n");
    let pieces: Vec<&str> = shown.split('…').collect();
    let Some(mut rest) = printed.strip_prefix(pieces[0]) else { return false };
    let [_, middle @ .., last] = &pieces[..] else { return rest.is_empty() };
    for piece in middle {
        let Some((_, behind)) = rest.split_once(piece) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

/// Waits for the shell, then ends what it left in the background.
fn wait_and_kill_the_rest(mut shell: Child) -> Option<ExitStatus> {
    let group = format!("-{}", shell.id());
    let (sender, receiver) = mpsc::channel();
    // After a timeout there is no receiver any more.
    let waiting = std::thread::spawn(move || sender.send(shell.wait().unwrap()).ok());
    let ended = receiver.recv_timeout(PATIENCE).ok();
    // It fails where nothing is left.
    drop(Command::new("kill").args(["-KILL", "--", &group]).output());
    waiting.join().unwrap();
    ended
}

/// How many ports this process has given out: tests that run in other threads need other ones.
static PORTS: AtomicU32 = AtomicU32::new(0);

/// Finds a port below those that the system gives to outgoing connections, apart from those of tests in other processes.
fn free_port() -> u16 {
    let first = (std::process::id() % 1_500) * 8;
    let numbers = (0..12_000).map(|_| first + PORTS.fetch_add(1, Ordering::Relaxed));
    let mut ports = numbers.map(|number| 20_000 + u16::try_from(number % 12_000).unwrap());
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a port is free")
}

#[test]
fn output_must_be_as_shown_up_to_what_is_left_out() {
    assert!(matches("ok", "ok") && matches("id …", "id 17  ") && matches("a\n…\nz", "a\nb\nc\nz"));
    assert!(!matches("ok", "not ok") && !matches("ok", "ok not") && !matches("a … c … d", "a c d"));
}

#[test]
fn commands_are_told_from_their_output() {
    let lines = ["$ echo a \\", "  b", "a b", "$ true"];
    let step = |command: &str, shown: &str| Step { command: command.into(), shown: shown.into() };
    assert_eq!(steps(&lines), [step("echo a \\\n  b", "a b"), step("true", "")]);
}

#[test]
fn a_file_is_named_by_the_line_above_it() {
    assert_eq!(saved_as("Save this as `rewheel.toml`:"), Some("rewheel.toml"));
    assert_eq!(saved_as("This is the output:"), None);
}

#[test]
fn a_block_that_cannot_run_says_why_in_the_line_above_it() {
    let text = "a list:\n\n  <!-- not run: needs two machines -->\n  ```console\n  $ true\n  ```\n\n```console\n$ false\n```\n";
    let page = Page { name: "a page".into(), text: text.into() };
    let reasons: Vec<_> = page.blocks().iter().map(|block| block.not_run).collect();
    assert_eq!(reasons, [Some("needs two machines"), None]);
    assert_eq!(page.blocks()[0].lines, ["$ true"]);
    assert_eq!(page.script("").1, [Step { command: "false".into(), shown: String::new() }]);
}

#[test]
fn commands_are_found_inside_of_lines() {
    let line =
        "$ ID=$(rewheel submit mail) && rewheel jobs show $ID | grep rewheel # rewheel is it";
    assert_eq!(commands(line, "rewheel"), ["rewheel submit mail", "rewheel jobs show $ID"]);
}
